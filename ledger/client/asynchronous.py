"""The same as `ledger.client.saddle`, for asyncio: every call is done in a thread, so no loop waits for a disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from ledger.client.outbox import BYTES_MAX
from ledger.client.saddle import CLOSE_S, Saddle, Session


class AsyncSession:
    """A session in an outbox; see `Session`. Seqs are given in the order in which calls are awaited."""

    def __init__(self, session: Session) -> None:
        self.id = session.id
        self._session = session

    async def emit(
        self, kind: str, payload: object = None, *, actor: str = "model", at: str | int | float | None = None
    ) -> int:
        return await asyncio.to_thread(self._session.emit, kind, payload, actor=actor, at=at)

    async def comment(self, body: str, *, actor: str = "model") -> int:
        return await asyncio.to_thread(self._session.comment, body, actor=actor)

    async def usage(self, *, actor: str = "harness", **counts: Any) -> int:
        return await asyncio.to_thread(self._session.usage, actor=actor, **counts)

    async def result(self, state: str, summary: str | None = None, *, actor: str = "harness") -> bool:
        return await asyncio.to_thread(self._session.result, state, summary, actor=actor)


class AsyncWork(msgspec.Struct, frozen=True):
    """What an ask was given: the task as the server describes it, and the session that is open on it."""

    task: dict[str, Any]
    session: AsyncSession


class AsyncSaddle:
    """A daemon's seat for asyncio; see `Saddle`. An async context manager."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        outbox: str | Path | None = None,
        drain: bool = True,
        bytes_max: int = BYTES_MAX,
        timeout_s: float = 30,
    ) -> None:
        self._saddle = Saddle(url, token, outbox=outbox, drain=drain, bytes_max=bytes_max, timeout_s=timeout_s)

    async def __aenter__(self) -> AsyncSaddle:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open_session(self, session_id: str | None = None, **fields: Any) -> AsyncSession:
        return AsyncSession(await asyncio.to_thread(self._saddle.open_session, session_id, **fields))

    def session(self, session_id: str) -> AsyncSession:
        return AsyncSession(self._saddle.session(session_id))

    async def ask(self, *, wait_s: float = 0, **fields: Any) -> AsyncWork | None:
        work = await asyncio.to_thread(self._saddle.ask, wait_s=wait_s, **fields)
        return None if work is None else AsyncWork(work.task, AsyncSession(work.session))

    async def flush(self, timeout_s: float = 10, *, session_id: str | None = None, patient: bool = True) -> bool:
        return await asyncio.to_thread(self._saddle.flush, timeout_s, session_id=session_id, patient=patient)

    async def close(self, timeout_s: float = CLOSE_S) -> None:
        await asyncio.to_thread(self._saddle.close, timeout_s)
