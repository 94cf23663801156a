"""A run in which everything has happened that a page can show, folded from its events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledger.http import rendering
from projections.remediation import facts, owner, story, words
from projections.remediation.facts import Fact
from projections.remediation.following import after
from projections.remediation.plan import Configuration, Project
from projections.remediation.state import Prompt, Reply, Run
from tests.unit.http import page_samples as samples
from tests.unit.http.page_samples import OWNER

Change = Callable[[Any], Any]

AT_NS = 1_764_554_850 * 10**9
CONFIGURATION = Configuration((Project("Überbau", ("shop front",)), Project("tool")), "Überbau", "tool")
PLAN = [
    {
        "id": f"s{number}",
        "order": number,
        "target": "uberbau",
        "title": f"Step {number}",
        "summary": "What it comes to.",
        "prompt": f"Do the work of step {number}. Then say what you did. {'And so on. ' * 500}",
        "risk": "production",
        "phase": "one",
        "phaseLabel": "Phase one",
    }
    for number in (1, 2)
]


def begun() -> Run:
    decided = owner.start("run-1", "owner", PLAN, CONFIGURATION, None)
    assert isinstance(decided, list)
    return after(Run(), decided, at=AT_NS, actor="owner")


def went_on(run: Run, *decided: Fact) -> Run:
    return after(run, decided, at=AT_NS, actor="runner-1")


def prompt(number: int, role: str, stage: str, purpose: str, step: str | None = "s1", attempt: int = 2) -> Fact:
    told = f"Prompt {number}. {'It is long. ' * 500}"
    return facts.prompt_enqueued(Prompt(f"q{number}", "step-1", "Überbau", role, stage, purpose, told, step, attempt))


def replied(number: int, text: str, status: str = words.DONE, **more: Any) -> list[Fact]:
    reply = facts.turn_finished(f"q{number}", Reply(status, text, **more))
    return [facts.turn_started(f"q{number}", "abc"), reply]


def blocked() -> Run:
    """It waits for its owner after a correction, a failure, a restart and two repairs."""
    run = went_on(
        begun(),
        *replied(1, "A good plan.", cost_usd=0.2),
        facts.verdict("q1", None, words.APPROVE, "A good plan", 0),
        prompt(2, words.WORKER, words.AGENT, "work", attempt=1),
        *replied(2, f"I did it. {'At length. ' * 500}", cost_usd=1.5, exit_code=3),
        *replied(2, "I did it, again."),
        prompt(3, words.MASTER, words.SUPERVISOR, "review"),
        *replied(3, "Not yet."),
        facts.verdict("q3", "s1", words.CORRECT, "- a\n- b", 2),
        prompt(4, words.WORKER, words.AGENT, "correct"),
        *replied(4, "", trouble="empty"),
        prompt(5, words.MASTER, words.SUPERVISOR, "review"),
        *replied(5, "", words.INTERRUPTED, error="SIGTERM"),
        facts.review_restarted("q5", "s1", 1),
        prompt(6, words.MASTER, words.SUPERVISOR, "review_restarted"),
        *replied(6, "Hm."),
        facts.verdict("q6", "s1", words.CORRECT, "- a", 1),
        prompt(7, words.WORKER, words.AGENT, "correct", attempt=3),
        *replied(7, "", words.FAILED, error="exit code 1"),
        *facts.run_blocked("AGENT", "s1", words.BY_FAILURE, "It broke.", interrupted=False, repair="started"),
        facts.repair_started(1, "s1", "AGENT", "It broke.", catchup=False),
        prompt(8, words.REPAIR, words.AGENT, "repair"),
        *replied(8, "Mended."),
        *facts.repair_resumed(1, "s1", "AGENT", "It was the tool", "Use the new tool."),
        prompt(9, words.WORKER, words.AGENT, "repaired", attempt=4),
        *replied(9, "A deploy is needed."),
        prompt(10, words.MASTER, words.SUPERVISOR, "review"),
        *replied(10, "Only the owner."),
        facts.verdict("q10", "s1", words.BLOCK, "A deploy needs the owner.", 0),
        *facts.run_blocked("SUPERVISOR", "s1", words.BY_VERDICT, "Deploy it?", interrupted=False, repair="started"),
        facts.repair_started(2, "s1", "SUPERVISOR", "Deploy it?", catchup=True),
        prompt(11, words.REPAIR, words.SUPERVISOR, "repair"),
        *replied(11, "Not mine."),
        *facts.repair_needs_user(2, "s1", "Deploy it to production, please."),
        facts.lease_taken("runner-1", AT_NS),
    )
    assert run.status == words.BLOCKED
    return run


def resumed() -> Run:
    """At work again, by the owner's leave and with other words."""
    run = blocked()
    decided = owner.approve(run, "owner", "Go ahead")
    assert isinstance(decided, list)
    return went_on(run, *decided)


def completed() -> Run:
    approved = [facts.step_approved("q12", f"s{number}", "Well done") for number in (1, 2)]
    return went_on(resumed(), *approved, *facts.run_completed(2), Fact("of.a_later_version", {"step": "s1"}))


def page(run: Run | None = None, **more: Any) -> dict[str, Any]:
    return {**story.page(blocked() if run is None else run, limit=100), "cancelled": False, "cursor": "c1", **more}


def listing() -> dict[str, Any]:
    item = {"run_id": "run-1", "title": "Remediation: Step 1", "owner": "owner", "updated_at": "2025-12-01T02:07:30Z"}
    said = {"dot": "waiting", "said": "Blocked at step 1 of 2: waits for you.", "text": "Deploy it?"}
    return {"items": [{**item, **said}], "next": "run-1", "cursor": "c1"}


def rendered(run: dict[str, Any], f: Change = lambda value: value, me: dict[str, str] = OWNER) -> str:
    told = {"title": f("Mend it"), "sessions": f(samples.task()["sessions"]), "plan_text": f("[]")}
    return rendering.run_page(run, me, now=samples.NOW, **told)


def _told(value: Any, f: Change) -> Any:
    """What people and agents wrote is changed; by the rest a page decides what it shows."""
    if isinstance(value, dict):
        return {name: inner if name in _DECIDING else _told(inner, f) for name, inner in value.items()}
    return [_told(inner, f) for inner in value] if isinstance(value, list) else f(value)


_DECIDING = ("kind", "role", "status", "stage", "purpose", "decision")
PAGES: dict[str, Callable[[Change], str]] = {
    "runs": lambda f: rendering.runs_page(f(listing()), f(OWNER), now=samples.NOW),
    "no runs": lambda f: rendering.runs_page({"items": [], "next": None}, OWNER, now=samples.NOW),
    "exchange": lambda f: rendering.exchange_page(
        {"run_id": f("run-1")}, f(story.exchange(blocked(), "q3")), OWNER, now=samples.NOW
    ),
    "run": lambda f: rendered(f(page()), f),
    "run blocked": lambda f: rendered(_told(page(), f), f),
    "run at work": lambda f: rendered(_told(page(resumed()), f), f),
    "run completed": lambda f: rendered(_told(page(completed()), f), f),
}
