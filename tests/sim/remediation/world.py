"""A small world for runners: a stream that appends conditionally, agents that reply by chance, crashes by chance.

What must hold is kept here beside the run itself, by what really happened: which agents were started, on what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from ledger.daemons.remediation import blocking
from ledger.daemons.remediation.runner import Runner, Stopping
from ledger.errors import StreamMoved
from ledger.events.model import Recorded
from projections.remediation import facts, owner, words
from projections.remediation.evolving import RUN
from projections.remediation.facts import Fact
from projections.remediation.following import recorded
from projections.remediation.owner import Refusal
from projections.remediation.state import Prompt, Reply, Run
from tests.unit.daemons.remediation.given import configuration, plan, repaired, step, verdict

SECOND = 10**9
LEASE_S = 30.0
RUN_ID = "run-1"
TOOL = "Tool"


class Killed(BaseException):
    """The runner's process is gone, between any two things that it does."""


class World:
    """One run's stream, the agents, and time. `chance` decides everything."""

    def __init__(self, chance: Random, *, tool: bool) -> None:
        self.chance = chance
        self.tool = TOOL if tool else None
        self.now = 1_800_000_000 * SECOND
        self.stream: list[Recorded] = []
        self._run = Run()
        self.started: list[Prompt] = []  # agents that were really started
        self.replies: dict[str, Reply] = {}  # what lies on this host's disk
        self.between: Callable[[], None] | None = None  # what happens while a runner is at something
        self.kill_chance = 0.0
        self.strict = chance.random() < 0.2  # a master that seldom has enough
        begun = owner.start(RUN_ID, "owner", plan(3), configuration(tool=self.tool), None)
        assert not isinstance(begun, Refusal)
        self.put(begun)

    # The stream

    def run(self) -> Run:
        return self._run

    def put(self, decided: Sequence[Fact]) -> None:
        self.now += SECOND
        for fact in decided:
            event = recorded(RUN_ID, len(self.stream), fact, at=self.now)
            self.stream.append(event)
            self._run = RUN.evolve(self._run, event)

    def active_run(self) -> str | None:
        return RUN_ID if self.run().is_active else None

    def is_over(self, run_id: str) -> bool:
        return run_id != RUN_ID or self.run().status == words.COMPLETED

    def read(self, run_id: str, after_seq: int) -> list[Recorded]:
        assert run_id == RUN_ID
        self.maybe_kill()
        return self.stream[after_seq + 1 :]

    def append(self, run_id: str, decided: Sequence[Fact], expected_seq: int) -> None:
        assert run_id == RUN_ID
        self.maybe_kill()
        self.meanwhile(0.3)
        last = len(self.stream) - 1
        if expected_seq != last:
            raise StreamMoved(run_id, expected_seq, last)
        assert all(fact.payload["runner"] for fact in decided)
        self.put(decided)
        self.maybe_kill()

    def meanwhile(self, likely: float) -> None:
        """Something else happens, between what a runner has seen and what it does about it."""
        if self.between is not None and self.chance.random() < likely:
            between, self.between = self.between, None
            between()

    def maybe_kill(self) -> None:
        if self.chance.random() < self.kill_chance:
            raise Killed

    # The agents

    def folder(self, project: str) -> Path:
        if self.chance.random() < 0.01:
            raise KeyError(f"no project {project}")  # a crash in the tick
        return Path(project)

    def work(self, prompt: Prompt, stop: Stopping) -> Reply:
        self.started.append(prompt)
        self.now += self.chance.choice([1, 10, 40]) * SECOND
        self.meanwhile(1)
        self.maybe_kill()
        reply = self.reply_to(prompt)
        if self.chance.random() < 0.5:
            self.replies[prompt.queue_id] = reply
        self.maybe_kill()
        return reply

    def reply_to(self, prompt: Prompt) -> Reply:
        luck = self.chance.random()
        if luck < 0.05:
            return Reply(words.FAILED, error="exit code 1")
        if luck < 0.12:
            return Reply(words.INTERRUPTED, error="SIGTERM")
        if luck < 0.17:
            return Reply(words.DONE, "?", trouble=self.chance.choice(list(blocking.TROUBLES)))
        said = self.chance.choice(REPLIES[prompt.role])
        if self.strict and prompt.stage == words.SUPERVISOR and self.chance.random() < 0.7:
            said = CORRECT
        return Reply(words.DONE, said, resume=self.chance.choice([None, "handle"]))


APPROVE, CORRECT, BLOCK = verdict("approve", "good"), verdict("correct", "- this"), verdict("block", "deploy first")
REPLIES = {
    words.MASTER: [
        *[APPROVE] * 4,
        *[CORRECT] * 2,
        BLOCK,
        "prose",
        'LEDGERD_SUPERVISION {"decision": "approve", "feedb',
        verdict("approved", "x"),
        verdict("block"),
        f"{BLOCK}\n{APPROVE}",
        f"{APPROVE}\n{CORRECT}",
    ],
    words.WORKER: ["Done.", APPROVE, repaired("fixed", "x"), "Only the owner may deploy."],
    words.REPAIR: [
        *[repaired("fixed", "mended", "Mind the lock.")] * 3,
        repaired("needs_user", "the owner must deploy"),
        "prose",
        APPROVE,
        repaired("fixed", "x", "a" * 4_001),
    ],
}


class Host:
    """A runner's process on its host, as often as it is started again."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._starts = 0
        self.start()

    def start(self) -> None:
        self._starts += 1
        self.runner = Runner(
            self._world,
            self,
            self,
            name=f"{self._name}-{self._starts}",
            tool_project=self._world.tool,
            lease_s=LEASE_S,
            clock=lambda: self._world.now,
        )

    def tick(self) -> str:
        """A killed one is started anew, and knows nothing."""
        try:
            return self.runner.tick()
        except Killed:
            self.start()
            return "killed"

    def folder(self, project: str) -> Path:
        return self._world.folder(project)

    def run(self, run: Run, prompt: Prompt, stop: Stopping) -> Reply:
        return self._world.work(prompt, stop)

    def left_behind(self, run: Run, prompt: Prompt) -> Reply | None:
        return self._world.replies.get(prompt.queue_id)

    def ended(self, run: Run) -> None:
        pass

    def head(self, folder: Path) -> str | None:
        return "c0ffee"

    def diff(self, folder: Path, since: str) -> str:
        return f"diff of {folder} since {since}"


def deliver_again(world: World) -> None:
    """A reply comes twice, late, or for nobody."""
    prompts = list(world.run().prompts)
    queue_id = world.chance.choice([*prompts, "q999"])
    prompt = world.run().prompts.get(queue_id)
    if prompt is not None and prompt.reply is None:
        return
    world.put([facts.turn_finished(queue_id, Reply(words.DONE, world.chance.choice(REPLIES[words.MASTER])))])


def decide_as_owner(world: World) -> None:
    """Resumes with or without a new plan, or approves; whatever is refused changes nothing."""
    run = world.run()
    revised = {"steps": [step(number, prompt=f"Another way, {len(run.prompts)}.") for number in (1, 2, 3)]}
    foreign = {"steps": [step(1, risk="production"), step(2), step(3)]}
    match world.chance.randrange(4):
        case 0:
            decided = owner.resume(run, "owner")
        case 1:
            decided = owner.resume(run, "owner", revised)
        case 2:
            decided = owner.resume(run, "owner", foreign)
            assert isinstance(decided, Refusal)
        case _:
            decided = owner.approve(run, "owner", "Deploy it.")
    if not isinstance(decided, Refusal):
        assert run.status == words.BLOCKED
        world.put(decided)
