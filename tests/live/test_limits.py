"""What is too much is refused with a reason, costs the server little, and loses nothing that was acknowledged."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import zstandard

from ledger.events.model import Limits
from tests.live.serving import (
    Server,
    assert_problem,
    event,
    events_of,
    opened,
    push,
    push_raw,
    running,
    token_of,
    wait_for_gauge,
)

MIB = 2**20
CHUNKS = "/api/saddle/chunks"


def test_the_limits_are_those_of_the_design() -> None:
    assert Limits() == Limits(16 * MIB, 4 * MIB, 10_000, 200, 64 * MIB)


def chunk(session_id: str, *events: object) -> bytes:
    return json.dumps({"session_id": session_id, "events": events}).encode()


def encoded(saddle: httpx.Client, body: bytes, encoding: str) -> httpx.Response:
    return saddle.post(CHUNKS, content=body, headers={"Content-Encoding": encoding})


# The body


def test_a_body_of_the_limit_is_taken_and_one_byte_more_is_not(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    body = chunk(session_id, *[event(seq, payload="x" * (4 * MIB - 2)) for seq in range(3)], event(3))
    body += b" " * (16 * MIB - len(body))
    assert_problem(saddle.post(CHUNKS, content=body + b" "), 413, "body_too_large")
    assert events_of(reader, session_id) == []
    assert saddle.post(CHUNKS, content=body).json()["stored"] == 4


def test_a_body_that_does_not_say_its_length_is_bounded_too(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, _ = opened(saddle)

    def parts() -> Iterator[bytes]:
        yield chunk(session_id, event(0))
        for _ in range(17):
            yield b" " * MIB

    assert_problem(saddle.post(CHUNKS, content=parts()), 413, "body_too_large")
    assert events_of(reader, session_id) == []


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip", "zstd", "identity"])
def test_a_body_may_be_compressed(saddle: httpx.Client, reader: httpx.Client, encoding: str) -> None:
    session_id, _ = opened(saddle)
    body = chunk(session_id, *[event(seq) for seq in range(100)])
    squeeze = {"zstd": zstandard.compress, "identity": bytes}.get(encoding, gzip.compress)
    answer = encoded(saddle, squeeze(body), encoding)
    assert answer.json()["stored"] == 100
    assert len(events_of(reader, session_id)) == 100


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, zstd", "nonsense"])
def test_an_encoding_that_is_not_read_is_named(saddle: httpx.Client, encoding: str) -> None:
    session_id, _ = opened(saddle)
    problem = assert_problem(encoded(saddle, chunk(session_id, event(0)), encoding), 415, "unsupported_encoding")
    assert encoding in problem["detail"]


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_is_refused_before_it_bursts(server: Server, saddle: httpx.Client, encoding: str) -> None:
    before = peak_bytes(server)
    zeros = bytes(MIB)
    if encoding == "gzip":
        squeezer = zlib.compressobj(1, wbits=31)
        bomb = b"".join(squeezer.compress(zeros) for _ in range(400)) + squeezer.flush()
    else:
        squeezing = zstandard.ZstdCompressor().compressobj()
        bomb = b"".join(squeezing.compress(zeros) for _ in range(400)) + squeezing.flush()
    assert len(bomb) < 4 * MIB
    assert_problem(encoded(saddle, bomb, encoding), 413, "body_too_large")
    assert peak_bytes(server) - before < 100 * MIB


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_compressed_body_that_is_cut_or_none_at_all_is_refused(
    saddle: httpx.Client, reader: httpx.Client, encoding: str
) -> None:
    session_id, _ = opened(saddle)
    body = chunk(session_id, event(0, payload="".join(map(chr, range(32, 2000)))))
    whole = gzip.compress(body) if encoding == "gzip" else zstandard.compress(body)
    for broken in (whole[:-1], whole[: len(whole) // 2], whole[:5], body, b"", b"\x00" * 50):
        assert_problem(encoded(saddle, broken, encoding), 400, "malformed_body")
    assert events_of(reader, session_id) == []


def test_what_follows_a_gzip_stream_is_not_dropped_in_silence(saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    body = gzip.compress(chunk(session_id, event(0)))
    assert_problem(encoded(saddle, body + body, "gzip"), 400, "malformed_body")


def test_a_zstd_window_of_any_size_is_not_granted(saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    wide = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    squeezer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    body = squeezer.compress(chunk(session_id, event(0))) + squeezer.flush()
    assert_problem(encoded(saddle, body, "zstd"), 400, "malformed_body")


# One chunk


def test_ten_thousand_events_are_a_chunk_and_one_more_is_not(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    events = [{"seq": seq, "kind": "x"} for seq in range(10_001)]
    body = {"session_id": session_id, "events": events}
    assert_problem(saddle.post(CHUNKS, json=body), 422, "invalid_field")
    assert events_of(reader, session_id) == []
    assert push(saddle, session_id, events[:-1])["stored"] == 10_000
    poisoned = {"session_id": session_id, "events": [*events, {"seq": None}]}
    assert_problem(saddle.post(CHUNKS, json=poisoned), 422, "invalid_field")


# One payload


def test_a_payload_of_the_limit_is_stored_and_one_byte_more_is_rejected(
    saddle: httpx.Client, reader: httpx.Client
) -> None:
    session_id, _ = opened(saddle)
    sizes = {0: 4 * MIB, 1: 4 * MIB + 1, 2: 1_200_000, 3: 5_000_000, 4: 2}
    receipt = push(saddle, session_id, [event(seq, payload="x" * (size - 2)) for seq, size in sizes.items()])
    assert receipt["stored"] == 3
    assert [(one["index"], one["seq"], one["code"]) for one in receipt["rejected"]] == [
        (1, 1, "payload_too_large"),
        (3, 3, "payload_too_large"),
    ]
    found = {seq: seen_payload(reader, session_id, seq) for seq in (0, 2, 4)}
    assert {seq: len(text) + 2 for seq, text in found.items()} == {0: 4 * MIB, 2: 1_200_000, 4: 2}


def test_a_result_is_bound_by_the_same_limit(saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    pushed = {"session_id": session_id, "state": "done", "summary": "x" * 4 * MIB}
    assert_problem(saddle.post("/api/saddle/results", json=pushed), 422, "payload_too_large")
    assert saddle.post("/api/saddle/results", json={**pushed, "summary": "x"}).json()["stored"] == 1


def seen_payload(reader: httpx.Client, session_id: str, seq: int) -> str:
    answer = reader.get(f"/api/sessions/{session_id}/events", params={"from": seq, "limit": 1})
    return str(answer.json()["events"][0]["payload"])


@pytest.mark.parametrize("levels", [200, 201, 1_024, 20_000, 1_000_000])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
def test_nesting_is_kept_up_to_the_limit_and_rejected_beyond(
    saddle: httpx.Client, reader: httpx.Client, levels: int, brackets: tuple[bytes, bytes]
) -> None:
    session_id, task_id = opened(saddle)
    levels = min(levels, 600_000) if len(brackets[0]) > 1 else levels
    inner = b"1" if len(brackets[0]) > 1 else b""
    payload = brackets[0] * levels + inner + brackets[1] * levels
    good = b'{"seq": 1, "kind": "x", "payload": {}}'
    receipt = push_raw(saddle, session_id, b'[{"seq": 0, "kind": "x", "payload": %s}, %s]' % (payload, good))
    assert receipt["stored"] == (2 if levels == 200 else 1)
    assert [(one["index"], one["seq"], one["code"]) for one in receipt["rejected"]] == (
        [] if levels == 200 else [(0, 0, "nested_too_deep")]
    )
    assert payload in reader.get(f"/api/sessions/{session_id}/events").content or levels > 200
    for path in (f"/api/tasks/{task_id}", f"/tasks/{task_id}", f"/sessions/{session_id}"):
        assert reader.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/api/saddle/results", "/api/saddle/sessions", "/api/saddle/ask"])
def test_other_bodies_are_not_nested_without_end_either(saddle: httpx.Client, path: str) -> None:
    deep = b'{"session_id": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    assert_problem(saddle.post(path, content=deep), 422, "invalid_field")


# What is in flight


@pytest.fixture
def small_server(tmp_path: Path) -> Iterator[Server]:
    """A server that has room for 300,000 bytes in flight."""
    with running(tmp_path, environment={"LEDGERD_MAX_IN_FLIGHT_BYTES": "300000"}) as small:
        yield small


def test_more_in_flight_than_there_is_room_for_is_asked_to_come_again(small_server: Server) -> None:
    saddle, watcher = small_server.saddle("anvil"), small_server.client()
    (first, _), (second, _) = opened(saddle), opened(saddle)
    held, waiting = (chunk(one, event(0, payload="x" * 200_000)) for one in (first, second))
    with half_sent(small_server, token_of(saddle), held) as connection:
        wait_for_gauge(watcher, "ledgerd_in_flight_bytes", lambda held_bytes: held_bytes > 150_000)
        answer = saddle.post(CHUNKS, content=waiting)
        assert_problem(answer, 429, "overloaded")
        assert int(answer.headers["retry-after"]) >= 1
        assert encoded(saddle, gzip.compress(waiting), "gzip").status_code == 429
        connection.sendall(held[-1000:])
        assert connection.recv(12) == b"HTTP/1.1 200"
    assert saddle.post(CHUNKS, content=waiting).json()["stored"] == 1
    assert [len(events_of(watcher, one)) for one in (first, second)] == [1, 1]


def test_who_hangs_up_in_the_middle_of_a_body_leaves_room_and_nothing_else(small_server: Server) -> None:
    saddle, watcher = small_server.saddle("anvil"), small_server.client()
    session_id, _ = opened(saddle)
    body = chunk(session_id, event(0, payload="x" * 250_000))
    for _ in range(3):
        with half_sent(small_server, token_of(saddle), body):
            wait_for_gauge(watcher, "ledgerd_in_flight_bytes", lambda held: held > 200_000)
        wait_for_gauge(watcher, "ledgerd_in_flight_bytes", lambda held: held == 0)
    assert events_of(watcher, session_id) == []
    assert saddle.post(CHUNKS, content=body).json()["stored"] == 1
    assert "Traceback" not in small_server.stderr


def half_sent(server: Server, token: str, body: bytes) -> socket.socket:
    """A connection on which all but the last 1,000 bytes of a chunk have been sent."""
    address = urlsplit(server.url)
    connection = socket.create_connection((str(address.hostname), address.port or 0), timeout=10)
    head = f"POST {CHUNKS} HTTP/1.1\r\nHost: ledger\r\nAuthorization: Bearer {token}\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:-1000])
    return connection


def peak_bytes(server: Server) -> int:
    """The most memory that the server has had resident."""
    [line] = [
        line for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    ]
    return int(line.split()[1]) * 1024
