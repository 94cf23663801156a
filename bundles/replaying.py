"""Replays a recorded bundle into a fresh server under faults, and compares what a person would read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bundles import plan
from bundles.faults import Variant
from bundles.plan import Bundle, CreateGoal, CreateProject, CreateTask, Decide, End, Ending, Open, Push, Restart, Step
from bundles.rig.proxy import Proxy
from bundles.rig.report import Report
from bundles.rig.wire import Answer, LostAnswer, Wire, segment
from bundles.runner import DEFAULT_STORE, Entry, Scenario, run
from ledger.events.model import END_SEQ

RECORDED = Path(__file__).parent / "recorded"
TRIES_MAX = 60
READ_SHARE = 0.3


def recorded() -> list[Path]:
    """The bundles that come with ledgerd."""
    return sorted(RECORDED.glob("*.json"))


def replay(path: Path, variant: Variant, *, store: str = DEFAULT_STORE, seed: int) -> Report:
    """Runs one variant of a bundle's file; raises InvalidRequest where the file is no bundle."""
    bundle = plan.load(path.read_bytes())
    title = f"goal {bundle.goal_id} tells the same story, however it is delivered"
    entry = Entry(path.stem, title, False, partial(_replay, bundle=bundle, variant=variant))
    return run(entry, store=store, seed=seed, kill=variant.kill, variant=variant.name)


def _replay(scenario: Scenario, bundle: Bundle, variant: Variant) -> None:
    steps = variant.apply(bundle.steps, scenario.random)
    through = scenario.link(variant.link) if variant.link else None
    player = _Player(scenario, bundle, through)
    path = f"/api/goals/{segment(bundle.goal_id)}"
    for step in steps:
        player.play(step)
        if scenario.random.random() < READ_SHARE:
            scenario.reader.get(path)  # so that the server folds on from many places
    _compare_stories(scenario, bundle, scenario.read(path), "")
    _compare_logs(scenario, steps)
    if through is not None and variant.link is not None and variant.link.cut_share:
        scenario.check("answers were cut off on the way", through.cuts > 0, through.cuts)
    scenario.restart()
    _compare_stories(scenario, bundle, scenario.read(path), ", folded from the start too")


def _compare_stories(scenario: Scenario, bundle: Bundle, goal: dict[str, Any], when: str) -> None:
    expected = bundle.expected
    scenario.equal(f"the goal's digest is the recorded one{when}", goal["digest"], expected.digest)
    scenario.equal(f"the goal's status is the recorded one{when}", goal["status"], expected.status)
    tasks = {task["id"]: Ending(task["status"], task["attempt"], task["summary"]) for task in goal["tasks"]}
    scenario.equal(f"each task ended as recorded{when}", tasks, expected.tasks)


def _compare_logs(scenario: Scenario, steps: plan.Steps) -> None:
    """Each session holds each event that was sent to it once, and no other."""
    sent: dict[str, dict[int, bytes]] = {}
    for step in steps:
        if isinstance(step, Push):
            sent.setdefault(step.session_id, {}).update((e.seq, _content(e)) for e in step.events)
    for session_id, events in sent.items():
        held = [(event.seq, _content(event)) for event in _session_events(scenario, session_id)]
        pushed = [(seq, content) for seq, content in held if 0 <= seq < END_SEQ]
        scenario.check(
            f"session {session_id} holds exactly what was sent", pushed == sorted(events.items()), len(held)
        )


class _Events(msgspec.Struct):
    events: list[plan.Event]
    next: int | None


def _session_events(scenario: Scenario, session_id: str) -> Iterator[plan.Event]:
    start: int | None = -1
    while start is not None:
        answer = scenario.reader.get(f"/api/sessions/{segment(session_id)}/events?from={start}&limit=1000")
        page = msgspec.json.decode(answer.content, type=_Events)
        yield from page.events
        start = page.next


def _content(event: plan.Event) -> bytes:
    return b"%s %s %s" % (event.kind.encode(), event.actor.encode(), bytes(event.payload))


class _Player:
    """Does the steps of a bundle, each as the one who did it then."""

    def __init__(self, scenario: Scenario, bundle: Bundle, through: Proxy | None) -> None:
        self._scenario = scenario
        self._bundle = bundle
        self._through = through
        self._wires: dict[tuple[str, str], Wire] = {}

    def play(self, step: Step) -> None:
        match step:
            case Restart():
                self._scenario.restart()
            case CreateProject():
                self._create("projects", step.actor, {"id": step.id, "title": step.title})
            case CreateGoal() | CreateTask():
                what = "goals" if isinstance(step, CreateGoal) else "tasks"
                self._create(what, step.actor, _body(step, "do", "actor"))
            case Decide():
                if step.action in ("start", "reopen"):
                    self._count_up_to_the_run_task(step.actor)
                path = f"/api/{step.what}/{segment(step.id)}/{step.action}"
                _accepted(self._wire("owner", step.actor).post(path, {"reason": step.reason}))
            case Open():
                self._deliver(step.saddle, "sessions", {**_body(step, "do", "saddle", "fields"), **step.fields})
            case Push():
                self._deliver(step.saddle, "chunks", _body(step, "do", "saddle"))
            case End():
                self._deliver(step.saddle, "results", _body(step, "do", "saddle"))

    def _create(self, what: str, actor: str, body: dict[str, Any]) -> None:
        _accepted(self._wire("owner", actor).post(f"/api/{what}", body))

    def _count_up_to_the_run_task(self, actor: str) -> None:
        """The ledger numbers the run task itself, behind the highest number there is: a task with the number before
        it, outside the goal, makes that the recorded one."""
        before = int(self._bundle.run_task_id or 0) - 1
        if before > 0 and str(before) not in self._bundle.expected.tasks:
            self._create("tasks", actor, {"id": str(before), "title": "Takes a number"})

    def _deliver(self, saddle: str, what: str, body: dict[str, Any]) -> None:
        """Sends until an answer comes, as an outbox does."""
        wire = self._wire("saddle", saddle)
        for _ in range(TRIES_MAX):
            try:
                _accepted(wire.post(f"/api/saddle/{what}", body))
            except LostAnswer:
                continue
            return
        raise AssertionError(f"no answer to {what} in {TRIES_MAX} tries")

    def _wire(self, role: str, name: str) -> Wire:
        """A saddle's wire leads through the faulty link; a person's does not."""
        key = (role, name)
        if key not in self._wires:
            first_owner = name == "owner"
            token = self._scenario.server.owner_token if first_owner else self._scenario.token(role, name)
            through = self._through if role == "saddle" else None
            self._wires[key] = self._scenario.wire(token, through=through)
        return self._wires[key]


def _body(step: Step, *without: str) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(step)
    return {name: value for name, value in fields.items() if name not in without and value is not None}


def _accepted(answer: Answer) -> None:
    if answer.status not in (200, 201):
        raise AssertionError(f"a recorded step was refused: {answer}")
