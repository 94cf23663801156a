from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events import kinds
from projections import trends, work
from projections.fold import fold
from projections.trend_views import daily, days_until, spending, week
from projections.trends import TRENDS, Trends, quantile_s, seconds_of, step_of
from projections.work import Work
from tests.unit.projections.story import SECOND_NS, START_NS, Story

DAY = "2023-11-14"  # of START_NS
DAY_NS = 86_400 * SECOND_NS


def trends_of(story: Story) -> Trends:
    return fold(TRENDS, TRENDS.initial, story.events)


def day_of(story: Story, day: str = DAY) -> dict[str, Any]:
    return daily(trends_of(story), [day])[0]


def used(story: Story, session_id: str, seq: int, message_id: str, **counts: Any) -> Story:
    return story.said(session_id, seq, "usage", {"message_id": message_id, **counts})


def test_a_failure_that_is_repeated_under_many_sessions_is_one_failed_attempt() -> None:
    story = Story().started_goal().opened("a", "1").opened("b", "1")
    story.result("a", "failed", "oom").result("b", "failed", "oom").result("a", "done", seq=9)
    day = day_of(story)
    assert (day["sessions"], day["failed"], day["done"]) == (2, 1, 0)


def test_each_attempt_ends_once_and_old_sessions_end_no_new_one() -> None:
    story = Story().task("1").opened("a", "1").result("a", "failed").requeued("1")
    story.result("a", "failed", seq=5).opened("b", "1").result("b", "done")
    day = day_of(story)
    assert (day["failed"], day["done"]) == (1, 1)


def test_a_child_session_ends_no_attempt() -> None:
    story = Story().task("1").opened("a", "1").opened("child", "1", parent_session_id="a").result("child", "failed")
    assert day_of(story)["failed"] == 0


def test_a_cancelled_task_counts_as_cancelled() -> None:
    story = Story().task("1").opened("a", "1").decided("@task/1", "task.cancelled").result("a", "done")
    day = day_of(story)
    assert (day["cancelled"], day["done"]) == (1, 0)


def test_the_time_to_done_runs_from_the_first_session_to_the_result() -> None:
    story = Story().task("1")
    story.opened("a", "1").opened("b", "1").result("b", "done", at=START_NS + 2 * SECOND_NS + 3600 * SECOND_NS)
    half = day_of(story)["half_within_s"]
    assert half == pytest.approx(3600, rel=0.1)


def test_usage_counts_once_per_message_in_the_cell_of_its_project_and_model() -> None:
    story = Story().started_goal().opened("a", "1", model="opened-with")
    used(story, "a", 1, "m1", output_tokens=1)
    used(story, "a", 2, "m1", output_tokens=5)
    used(story, "a", 3, "m2", output_tokens=7, model="named", cost_usd=0.5)
    story.opened("fork", "1")
    used(story, "fork", 1, "m1", output_tokens=1)
    cells = spending(trends_of(story), [DAY])
    assert [(one["project_id"], one["model"], one["output_tokens"], one["cost_usd"]) for one in cells] == [
        ("1", "named", 7, 0.5),
        ("1", "opened-with", 5, None),
    ]


def test_a_report_that_is_corrected_on_another_day_counts_there_alone() -> None:
    story = Story().task("1").opened("a", "1")
    used(story, "a", 1, "m1", output_tokens=5)
    story.said("a", 2, "usage", {"message_id": "m1", "output_tokens": 6}, at=START_NS - DAY_NS)
    found = trends_of(story)
    assert spending(found, [DAY]) == []
    assert [one["output_tokens"] for one in spending(found, ["2023-11-13"])] == [6]


def test_a_clock_that_runs_days_ahead_is_not_believed() -> None:
    story = Story().task("1").opened("a", "1").said("a", 1, "message", at=START_NS + 30 * DAY_NS)
    assert list(trends_of(story).days) == [DAY]


def test_the_week_counts_events_by_weekday_and_hour() -> None:
    story = (
        Story().task("1").opened("a", "1").comment("a", 1, "x").comment("a", 2, "y", at=START_NS - 3600 * SECOND_NS)
    )
    cells = week(trends_of(story), [DAY])  # a Tuesday, 22:13
    assert (cells[1][22], cells[1][21], sum(map(sum, cells))) == (2, 1, 3)


