"""When two events say the same: kind, actor and the parsed payload are equal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import msgspec

DIGEST_BYTES = 16


def content_digest(kind: str, actor: str, payload: bytes) -> bytes:
    """16 bytes (SHA-256, truncated) over kind, actor and the payload's bytes. Equal digests mean equal content;
    unequal ones may still be equal once parsed (see `same_content`)."""
    return hashlib.sha256(_head(kind, actor) + payload).digest()[:DIGEST_BYTES]


@lru_cache(maxsize=1024)  # a fleet has few kinds and actors, and many events
def _head(kind: str, actor: str) -> bytes:
    return f"{len(kind)} {kind} {len(actor)} {actor} ".encode()


def same_payload(one: bytes, other: bytes) -> bool:
    """True if both JSON texts parse to the same value: white space, key order, escapes and the spelling of
    numbers do not count; true is not 1."""
    return one == other or _equal(_exact(one), _exact(other))


def parse_payload(payload: bytes) -> Any:
    """The payload as Python values, for folding. Never raises on what the log has accepted: numbers that
    Python will not hold come back as their digits."""
    try:
        return msgspec.json.decode(payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return json.loads(payload, parse_int=_int_or_digits)


def payload_object(payload: bytes) -> dict[str, Any]:
    """As `parse_payload`, and an empty object for a payload that is not an object."""
    value = parse_payload(payload)
    return value if isinstance(value, dict) else {}


def _int_or_digits(digits: str) -> int | str:
    return int(digits) if len(digits) < 4000 else digits


def _exact(payload: bytes) -> Any:
    return json.loads(payload, parse_int=_decimal_or_digits, parse_float=_decimal_or_digits)


def _decimal_or_digits(digits: str) -> Decimal | str:
    try:
        return Decimal(digits)
    except InvalidOperation:  # an exponent of twenty digits
        return digits


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that there are: without those that are None."""
    return {name: value for name, value in fields.items() if value is not None}
