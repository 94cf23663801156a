"""Faults as data: what may happen to deliveries on their way, each a pure rearrangement of steps.

None of them may change what a person reads. The order of decisions, openings and terminal results is kept: which
of two ends was first is a fact, not a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from msgspec.structs import replace

from bundles.plan import Decide, End, Event, Open, Push, Restart, Step, Steps
from bundles.rig.proxy import Link

RESTARTS_MAX = 3

Fault = Callable[[Steps, Random], Steps]


def duplicate(steps: Steps, random: Random) -> Steps:
    """About half of the openings, pushes and ends come again, at once or at any time later."""
    copies: list[tuple[int, Step]] = []
    for index, step in enumerate(steps):
        if isinstance(step, Open | Push | End) and random.random() < 0.5:
            copies.append((random.randint(index + 1, len(steps)), step))
    return _insert(steps, copies)


def split(steps: Steps, random: Random) -> Steps:
    """Each push is cut into pieces of random sizes."""
    return tuple(piece for step in steps for piece in _pieces(step, random))


def merge(steps: Steps, random: Random) -> Steps:
    """Pushes of one session that follow each other join at random, where no end or decision lies between them."""
    merged: list[Step] = []
    last_push: dict[str, int] = {}  # session → index into `merged` of a push that may still grow
    for step in steps:
        if not isinstance(step, Push):
            last_push.clear()
            merged.append(step)
            continue
        index = last_push.get(step.session_id)
        earlier = merged[index] if index is not None else None
        if index is not None and isinstance(earlier, Push) and random.random() < 0.7:
            merged[index] = replace(earlier, events=earlier.events + step.events)
        else:
            last_push[step.session_id] = len(merged)
            merged.append(step)
        if step.is_terminal:
            last_push.clear()
    return tuple(merged)


def shuffle(steps: Steps, random: Random) -> Steps:
    """The events of each session change places with each other, over all its pushes; terminal results stay."""
    movable: dict[str, list[Event]] = {}
    for push in _pushes(steps):
        movable.setdefault(push.session_id, []).extend(event for event in push.events if not event.is_terminal)
    for events in movable.values():
        random.shuffle(events)

    def dealt(push: Push) -> Push:
        hand = movable[push.session_id]
        return replace(push, events=tuple(e if e.is_terminal else hand.pop() for e in push.events))

    return tuple(dealt(step) if isinstance(step, Push) else step for step in steps)


def churn(steps: Steps, random: Random) -> Steps:
    """All that a session said is said again under a new session id of the same task: at the end, or before the
    next decision, so that the copy belongs to the same attempt."""
    churned: list[Step] = []
    said: dict[str, list[Step]] = {}
    for step in steps:
        if isinstance(step, Decide):
            churned.extend(_copies(said))
        elif isinstance(step, Open | Push | End):
            said.setdefault(step.session_id, []).append(step)
        churned.append(step)
    churned.extend(_copies(said))
    return tuple(churned)


def restart(steps: Steps, random: Random) -> Steps:
    """The server is restarted one to three times, between any two steps."""
    times = random.randint(1, RESTARTS_MAX)
    return _insert(steps, [(random.randint(1, len(steps)), Restart()) for _ in range(times)])


@dataclass(frozen=True)
class Variant:
    """One way to deliver the same steps. `link` lies between the saddles and the server; with `kill` a restart is a
    SIGKILL."""

    name: str
    faults: tuple[Fault, ...] = ()
    link: Link | None = None
    kill: bool = False

    def apply(self, steps: Steps, random: Random) -> Steps:
        for fault in self.faults:
            steps = fault(steps, random)
        return steps


CUT = Link(cut_share=0.3)
SLOW = Link(block_bytes=2048, wait_s=0.002)

VARIANTS = (
    Variant("plain"),
    Variant("duplicates", (duplicate,)),
    Variant("splits and merges", (split, merge)),
    Variant("shuffles", (split, shuffle)),
    Variant("churn", (churn,)),
    Variant("restarts", (split, restart)),
    Variant("restarts by SIGKILL", (split, duplicate, restart), kill=True),
    Variant("answers cut off", (split,), link=CUT),
    Variant("a slow link", (split,), link=SLOW),
    Variant("everything at once", (churn, split, merge, shuffle, duplicate, restart), link=CUT, kill=True),
)


def _pushes(steps: Steps) -> Iterator[Push]:
    return (step for step in steps if isinstance(step, Push))


def _pieces(step: Step, random: Random) -> Iterator[Step]:
    if not isinstance(step, Push):
        yield step
        return
    start = 0
    while start < len(step.events):
        end = random.randint(start + 1, len(step.events))
        yield replace(step, events=step.events[start:end])
        start = end


def _copies(said: dict[str, list[Step]]) -> Iterator[Step]:
    """What each session has said so far, under another id; forgets it. The opening may have been copied before: it is
    sent again with each part, which changes nothing."""
    for session_id, steps in said.items():
        for step in steps:
            if isinstance(step, Open | Push | End):
                yield replace(step, session_id=f"{session_id}~churned")
        said[session_id] = [step for step in steps if isinstance(step, Open)]


def _insert(steps: Steps, later: list[tuple[int, Step]]) -> Steps:
    """Puts each step before the one that stands at its index now."""
    at: dict[int, list[Step]] = {}
    for index, step in later:
        at.setdefault(index, []).append(step)
    return tuple(step for index in range(len(steps) + 1) for step in (*at.get(index, ()), *steps[index : index + 1]))
