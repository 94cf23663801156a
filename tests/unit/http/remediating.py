"""A run in a few lines: the server's owner on one side, a runner that says what its agents did on the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from projections.remediation import facts, words
from projections.remediation.facts import Fact
from projections.remediation.state import Prompt, Reply
from tests.unit.http.in_process import Desk

CONFIGURATION: dict[str, Any] = {
    "projects": [
        {"name": "Überbau", "aliases": ["shop front"]},
        {"name": "parser"},
        {"name": "master"},
        {"name": "tool"},
    ],
    "master": "master",
    "tool_project": "tool",
}


def step(number: int, target: str = "parser", **fields: Any) -> dict[str, Any]:
    told = {"title": f"Step {number}", "prompt": f"Do the work of step {number}", "risk": "code"}
    return {"id": f"s{number}", "order": number, "target": target, **told, **fields}


PLAN = [step(1, "uberbau"), step(2)]


class Runner:
    """What the runner of a run appends, always behind what it has seen."""

    def __init__(self, desk: Desk, run: dict[str, Any]) -> None:
        self.desk = desk
        self.id: str = run["run_id"]
        self.seq: int = run["last_seq"]
        self.queued = 1

    async def says(self, *decided: Fact) -> None:
        rows = [
            {"seq": self.seq + n, "kind": fact.kind, "actor": "runner-1", "payload": fact.payload}
            for n, fact in enumerate(decided, 1)
        ]
        receipt = await self.desk.post("/api/saddle/chunks", session_id=self.id, events=rows, expected_seq=self.seq)
        assert receipt["stored"] == len(rows)
        self.seq += len(rows)

    async def replied(self, text: str, **how: Any) -> None:
        """The reply to the prompt that was enqueued last."""
        reply = Reply(how.pop("status", words.DONE), text, **how)
        await self.says(
            facts.turn_started(f"q{self.queued}", "abc123"), facts.turn_finished(f"q{self.queued}", reply)
        )

    async def asked(
        self, role: str, stage: str, step_id: str | None, purpose: str, text: str, attempt: int = 0
    ) -> None:
        self.queued += 1
        conversation = {words.MASTER: "master", words.WORKER: "step-1"}.get(role, "repair-1")
        project = {words.MASTER: "master", words.WORKER: "Überbau"}.get(role, "tool")
        await self.says(
            facts.prompt_enqueued(
                Prompt(f"q{self.queued}", conversation, project, role, stage, purpose, text, step_id, attempt)
            )
        )

    async def judged(self, decision: str, feedback: str, step_id: str | None = None, findings: int = 0) -> None:
        await self.replied(f"I looked at it.\nLEDGERD_SUPERVISION {decision}", cost_usd=0.25)
        await self.says(facts.verdict(f"q{self.queued}", step_id, decision, feedback, findings))

    async def works(self, report: str = "It is done.", purpose: str = "work", attempt: int = 1) -> None:
        """The first step's agent is sent to work, and reports."""
        await self.asked(words.WORKER, words.AGENT, "s1", purpose, "Do the work of step 1", attempt)
        await self.replied(report, cost_usd=0.5)

    async def reviews(self, decision: str, feedback: str, findings: int = 0, attempt: int = 1) -> None:
        await self.asked(words.MASTER, words.SUPERVISOR, "s1", "review", f"Review attempt {attempt}", attempt)
        await self.judged(decision, feedback, "s1", findings)

    async def blocks(
        self, reason: str, *, stage: str = words.SUPERVISOR, repair: str = words.REPAIR_NOT_CONFIGURED
    ) -> None:
        step_id = None if stage == words.PLAN_REVIEW else "s1"
        await self.says(
            *facts.run_blocked(stage, step_id, words.BY_VERDICT, reason, interrupted=False, repair=repair)
        )

    async def repairs(self, reason: str) -> None:
        await self.says(facts.repair_started(1, "s1", words.SUPERVISOR, reason, catchup=False))
        await self.asked(words.REPAIR, words.SUPERVISOR, "s1", "repair", "Mend the tool")


async def configured(desk: Desk, **fields: Any) -> None:
    await desk.post("/api/resource-remediation/configuration", **{**CONFIGURATION, **fields})


async def started(desk: Desk, plan: Sequence[dict[str, Any]] = PLAN) -> Runner:
    await configured(desk)
    return Runner(desk, await desk.post("/api/resource-remediation/start", steps=list(plan)))


async def blocked(desk: Desk, reason: str = "A deploy is needed.") -> Runner:
    """A run whose first step was worked on once, and blocked in its review."""
    runner = await started(desk)
    await runner.judged(words.APPROVE, "A good plan")
    await runner.works()
    await runner.reviews(words.BLOCK, reason)
    await runner.blocks(reason)
    return runner
