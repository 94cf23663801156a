from __future__ import annotations

from typing import Any

import pytest

from projections.fold import fold
from projections.incidents import REGISTERS, Registers, fingerprint
from projections.sweep import SWEEPS, Sweeps, name_of
from tests.unit.projections.story import Story

FILED = {
    "register": "r",
    "fingerprint": "f1",
    "title": "Lost",
    "date": "2026-03-01",
    "severity": "HIGH",
    "category": "data-loss",
    "what": "a",
    "cost": "b",
    "lesson": "c",
    "sessions": [{"source": "claude", "key": "k1", "session_id": "s1"}],
}


def run(*facts: tuple[str, dict[str, Any]], story: Story | None = None, name: str = "sweep-1") -> Story:
    story = (story or Story()).task(f"t-{name}")
    story.opened(name, f"t-{name}", agent="ledgerd-sweep")
    story.said(name, 0, "sweep.started", {"register": "r", "title": "Ours"})
    for seq, (kind, payload) in enumerate(facts, 1):
        story.said(name, seq, kind, payload, actor="sweep")
    return story


def sweeps(story: Story) -> Sweeps:
    return fold(SWEEPS, SWEEPS.initial, story.events)


def registers(story: Story) -> Registers:
    return fold(REGISTERS, REGISTERS.initial, story.events)


def test_what_is_recorded_of_a_session_makes_it_seen_but_for_what_comes_again() -> None:
    facts = [
        (f"session.{how}", {"source": "claude", "key": how})
        for how in ("baselined", "clean", "excluded", "deferred", "unreadable")
    ]
    state = sweeps(run(*facts, ("source.initialised", {"source": "claude", "first_run": "baseline"})))
    assert dict(state.seen) == {name_of("claude", how): how for how in ("baselined", "clean", "excluded")}
    assert set(state.unscored["r"]) == {name_of("claude", "unreadable")}
    assert dict(state.initialised) == {"claude": "baseline"}


def test_a_judged_session_is_seen_once_its_verdict_stands_in_the_register() -> None:
    verdict = ("judge.verdict", {"verdict": "v", "plan": {}})
    written = ("register.written", {"verdict": "v", "paths": [], "commit": ""})
    judged = ("session.judged", {"verdict": "v", "keys": [["claude", "k"], ["bad"], 7]})
    pending = sweeps(run(verdict, judged))
    assert pending.pending is not None
    assert (pending.pending.id, dict(pending.seen)) == ("v", {})
    done = sweeps(run(verdict, written, judged))
    assert (done.pending, dict(done.seen)) == (None, {name_of("claude", "k"): "judged"})
    later = sweeps(run(written, judged, story=run(verdict), name="sweep-2"))
    assert (later.pending, len(later.seen)) == (None, 1)


def test_a_run_ends_by_its_result_and_one_without_was_killed() -> None:
    story = run(("sweep.finished", {"status": "ok", "headline": "all is well", "filed": 2, "odd": "x"}))
    [killed] = sweeps(story).unended()
    assert (killed.status, killed.register, killed.task_id) == ("ok", "r", "t-sweep-1")
    story.result("sweep-1", "done", seq=9)
    state = sweeps(story)
    assert state.unended() == []
    assert dict(state.runs["sweep-1"].counts) == {"filed": 2}
    opened = Story().task("t").opened("s", "t", agent="ledgerd-sweep").opened("other", "t", agent="claude-code")
    assert [one.session_id for one in sweeps(opened).unended()] == ["s"]


def test_an_incident_is_filed_once_and_counted_afterwards() -> None:
    again = {"register": "r", "fingerprint": "f1", "title": "Lost again", "date": "2026-03-05", "sessions": []}
    more = [{"source": "claude", "key": "k2"}, {"source": "claude", "key": "k1", "session_id": "s1"}]
    story = run(
        ("incident.filed", FILED),
        ("incident.filed", FILED | {"title": "Other"}),
        ("incident.recurred", again),
        ("incident.recurred", again | {"sessions": more}),
        ("incident.recurred", again | {"fingerprint": "nobody"}),
    )
    assert registers(story).titles["r"] == "Ours"
    [incident] = registers(story).of("r")
    assert (incident.title, incident.severity, len(incident.recurrences)) == ("Lost", "HIGH", 2)
    assert [one.key for one in incident.sessions] == ["k1", "k2"]


def test_incidents_stand_by_severity_then_newest_and_registers_apart() -> None:
    facts = [
        ("incident.filed", FILED | {"fingerprint": mark, "severity": severity, "date": date, "register": register})
        for mark, severity, date, register in [
            ("a", "LOW", "2026-03-09", "r"),
            ("b", "HIGH", "2026-01-01", "r"),
            ("c", "HIGH", "2026-02-01", "r"),
            ("d", "HIGH", "2026-02-01", "other"),
        ]
    ]
    assert [one.fingerprint for one in registers(run(*facts)).of("r")] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Force push removed commits", "  force-push   REMOVED commits. ", True),
        ("Ｆｕｌｌ width", "full width", True),
        ("Force push removed commits", "Force push removed two commits", False),
        ("Escaped \\*stars\\*", "escaped stars", True),
    ],
)
def test_a_title_is_known_again_whatever_its_case_and_signs(one: str, other: str, same: bool) -> None:
    assert (fingerprint(one) == fingerprint(other)) == same


@pytest.mark.parametrize("projection", [SWEEPS, REGISTERS])
def test_any_payload_is_folded_and_a_checkpoint_gives_the_same_state(projection: Any) -> None:
    kinds = ["sweep.started", "sweep.finished", "session.clean", "session.judged", "session.unreadable"]
    kinds += [
        "judge.verdict",
        "register.written",
        "incident.filed",
        "incident.recurred",
        "source.initialised",
        "result",
    ]
    odd = [[], {"keys": 3}, {"sessions": [3, {}]}, {"source": None, "key": [1]}, {"fingerprint": {}, "register": 1}]
    story = run(("incident.filed", FILED), ("session.clean", {"source": "a", "key": "b"}))
    for seq, (kind, payload) in enumerate(((kind, payload) for kind in kinds for payload in odd), 100):
        story.said("sweep-1", seq, kind, payload)  # type: ignore[arg-type]
    state = fold(projection, projection.initial, story.events)
    assert projection.decode(projection.encode(state)) == state
