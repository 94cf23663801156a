"""A faulty link on loopback, between a sender and the server: cuts connections, or is slow.

It runs its own event loop in a thread, so that scenarios stay plain code.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from types import TracebackType
from urllib.parse import urlsplit

_BLOCK = 65536


@dataclass(frozen=True)
class Link:
    """What a link does. `cut_share` of the answers, and always the first, are swallowed and their connection closed:
    the server has committed, the sender never hears of it. A slow link passes `block_bytes`, then waits `wait_s`."""

    cut_share: float = 0.0
    block_bytes: int = _BLOCK
    wait_s: float = 0.0


class Proxy:
    """Listens on a free port of 127.0.0.1 while entered. `upstream` is asked for the server's URL whenever a
    connection is made; `cuts` counts the answers that were swallowed."""

    def __init__(self, upstream: Callable[[], str], link: Link, random: Random) -> None:
        self.url = ""
        self.cuts = 0
        self._upstream = upstream
        self._link = link
        self._random = random
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self._loop.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            address = urlsplit(self._upstream())
            server_reader, server_writer = await asyncio.open_connection(address.hostname, address.port)
            with contextlib.closing(server_writer):
                # Whichever direction ends first ends the connection.
                pumps = [
                    asyncio.ensure_future(self._pump(reader, server_writer, 0.0)),
                    asyncio.ensure_future(self._pump(server_reader, writer, self._link.cut_share)),
                ]
                try:
                    await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for pump in pumps:
                        pump.cancel()
                    await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut_share: float) -> None:
        while block := await reader.read(self._link.block_bytes):
            if cut_share and (not self.cuts or self._random.random() < cut_share):
                self.cuts += 1
                return
            if self._link.wait_s:
                await asyncio.sleep(self._link.wait_s)
            writer.write(block)
            await writer.drain()
