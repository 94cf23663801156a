"""What a projection is: a pure fold of events into a state.

A state is a frozen struct; what grows in it is a persistent map (`immutables.Map`) or an `Ordered`, so an event
makes a new state cheaply and every older state stays valid: readers share them, `?at=` keeps them. Frozen values
cannot form a cycle, so the numerous ones are kept from the garbage collector (`gc=False`): a checkpoint is read five
times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, get_args, get_origin

import msgspec
from immutables import Map

from ledger.events.model import Recorded

S = TypeVar("S")


class Projection(msgspec.Struct, Generic[S], frozen=True):
    """`evolve(state, event)` returns the next state; it ignores kinds that it does not know, never raises on an
    event that the log has accepted, and touches nothing else.

    `version` names the meaning and the layout of the state: it is bumped when either changes, which drops every
    checkpoint of the version before.
    """

    name: str
    version: str
    state_type: type[S]
    initial: S
    evolve: Callable[[S, Recorded], S]

    def encode(self, state: S) -> bytes:
        """The state as bytes for a checkpoint; `decode` gives an equal one back."""
        return msgspec.msgpack.encode(state, enc_hook=_from_map)

    def decode(self, data: bytes) -> S:
        """Raises msgspec.DecodeError if `data` is not a state of this version."""
        return msgspec.msgpack.decode(data, type=self.state_type, dec_hook=_to_map)


def fold(projection: Projection[S], state: S, events: Iterable[Recorded]) -> S:
    """The state after `events`, which come in position order (within each bucket)."""
    evolve = projection.evolve
    for event in events:
        state = evolve(state, event)
    return state


def _from_map(value: Any) -> Any:
    if isinstance(value, Map):
        return list(value.items())
    raise NotImplementedError(f"a state may not hold {type(value)}")


def _to_map(wanted: type, value: Any) -> Any:
    if get_origin(wanted) is not Map:
        raise NotImplementedError(f"a state may not hold {wanted}")
    key_type, value_type = get_args(wanted)
    pairs = msgspec.convert(value, list[tuple[key_type, value_type]], dec_hook=_to_map)  # type: ignore[valid-type]
    return Map(pairs)
