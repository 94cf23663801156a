"""The cursor that a reader is given: opaque to it, and good only in the ledger that made it.

Form: base64url, without padding, of the ledger id (8 bytes), each head as a LEB128 number, and the
CRC-16/XMODEM of all that (2 bytes), which catches a cursor that was cut or mistyped.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache

from ledger.errors import ForeignCursor
from ledger.store.base import Heads

_ID_BYTES = 8
_CHECK_BYTES = 2
_HEAD_MAX = 2**63 - 1


def start(buckets: int) -> Heads:
    """The heads before the first event of every bucket."""
    return (0,) * buckets


@lru_cache(maxsize=64)  # the appends of one group have one cursor
def encode(ledger_id: str, heads: Heads) -> str:
    """The cursor of a reader who has read up to `heads`, in letters, digits, `-` and `_` only."""
    body = bytes.fromhex(ledger_id) + b"".join(map(_number, heads))
    return urlsafe_b64encode(body + _check(body)).rstrip(b"=").decode()


def decode(text: str, ledger_id: str, buckets: int) -> Heads:
    """The heads that a cursor stands for. Raises ForeignCursor for anything but what `encode` gives for this
    ledger and this number of buckets."""
    data = _bytes(text)
    body, check = data[:-_CHECK_BYTES], data[-_CHECK_BYTES:]
    if len(body) < _ID_BYTES or check != _check(body):
        raise ForeignCursor("this is no cursor of a ledger; it may have been cut or mistyped")
    if body[:_ID_BYTES] != bytes.fromhex(ledger_id):
        raise ForeignCursor(f"the cursor comes from ledger {body[:_ID_BYTES].hex()}, and this is ledger {ledger_id}")
    heads = _numbers(body[_ID_BYTES:])
    if len(heads) != buckets:
        raise ForeignCursor(f"the cursor counts {len(heads)} buckets, and this ledger has {buckets}")
    if max(heads) > _HEAD_MAX or encode(ledger_id, heads) != text:
        raise ForeignCursor("the cursor is not spelled as this ledger spells cursors")
    return heads


def _bytes(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:  # not base64, or not ASCII
        return b""


def _check(body: bytes) -> bytes:
    return binascii.crc_hqx(body, 0).to_bytes(_CHECK_BYTES)


def _number(value: int) -> bytes:
    if not 0 <= value <= _HEAD_MAX:
        raise ValueError(f"{value} is no position")
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def _numbers(data: bytes) -> Heads:
    """The numbers written one after the other. One that is cut at the end of `data` is left out."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    return tuple(numbers)
