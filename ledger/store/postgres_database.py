"""Connections to PostgreSQL: a pool, what is tried again and how long, the driver's errors as the ledger's."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from ledger.errors import InvalidField, StorageError, StorageFull, StoreMismatch
from ledger.store.postgres_url import PostgresUrl

POOL_MAX = 16
CONNECT_S_MAX = 5.0
COMMAND_S_MAX = 15.0
AGAIN_S_MAX = 10.0  # a failover that takes longer is answered with 503, and senders try again
CLOSE_S_MAX = 5.0

_FIRST_WAIT_S, _WAIT_S_MAX = 0.02, 0.5

# Every query of the ledger follows the order of an index. A planner that knows nothing yet of a table that grows fast
# would rather read and sort all of a bucket.
_ALONG_INDEXES = {"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off"}

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
T = TypeVar("T")

# Transactions that the database itself has undone, and may be tried again as they are
UNDONE = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError)

# What a failover looks like: the server is gone, going, not up yet, or does not take writes (any more)
GONE = (
    OSError,  # TimeoutError is one
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.QueryCanceledError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)

_NEVER_RIGHT = (
    asyncpg.InvalidAuthorizationSpecificationError,  # a wrong password is one
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
)


class Database:
    """A pool of connections to one ledger's tables."""

    def __init__(self, url: PostgresUrl, pool: Pool) -> None:
        self.place = url.place
        self.schema = url.schema
        self._pool = pool

    @classmethod
    async def open(cls, url: PostgresUrl, *, read_only: bool) -> Database:
        """Connects once, so that a wrong URL is told at once. Raises StorageError, InvalidField."""
        with driver_errors(url.place):
            try:
                pool = await asyncpg.create_pool(
                    url.dsn,
                    min_size=1,
                    max_size=POOL_MAX,
                    timeout=CONNECT_S_MAX,
                    command_timeout=COMMAND_S_MAX,
                    target_session_attrs=SessionAttribute.any if read_only else SessionAttribute.read_write,
                    server_settings=_settings(url, read_only=read_only),
                    reset=_nothing,
                )
            except (ValueError, asyncpg.ClientConfigurationError) as error:
                raise InvalidField(
                    "store", f"{url.place}: {error}", hint="Write postgresql://USER@HOST:PORT/DATABASE."
                ) from error
        return cls(url, pool)

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_S_MAX):
                await self._pool.close()
        except (TimeoutError, *GONE):
            self._pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection of one's own. Raises what the driver raises."""
        async with self._pool.acquire(timeout=CONNECT_S_MAX) as connection:
            yield connection

    async def rows(self, sql: str, *values: Any) -> list[Any]:
        """The rows of a query, tried again where the server has gone. Raises StorageError."""

        async def read() -> list[Any]:
            async with self.connection() as connection:
                return await connection.fetch(sql, *values)

        return await self.again(read)

    async def put(self, sql: str, *values: Any) -> None:
        """Runs one statement that may run twice. Raises StorageError."""

        async def write() -> None:
            async with self.connection() as connection:
                await connection.execute(sql, *values)

        await self.again(write)

    async def again(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Tries until it works or AGAIN_S_MAX is over; only for what may be done twice, or has left nothing behind
        when it fails with one of UNDONE or GONE. Raises StorageError."""
        deadline = time.monotonic() + AGAIN_S_MAX
        wait_s = _FIRST_WAIT_S
        with driver_errors(self.place):
            while True:
                try:
                    return await attempt()
                except (*UNDONE, *GONE) as error:
                    if isinstance(error, ValueError):  # the driver's word for values that cannot be sent
                        raise
                    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
                        await self._pool.expire_connections()  # they lead to a server that was demoted
                    if time.monotonic() + wait_s > deadline:
                        raise
                await asyncio.sleep(wait_s * random.uniform(0.5, 1.5))  # noqa: S311 — parts those who wait
                wait_s = min(2 * wait_s, _WAIT_S_MAX)


@contextmanager
def driver_errors(place: str) -> Iterator[None]:
    """Turns the driver's errors into the ledger's."""
    try:
        yield
    except asyncpg.DiskFullError as error:
        raise StorageFull(f"the disk of {place} is full") from error
    except asyncpg.TargetServerAttributeNotMatched as error:
        raise StorageError(
            f"{place} takes no writes: a standby, or read-only",
            hint="Name the primary, or all hosts: postgresql://ONE,OTHER/DATABASE.",
        ) from error
    except _NEVER_RIGHT as error:
        raise StoreMismatch(f"{place}: {error}", hint="Check the user, the password and the database.") from error
    except (asyncpg.PostgresError, *GONE) as error:
        said = str(error) or type(error).__name__
        raise StorageError(f"{place}: {said}") from error


async def end(connection: Connection, script: Sequence[str] = ("ROLLBACK",)) -> None:
    """Runs statements that end a transaction, in one round trip."""
    await connection.execute("; ".join(script))


async def undo(connection: Connection) -> None:
    """Leaves a transaction that has failed; a connection that is lost has left it already."""
    with suppress(asyncpg.PostgresError, *GONE):
        if not connection.is_closed() and connection.is_in_transaction():
            await end(connection)


def _settings(url: PostgresUrl, *, read_only: bool) -> dict[str, str]:
    settings = {"search_path": url.schema, "application_name": "ledgerd", "timezone": "UTC", **_ALONG_INDEXES}
    if read_only:
        settings["default_transaction_read_only"] = "on"
    return settings


async def _nothing(connection: object) -> None:
    """Every transaction is ended where it was begun, so a connection needs no reset between two users."""
