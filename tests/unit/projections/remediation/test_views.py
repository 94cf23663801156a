"""What is shown of a run."""

from __future__ import annotations

import msgspec
import pytest

from projections.remediation import facts, views
from projections.remediation.plan import Step
from projections.remediation.state import Progress, Reply, Review, Run
from tests.unit.daemons.remediation.given import APPROVE, CORRECT, Case, at_the_end, blocked, repaired, reviewing


def reviewed(*findings: int, none_at: int | None = None) -> Progress:
    reviews = [Review(f"q{n}", "correct", "x", count, n, n) for n, count in enumerate(findings)]
    if none_at is not None:
        reviews.insert(none_at, Review("q99", "none", "", 0, 1, 1))
    return Progress(Step("s1", 1, "a", "t", "p"), "a", "step-1", reviews=tuple(reviews))


@pytest.mark.parametrize(
    ("findings", "shrinking"),
    [
        ((), None),
        ((3,), None),
        ((3, 2, 1), True),
        ((3, 3, 1), True),
        ((3, 3), False),
        ((1, 2), False),
        ((5, 1, 2), False),
    ],
)
def test_a_step_converges_where_its_reviews_find_ever_less(findings: tuple[int, ...], shrinking: bool | None) -> None:
    assert views.convergence(reviewed(*findings)).shrinking is shrinking


def test_a_review_without_a_verdict_says_nothing_about_the_work() -> None:
    assert views.convergence(reviewed(3, 1, none_at=1)).findings == (3, 1)


def test_before_any_start_there_is_nothing_to_see() -> None:
    assert views.detail(Run())["status"] == "NOT_STARTED"


@pytest.mark.parametrize(
    "case",
    [Case(), reviewing().reply(CORRECT), blocked(tool="Tool"), at_the_end().reply("ok")],
    ids=lambda c: c.at[1],
)
def test_a_run_is_shown_with_all_that_a_client_looks_for(case: Case) -> None:
    shown = msgspec.json.decode(msgspec.json.encode(views.detail(case.run)))
    wanted = {
        "status",
        "stage",
        "error",
        "steps",
        "events",
        "self_repair",
        "correction_round",
        "master_conversation_id",
    }
    assert wanted <= shown.keys()
    assert (shown["status"], shown["stage"]) == case.at
    assert shown["master_conversation_id"] == "run-1/master"
    assert shown["actions"] == (["resume", "approve"] if case.run.status == "BLOCKED" else [])
    assert [event["seq"] for event in shown["events"]] == sorted(event["seq"] for event in shown["events"])


def test_leases_are_no_part_of_the_timeline() -> None:
    case = Case().append([facts.lease_taken("one", 5), facts.lease_released("one")])
    assert [event.kind for event in case.run.events] == ["run.started", "prompt.enqueued"]
    assert case.run.last_seq == 4


def test_cost_is_summed_and_what_is_unknown_is_counted() -> None:
    case = Case().finish(Reply("done", APPROVE, cost_usd=0.25)).tick()
    case.finish(Reply("done", "Done.", cost_usd=0.5)).tick().finish(Reply("done", APPROVE)).tick()
    shown = views.detail(case.run)
    assert (shown["cost_usd"], shown["turns_without_cost"]) == (0.75, 1)


def test_the_exchange_of_a_repair_is_shown_with_its_reply() -> None:
    case = blocked(tool="Tool")
    queue_id = case.prompt.queue_id
    case.reply(repaired("needs_user", "deploy"))
    shown = views.prompt_item(case.run, case.run.prompts[queue_id])
    assert (shown["role"], shown["conversation_id"], shown["reply"]["status"]) == ("repair", "run-1/repair-1", "done")
    assert shown["finished_at"] > shown["enqueued_at"]
