"""Makes a source from its settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ledger.daemons.sweep.model import Source
from ledger.daemons.sweep.sources import files
from ledger.daemons.sweep.sources.databases import DatabaseSource
from ledger.daemons.sweep.sources.ledger import LedgerSource, Reads
from ledger.errors import InvalidField
from ledger.transcripts.formats import places

TYPES = (*sorted(files.TYPES), DatabaseSource.type, LedgerSource.type)


def open_source(
    type_: str, name: str, path: str | None, connect: Callable[[str | None], tuple[str, Reads]]
) -> Source:
    """`path` is a folder or a file; for opencode a glob; for a ledger its address. None: where the agent keeps its
    transcripts on this host, or the ledger that `connect` knows. `~` is the home folder. `connect` gives the address
    and a client that may read. Raises InvalidField for a type that is none of TYPES."""
    if type_ == LedgerSource.type:
        url, api = connect(path)
        return LedgerSource(name, url, api)
    if type_ == DatabaseSource.type:
        return DatabaseSource(name, str(Path(path).expanduser()) if path else f"{places()[type_][0]}/*.db")
    if type_ in files.TYPES:
        return files.FileSource(type_, name, Path(path).expanduser() if path else places()[type_][0])
    raise InvalidField("source.type", f"{type_!r} is none of {', '.join(TYPES)}")
