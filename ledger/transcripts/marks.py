"""How far each transcript has been brought to a ledger, kept in a small file between runs.

It is a cache: without it everything is read again, and stored once all the same. A mark is believed only where the
ledger is the one that it was made for, and where the bytes before it are still what they were.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from ledger.transcripts.model import Mark

TAIL_BYTES = 4096


class Standing(msgspec.Struct):
    """Of one transcript: its signature when it was read, the mark to go on from, a digest of the bytes before that,
    and the numbers of the sessions that it tells anew."""

    signature: str
    mark: tuple[int, int] | None = None
    tail: str = ""
    histories: dict[str, int] = {}


class _File(msgspec.Struct):
    ledger_id: str
    standings: dict[str, Standing]


class Marks:
    """The standings of one host's transcripts with the ledger `ledger_id`, by key. None keeps them in memory."""

    def __init__(self, file: Path | None, ledger_id: str) -> None:
        self._file = file
        self._ledger_id = ledger_id
        self._changed = False
        self._standings: dict[str, Standing] = {}
        if file is not None:
            with suppress(OSError, msgspec.MsgspecError):
                held = msgspec.json.decode(file.read_bytes(), type=_File)
                if held.ledger_id == ledger_id:
                    self._standings = held.standings

    def is_brought(self, key: str, signature: str) -> bool:
        """True where the transcript has been brought and has not changed since."""
        standing = self._standings.get(key)
        return standing is not None and standing.signature == signature

    def start(self, key: str, path: Path) -> tuple[Mark | None, dict[str, int]]:
        """Where to go on, and the numbers of the sessions told anew there; from the beginning where the file is
        shorter than it was, or another. Raises OSError."""
        standing = self._standings.get(key)
        if standing is None or standing.mark is None:
            return None, standing.histories if standing is not None else {}
        mark = Mark(*standing.mark)
        if _tail(path, mark.offset) != standing.tail:
            return None, {}
        return mark, standing.histories

    def set(self, key: str, path: Path, signature: str, mark: Mark | None, histories: dict[str, int]) -> None:
        """Raises OSError."""
        tail = "" if mark is None else _tail(path, mark.offset)
        self._standings[key] = Standing(signature, mark, tail, histories)
        self._changed = True

    def save(self) -> None:
        """Replaces the file, if there is anything new, whole or not at all. Raises OSError."""
        if self._file is None or not self._changed:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        new.write_bytes(msgspec.json.encode(_File(self._ledger_id, self._standings)))
        new.replace(self._file)
        self._changed = False


def _tail(path: Path, offset: int) -> str:
    """A digest of the last bytes before `offset`; empty where the file is shorter."""
    with path.open("rb") as file:
        file.seek(max(offset - TAIL_BYTES, 0))
        data = file.read(min(offset, TAIL_BYTES))
    if len(data) < min(offset, TAIL_BYTES):
        return ""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
