"""The kept list of seen sessions: a text file that outlives a lost state, a line for each, source and key with a tab
between. A source with an empty key was looked through once: what it has gained since is judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ledger.daemons.sweep.guard import WriteGuard
from ledger.errors import LedgerError
from projections.sweep import name_of, parted

BYTES_MAX = 512 * 2**20

_HEAD = "# sessions that `ledgerd sweep` has seen: source, tab, key; kept so that a lost state judges nothing again\n"
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPING = str.maketrans(_ESCAPES)


class SeenListDamaged(LedgerError):
    code = "seen_list_damaged"
    hint = "Mend or remove that line, or move the file away: as long as the state is there, it is written anew."


def read(path: Path, guard: WriteGuard) -> frozenset[str]:
    """The names in the list, as `projections.sweep.name_of` makes them. Raises SeenListDamaged, which names the line,
    WriteRefused and NotWritten."""
    data = guard.read(path, BYTES_MAX)
    if data is None:
        return frozenset()
    names = set()
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line or line.startswith(b"#"):
            continue
        try:
            source, tab, key = line.decode().partition("\t")
        except UnicodeDecodeError as error:
            raise SeenListDamaged(f"{path}:{number}: {error}") from error
        if not tab or not source:
            raise SeenListDamaged(f"{path}:{number}: is no source and key with a tab between")
        names.add(name_of(source, _unescaped(key, f"{path}:{number}")))
    return frozenset(names)


def write(path: Path, names: Iterable[str], guard: WriteGuard) -> None:
    """Raises WriteRefused, NotWritten."""
    lines = (f"{source}\t{key.translate(_ESCAPING)}\n" for source, key in map(parted, sorted(names)))
    guard.write(path, (_HEAD + "".join(lines)).encode(errors="backslashreplace"))


def _unescaped(key: str, where: str) -> str:
    if "\\" not in key:
        return key
    plain, chars = [], iter(key)
    for char in chars:
        if char != "\\":
            plain.append(char)
            continue
        code = "\\" + next(chars, "")
        found = [one for one, escape in _ESCAPES.items() if escape == code]
        if not found:
            raise SeenListDamaged(f"{where}: {code} stands for nothing")
        plain += found
    return "".join(plain)
