"""A run that is told by its replies: given what happened, when a reply comes, then these facts follow."""

from __future__ import annotations

import json
from typing import Any

from ledger.daemons.remediation import blocking, machine
from projections.remediation import facts, owner, words
from projections.remediation.facts import Fact
from projections.remediation.following import after
from projections.remediation.owner import Refusal
from projections.remediation.plan import Configuration, Project, Rules
from projections.remediation.state import Progress, Prompt, Reply, Run

PROJECTS = (Project("Alpha", ("The A side",)), Project("beta"), Project("Platform"), Project("Tool"))
SECOND = 10**9


def configuration(*, tool: str | None = None, rules: Rules | None = None) -> Configuration:
    return Configuration(PROJECTS, "Platform", tool, rules or Rules())


def step(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"s{number}",
        "order": number,
        "phase": "1",
        "phaseLabel": "First",
        "target": "Alpha" if number % 2 else "beta",
        "title": f"Step {number}",
        "summary": f"The summary of {number}",
        "risk": "code",
        "prompt": f"Do the work of step {number}.",
    } | changes


def plan(steps: int = 2) -> dict[str, Any]:
    return {"steps": [step(number) for number in range(1, steps + 1)]}


def verdict(decision: str, feedback: str = "", **more: Any) -> str:
    return f"Looked at.\nLEDGERD_SUPERVISION {json.dumps({'decision': decision, 'feedback': feedback, **more})}"


def repaired(decision: str, feedback: str = "", addendum: str = "") -> str:
    said = {"decision": decision, "feedback": feedback, "prompt_addendum": addendum}
    return f"Done.\nLEDGERD_SELF_REPAIR {json.dumps(said)}"


APPROVE = verdict("approve", "good")
CORRECT = verdict("correct", "- mend this\n- and that")
BLOCK = verdict("block", "the owner must deploy first")


class Case:
    """`result` is the last tick's, `kinds` are those of the facts that it decided."""

    def __init__(self, *, steps: int = 2, tool: str | None = None, rules: Rules | None = None) -> None:
        self.tool = tool
        decided = owner.start("run-1", "owner", plan(steps), configuration(tool=tool, rules=rules), None)
        assert not isinstance(decided, Refusal)
        self.now = 1_800_000_000 * SECOND
        self.run = Run(id="run-1")
        self.result = ""
        self.decided: list[Fact] = []
        self._take(decided)

    # When

    def reply(self, *texts: str, diff: str = "") -> Case:
        for text in texts:
            self.finish(Reply(words.DONE, text))
            self.tick(diff)
        return self

    def finish(self, reply: Reply, runner: str = "one") -> Case:
        prompt = self.prompt
        if prompt.started_at is None:
            self.append([facts.turn_started(prompt.queue_id, "c0ffee")])
        return self.append([facts.turn_finished(prompt.queue_id, reply)])

    def ended(self, status: str, error: str = "it broke") -> Case:
        return self.finish(Reply(status, "half of it", error)).tick()

    def troubled(self, trouble: str) -> Case:
        return self.finish(Reply(words.DONE, "x", trouble=trouble)).tick()

    def tick(self, diff: str = "") -> Case:
        self.result, decided = machine.move(self.run, self.tool, diff)
        return self._take(decided)

    def crash(self, error: str = "KeyError: 'x'") -> Case:
        return self._take(machine.crashed(self.run, self.tool, error))

    def catch_up(self) -> Case:
        assert self.tool is not None
        return self._take(blocking.catch_up(self.run, self.tool))

    def resume(self, wanted: Any = None) -> Case:
        decided = owner.resume(self.run, "owner", wanted)
        assert not isinstance(decided, Refusal), decided
        return self._take(decided)

    def approve(self, feedback: str = "") -> Case:
        decided = owner.approve(self.run, "owner", feedback)
        assert not isinstance(decided, Refusal), decided
        return self._take(decided)

    def append(self, decided: list[Fact]) -> Case:
        self.now += SECOND
        self.run = after(self.run, decided, at=self.now)
        return self

    # Then

    @property
    def prompt(self) -> Prompt:
        assert self.run.active_prompt is not None
        return self.run.active_prompt

    @property
    def step(self) -> Progress:
        assert self.run.step is not None
        return self.run.step

    @property
    def kinds(self) -> list[str]:
        return [fact.kind for fact in self.decided]

    @property
    def at(self) -> tuple[str, str]:
        return self.run.status, self.run.stage

    def _take(self, decided: list[Fact]) -> Case:
        self.decided = decided
        return self.append(decided)


def working(**options: Any) -> Case:
    """The plan is approved, and the first step's agent is at work."""
    return Case(**options).reply(APPROVE)


def reviewing(**options: Any) -> Case:
    """The first step was reported, and is reviewed."""
    return working(**options).reply("All done.")


def blocked(**options: Any) -> Case:
    """The master has blocked the first step."""
    return reviewing(**options).reply(BLOCK)


def at_the_end(**options: Any) -> Case:
    """All steps are approved, and the whole is reviewed."""
    return reviewing(steps=1, **options).reply(APPROVE)
