"""The pushers: many sessions side by side, each with one connection and one request in flight, as daemons push.

They run in one process of their own, beside the server, and cost as little as they can: requests are bytes before the
clock starts, and while it runs receipts are only kept.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import cast

import msgspec
import uvloop

from tests.bench.processes import BenchFailed, Child
from tests.bench.results import Sample
from tests.bench.servers import Server
from tests.bench.workload import PATH, Workload

_PREPARE_S_MAX = 60.0
_RUN_S_MAX = 60.0
_READY, _GO = b"ready", b"go"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEAD_END = b"\r\n\r\n"


class _Plan(msgspec.Struct, frozen=True):
    port: int
    token: str
    workload: Workload


class Delivered(msgspec.Struct, frozen=True):
    """All chunks of a workload, delivered once. `stored` and `duplicates` are the sums of the receipts; `cpu_s` is
    what the pushers themselves used; latencies run from a request's first byte to its receipt's last."""

    seconds: float
    cpu_s: float
    latency_p50_ms: float
    latency_p99_ms: float
    stored: int
    duplicates: int


class Load:
    """The pushers as their parent sees them: each `deliver` pushes the whole workload once."""

    def __init__(self, child: Child, server: Server, workload: Workload) -> None:
        self._child = child
        self._server = server.child
        self._workload = workload
        child.say(msgspec.json.encode(_Plan(server.port, server.token, workload)))
        if child.hear(_PREPARE_S_MAX) != _READY:
            raise BenchFailed("the pushers are not ready")

    def deliver(self, *, stored: int, duplicates: int) -> Sample:
        """What a delivery cost the server. Raises BenchFailed unless the receipts add up to what is given."""
        cpu_s = self._server.cpu_s()
        self._child.say(_GO)
        done = msgspec.json.decode(self._child.hear(_RUN_S_MAX), type=Delivered)
        cpu_s = self._server.cpu_s() - cpu_s
        if (done.stored, done.duplicates) != (stored, duplicates):
            raise BenchFailed(
                f"{self._workload.name}: the receipts say {done.stored} stored and {done.duplicates} duplicates,"
                f" not {stored} and {duplicates}"
            )
        return Sample(
            events=self._workload.events,
            requests=self._workload.requests,
            seconds=done.seconds,
            cpu_s=cpu_s,
            peak_mib=self._server.peak_mib(),
            latency_p50_ms=done.latency_p50_ms,
            latency_p99_ms=done.latency_p99_ms,
            pushers_cpu_s=done.cpu_s,
        )


# In the pushers' own process


class _Pusher(asyncio.Protocol):
    """One connection: sends its requests one after another and keeps what is answered."""

    def __init__(self, requests: Sequence[bytes]) -> None:
        self._left = iter(requests)
        self._in = b""
        self._sent_at = 0.0
        self.receipts: list[bytes] = []
        self.latencies_s: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own is no subclass

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(BenchFailed(f"the server hung up: {error}"))

    def push(self) -> None:
        request = next(self._left, None)
        if request is None:
            self.done.set_result(None)
            return
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._in += data
        head_end = self._in.find(_HEAD_END)
        if head_end < 0:
            return
        length = _LENGTH.search(self._in, 0, head_end)
        if length is None or len(self._in) < head_end + len(_HEAD_END) + int(length[1]):
            return
        self.latencies_s.append(time.perf_counter() - self._sent_at)
        self.receipts.append(self._in)
        self._in = b""
        self.push()


async def _deliver(port: int, sessions: Iterable[Sequence[bytes]]) -> Delivered:
    """Connects, and then, by the clock, sends all requests."""
    connect = asyncio.get_running_loop().create_connection
    made = [await connect(partial(_Pusher, requests), "127.0.0.1", port) for requests in sessions]
    pushers = [pusher for _, pusher in made]
    began, cpu = time.perf_counter(), time.process_time()
    for pusher in pushers:
        pusher.push()
    await asyncio.gather(*[pusher.done for pusher in pushers])
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    for transport, _ in made:
        transport.close()
    receipts = [_receipt(answer) for pusher in pushers for answer in pusher.receipts]
    latencies_s = sorted(latency for pusher in pushers for latency in pusher.latencies_s)
    return Delivered(
        seconds=seconds,
        cpu_s=cpu_s,
        latency_p50_ms=latencies_s[len(latencies_s) // 2] * 1e3,
        latency_p99_ms=latencies_s[len(latencies_s) * 99 // 100] * 1e3,
        stored=sum(receipt["stored"] for receipt in receipts),
        duplicates=sum(receipt["duplicates"] for receipt in receipts),
    )


def _receipt(answer: bytes) -> dict[str, int]:
    head, _, body = answer.partition(_HEAD_END)
    if not head.startswith(b"HTTP/1.1 200 "):
        raise BenchFailed(f"the server answered {answer[:500]!r}")
    receipt: dict[str, int] = msgspec.json.decode(body)
    return receipt


def _requests(plan: _Plan) -> Iterator[list[bytes]]:
    """Each session's requests, whole."""
    for session_id in plan.workload.session_ids():
        yield [
            b"POST %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %b\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (PATH.encode(), plan.port, plan.token.encode(), len(body), body)
            for body in plan.workload.bodies(session_id)
        ]


def main() -> None:
    lines = sys.stdin.buffer
    plan = msgspec.json.decode(lines.readline(), type=_Plan)
    sessions = list(_requests(plan))
    print(_READY.decode(), flush=True)
    while lines.readline().strip() == _GO:
        delivered = uvloop.run(_deliver(plan.port, sessions))
        print(msgspec.json.encode(delivered).decode(), flush=True)


if __name__ == "__main__":
    main()
