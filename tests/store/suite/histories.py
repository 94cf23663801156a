"""Random histories, told to the backend and to the readable specification side by side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.errors import LedgerError, StreamMoved
from ledger.events.model import END_SEQ, NO_EVENTS, NewEvent
from ledger.store import cursors
from ledger.store.base import Appended, Opening, Store, Write
from ledger.store.memory import MemoryStore
from ledger.store.verifying import verify
from tests.store.building import Clock, event, opening, roots_of_one_bucket, whole_feed

STREAMS = ("s", "t", "@task/1")
ROOTS = 2

payloads = st.sampled_from(['{"a":1}', '{ "a": 1.0 }', '{"a":2}', '{"a":true}', '"\\u0000"'])
new_events = st.builds(
    event,
    st.sampled_from([0, 1, 2, 3, 5, END_SEQ - 1, END_SEQ]),
    payloads,
    kind=st.sampled_from(["message", "result", "waiting"]),
    actor=st.sampled_from(["agent", "agent", "agent", "tool"]),
    at=st.sampled_from([None, 0, 1]),
    extra=st.sampled_from([None, b"{}"]),
    recorded_at=st.sampled_from([None, None, 5]),
)


class Step:
    """One write as it is drawn; the roots' names depend on the store's buckets, so it holds their numbers."""

    def __init__(
        self,
        stream: str,
        new: list[NewEvent],
        task: int | None,
        model: str,
        bare: bool,
        saddle: str | None,
        expected_seq: int | None,
    ) -> None:
        self.stream, self.new, self.task, self.model, self.bare = stream, new, task, model, bare
        self.saddle, self.expected_seq = saddle, expected_seq

    def __repr__(self) -> str:
        return f"Step({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def write(self, roots: list[str]) -> Write:
        return Write(self.stream, self.new, self._opening(roots), self.saddle, self.expected_seq)

    def _opening(self, roots: list[str]) -> Opening | None:
        if self.task is None:
            return None
        root = roots[self.task % ROOTS]
        if self.bare:
            return Opening(root, str(self.task), "alpha")
        return opening(str(self.task), root, model=self.model)


steps = st.builds(
    Step,
    stream=st.sampled_from(STREAMS),
    new=st.lists(new_events, max_size=5),
    task=st.sampled_from([None, None, 1, 1, 1, 1, 2]),
    model=st.sampled_from(["m", "m", "m", "other"]),
    bare=st.booleans(),
    saddle=st.sampled_from([None, None, None, "alpha", "beta"]),
    expected_seq=st.sampled_from([None] * 6 + [NO_EVENTS, -1, 1, 3, 5]),
)
appends = st.lists(steps, min_size=1, max_size=3, unique_by=lambda step: step.stream)


@settings(
    max_examples=60,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=st.lists(appends, min_size=1, max_size=12))
async def test_a_history_ends_as_in_the_readable_specification(
    make_store: Callable[[], Awaitable[Store]], clock: Clock, history: list[list[Step]]
) -> None:
    store = await make_store()
    try:
        model = MemoryStore(clock, store.buckets)
        roots = roots_of_one_bucket(store, ROOTS)
        assert roots == roots_of_one_bucket(model, ROOTS)
        for append in history:
            clock.tick()
            writes = [step.write(roots) for step in append]
            assert await _outcome(store, writes) == await _outcome(model, writes)
        assert await _everything(store, roots) == await _everything(model, roots)
        assert (await verify(store)).ok
    finally:
        await store.close()


async def _outcome(store: Store, writes: list[Write]) -> Appended | tuple[Any, ...]:
    try:
        return await store.append(writes)
    except StreamMoved as error:
        return StreamMoved, error.stream, error.last_seq
    except LedgerError as error:
        return type(error), error.code


async def _everything(store: Store, roots: list[str]) -> dict[str, Any]:
    """All that can be read, without the chain's links: those begin with the ledger's name."""
    start, bucket = cursors.start(store.buckets), store.bucket_of(roots[0])
    return {
        "feed": await whole_feed(store, page=4),
        "decisive": await whole_feed(store, page=3, decisive=True),
        "heads": await store.heads(),
        "moved": await store.roots_moved(start),
        "roots": [await store.read_root(root) for root in roots],
        "streams": [await store.streams_of(root) for root in roots],
        "events": [await store.read_stream(stream) for stream in STREAMS],
        "backward": [await store.read_stream(stream, from_seq=END_SEQ, backward=True) for stream in STREAMS],
        "gaps": [await store.gaps(stream) for stream in STREAMS],
        "losers": [sorted(await store.losers(stream), key=_loser_order) for stream in STREAMS],
        "deliveries": [await store.deliveries(root) for root in roots],
        "seals": [(seal.number, seal.first, seal.last) for seal in await store.seals(bucket)],
    }


def _loser_order(loser: Any) -> tuple[int, int, bytes]:
    return loser.seq, loser.received_at, loser.digest
