"""The laws over random histories: whatever a goal went through, it reads the same however it is delivered again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bundles import plan, recording, replaying
from bundles.faults import VARIANTS, Variant
from bundles.rig.saddle import Saddle
from bundles.runner import Scenario

NAME = "laws"
TITLE = "random histories tell the same story under every fault"
RESTARTS = False

GOALS = 1
STEPS = 60
TRIED = ("plain", "shuffles", "churn", "everything at once")

# Few words, so that sessions of one task say the same by chance too
WORDS = ("Found it.", "Mended it.", "It fails again.", "Ünïcode — and\nlines")
STATES = ("working", "waiting", "suspended")
ENDS = ("done", "failed", "cancelled")


def run(scenario: Scenario) -> None:
    scenario.create("projects", id="laws", title="Laws")
    for number in range(GOALS):
        goal = scenario.create("goals", title=f"Goal {number}", project_id="laws", branch_name="b")
        _Life(scenario, goal, str(number)).live()
        path = scenario.folder / f"goal-{goal}.json"
        path.write_bytes(plan.dump(recording.record(scenario.owner, goal)))
        for variant in VARIANTS:
            if variant.name in TRIED:
                _replay(scenario, path, variant)


def _replay(scenario: Scenario, path: Path, variant: Variant) -> None:
    report = replaying.replay(path, variant, store=scenario.store, seed=scenario.random.getrandbits(32))
    red = [line for line in report.lines() if not line.startswith("  ok")]
    seen = f"{len(report.checks)} checks" if report.verdict == "ok" else "\n".join(red)
    scenario.check(f"{path.stem}, {variant.name}: the story is the same", report.verdict == "ok", seen)


class _Life:
    """A goal's random life: a person who decides now and then, two saddles that work, resume, repeat and end."""

    def __init__(self, scenario: Scenario, goal: str, name: str) -> None:
        self._scenario = scenario
        self._random = scenario.random
        self._goal = goal
        self._name = name
        self._sessions: list[tuple[Saddle, str, str]] = []  # the saddle, the session, its task

    def live(self) -> None:
        for _ in range(STEPS):
            happens = self._random.choices(
                [self._decide, self._create, self._claim, self._resume, self._say, self._end], [3, 1, 4, 2, 12, 1]
            )[0]
            happens()

    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = self._scenario.read(f"/api/goals/{self._goal}")
        return told

    def _decide(self) -> None:
        """Takes one of the decisions that are open to the goal or to one of its tasks."""
        told = self._told()
        paths = [f"/api/goals/{self._goal}", *(f"/api/tasks/{task['id']}" for task in told["tasks"])]
        offered = self._scenario.read(self._random.choice(paths))["actions"]
        wanted = [name for name in sorted(offered) if name != "cancel" or self._random.random() < 0.2]
        if wanted:
            answer = self._scenario.owner.call(offered[self._random.choice(wanted)])
            self._scenario.check("what is offered is taken", answer.status == 200, answer)

    def _create(self) -> None:
        self._scenario.create("tasks", title=self._random.choice(WORDS), goal_id=self._goal)

    def _claim(self) -> None:
        saddle = self._saddle()
        if work := saddle.ask():
            self._sessions.append((saddle, work.session_id, work.task_id))

    def _resume(self) -> None:
        """Opens a further session of a task that has one: resumed, or a child."""
        if self._sessions:
            _, earlier, task = self._random.choice(self._sessions)
            saddle = self._saddle()
            session = f"session-{self._name}-{len(self._sessions)}"
            saddle.open(session, task, **{self._random.choice(["resumed_from", "parent_session_id"]): earlier})
            self._sessions.append((saddle, session, task))

    def _say(self) -> None:
        if self._sessions:
            saddle, session, _ = self._random.choice(self._sessions)
            seqs = self._random.sample(range(30), self._random.randint(1, 6))
            saddle.push(session, [self._event(seq) for seq in seqs])

    def _event(self, seq: int) -> dict[str, Any]:
        word = self._random.choice(WORDS)
        kind, payload = self._random.choice(
            [
                ("comment", {"body": word}),
                ("tool_call", {"tool": "run_command", "args": {"command": "make"}}),
                ("tool_call", {"tool": "run_command", "args": {"command": f"ledgerd comment {word}"}}),
                ("usage", {"message_id": f"m{seq % 3}", "input_tokens": seq, "output_tokens": 1}),
                ("error", {"message": word}),
                ("waiting", {"question": word}),
                ("result", {"state": self._random.choice(STATES), "summary": word}),
                ("result", {"state": self._random.choice(ENDS + STATES * 3), "summary": word}),
            ]
        )
        event = {"seq": seq, "kind": kind, "actor": "model", "payload": payload}
        second = self._random.randrange(80)  # beyond 59 no time is claimed
        return event if second > 59 else {**event, "at": f"2026-02-03T04:05:{second:02d}Z"}

    def _end(self) -> None:
        if self._sessions:
            saddle, session, _ = self._random.choice(self._sessions)
            saddle.end(session, self._random.choice(ENDS), self._random.choice(WORDS))

    def _saddle(self) -> Saddle:
        return self._scenario.saddle(self._random.choice(["mule", "pony"]))
