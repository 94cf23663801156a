"""Reading a request's body within the limits: size, encoding, and how much is in flight at once."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

import zstandard
from starlette.requests import Request

from ledger.errors import MalformedBody, Overloaded, TooLarge, UnsupportedEncoding
from ledger.events.model import Limits

SILENCE_S_MAX = 30.0  # a sender whose machine went down must not hold its room for ever
_ZSTD_WINDOW_BYTES_MAX = 8 * 2**20  # what RFC 9659 lets a decoder refuse beyond


class Admission:
    """Counts the bytes of bodies that are being worked on, and refuses more than the limit."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.in_flight_bytes = 0

    def body(self, request: Request) -> Admitted:
        """`async with admission.body(request) as body:` gives the decompressed body, which counts as in flight until
        the block ends.

        Raises TooLarge, Overloaded, UnsupportedEncoding, MalformedBody."""
        return Admitted(self, request)

    async def read(self, request: Request, admitted: Admitted) -> bytes:
        length = request.headers.get("content-length", "")
        if length.isdecimal():
            self._fits(int(length))
        chunks: list[bytes] = []
        async for chunk in _arriving(request):
            self._admit(len(chunk), admitted)
            self._fits(admitted.held_bytes)
            chunks.append(chunk)
        raw = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        body = decompress(raw, request.headers.get("content-encoding", ""), self.limits.body_bytes)
        if len(body) > len(raw):
            self._admit(len(body) - len(raw), admitted)
        return body

    def _fits(self, size: int) -> None:
        if size > self.limits.body_bytes:
            raise TooLarge(f"the body is larger than {self.limits.body_bytes} bytes")

    def _admit(self, size: int, admitted: Admitted) -> None:
        if self.in_flight_bytes + size > self.limits.in_flight_bytes:
            raise Overloaded(f"more than {self.limits.in_flight_bytes} bytes are in flight")
        self.in_flight_bytes += size
        admitted.held_bytes += size


class Admitted:
    """One body's share of what is in flight."""

    def __init__(self, admission: Admission, request: Request) -> None:
        self._admission = admission
        self._request = request
        self.held_bytes = 0

    async def __aenter__(self) -> bytes:
        try:
            return await self._admission.read(self._request, self)
        except BaseException:
            self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        self._admission.in_flight_bytes -= self.held_bytes
        self.held_bytes = 0


async def _arriving(request: Request) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(SILENCE_S_MAX) as silence:
            more = True
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise MalformedBody("the sender hung up in the middle of the body")
                more = message.get("more_body", False)
                if more:
                    silence.reschedule(loop.time() + SILENCE_S_MAX)
                if chunk := message.get("body"):
                    yield chunk
    except TimeoutError:
        raise Overloaded(f"nothing more of the body came for {SILENCE_S_MAX:g} s") from None


def decompress(raw: bytes, encoding: str, size_max: int) -> bytes:
    """The body as it was before `Content-Encoding`, at most `size_max` bytes of it, whatever the header claims."""
    match encoding.strip().lower():
        case "" | "identity":
            return raw
        case "gzip" | "x-gzip":
            return _gunzip(raw, size_max)
        case "zstd":
            return _unzstd(raw, size_max)
        case other:
            raise UnsupportedEncoding(f"content encoding {other!r}")


def _gunzip(raw: bytes, size_max: int) -> bytes:
    decoder = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        body = decoder.decompress(raw, size_max + 1)
    except zlib.error as error:
        raise MalformedBody("the body is not gzip") from error
    if decoder.unused_data:
        raise MalformedBody("more follows the first gzip stream of the body")
    return _whole(body, decoder.eof, size_max)


def _unzstd(raw: bytes, size_max: int) -> bytes:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX)
    try:
        body = decompressor.stream_reader(raw).read(size_max + 1)
        if len(body) > size_max:
            return _whole(body, True, size_max)
        frame = decompressor.decompressobj()  # it makes as much as it is given, but knows where a frame ends
        body = frame.decompress(raw)
    except zstandard.ZstdError as error:
        raise MalformedBody("the body is not zstd") from error
    if frame.unused_data:
        raise MalformedBody("more follows the first zstd frame of the body")
    return _whole(body, frame.eof, size_max)


def _whole(body: bytes, ended: bool, size_max: int) -> bytes:
    if len(body) > size_max:
        raise TooLarge(f"the body is larger than {size_max} bytes after decompression")
    if not ended:
        raise MalformedBody("the compressed body is cut short")
    return body
