"""What is told of incidents: how they stand, in which order, and from week to week."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from projections import incidents_decided, incidents_views
from projections.incidents_board import Board, incident_id
from projections.incidents_decided import Decided
from projections.incidents_views import Incident, incidents, listed
from tests.unit.projections.story import START_NS, Story
from tests.unit.projections.test_incidents_board import AGAIN, LOST, board, run

WEEK = "2023-11-13"  # of the day on which stories begin


def decided(story: Story) -> Decided:
    state = Decided()
    for event in story.events:
        if event.session_id == "@incidents":
            state = incidents_decided.evolve(state, event)
    return state


def decide(story: Story, kind: str, by: str = "owner", mark: str = "f1", **more: str) -> Story:
    story._scopes["@incidents"] = (None, "incidents")
    return story.decided("@incidents", f"incident.{kind}", {"incident": incident_id("r", mark), **more}, by)


def told(story: Story) -> list[Incident]:
    return incidents(board(story.events), decided(story))


def test_who_decided_what_when_and_why_is_told_in_order() -> None:
    story = run(Story(), "one", ("incident.filed", LOST))
    [one] = told(story)
    assert (one.standing.status, one.standing.actions) == ("open", ("acknowledge", "resolve"))
    decide(decide(story, "acknowledged", "ann"), "resolved", "ben", reason="a backup")
    [one] = told(story)
    assert (one.standing.status, one.standing.actions) == ("resolved", ("reopen",))
    item = incidents_views.item(one)
    assert [(each["status"], each["by"], each["reason"]) for each in item["decisions"]] == [
        ("acknowledged", "ann", ""),
        ("resolved", "ben", "a backup"),
    ]
    assert list(item["actions"]) == ["reopen"]
    assert item["updated_at"] == item["decisions"][-1]["at"] > item["filed_at"]


@pytest.mark.parametrize(
    ("date", "status"), [("2023-11-20", "open"), ("2023-11-14", "open"), ("2023-11-13", "resolved")]
)
def test_what_happens_again_after_it_was_resolved_is_open_again(date: str, status: str) -> None:
    story = decide(run(Story(), "one", ("incident.filed", LOST)), "resolved")
    run(story, "two", ("incident.recurred", AGAIN | {"date": date}))
    [one] = told(story)
    assert (one.standing.status, one.standing.came_back) == (status, status == "open")
    decide(story, "resolved")
    [one] = told(story)
    assert (one.standing.status, one.standing.came_back, len(one.again)) == ("resolved", False, 1)


def test_one_that_was_acknowledged_stays_so_when_it_is_met_again() -> None:
    story = decide(run(Story(), "one", ("incident.filed", LOST)), "acknowledged")
    [one] = told(run(story, "two", ("incident.recurred", AGAIN)))
    assert (one.standing.status, one.last_date) == ("acknowledged", "2023-11-20")


def many() -> Story:
    story = Story()
    for number, (mark, severity, date) in enumerate(
        [
            ("a", "LOW", "2026-03-09"),
            ("b", "HIGH", "2026-01-01"),
            ("c", "HIGH", "2026-02-01"),
            ("d", "no severity", "2026-01-05"),
        ]
    ):
        filed = LOST | {"fingerprint": mark, "severity": severity, "date": date}
        run(story, f"run-{number}", ("incident.filed", filed))
    return story


def marks(found: list[Incident]) -> list[str]:
    return [one.found.fingerprint for one in found]


def test_incidents_stand_by_severity_then_newest_and_one_that_happens_again_comes_up() -> None:
    assert marks(told(many())) == ["c", "b", "a", "d"]
    again = run(many(), "again", ("incident.recurred", AGAIN | {"fingerprint": "b", "date": "2026-02-02"}))
    assert marks(told(again)) == ["b", "c", "a", "d"]


def test_pages_follow_each_other_whatever_is_decided_between_them() -> None:
    story = many()
    first, following = listed(told(story), status="unresolved", limit=2)
    assert (marks(first), following) == (["c", "b"], incident_id("r", "b"))
    decide(story, "resolved", mark="b")
    second, end = listed(told(story), status="unresolved", after=following, limit=2)
    assert (marks(second), end) == (["a", "d"], None)
    assert marks(listed(told(story), status="resolved")[0]) == ["b"]
    assert marks(listed(told(story), status="all", severity="LOW")[0]) == ["a", "d"]
    with pytest.raises(KeyError):
        listed(told(story), after="nobody")


def test_an_incident_of_which_only_a_recurrence_was_read_is_not_told_yet() -> None:
    story = run(Story(), "one", ("incident.recurred", AGAIN))
    assert told(story) == []
    assert incidents_views.incident(board(story.events), Decided(), incident_id("r", "f1")) is None


def test_the_trend_counts_incidents_by_when_they_happened_and_runs_by_when_they_ran() -> None:
    story = run(Story(), "one", ("incident.filed", LOST), ("incident.recurred", AGAIN))
    run(story, "two", register="other")
    state = board(story.events)
    weeks = incidents_views.weeks_until(START_NS + 8 * 86_400 * 10**9, 3)
    assert weeks == ["2023-11-06", WEEK, "2023-11-20"]
    trend = incidents_views.trend(state, told(story), weeks)
    assert [(each["HIGH"], each["again"], each["runs"]) for each in trend] == [(0, 0, 0), (1, 0, 2), (0, 1, 0)]
    alone = incidents_views.trend(state, told(story), weeks, register="other")
    assert [(each["runs"], each["unscored"]) for each in alone] == [(0, 0), (1, 1), (0, 0)]


def test_a_register_that_nobody_looked_at_has_no_number_of_unscored_sessions() -> None:
    story = run(Story(), "one", register="fresh", ended=False)
    [register] = incidents_views.registers(board(story.events))
    assert (register["unscored"], register["last_run"], register["is_swept_now"]) == (None, None, True)
    run(story, "two", register="fresh")
    [register] = incidents_views.registers(board(story.events))
    assert (register["unscored"], register["title"]) == (1, "of two")
    assert register["last_run"]["headline"] == "all looked at"


def test_an_empty_board_has_nothing_to_tell() -> None:
    now = int(datetime(2026, 3, 4, tzinfo=UTC).timestamp()) * 10**9
    assert incidents(Board(), Decided()) == []
    assert incidents_views.registers(Board()) == []
    [week] = incidents_views.trend(Board(), [], incidents_views.weeks_until(now, 1))
    assert week == {"week": "2026-03-02", "HIGH": 0, "MEDIUM": 0, "LOW": 0, "again": 0} | dict.fromkeys(
        ("runs", "failed", "looked_at", "unscored"), 0
    )
