"""Hyperscan's database for the patterns that texts are screened with: compiled once on a machine, then kept.

To compile it takes longer than to read most transcripts without it; to load it takes nothing. It is kept in the
user's cache folder, behind a digest of itself, under a name that is a digest of all that it depends on, and written
as a whole or not at all. Hyperscan itself checks that what it loads was made for this processor.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

_DIGEST_BYTES = hashlib.sha256().digest_size

Expression = tuple[int, str, bool]
"""A number that its matches are told by, the pattern, and whether letters of either case match."""


_keeps = True


@contextmanager
def keeping_nothing() -> Iterator[None]:
    """Meanwhile a database that had to be compiled is not kept: for a process that may write nowhere but where it
    said."""
    global _keeps
    before, _keeps = _keeps, False
    try:
        yield
    finally:
        _keeps = before


def cache_folder() -> Path | None:
    """The user's cache folder for this program; None where there is no home."""
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if given and Path(given).is_absolute():
        return Path(given, "ledgerd")
    try:
        return Path.home() / ".cache" / "ledgerd"
    except RuntimeError:
        return None


def load(expressions: Sequence[Expression], folder: Path | None) -> Any:
    """The database as it was kept in `folder`; None where none was, or this machine cannot use it. Raises ImportError
    where Hyperscan is not installed."""
    import hyperscan

    if folder is None:
        return None
    try:
        kept = _path(folder, expressions).read_bytes()
        if _with_digest(kept[_DIGEST_BYTES:]) != kept:
            return None
        database = hyperscan.loadb(kept[_DIGEST_BYTES:], hyperscan.HS_MODE_BLOCK)
        database.scratch = hyperscan.Scratch(database)
    except (OSError, hyperscan.error):
        return None
    return database


def compiled(expressions: Sequence[Expression], folder: Path | None) -> Any:
    """The database, which is kept in `folder` from now on, where that can and may be written. None where Hyperscan
    does not work on this machine. Raises ImportError where it is not installed."""
    import hyperscan

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=[pattern.encode() for _, pattern, _ in expressions],
            ids=[number for number, _, _ in expressions],
            elements=len(expressions),
            flags=[hyperscan.HS_FLAG_CASELESS if folds else 0 for _, _, folds in expressions],
        )
        kept = hyperscan.dumpb(database)
    except hyperscan.error:
        return None
    if folder is not None and _keeps:
        with suppress(OSError):
            _write(_path(folder, expressions), _with_digest(kept))
    return database


def _path(folder: Path, expressions: Sequence[Expression]) -> Path:
    depends_on = (metadata.version("hyperscan"), platform.machine(), platform.system(), sys.byteorder, *expressions)
    return folder / f"redaction-{hashlib.sha256(repr(depends_on).encode()).hexdigest()[:32]}.hsdb"


def _with_digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".redaction-")
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
