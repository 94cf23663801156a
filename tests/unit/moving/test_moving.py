from __future__ import annotations

import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import SessionElsewhere
from ledger.events.content import content_digest
from ledger.events.model import END_SEQ, OPENING_SEQ, NewEvent, Recorded, goal_stream, task_stream
from ledger.moving import BadLine, Counts, Imported, export_ledger, import_ledger
from ledger.store.base import Opening, Store, Write
from ledger.store.memory import MemoryStore
from ledger.store.sqlite import SqliteStore
from ledger.store.verifying import verify

MakeStore = Callable[[], Awaitable[Store]]

PAYLOADS = [
    b'{"n": 1}',
    b"null",
    b'  {"white": "space at the ends"} ',
    b'{\n  "written": "over\\nlines"\r\n}',
    b'{"n":12345678901234567890123456789012345678901234567890,"x":1e999,"a":1,"a":2}',
    '{"é":"\u2028\U0001f600\\u0000"}'.encode(),
]


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000_000

    def __call__(self) -> int:
        self.now += 1_234_567
        return self.now


def event(
    seq: int,
    payload: bytes = b"{}",
    kind: str = "message",
    actor: str = "model",
    at: int | None = None,
    extra: bytes | None = None,
) -> NewEvent:
    return NewEvent(seq, kind, actor, payload, content_digest(kind, actor, payload), at, extra)


def opened(task_id: str, *, contiguous: bool = False, root: str | None = None) -> Opening:
    said = event(OPENING_SEQ, b'{"task_id":"%s"}' % task_id.encode(), "session.opened", "alpha")
    return Opening(root or f"task/{task_id}", task_id, "alpha", contiguous, said)


async def fill(store: Store) -> None:
    """Sessions that interleave, own streams, every awkward payload, late events, two conflicts."""
    created = event(0, b'{"id":"7"}', "goal.created", "ann")
    await store.append([Write(goal_stream("7"), [created], Opening("goal/7", None, "@ledger"))])
    created = event(0, b'{"id":"1"}', "task.created", "ann")
    await store.append([Write(task_stream("1"), [created], Opening("goal/7", "1", "@ledger"))])
    await store.append([Write("s1", [event(5), event(2)], opened("1", contiguous=True, root="goal/7"))])
    await store.append([Write("s2", opening=opened("2"))])
    for seq, payload in enumerate(PAYLOADS, start=10):
        await store.append([Write("s1", [event(seq, payload, at=1_600_000_000_000_000_000 + seq)])])
        await store.append([Write("s2", [event(seq, payload, extra=b'{"turn": 3}')])])
    await store.append([Write("s2", [event(12, b'"another"'), event(12, b'"a third"')])])
    await store.append([Write("s1", [event(END_SEQ, b'{"state":"done"}', "result")])])
    await store.append([Write("s1", [event(END_SEQ, b'{"state":"failed"}', "result")])])


async def lines_of(store: Store) -> list[bytes]:
    out = io.BytesIO()
    await export_ledger(store, out.write)
    return out.getvalue().splitlines(keepends=True)


async def feed(store: Store) -> list[Recorded]:
    return await store.read_feed((0,) * store.buckets, limit=10_000)


