"""The fold takes whatever the log has accepted: it never stumbles, and a second delivery changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.events.decode import new_event
from ledger.events.model import END_SEQ, Recorded
from projections.fold import fold
from projections.remediation import evolving, facts, views, words
from projections.remediation.evolving import RUN
from projections.remediation.following import recorded
from projections.remediation.state import Reply, Run
from tests.unit.daemons.remediation.given import APPROVE, CORRECT, Case, blocked, repaired, reviewing

KINDS = sorted(evolving._EVOLVE)
FIELDS = sorted(
    {
        "queue_id",
        "conversation",
        "project",
        "role",
        "stage",
        "step",
        "purpose",
        "attempt",
        "text",
        "status",
        "content",
    }
    | {"steps", "projects", "rules", "owner", "run_id", "master", "expires_at", "runner", "decision", "findings"}
    | {"cost_usd", "resume", "plan_rebased", "prompt_addendum", "feedback", "reason", "cause", "repair", "commit"}
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(
        ["s1", "s2", "q1", "q2", "q3", "master", "agent", "repair", "done", "AGENT", "SUPERVISOR", 10**40]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
PAYLOADS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8) | VALUES
PREFIXES = [
    Case(),
    reviewing().reply(CORRECT),
    blocked(tool="Tool"),
    blocked(tool="Tool").reply(repaired("needs_user", "deploy")),
]


def event(seq: int, kind: str, payload: Any) -> Recorded:
    made = new_event(seq, kind, "", payload)
    return Recorded(seq, 0, "run-1", seq, kind, "", None, 5, "run-1", "task/run-1", made.payload, made.digest)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(PREFIXES), st.lists(st.tuples(st.sampled_from(KINDS), PAYLOADS), max_size=6))
def test_no_event_makes_the_fold_or_its_views_stumble(prefix: Case, odd: list[tuple[str, Any]]) -> None:
    run = prefix.run
    for kind, payload in odd:
        run = RUN.evolve(run, event(run.last_seq + 1, kind, payload))
    assert RUN.decode(RUN.encode(run)) == run
    shown = msgspec.json.decode(msgspec.json.encode(views.detail(run)))
    assert shown["status"] in (words.RUNNING, words.BLOCKED, words.COMPLETED)
    orjson.dumps(shown)


def story(case: Case) -> list[Recorded]:
    """The events of a case, as they would stand in the log."""
    return [
        recorded("run-1", noted.seq, facts.Fact(noted.kind, noted.payload), at=noted.at) for noted in case.run.events
    ]


def test_folding_the_events_again_gives_the_same_run() -> None:
    case = reviewing().reply(CORRECT, "Mended.", APPROVE)
    again = fold(RUN, Run(id="run-1"), story(case))
    assert msgspec.structs.replace(again, last_seq=case.run.last_seq) == case.run


def test_a_seq_that_was_folded_is_not_folded_again() -> None:
    case = reviewing()
    for one in story(case):
        assert RUN.evolve(case.run, one) is case.run


def test_an_end_that_was_pushed_without_a_seq_is_none_of_the_runs_own() -> None:
    run = reviewing().run
    assert RUN.evolve(run, event(END_SEQ, "result", {"state": "failed"})) is run


def test_a_second_start_changes_nothing() -> None:
    run = reviewing().run
    started = facts.Fact(words.RUN_STARTED, {"run_id": "other", "steps": []})
    after = RUN.evolve(run, recorded("run-1", run.last_seq + 1, started))
    assert (after.id, after.steps) == (run.id, run.steps)


def test_a_handle_of_the_master_is_never_kept() -> None:
    case = Case().finish(Reply("done", APPROVE, resume="of the master")).tick()
    case.finish(Reply("done", "Done.", resume="of the agent")).tick()
    assert dict(case.run.handles) == {"step-1": "of the agent"}
