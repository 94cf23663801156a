"""Every transition of the table: at a stage, when a reply comes, then the run stands there."""

from __future__ import annotations

import pytest

from ledger.daemons.remediation import machine
from ledger.daemons.remediation.machine import Next
from projections.remediation import facts, words
from projections.remediation.plan import Rules
from projections.remediation.state import Reply
from tests.unit.daemons.remediation.given import (
    APPROVE,
    BLOCK,
    CORRECT,
    SECOND,
    Case,
    at_the_end,
    blocked,
    repaired,
    reviewing,
    verdict,
    working,
)


def test_a_start_gives_the_plan_to_the_master() -> None:
    case = Case(steps=3)
    assert case.kinds == ["run.started", "result", "prompt.enqueued"]
    assert case.at == ("RUNNING", "PLAN_REVIEW")
    assert [one.status for one in case.run.steps] == ["PENDING"] * 3
    assert (case.prompt.role, case.prompt.project, case.prompt.conversation) == ("master", "Platform", "master")
    for number in (1, 2, 3):
        assert f"Do the work of step {number}." in case.prompt.text
    assert 'LEDGERD_SUPERVISION {"decision": "approve|block"' in case.prompt.text


def test_an_approved_plan_sends_the_first_steps_agent_to_work() -> None:
    case = Case().reply(APPROVE)
    assert case.result == "processed"
    assert case.kinds == ["supervision.verdict", "prompt.enqueued"]
    assert case.at == ("RUNNING", "AGENT")
    assert (case.step.status, case.step.attempts) == ("WORKING", 1)
    assert (case.prompt.role, case.prompt.project, case.prompt.conversation) == ("agent", "Alpha", "step-1")
    assert "Do the work of step 1." in case.prompt.text


@pytest.mark.parametrize("said", ["block", "correct"])
def test_a_plan_that_is_not_approved_blocks_the_run_and_its_first_step(said: str) -> None:
    case = Case().reply(verdict(said, "step 2 comes first"))
    assert case.kinds == ["supervision.verdict", "run.blocked", "result"]
    assert case.at == ("BLOCKED", "PLAN_REVIEW")
    assert (case.step.status, case.run.error) == ("BLOCKED", "step 2 comes first")
    assert case.decided[-1].payload == {"state": "suspended", "summary": "step 2 comes first"}


def test_a_report_goes_to_the_master_with_the_diff() -> None:
    case = working().reply("I ported it.", diff="+ a line")
    assert case.result == "processed"
    assert case.at == ("RUNNING", "SUPERVISOR")
    assert (case.step.status, case.step.attempts) == ("REVIEWING", 1)
    assert (case.prompt.role, case.prompt.conversation, case.prompt.step) == ("master", "master", "s1")
    for part in ("I ported it.", "+ a line", "Do the work of step 1.", "Inspect only"):
        assert part in case.prompt.text


def test_what_is_sent_back_goes_to_the_same_conversation() -> None:
    case = reviewing().reply(CORRECT)
    assert case.at == ("RUNNING", "AGENT")
    assert (case.step.status, case.step.attempts, case.step.correction_round) == ("CORRECTING", 2, 1)
    assert (case.prompt.role, case.prompt.conversation, case.prompt.attempt) == ("agent", "step-1", 2)
    assert "- mend this\n- and that" in case.prompt.text
    assert [review.findings for review in case.step.reviews] == [2]


def test_the_second_review_tells_what_was_sent_back() -> None:
    case = reviewing().reply(CORRECT, "Mended.")
    assert "You sent it back in round 1" in case.prompt.text
    assert "- mend this\n- and that" in case.prompt.text


def test_an_approved_step_hands_over_to_the_next() -> None:
    case = reviewing().reply(APPROVE)
    assert case.kinds == ["supervision.verdict", "step.approved", "prompt.enqueued"]
    assert case.at == ("RUNNING", "AGENT")
    assert [one.status for one in case.run.steps] == ["APPROVED", "WORKING"]
    assert (case.prompt.conversation, case.prompt.project, case.prompt.attempt) == ("step-2", "beta", 1)


def test_the_last_approved_step_hands_over_to_the_review_of_the_whole() -> None:
    case = at_the_end()
    assert case.at == ("RUNNING", "FINAL_REVIEW")
    assert (case.prompt.role, case.prompt.step) == ("master", None)


@pytest.mark.parametrize("said", ["All is well.", BLOCK, "LEDGERD_SUPERVISION {"])
def test_any_words_of_the_last_review_complete_the_run(said: str) -> None:
    case = at_the_end().reply(said)
    assert case.kinds == ["run.completed", "result"]
    assert case.at == ("COMPLETED", "IDLE")
    assert case.decided[-1].payload == {"state": "done", "summary": "1 step approved"}
    assert case.run.active_prompt is None
    assert next_for(case) is Next.NOTHING


