"""The URL of a ledger on PostgreSQL: `postgresql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?schema=…&buckets=…`.

`schema` and `buckets` are the ledger's own; all else is PostgreSQL's, as its manual describes connection URIs.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from ledger.errors import InvalidField

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "ledgerd"
DEFAULT_BUCKETS = 16
BUCKETS_MAX = 1024

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class PostgresUrl(msgspec.Struct, frozen=True):
    """`dsn` is what the driver is given; `buckets` is None where the URL does not say how many it expects; `place`
    names the ledger in messages, without a password."""

    dsn: str
    schema: str
    buckets: int | None
    place: str


def is_postgres(url: str) -> bool:
    return url.partition("://")[0] in SCHEMES


def parse_url(url: str) -> PostgresUrl:
    """Raises InvalidField for a `schema` or `buckets` that cannot be."""
    parts = urlsplit(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    ours = {name: value for name, value in given if name in ("schema", "buckets")}
    schema = ours.get("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema):
        raise InvalidField("store", f"schema {schema!r} is not made of a-z, 0-9 and _", hint="Write schema=ledgerd.")
    theirs = urlencode([(name, value) for name, value in given if name not in ours])
    place = f"{parts.netloc.rpartition('@')[2]}{parts.path}, schema {schema}"
    return PostgresUrl(urlunsplit(parts._replace(query=theirs)), schema, _buckets(ours.get("buckets")), place)


def _buckets(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= BUCKETS_MAX):
        raise InvalidField("store", f"buckets={text} is not from 1 to {BUCKETS_MAX}", hint="Write buckets=16.")
    return int(text)
