"""The laws that projections keep, as properties over random histories."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.events.kinds import TERMINAL_STATES
from ledger.events.model import Recorded
from projections import narrative
from projections.activity import Activity
from projections.catalog import CATALOG, Catalog
from projections.fold import Projection, fold
from projections.goal import ROOT, Root
from projections.narrative import Row, all_rows
from projections.task import Task
from projections.usage import Totals
from tests.sim.laws.histories import (
    SEEDS,
    History,
    delivered,
    histories,
    is_terminal,
    log_of,
    redelivered,
    roots_of,
    shuffled,
)

BUDGET = settings(max_examples=150)


def catalog_of(events: list[Recorded]) -> Catalog:
    return fold(CATALOG, CATALOG.initial, events)


def tasks_of(roots: dict[str, Root]) -> dict[str, Task]:
    return {task_id: task for root in roots.values() for task_id, task in root.work.tasks.items()}


@BUDGET
@given(histories(), SEEDS)
def test_law_1_what_is_delivered_again_changes_no_row_and_no_narrative(history: History, seed: int) -> None:
    once = log_of(delivered(history.steps))
    again = log_of(delivered(redelivered(history.steps, seed)))
    assert again == once
    assert roots_of(again) == roots_of(once)


@BUDGET
@given(histories(), SEEDS)
def test_law_2_shuffling_the_chunks_of_sessions_changes_nothing_but_position(history: History, seed: int) -> None:
    one, other = (roots_of(log_of(delivered(told))) for told in (history.steps, shuffled(history.steps, seed)))
    assert one.keys() == other.keys()
    for name in one:
        assert seen_without_positions(one[name]) == seen_without_positions(other[name])


@BUDGET
@given(histories(), SEEDS)
def test_law_2_the_current_command_of_a_lone_session_does_not_depend_on_the_order(
    history: History, seed: int
) -> None:
    lone = [step for step in history.steps if step.stream.startswith("@") or step.stream == "s0"]
    one, other = (roots_of(log_of(delivered(told))) for told in (lone, shuffled(lone, seed)))
    assert {name: current_of(root.activity) for name, root in one.items()} == {
        name: current_of(root.activity) for name, root in other.items()
    }


def seen_without_positions(root: Root) -> dict[str, Any]:
    rows = list(all_rows(root.narrative))
    usage = root.usage
    return {
        "digests": [narrative.digest(root.narrative, scope) for scope in (None, *sorted(root.work.tasks))],
        "rows": Counter((row.kind, row.text, row.task_id, row.saying.key, row.told_by) for row in rows),
        "statuses": {task_id: task.status for task_id, task in root.work.tasks.items()},
        "summaries": {task_id: task.summary for task_id, task in root.work.tasks.items()},
        "goals": {goal_id: root.work.status_of(goal) for goal_id, goal in root.work.goals.items()},
        "sessions": {name: state_of(root, name) for name in root.work.session_tasks},
        "usage": (usage.whole, counted(usage.tasks), counted(usage.sessions)),
    }


def counted(totals: Mapping[str, Totals]) -> dict[str, Totals]:
    return {name: total for name, total in totals.items() if total != Totals()}


def state_of(root: Root, session_id: str) -> str:
    session = root.work.session(session_id)
    assert session is not None
    return session.state


def current_of(activity: Activity) -> str | None:
    return None if activity.current is None else activity.current.line


@BUDGET
@given(histories(), st.data())
def test_law_3_a_crash_at_any_point_and_all_delivered_again_end_in_the_same(
    history: History, data: st.DataObject
) -> None:
    crash = data.draw(st.integers(0, len(history.steps)))
    whole = log_of(delivered(history.steps))
    store = delivered(history.steps[:crash])
    assert log_of(store) == whole[: len(log_of(store))]
    recovered = log_of(delivered(history.steps, store))
    assert recovered == whole
    assert catalog_of(recovered) == catalog_of(whole)


@BUDGET
@given(histories())
def test_law_4_one_transition_for_each_attempt_and_one_row_that_tells_it(history: History) -> None:
    events = log_of(delivered(history.steps))
    roots = roots_of(events)
    for task in tasks_of(roots).values():
        ends = expected_ends(task.id, events)
        assert [attempt.end and (attempt.end.state, attempt.end.summary) for attempt in task.attempts] == ends
    for root in roots.values():
        told = Counter(row.task_id for row in all_rows(root.narrative) if is_end(row))
        ended = {
            id_: sum(attempt.end is not None for attempt in task.attempts) for id_, task in root.work.tasks.items()
        }
        assert told == Counter({id_: count for id_, count in ended.items() if count})


def is_end(row: Row) -> bool:
    return row.kind.partition("-")[2] in TERMINAL_STATES


def expected_ends(task_id: str, events: list[Recorded]) -> list[tuple[str, str] | None]:
    """How each attempt of a task ended, read off the log in the plainest way."""
    ends: list[tuple[str, str] | None] = [None]
    attempt_of: dict[str, int] = {}
    is_run = task_id == "1"
    for event in events:
        payload = json.loads(event.payload)
        if event.kind == "session.opened" and event.task_id == task_id:
            if "parent_session_id" not in payload:
                attempt_of[event.session_id] = len(ends)
        elif event.session_id == f"@task/{task_id}" or (is_run and event.session_id == "@goal/7"):
            if event.kind in ("task.requeued", "goal.reopened") and ends[-1] is not None:
                ends.append(None)
            elif event.kind in ("task.cancelled", "goal.cancelled") and ends[-1] is None:
                ends[-1] = ("cancelled", payload["reason"])
        elif is_terminal(event) and attempt_of.get(event.session_id) == len(ends) and ends[-1] is None:
            ends[-1] = (payload["state"], payload["summary"])
    return ends


@BUDGET
@given(histories())
def test_law_4_an_explanation_makes_no_comment_and_no_block(history: History) -> None:
    events = log_of(delivered(history.steps))
    for name, root in roots_of(events).items():
        said = {
            json.loads(event.payload)["body"] for event in events if event.kind == "comment" and event.root == name
        }
        shown = {row.text for row in all_rows(root.narrative) if row.kind == "comment"}
        assert shown == said
        blocked = {event.task_id for event in events if event.kind == "task.blocked"}
        assert {task.id for task in root.work.tasks.values() if task.blocks} <= blocked


@BUDGET
@given(histories(), st.data())
def test_law_5_folding_on_from_any_state_or_checkpoint_equals_folding_from_the_start(
    history: History, data: st.DataObject
) -> None:
    log = log_of(delivered(history.steps))
    name = data.draw(st.sampled_from(sorted({event.root for event in log})))
    of_root = [event for event in log if event.root == name]
    cases: list[tuple[Projection[Any], list[Recorded]]] = [(ROOT, of_root), (CATALOG, log)]
    for projection, events in cases:
        whole = fold(projection, projection.initial, events)
        cut = data.draw(st.integers(0, len(events)))
        half = fold(projection, projection.initial, events[:cut])
        checkpoint = projection.encode(half)
        assert fold(projection, half, events[cut:]) == whole
        assert projection.decode(checkpoint) == half
        assert fold(projection, projection.decode(checkpoint), events[cut:]) == whole


@BUDGET
@given(histories())
def test_the_catalog_and_the_roots_agree(history: History) -> None:
    events = log_of(delivered(history.steps))
    catalog, roots = catalog_of(events), roots_of(events)
    tasks = tasks_of(roots)
    assert dict(catalog.work.tasks) == tasks
    for root in roots.values():
        for goal in root.work.goals.values():
            assert catalog.work.goals[goal.id] == goal
            assert catalog.work.status_of(catalog.work.goals[goal.id]) == root.work.status_of(goal)
    assert {task.id for task in catalog.claimable()} == {task.id for task in tasks.values() if task.claimable}
    assert catalog.tasks.statuses() == dict(sorted(Counter(task.status for task in tasks.values()).items()))
    ended = {state: {key[2] for key in catalog.ends("task", state)} for state in TERMINAL_STATES}
    assert ended == {state: {t.id for t in tasks.values() if t.status == state} for state in TERMINAL_STATES}


@BUDGET
@given(histories())
def test_rows_of_a_session_stand_in_seq_order_and_no_row_moves(history: History) -> None:
    log = log_of(delivered(history.steps))
    for name in sorted({event.root for event in log}):
        root = ROOT.initial
        places: dict[tuple[int, str], int] = {}
        for event in (event for event in log if event.root == name):
            root = fold(ROOT, root, [event])
            rows = list(all_rows(root.narrative))
            for session_id in {row.saying.session_id for row in rows}:
                seqs = [row.saying.seq for row in rows if row.saying.session_id == session_id]
                assert seqs == sorted(seqs)
            now = {(row.saying.position, row.saying.session_id): row.anchor for row in rows}
            assert all(now[key] == anchor for key, anchor in places.items() if key in now)
            places = now


@BUDGET
@given(histories())
def test_the_digest_is_that_of_the_rows_that_are_shown(history: History) -> None:
    for root in roots_of(log_of(delivered(history.steps))).values():
        rows = list(all_rows(root.narrative))
        assert narrative.digest(root.narrative) == digest_of(rows)
        for task_id in root.work.tasks:
            own = [row for row in rows if row.task_id == task_id]
            assert narrative.rows(root.narrative, limit=10**6, task_id=task_id) == (own, None)
            assert narrative.digest(root.narrative, task_id) == digest_of(own)


def digest_of(rows: list[Row]) -> str:
    total = 0
    for row in rows:
        said = [row.kind, row.text, row.claimed_at, row.saying.actor, row.task_id, row.saying.key]
        total += int(hashlib.sha256(json.dumps(said, separators=(",", ":")).encode()).hexdigest(), 16)
    return f"{total % 2**256:064x}"