def test_a_blocked_step_blocks_the_run() -> None:
    case = reviewing().reply(BLOCK)
    assert case.kinds == ["supervision.verdict", "run.blocked", "result"]
    assert case.at == ("BLOCKED", "SUPERVISOR")
    assert (case.step.status, case.run.error) == ("BLOCKED", "the owner must deploy first")
    assert next_for(case) is Next.WAIT


# No verdict


NO_VERDICTS = {
    "prose": "I think this is fine, approve.",
    "cut JSON": 'LEDGERD_SUPERVISION {"decision": "approve", "feed',
    "wrong decision": verdict("approved", "good"),
    "no feedback": verdict("correct"),
    "feedback beyond the bound": verdict("block", "x" * 2_001),
    "the last line counts": f"{APPROVE}\n{verdict('perhaps', 'hm')}",
    "another prefix": APPROVE.replace("LEDGERD", "OTHER"),
}


@pytest.mark.parametrize("said", NO_VERDICTS.values(), ids=NO_VERDICTS)
@pytest.mark.parametrize("given", [Case, reviewing], ids=["plan", "step"])
def test_a_master_without_a_verdict_is_asked_once_more_and_then_the_run_blocks(given: type[Case], said: str) -> None:
    case = given().reply(said)
    stage, attempts = case.run.stage, case.step.attempts
    assert case.kinds == ["supervision.verdict", "prompt.enqueued"]
    assert (case.prompt.purpose, case.prompt.role, case.run.status) == ("ask_again", "master", "RUNNING")
    case.reply(said)
    assert case.at == ("BLOCKED", stage)
    assert case.run.block is not None
    assert case.run.block.cause == words.BY_NO_VERDICT
    assert "gave no verdict, twice" in str(case.run.error)
    assert (case.step.status, case.step.attempts) == ("BLOCKED", attempts)


def test_a_master_that_gives_its_verdict_when_asked_again_is_heard() -> None:
    assert reviewing().reply("prose", APPROVE).run.steps[0].status == "APPROVED"


def test_of_a_marker_that_stands_twice_the_last_counts() -> None:
    assert reviewing().reply(f"{BLOCK}\n{APPROVE}").run.steps[0].status == "APPROVED"
    assert reviewing().reply(f"{APPROVE}\n{BLOCK}\nThat is all.").run.status == "BLOCKED"


@pytest.mark.parametrize("trouble", ["empty", "too_long", "not_utf8"])
@pytest.mark.parametrize("given", [Case, working, reviewing, at_the_end])
def test_a_reply_that_cannot_be_taken_moves_nothing_is_asked_for_again_and_then_blocks(
    given: type[Case], trouble: str
) -> None:
    case = given()
    stage, first = case.run.stage, case.prompt
    case.troubled(trouble)
    assert case.kinds == ["prompt.enqueued"]
    assert (case.run.stage, case.prompt.purpose, case.prompt.conversation) == (stage, "ask_again", first.conversation)
    assert case.run.prompts[first.queue_id].reply == Reply("done", "x", trouble=trouble)
    case.troubled(trouble)
    assert case.at == ("BLOCKED", stage)
    assert case.run.block is not None
    assert case.run.block.cause == words.BY_NO_REPLY


# Bounds


def test_a_fourth_correction_blocks() -> None:
    case = reviewing()
    for number in (1, 2, 3):
        case.reply(CORRECT)
        assert (case.step.correction_round, case.step.attempts) == (number, number + 1)
        case.reply("Mended.")
    case.reply(CORRECT)
    assert case.at == ("BLOCKED", "SUPERVISOR")
    assert case.run.block is not None
    assert case.run.block.cause == words.BY_ROUNDS
    assert "after 3 correction rounds: - mend this" in str(case.run.error)


def test_the_next_step_has_its_own_correction_rounds() -> None:
    case = reviewing().reply(CORRECT, "Mended.", APPROVE, "Done.", CORRECT)
    assert (case.step.step.id, case.step.correction_round) == ("s2", 1)


def test_an_interrupted_review_is_restarted_and_nothing_else_changes() -> None:
    case = reviewing().ended("interrupted")
    assert case.result == "processed"
    assert case.kinds == ["master.review_restarted", "prompt.enqueued"]
    assert case.at == ("RUNNING", "SUPERVISOR")
    assert (case.step.status, case.step.attempts, case.step.restarts) == ("REVIEWING", 1, 1)
    assert (case.prompt.role, case.prompt.conversation) == ("master", "master")
    assert "stands in for it. Inspect only, change nothing." in case.prompt.text
    assert "All done." in case.prompt.text
    assert not case.run.repairs


