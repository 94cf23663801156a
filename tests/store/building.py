"""Small words for the tests of the stores."""

from __future__ import annotations

from ledger.events.content import content_digest
from ledger.events.kinds import MESSAGE, RESULT, SESSION_OPENED
from ledger.events.model import END_SEQ, OPENING_SEQ, NewEvent, Recorded, task_root
from ledger.store import cursors
from ledger.store.base import Opening, Store, Write, Written


class Clock:
    """Nanoseconds that stand still until they are told to go on."""

    def __init__(self, now: int = 1_700_000_000_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def tick(self, ns: int = 1) -> int:
        self.now += ns
        return self.now


def event(
    seq: int,
    payload: str | None = None,
    *,
    kind: str = MESSAGE,
    actor: str = "agent",
    at: int | None = None,
    extra: bytes | None = None,
    recorded_at: int | None = None,
) -> NewEvent:
    data = (f'{{"n":{seq}}}' if payload is None else payload).encode()
    digest = content_digest(kind, actor, data)
    return NewEvent(seq, kind, actor, data, digest, at=at, extra=extra, recorded_at=recorded_at)


def events(*seqs: int) -> list[NewEvent]:
    return [event(seq) for seq in seqs]


def result(state: str, seq: int = END_SEQ, *, summary: str = "") -> NewEvent:
    return event(seq, f'{{"state":"{state}","summary":"{summary}"}}', kind=RESULT)


def opening(
    task_id: str | None = "1",
    root: str | None = None,
    *,
    saddle: str = "alpha",
    model: str = "m",
    contiguous: bool = False,
) -> Opening:
    """As a session is opened: with session.opened in its slot."""
    payload = f'{{"task_id":"{task_id}","saddle":"{saddle}","model":"{model}"}}'
    opened = event(OPENING_SEQ, payload, kind=SESSION_OPENED, actor=saddle)
    return Opening(root or task_root(task_id or ""), task_id, saddle, contiguous, opened)


async def open_session(store: Store, stream: str = "s", task_id: str = "1", root: str | None = None) -> Written:
    return await push(store, stream, opening=opening(task_id, root))


async def push(store: Store, stream: str, *new: NewEvent, opening: Opening | None = None) -> Written:
    appended = await store.append([Write(stream, new, opening=opening)])
    return appended.writes[0]


async def whole_feed(store: Store, *, page: int = 1000, decisive: bool = False) -> list[Recorded]:
    """Everything in the log, read page by page as a reader does."""
    heads, found = list(cursors.start(store.buckets)), []
    while new := await store.read_feed(tuple(heads), limit=page, decisive=decisive):
        for recorded in new:
            heads[recorded.bucket] = recorded.position
        found += new
    return found


def keys(recorded: list[Recorded]) -> list[tuple[str, int]]:
    return [(one.session_id, one.seq) for one in recorded]


def roots_of_one_bucket(store: Store, count: int) -> list[str]:
    """Roots whose events one append may write together."""
    bucket = store.bucket_of("task/0")
    fitting = (root for n in range(10_000) if store.bucket_of(root := f"task/{n}") == bucket)
    return [next(fitting) for _ in range(count)]