@pytest.fixture(params=["memory", "sqlite"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    clock = Clock()
    numbers = iter(range(100))

    async def make() -> Store:
        if request.param == "memory":
            return MemoryStore(clock)
        return await SqliteStore.open(tmp_path / f"{next(numbers)}.db", clock=clock)

    return make


@pytest.fixture
async def source(make_store: MakeStore):
    store = await make_store()
    await fill(store)
    yield store
    await store.close()


@pytest.fixture
async def empty(make_store: MakeStore):
    store = await make_store()
    yield store
    await store.close()


async def test_a_ledger_that_was_moved_has_the_same_log_at_the_same_positions(source: Store, empty: Store) -> None:
    imported = await import_ledger(empty, await lines_of(source))

    assert await feed(empty) == await feed(source)
    assert imported.stored == len(await feed(source))
    assert (imported.duplicates, imported.conflicts) == (0, [])
    assert (await verify(empty)).ok


async def test_the_losers_of_conflicts_move_along_with_the_time_at_which_they_came(
    source: Store, empty: Store
) -> None:
    await import_ledger(empty, await lines_of(source))

    for stream in ("s1", "s2"):
        assert await empty.losers(stream) == await source.losers(stream)
    assert len(await empty.losers("s2")) == 2


async def test_how_streams_were_opened_moves_along(source: Store, empty: Store) -> None:
    await import_ledger(empty, await lines_of(source))

    for stream in ("s1", "s2", "@goal/7", "@task/1"):
        there, here = await source.stream(stream), await empty.stream(stream)
        assert there is not None
        assert here is not None
        assert (here.root, here.task_id, here.saddle, here.contiguous, here.high_seq, here.events) == (
            there.root,
            there.task_id,
            there.saddle,
            there.contiguous,
            there.high_seq,
            there.events,
        )


async def test_importing_again_adds_nothing(source: Store, empty: Store) -> None:
    lines = await lines_of(source)
    await import_ledger(empty, lines)
    before = await feed(empty)

    again = await import_ledger(empty, lines)

    assert (again.stored, again.duplicates, again.conflicts) == (0, len(before), [])
    assert await feed(empty) == before
    assert len(await empty.losers("s2")) == 2


async def test_the_export_of_an_import_differs_only_in_the_ledgers_id(source: Store, empty: Store) -> None:
    lines = await lines_of(source)
    await import_ledger(empty, lines)

    assert (await lines_of(empty))[1:] == lines[1:]


async def test_what_is_there_with_other_content_stays_and_is_named(source: Store, empty: Store) -> None:
    await empty.append([Write("s2", [event(10, b'"was here first"')], opened("2"))])

    imported = await import_ledger(empty, await lines_of(source))

    assert imported.conflicts == [("s2", 10)]
    assert (await empty.read_stream("s2", from_seq=10, limit=1))[0].payload == b'"was here first"'


async def test_a_session_of_another_task_refuses_the_import(source: Store, empty: Store) -> None:
    await empty.append([Write("s2", opening=opened("99"))])

    with pytest.raises(SessionElsewhere, match="s2"):
        await import_ledger(empty, await lines_of(source))


async def test_events_that_arrive_while_an_export_runs_are_left_for_the_next(source: Store, empty: Store) -> None:
    before = await feed(source)
    lines: list[bytes] = []
    await export_ledger(_GrowsWhileRead(source), lines.append)  # type: ignore[arg-type]

    await import_ledger(empty, lines)
    assert await feed(empty) == before
    assert await empty.losers("late") == []


class _GrowsWhileRead:
    """A store in which a session opens, and falls out with itself, as soon as the feed is read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def read_feed(self, *args: object, **named: object) -> list[Recorded]:
        await self._store.append([Write("late", [event(1, b"1"), event(1, b"2")], opened("3"))])
        await self._store.append([Write("s1", [event(900, b"1"), event(900, b"2")])])
        return await self._store.read_feed(*args, **named)  # type: ignore[arg-type]


async def test_a_store_of_many_buckets_moves_into_one_and_back() -> None:
    many, one = MemoryStore(Clock(), buckets=8), MemoryStore(Clock())
    for number in range(20):
        await many.append([Write(f"s{number}", [event(1), event(2)], opened(str(number)))])
    await import_ledger(one, await lines_of(many))
    back = MemoryStore(Clock(), buckets=8)

    await import_ledger(back, await lines_of(one))

    assert await feed(back) == await feed(many)


async def test_a_line_that_is_no_json_is_named_and_what_stands_before_it_is_stored(
    source: Store, empty: Store
) -> None:
    lines = await lines_of(source)
    number = len(lines) // 2
    broken = [*lines[:number], b'{"position": 3, "sess\n', *lines[number + 1 :]]

    with pytest.raises(BadLine) as caught:
        await import_ledger(empty, broken)

    assert caught.value.line == number + 1
    events_before = sum(line.startswith(b'{"position"') for line in lines[:number])
    assert len(await feed(empty)) == events_before > 0
    await import_ledger(empty, lines)
    assert await feed(empty) == await feed(source)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seq": 2**63}, "seq"),
        ({"seq": -2}, "seq"),
        ({"kind": ""}, "kind"),
        ({"session_id": "never introduced"}, "introduces"),
        ({"recorded_at": "yesterday"}, "no time"),
        ({"payload": None, "payload_text": "{not json"}, "malformed"),
        ({"task_id": 12}, "task_id"),
    ],
)
async def test_an_event_that_the_format_does_not_allow_is_named(change: dict[str, object], said: str) -> None:
    store = MemoryStore(Clock())
    await store.append([Write("s", [event(1)], opened("1"))])
    lines = await lines_of(store)
    lines[3] = json.dumps({**json.loads(lines[3]), **change}).encode() + b"\n"

    with pytest.raises(BadLine, match="line 4: ") as caught:
        await import_ledger(MemoryStore(), lines)
    assert said in caught.value.detail


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        ([], 1),
        ([b"a,b,c\n"], 1),
        ([b'{"ledgerd":2,"ledger_id":"x","buckets":1}\n'], 1),
        ([b'{"ledgerd":1,"ledger_id":"x","buckets":1}\n'], 2),
        ([b'{"ledgerd":1,"ledger_id":"x","buckets":1}\n', b"{}\n"], 2),
        ([b'{"ledgerd":1,"ledger_id":"x","buckets":1}\n', b'{"end":{"events":5}}\n'], 2),
        ([b'{"ledgerd":1,"ledger_id":"x","buckets":1}\n', b'{"end":{}}\n', b'{"end":{}}\n'], 3),
    ],
    ids=["empty", "foreign", "a later version", "no end", "an empty object", "wrong counts", "two ends"],
)
async def test_a_file_that_is_no_whole_export_is_refused(lines: list[bytes], number: int) -> None:
    with pytest.raises(BadLine) as caught:
        await import_ledger(MemoryStore(), lines)
    assert caught.value.line == number


async def test_progress_comes_to_the_end(source: Store, empty: Store) -> None:
    exported: list[int] = []
    imported: list[int] = []
    lines: list[bytes] = []

    counts = await export_ledger(source, lines.append, progress=exported.append)
    await import_ledger(empty, lines, progress=imported.append)

    assert counts == Counts(streams=4, events=len(await feed(source)), conflicts=3)
    assert exported[-1] == counts.events
    assert imported[-1] == sum(map(len, lines))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab\n"\\é', max_size=3), inner, max_size=3),
    max_leaves=5,
)
new_events = st.builds(
    event,
    seq=st.integers(0, END_SEQ),
    payload=st.builds(
        lambda value, indent, pad: (pad + json.dumps(value, indent=indent, ensure_ascii=False) + pad).encode(),
        json_values,
        st.sampled_from([None, 1]),
        st.sampled_from(["", " ", "\n"]),
    ),
    kind=st.sampled_from(["message", "result", "tout autre – chose"]),
    actor=st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    at=st.none() | st.integers(-(2**63), 2**63 - 1),
)


@given(st.lists(st.tuples(st.sampled_from(["s1", "s2", "s3"]), st.lists(new_events, max_size=5)), max_size=8))
async def test_any_log_moves_byte_for_byte(pushes: list[tuple[str, list[NewEvent]]]) -> None:
    source, target = MemoryStore(Clock()), MemoryStore(Clock())
    for session, events in pushes:
        await source.append([Write(session, events, opened(session))])

    imported = await import_ledger(target, await lines_of(source))

    assert await feed(target) == await feed(source)
    assert imported == Imported(stored=len(await feed(source)), losers=imported.losers)
    for session in ("s1", "s2", "s3"):
        assert await target.losers(session) == await source.losers(session)
