"""The live stream: a reader that drops again and again, and comes back with Last-Event-ID, misses nothing."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from bundles.rig.saddle import Saddle
from bundles.runner import Scenario

NAME = "live"
TITLE = "a live reader that drops and comes back is told of everything that moved"
RESTARTS = True

WRITERS = 4
TASKS_EACH = 25


def run(scenario: Scenario) -> None:
    seats = [_seat(scenario, number) for number in range(WRITERS)]
    roots = {f"task/{task}" for _, tasks in seats for task in tasks}
    last_id, told = _hello(scenario), set[str]()
    drops = 0
    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(_write, saddle, tasks) for saddle, tasks in seats]
        while not all(map(Future.done, writing)) and not roots <= told:
            last_id = _catch_up(scenario, last_id, told, roots, messages_max=2)
            drops += 1
        for written in writing:
            written.result()
    _catch_up(scenario, last_id, told, roots, messages_max=1)
    scenario.equal(f"of {len(roots)} roots none is missed, after {drops} drops: missed", sorted(roots - told), [])
    _over_a_restart(scenario, seats[0])
    answer = scenario.reader.get("/api/live?after=bm90IGEgY3Vyc29y")
    scenario.equal("an id of another ledger is refused", (answer.status, answer.code), (422, "foreign_cursor"))


def _over_a_restart(scenario: Scenario, seat: tuple[Saddle, list[str]]) -> None:
    saddle, tasks = seat
    last_id, told = _hello(scenario), set[str]()
    saddle.say(_session(tasks[0]), "note", {"before": "the restart"})
    scenario.restart()
    saddle.say(_session(tasks[1]), "note", {"after": "the restart"})
    _catch_up(scenario, last_id, told, set(), messages_max=1)
    expected = sorted(f"task/{task}" for task in tasks[:2])
    scenario.equal("an id from before a restart tells what moved before and after it", sorted(told), expected)


def _seat(scenario: Scenario, number: int) -> tuple[Saddle, list[str]]:
    """A saddle with a session of its own in each of its tasks."""
    saddle = scenario.saddle(f"saddle-{number}")
    tasks = [scenario.create("tasks", title=f"Task {n} of {saddle.name}") for n in range(TASKS_EACH)]
    for task in tasks:
        saddle.open(_session(task), task)
    return saddle, tasks


def _write(saddle: Saddle, tasks: list[str]) -> None:
    for task in tasks:
        saddle.say(_session(task), "note", {"moved": True})


def _session(task: str) -> str:
    return f"session-of-{task}"


def _hello(scenario: Scenario) -> str:
    with scenario.reader.live() as stream:
        return next(stream).id


def _catch_up(scenario: Scenario, last_id: str, told: set[str], roots: set[str], *, messages_max: int) -> str:
    """Comes back, hears the first messages or until it has been told of all roots, and drops. Gives the id to come
    back with."""
    with scenario.reader.live(last_id) as stream:
        for message in islice(stream, messages_max):
            told.update(message.data["roots"])
            last_id = message.id
            if roots <= told:
                break
    return last_id
