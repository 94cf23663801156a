"""Bodies are read within the limits, and what is in flight is counted whatever becomes of it."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Iterable
from typing import Any

import pytest
import zstandard
from starlette.requests import Request

from ledger.errors import MalformedBody, Overloaded, TooLarge, UnsupportedEncoding
from ledger.events.model import Limits
from ledger.http import bodies
from ledger.http.bodies import Admission, decompress

LIMITS = Limits(body_bytes=1000, in_flight_bytes=2500)


def request(parts: Iterable[bytes], cut: bool = False, **headers: str) -> Request:
    """A request whose body comes in these parts; `cut` where the sender hangs up after them."""
    given = list(parts)
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": part, "more_body": True} for part in given]
    messages.append({"type": "http.disconnect"} if cut else {"type": "http.request", "body": b""})

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": named}, receive)


async def read(admission: Admission, asked: Request) -> bytes:
    async with admission.body(asked) as body:
        return body


async def test_a_body_that_comes_in_parts_is_put_together() -> None:
    assert await read(Admission(LIMITS), request([b"one ", b"and ", b"two"])) == b"one and two"


async def test_what_is_in_flight_is_counted_while_it_is_worked_on() -> None:
    admission = Admission(LIMITS)
    async with admission.body(request([b"x" * 900])):
        assert admission.in_flight_bytes == 900
        async with admission.body(request([gzip.compress(b"x" * 800)], content_encoding="gzip")):
            assert admission.in_flight_bytes == 1700
    assert admission.in_flight_bytes == 0


async def test_too_much_in_flight_is_refused_until_there_is_room() -> None:
    admission = Admission(LIMITS)
    async with admission.body(request([b"x" * 1000])), admission.body(request([b"x" * 1000])):
        with pytest.raises(Overloaded) as refused:
            await read(admission, request([b"x" * 300, b"x" * 300]))
        assert refused.value.retry_after_s >= 1
        with pytest.raises(Overloaded):
            await read(admission, request([gzip.compress(b"x" * 900)], content_encoding="gzip"))
        assert admission.in_flight_bytes == 2000
    assert await read(admission, request([b"x" * 600])) == b"x" * 600


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (lambda: request([b"x" * 600, b"x" * 401]), TooLarge),
        (lambda: request([], content_length="1001"), TooLarge),
        (lambda: request([gzip.compress(b"x" * 1001)], content_encoding="gzip"), TooLarge),
        (lambda: request([b"x" * 500], content_encoding="br"), UnsupportedEncoding),
        (lambda: request([b"x" * 500], content_encoding="gzip"), MalformedBody),
        (lambda: request([b"x" * 500], cut=True), MalformedBody),
    ],
)
async def test_a_body_that_is_refused_leaves_nothing_in_flight(asked: Any, error: type[Exception]) -> None:
    admission = Admission(LIMITS)
    with pytest.raises(error):
        await read(admission, asked())
    assert admission.in_flight_bytes == 0


async def test_a_sender_that_falls_silent_in_the_middle_does_not_hold_its_room_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies, "SILENCE_S_MAX", 0.01)
    admission, fallen_silent = Admission(LIMITS), asyncio.Event()
    messages = [{"type": "http.request", "body": b"x" * 500, "more_body": True}]

    async def receive() -> dict[str, Any]:
        if not messages:
            assert admission.in_flight_bytes == 500
            await fallen_silent.wait()
        return messages.pop()

    silent = Request({"type": "http", "method": "POST", "path": "/", "headers": []}, receive)
    with pytest.raises(Overloaded, match="nothing more"):
        await read(admission, silent)
    assert admission.in_flight_bytes == 0


async def test_a_handler_that_fails_leaves_nothing_in_flight() -> None:
    admission = Admission(LIMITS)
    with pytest.raises(ZeroDivisionError):
        async with admission.body(request([b"x" * 500])):
            1 / 0  # noqa: B018 — as a handler might
    assert admission.in_flight_bytes == 0


@pytest.mark.parametrize("encoding", ["", "identity", " Identity "])
def test_a_plain_body_is_given_as_it_is(encoding: str) -> None:
    assert decompress(b"\x1f\x8bplain", encoding, 5) == b"\x1f\x8bplain"


@pytest.mark.parametrize(("encoding", "squeeze"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_a_compressed_body_is_given_whole_up_to_the_limit(encoding: str, squeeze: Any, size: int) -> None:
    assert decompress(squeeze(b"x" * size), encoding, 1000) == b"x" * size


@pytest.mark.parametrize(("encoding", "squeeze"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_one_byte_more_than_the_limit_is_too_large_whatever_the_header_claims(encoding: str, squeeze: Any) -> None:
    with pytest.raises(TooLarge):
        decompress(squeeze(b"x" * 1001), encoding, 1000)


def test_a_zstd_frame_without_a_stated_size_is_read() -> None:
    squeezer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    assert decompress(squeezer.compress(b"words") + squeezer.flush(), "zstd", 1000) == b"words"


@pytest.mark.parametrize("keep", [0, 1, 9, 10, -9, -8, -1])
def test_a_gzip_body_that_is_cut_anywhere_is_malformed(keep: int) -> None:
    with pytest.raises(MalformedBody):
        decompress(gzip.compress(bytes(range(256)))[:keep], "gzip", 1000)


@pytest.mark.parametrize(
    "more", [b"\x00", b"junk", gzip.compress(b"second", mtime=0)], ids=["zero", "junk", "stream"]
)
def test_what_follows_the_first_gzip_stream_is_not_dropped_in_silence(more: bytes) -> None:
    with pytest.raises(MalformedBody):
        decompress(gzip.compress(b"first") + more, "gzip", 1000)


@pytest.mark.parametrize("more", [b"\x00", b"junk", zstandard.compress(b"second")])
def test_what_follows_the_first_zstd_frame_is_not_dropped_in_silence(more: bytes) -> None:
    with pytest.raises(MalformedBody):
        decompress(zstandard.compress(b"first") + more, "zstd", 1000)


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 20])
def test_a_zstd_body_that_is_cut_anywhere_is_malformed(cut: int) -> None:
    whole = zstandard.ZstdCompressor(write_checksum=True).compress(bytes(range(256)))
    with pytest.raises(MalformedBody):
        decompress(whole[:-cut], "zstd", 1000)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "gzip;q=1"])
def test_another_encoding_is_named(encoding: str) -> None:
    with pytest.raises(UnsupportedEncoding, match=encoding.replace(";", ".")):
        decompress(zlib.compress(b"x"), encoding, 1000)
