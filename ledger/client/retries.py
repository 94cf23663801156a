"""When to send again, and how long to wait before."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from random import Random

AGAIN = frozenset({429, 502, 503, 504})  # the only statuses that ask a sender to try again
REFUSED = frozenset({429, 503})  # of these, the ones that say that nothing was done

BACKOFF_FIRST_S = 0.25
BACKOFF_MAX_S = 15.0
RETRY_AFTER_MAX_S = 3600.0  # a date says more where clocks differ, and no sender is to sleep for ever


def backoff_s(attempt: int, random: Random) -> float:
    """Seconds to wait before attempt `attempt` + 1 (counted from 1): doubling, bounded, and spread over the
    upper half of the span so that many senders do not come back at the same moment."""
    span = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(attempt - 1, 30))
    return span * (0.5 + random.random() / 2)


def retry_after_s(value: str | None, now_s: float) -> float | None:
    """The wait that a Retry-After header asks for, in seconds from `now_s` (Unix time) and at most
    RETRY_AFTER_MAX_S, or None where it is missing or unreadable. It may be a number of seconds or a date (RFC 9110,
    section 10.2.3)."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(RETRY_AFTER_MAX_S, float(value))
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(RETRY_AFTER_MAX_S, max(0.0, at.timestamp() - now_s))
