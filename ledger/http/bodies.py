"""Reading a request's body within the limits: size, encoding, and how much is in flight at once."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import zstandard
from starlette.requests import ClientDisconnect, Request

from ledger.errors import MalformedBody, Overloaded, TooLarge, UnsupportedEncoding
from ledger.events.model import Limits

_ZSTD_WINDOW_BYTES_MAX = 8 * 2**20  # what RFC 9659 lets a decoder refuse beyond


class Admission:
    """Counts the bytes of bodies that are being worked on, and refuses more than the limit."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.in_flight_bytes = 0

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """The decompressed body. It counts as in flight until the block ends.

        Raises TooLarge, Overloaded, UnsupportedEncoding, MalformedBody."""
        held = 0
        try:
            length = request.headers.get("content-length", "")
            if length.isdecimal():
                self._fits(int(length))
            chunks: list[bytes] = []
            try:
                async for chunk in request.stream():
                    self._admit(len(chunk))
                    held += len(chunk)
                    self._fits(held)
                    chunks.append(chunk)
            except ClientDisconnect:
                raise MalformedBody("the sender hung up in the middle of the body") from None
            raw = b"".join(chunks)
            body = decompress(raw, request.headers.get("content-encoding", ""), self._limits.body_bytes)
            if len(body) > len(raw):
                self._admit(len(body) - len(raw))
                held = len(body)
            yield body
        finally:
            self.in_flight_bytes -= held

    def _fits(self, size: int) -> None:
        if size > self._limits.body_bytes:
            raise TooLarge(f"the body is larger than {self._limits.body_bytes} bytes")

    def _admit(self, size: int) -> None:
        if self.in_flight_bytes + size > self._limits.in_flight_bytes:
            raise Overloaded(f"more than {self._limits.in_flight_bytes} bytes are in flight")
        self.in_flight_bytes += size


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
    reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX).stream_reader(raw)
    try:
        body = reader.read(size_max + 1)
        ended = len(body) > size_max or reader.read(1) == b""
    except zstandard.ZstdError as error:
        raise MalformedBody("the body is not zstd") from error
    return _whole(body, ended, size_max)


def _whole(body: bytes, ended: bool, size_max: int) -> bytes:
    if len(body) > size_max:
        raise TooLarge(f"the body is larger than {size_max} bytes after decompression")
    if not ended:
        raise MalformedBody("the compressed body is cut short")
    return body