def test_the_days_end_with_today() -> None:
    assert days_until(START_NS, 3) == ["2023-11-12", "2023-11-13", "2023-11-14"]


def test_durations_are_told_to_within_a_tenth() -> None:
    for seconds in (2, 59, 3600, 86_400, 10**7):
        assert seconds_of(step_of(seconds * SECOND_NS)) == pytest.approx(seconds, rel=0.1)
    assert step_of(-5 * SECOND_NS) == step_of(0) == 0


def test_quantiles_of_nothing_are_none() -> None:
    assert quantile_s(trends.Day().to_done, 0.5) is None


def test_the_state_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DAYS_MAX", "CELLS_MAX", "TASKS_MAX", "SESSIONS_MAX", "REPORTS_MAX", "ROOTS_MAX"):
        monkeypatch.setattr(trends, name, 3)
    story = Story()
    for n in range(8):
        story.task(str(n), project_id="p").opened(f"s{n}", str(n))
        used(story, f"s{n}", 1, f"m{n}", output_tokens=1, model=f"model-{n}")
        story.said(f"s{n}", 2, "message", at=START_NS - n * DAY_NS)
    found = trends_of(story)
    kept = (found.tasks, found.sessions, found.reports, found.projects, found.days)
    assert [len(one) for one in kept] == [3] * 5
    assert min(found.days) == "2023-11-12"
    assert len(found.days[DAY].spent) == 4
    assert sum(one["output_tokens"] for one in spending(found, [DAY])) == 8


_LINES = st.lists(
    st.tuples(
        st.sampled_from(["open", "child", "done", "failed", "working", "requeue", "cancel", "claim"]),
        st.integers(1, 3),
        st.integers(0, 3),
    ),
    max_size=40,
)


def _history(lines: list[tuple[str, int, int]]) -> Story:
    story = Story().task("1").task("2").started_goal("7", "3")
    opened: dict[str, int] = {}
    seqs: dict[str, int] = {}
    for what, task, number in lines:
        session = f"s{number}-{task}"
        if what in ("open", "child") and session not in opened:
            opened[session] = task
            story.opened(session, str(task), **({"parent_session_id": "p"} if what == "child" else {}))
        elif what in kinds.STATES and session in opened:
            seqs[session] = seqs.get(session, 0) + 1
            story.result(session, what, seq=seqs[session])
        elif what == "requeue":
            story.requeued(str(task))
        elif what == "cancel":
            story.decided(f"@task/{task}", "task.cancelled")
        elif what == "claim":
            story.decided(f"@task/{task}", "task.claimed")
    return story


@given(_LINES)
@settings(max_examples=200, print_blob=True)
def test_the_trends_count_the_ends_that_the_tasks_have(lines: list[tuple[str, int, int]]) -> None:
    story = _history(lines)
    done_work: Work = Work()
    for event in story.events:
        done_work = work.evolve(done_work, event)
    ends = [one.end.state for task in done_work.tasks.values() for one in task.attempts if one.end is not None]
    day = day_of(story)
    assert {state: day[state] for state in kinds.TERMINAL_STATES} == {
        state: ends.count(state) for state in kinds.TERMINAL_STATES
    }


@given(_LINES, st.integers(0, 60))
@settings(max_examples=50, print_blob=True)
def test_folding_on_from_a_checkpoint_equals_folding_from_the_start(
    lines: list[tuple[str, int, int]], cut: int
) -> None:
    events = _history(lines).events
    kept = TRENDS.decode(TRENDS.encode(fold(TRENDS, TRENDS.initial, events[:cut])))
    assert fold(TRENDS, kept, events[cut:]) == fold(TRENDS, TRENDS.initial, events)


@pytest.mark.parametrize("payload", [[], 7, {"message_id": {}}, {"state": []}, {"input_tokens": "x", "model": 9}])
@pytest.mark.parametrize("kind", ["usage", "result", "session.opened", "task.created"])
def test_no_payload_stops_the_fold(kind: str, payload: Any) -> None:
    story = Story().task("1").opened("a", "1").comment("a", 1, "x")
    odd = replace(story.events[-1], kind=kind, payload=json.dumps(payload).encode())
    assert fold(TRENDS, TRENDS.initial, [*story.events, odd]).days[DAY].sessions == 1