@pytest.mark.parametrize("given", [Case, reviewing, at_the_end])
def test_a_review_is_restarted_twice_and_then_blocks(given: type[Case]) -> None:
    case = given(tool="Tool")
    stage = case.run.stage
    for _ in range(2):
        case.ended("interrupted")
        assert (case.run.stage, case.run.status) == (stage, "RUNNING")
    case.ended("interrupted")
    assert case.at == ("BLOCKED", stage)
    assert case.run.block is not None
    assert case.run.block.review_interrupted
    assert case.prompt.role == "repair"


def test_each_attempt_has_its_own_restarts_of_the_review() -> None:
    case = reviewing().ended("interrupted").ended("interrupted").reply(CORRECT, "Mended.")
    assert case.step.restarts == 0
    assert case.ended("interrupted").run.status == "RUNNING"


def test_interrupted_work_is_never_done_again_without_a_word() -> None:
    case = working().ended("interrupted", "the host went away")
    assert case.kinds == ["run.blocked", "result"]
    assert case.at == ("BLOCKED", "AGENT")
    assert (case.step.status, case.step.attempts) == ("BLOCKED", 1)
    assert "the agent was interrupted: the host went away" in str(case.run.error)


@pytest.mark.parametrize("given", [Case, working, reviewing, at_the_end])
def test_a_worker_that_failed_blocks_with_what_it_said(given: type[Case]) -> None:
    case = given().ended("failed", "exit code 7: no quota")
    assert case.run.status == "BLOCKED"
    assert "failed: exit code 7: no quota" in str(case.run.error)


def test_after_all_steps_are_approved_a_block_leaves_them_approved() -> None:
    case = at_the_end().ended("failed")
    assert case.at == ("BLOCKED", "FINAL_REVIEW")
    assert [one.status for one in case.run.steps] == ["APPROVED"]
    assert case.resume().at == ("RUNNING", "FINAL_REVIEW")
    assert case.reply("All is well.").run.status == "COMPLETED"


def test_the_rules_of_a_run_are_those_it_was_started_with() -> None:
    case = Case(rules=Rules(prefix="ACME", correction_rounds_max=0))
    assert "ACME_SUPERVISION" in case.prompt.text
    case.reply(APPROVE.replace("LEDGERD", "ACME"), "Done.", CORRECT.replace("LEDGERD", "ACME"))
    assert (case.run.status, case.step.correction_round) == ("BLOCKED", 0)


# What is next


def next_for(case: Case, runner: str = "one") -> Next:
    return machine.next_for(case.run, runner, case.now, case.tool)


def test_what_is_next_follows_the_active_prompt() -> None:
    case = Case()
    assert next_for(case) is Next.START_TURN
    case.append([facts.turn_started(case.prompt.queue_id, None)])
    assert next_for(case) is Next.TURN_LOST
    case.append([machine.lost(case.prompt)])
    assert next_for(case) is Next.MOVE


def test_a_lease_holds_off_every_other_runner_until_it_expires_or_is_given_back() -> None:
    case = Case()
    case.append([facts.lease_taken("one", case.now + 60 * SECOND)])
    assert next_for(case, "one") is Next.START_TURN
    assert next_for(case, "two") is Next.WAIT
    assert machine.next_for(case.run, "two", case.now + 61 * SECOND, None) is Next.START_TURN
    case.append([facts.lease_released("two")])
    assert next_for(case, "two") is Next.WAIT
    case.append([facts.lease_released("one")])
    assert next_for(case, "two") is Next.START_TURN


def test_a_reply_that_comes_twice_moves_the_run_once() -> None:
    case = working()
    answered = case.prompt.queue_id
    case.reply("Done.")
    before = case.run
    case.append([facts.turn_finished(answered, Reply("done", "Done, and more."))])
    assert (case.run.stage, case.run.active, case.run.steps) == (before.stage, before.active, before.steps)
    prompt = case.run.prompts[answered]
    assert prompt.reply is not None
    assert (prompt.reply.content, prompt.late) == ("Done.", 1)


def test_a_late_reply_of_an_interrupted_turn_changes_nothing() -> None:
    case = working()
    late = case.prompt.queue_id
    case.ended("interrupted").append([facts.turn_finished(late, Reply("done", "Done after all."))])
    assert case.run.status == "BLOCKED"
    assert case.run.prompts[late].reply == Reply("interrupted", "half of it", "it broke")


def test_a_reply_to_nobodys_prompt_changes_nothing() -> None:
    case = working()
    before = case.run.active_prompt
    case.append([facts.turn_finished("q99", Reply("done", APPROVE))])
    assert case.run.active_prompt == before


def test_moving_a_run_without_an_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="not answered"):
        machine.move(working().run, None, "")


# Marks of the other kind


def test_a_repairs_words_are_no_verdict_of_the_master_nor_the_other_way_round() -> None:
    assert reviewing().reply(repaired("fixed")).prompt.purpose == "ask_again"
    case = blocked(tool="Tool").reply(APPROVE)
    assert case.run.repair is not None
    assert case.run.repair.status == "NEEDS_USER"
    assert case.run.steps[0].status == "BLOCKED"
