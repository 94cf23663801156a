"""Instants: read exactly from what senders write, written as RFC 3339. The host's time zone is never asked."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

NS_PER_S = 10**9

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_S_PER_MINUTE, _S_PER_HOUR, _S_PER_DAY = 60, 3600, 86400
_LEAST_NS, _MOST_NS = -(2**63), 2**63 - 1

# Epoch numbers, told apart by magnitude: in seconds the first bound is the year 5138, and as milliseconds,
# microseconds and nanoseconds each bound is March 1973, which no agent has seen.
_EPOCH_UNITS = ((10**11, NS_PER_S), (10**14, 10**6), (10**17, 10**3))

_ISO_8601 = re.compile(
    r"""(?P<year>[0-9]{4})-?(?P<month>[0-9]{2})-?(?P<day>[0-9]{2})
        [Tt ]
        (?P<hour>[0-9]{2}):?(?P<minute>[0-9]{2})(?: :?(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))? )?
        [ ]?(?: [Zz] | (?P<sign>[+-])(?P<off_hour>[0-9]{2})(?: :?(?P<off_minute>[0-9]{2}) )? )""",
    re.VERBOSE,
)


def parse_instant(value: object) -> int | None:
    """Nanoseconds since the Unix epoch (UTC), or None where `value` names no instant for certain.

    Takes RFC 3339 and ISO 8601 with `Z` or an offset (digits of a second past the ninth are cut off, a leap second
    is the second after it, `24:00` is the next day) and epoch numbers in seconds, milliseconds, microseconds or
    nanoseconds. A text without an offset, anything else, and what does not fit 64 bits is None.
    """
    if isinstance(value, str):
        ns = _from_usual_text(value)
        return _from_text(value) if ns is None else ns
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _from_number(value)


def format_instant(ns: int) -> str:
    """RFC 3339 in UTC with `Z`, and 0, 3, 6 or 9 digits of a second: as many as are needed."""
    seconds, fraction = divmod(ns, NS_PER_S)
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]
    if not fraction:
        return f"{text}Z"
    digits = f"{fraction:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{text}.{digits}Z"


def _from_usual_text(text: str) -> int | None:
    """What nearly every sender writes, `YYYY-MM-DDTHH:MM:SS[.ffffff]Z`; None leaves it to the careful reading."""
    if not (20 <= len(text) <= 27 and text[10] == "T" and text[13] == ":" and text[-1] == "Z"):
        return None
    try:
        since = datetime.fromisoformat(text) - _EPOCH
    except ValueError:
        return None
    ns = (since.days * _S_PER_DAY + since.seconds) * NS_PER_S + since.microseconds * 1000
    return ns if _LEAST_NS <= ns <= _MOST_NS else None


def _from_text(text: str) -> int | None:
    found = _ISO_8601.fullmatch(text.strip())
    if found is None:
        return None
    number = {
        name: int(digits or 0) for name, digits in found.groupdict().items() if name not in ("sign", "fraction")
    }
    try:
        day = date(number["year"], number["month"], number["day"]).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    if number["off_hour"] > 23 or number["off_minute"] > 59:
        return None
    offset = number["off_hour"] * _S_PER_HOUR + number["off_minute"] * _S_PER_MINUTE
    fraction_ns = int((found["fraction"] or "")[:9].ljust(9, "0"))
    second_of_day = _second_of_day(number["hour"], number["minute"], number["second"], fraction_ns)
    if second_of_day is None:
        return None
    seconds = day * _S_PER_DAY + second_of_day - (-offset if found["sign"] == "-" else offset)
    if number["second"] == 60 and second_of_day != _S_PER_DAY and seconds % _S_PER_DAY:
        return None  # a leap second ends a day: the day of UTC, or of a clock that took it over as it stood
    return _within_64_bits(seconds * NS_PER_S + fraction_ns)


def _second_of_day(hour: int, minute: int, second: int, fraction_ns: int) -> int | None:
    if minute > 59 or second > 60 or hour > 24:
        return None
    if hour == 24 and (minute or second or fraction_ns):
        return None
    return hour * _S_PER_HOUR + minute * _S_PER_MINUTE + second


def _from_number(value: int | float) -> int | None:
    exact = Decimal(value) if isinstance(value, int) else Decimal(repr(value))  # as written, not as held
    if not exact.is_finite() or abs(exact) > _MOST_NS:
        return None
    unit_ns = next((unit for bound, unit in _EPOCH_UNITS if abs(exact) < bound), 1)
    return _within_64_bits(int(exact * unit_ns))


def _within_64_bits(ns: int) -> int | None:
    return ns if _LEAST_NS <= ns <= _MOST_NS else None
