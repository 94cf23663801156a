from __future__ import annotations

import msgspec

from projections.fold import Projection
from projections.recent import Recent


class Held(msgspec.Struct, frozen=True):
    words: Recent[str] = Recent()


def test_the_key_that_was_put_longest_ago_is_dropped() -> None:
    recent: Recent[str] = Recent()
    for key in ("a", "b", "a", "c"):
        recent = recent.put(key, key.upper(), 2)
    assert (recent.get("a"), recent.get("b"), recent.get("c"), len(recent)) == ("A", None, "C", 2)


def test_an_older_value_stays_as_it_was() -> None:
    before: Recent[str] = Recent().put("a", "x", 5)
    after = before.put("a", "y", 5)
    assert (before.get("a"), after.get("a"), len(after)) == ("x", "y", 1)


def test_it_can_be_checkpointed() -> None:
    projection = Projection(name="held", version="1", state_type=Held, initial=Held(), evolve=lambda held, _: held)
    held = Held(Recent().put("a", "x", 5).put("b", "y", 5))
    assert projection.decode(projection.encode(held)) == held
