"""The rows that a session's state pushes make: waiting, suspended, resumed.

What a push says depends on the push before it in seq order, and pushes come in any order. So they are kept, and a
late one tells its successor anew.
"""

from __future__ import annotations

import msgspec
from immutables import Map

from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import Recorded
from projections.narrative import Narrative, Saying, content_of, say, saying_of, unsay
from projections.ordered import Ordered
from projections.session import Push

_PARKED = (kinds.WAITING, kinds.SUSPENDED)


class Pushed(msgspec.Struct, frozen=True, gc=False):
    push: Push
    saying: Saying


class Pushes(msgspec.Struct, frozen=True):
    """The pushes of one session by seq."""

    order: Ordered[int] = Ordered()
    by_seq: Map[int, Pushed] = Map()


def told(pushes: Pushes, story: Narrative, push: Push, event: Recorded) -> tuple[Pushes, Narrative]:
    """With one push more, and the narrative with the rows that follow from it."""
    task_id, now = event.task_id, event.position
    earlier = pushes.order.before(event.seq)
    later = pushes.order.after(event.seq)
    before = None if earlier is None else pushes.by_seq[earlier].push
    one = Pushed(push, saying_of(event, payload_object(event.payload)))
    if later is not None:
        following = pushes.by_seq[later]
        row, row_anew = _row(before, following.push), _row(push, following.push)
        if row != row_anew:
            story = _without(story, row, task_id, following, now)
            story = _with(story, row_anew, task_id, following, now)
    story = _with(story, _row(before, push), task_id, one, now)
    return Pushes(pushes.order.add(event.seq), pushes.by_seq.set(event.seq, one)), story


def _row(before: Push | None, push: Push) -> tuple[str, str] | None:
    """The kind and text of the row that `push` makes after `before`; None if it says nothing new. What ends an
    attempt is told by the task."""
    if push == before or push.terminal:
        return None
    if push.state in _PARKED:
        return push.state, push.text
    return ("resumed", push.text) if before is not None and before.state in _PARKED else None


def _with(story: Narrative, row: tuple[str, str] | None, task_id: str | None, one: Pushed, now: int) -> Narrative:
    return story if row is None else say(story, *row, task_id, one.saying, now=now)


def _without(story: Narrative, row: tuple[str, str] | None, task_id: str | None, one: Pushed, now: int) -> Narrative:
    if row is None:
        return story
    return unsay(story, content_of(*row, task_id, one.saying), one.saying, now=now)
