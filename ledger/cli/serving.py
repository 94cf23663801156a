"""Runs one server on a store: opens it, makes sure of an owner, listens, and closes in order."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import hmac
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import structlog
import uvicorn

from ledger.cli.following import followed, search_index
from ledger.cli.settings import Settings
from ledger.cli.stores import open_store, sqlite_path
from ledger.errors import InvalidField, StorageError
from ledger.events.model import Limits
from ledger.http.app import make_app
from ledger.http.auth import OWNER, token_hash
from ledger.http.services import Services
from ledger.store.base import Store, Token

OWNER_TOKEN_FILE = "owner-token"  # noqa: S105 — a file's name
OWNER_TOKEN_CHARS_MIN = 16
_GC_THRESHOLDS = (50_000, 20, 50)  # a chunk makes thousands of objects, and none of them lies in a cycle
_SWITCH_INTERVAL_S = 0.0005  # the event loop and the store's threads hand over in less than a millisecond
_GRACE_S = 5


class Listening(msgspec.Struct, frozen=True):
    """A server that is up. `login_link` is None where the owner's token came from the environment."""

    url: str
    owner_token: str
    login_link: str | None


Started = Callable[[Listening], Coroutine[Any, Any, None]]


async def serve(settings: Settings, started: Started, listener: socket.socket | None = None) -> None:
    """Serves until SIGINT or SIGTERM. `started` is called once the server answers; when it raises, the server ends.
    `listener` is a socket that is bound already, and shared with others.

    Raises StorageError, InvalidField, also where the address is taken."""
    _log_to_stderr()
    os.umask(0o077)  # a ledger and its index hold whole transcripts: they are their owner's alone
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.freeze()  # what was imported stays
    gc.set_threshold(*_GC_THRESHOLDS)
    with bound(settings.host, settings.port) if listener is None else nullcontext(listener) as listener:
        async with _store(settings.store) as store, search_index(store, settings.store) as index:
            token, ours = await _owner(store, settings.store)
            secret = hmac.new(token.encode(), store.ledger_id.encode(), hashlib.sha256).digest()
            services = Services(
                store,
                clock=time.time_ns,
                secret=secret,
                limits=Limits(
                    body_bytes=settings.max_body_bytes,
                    payload_bytes=settings.max_payload_bytes,
                    in_flight_bytes=settings.max_in_flight_bytes,
                ),
                silent_after_ns=int(settings.silent_after_s * 1e9),
                search=index,
            )
            await services.access.reload()
            url = url_of(listener)
            listening = Listening(url, token, f"{url}/login#{token}" if ours else None)
            async with followed(services):
                await _Server(services).run(listener, lambda: started(listening))


class _Server(uvicorn.Server):
    """uvicorn, ended by our own signal handlers: live streams are hung up first, and the exit code is 0."""

    def __init__(self, services: Services) -> None:
        super().__init__(
            uvicorn.Config(
                make_app(services),
                http="httptools",
                loop="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )
        self._services = services

    async def run(self, listener: socket.socket, started: Callable[[], Coroutine[Any, Any, None]]) -> None:  # type: ignore[override]
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        try:
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(self.serve(sockets=[listener]))
                helper = group.create_task(started())
                helper.add_done_callback(lambda done: self._stop() if done.cancelled() or done.exception() else None)
                serving.add_done_callback(lambda _: helper.cancel())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    def _stop(self) -> None:
        self._services.hub.close()
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def _store(url: str) -> AsyncIterator[Store]:
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


async def _owner(store: Store, url: str) -> tuple[str, bool]:
    """The owner's token, made on the first start, and whether it is ours to print: not if it was given to us."""
    given = os.environ.get("LEDGERD_OWNER_TOKEN", "").strip() or None
    if given is not None and len(given) < OWNER_TOKEN_CHARS_MIN:
        raise InvalidField("LEDGERD_OWNER_TOKEN", f"has fewer than {OWNER_TOKEN_CHARS_MIN} characters")
    token = given or _kept_token(url)
    await _keep_owner(store, token_hash(token))
    return token, given is None


async def _keep_owner(store: Store, digest: bytes) -> None:
    async def kept() -> bool:
        return any(known.hash == digest for known in await store.tokens())

    if await kept():
        return
    try:
        await store.put_token(Token(OWNER, OWNER, OWNER, digest, time.time_ns()))
    except StorageError:
        if not await kept():  # by a server that starts at the same moment on the same ledger
            raise


def _kept_token(url: str) -> str:
    """The token in the file beside the ledger, made if it is not there. Raises StorageError, also for a file that was
    cut short: the empty token of an empty file would let everybody in."""
    path = sqlite_path(url)
    if path is None:
        raise InvalidField("LEDGERD_OWNER_TOKEN", "is needed where the store is no file", hint="Set it to a secret.")
    file = path.expanduser().resolve().with_name(OWNER_TOKEN_FILE)
    token = f"ld_owner_{secrets.token_urlsafe(32)}"
    try:
        if file.exists():
            return _whole(file.read_text().strip(), file)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(token + "\n")
    except OSError as error:
        raise StorageError(f"cannot keep the owner token in {file}: {error.strerror}") from error
    return token


def _whole(token: str, file: Path) -> str:
    if len(token) < OWNER_TOKEN_CHARS_MIN:
        raise StorageError(f"{file} holds no whole token", hint="Remove it: the next start makes a new one.")
    return token


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens. Raises InvalidField where the address is taken or is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            reason = error.strerror or str(error)
            raise InvalidField("port", f"cannot listen on {host}:{port}: {reason}", hint="Try --port 0.") from error
        listener.listen(2048)
        yield listener


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _log_to_stderr() -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
