"""JSON Lines as agents leave them on disk: torn, joined, padded with NULs, still growing.

Lines are split as bytes at LF, so a character is never cut; memory stays within a block and a line. A line is
numbered from 1 by the LFs before it and never by what could be read, so numbers do not move when a bad line is
mended or the file grows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ledger.transcripts.model import Mark, Report

BLOCK_BYTES = 2**20
LINE_BYTES_MAX = 64 * 2**20

_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line that holds rows: its number, its JSON objects, its length and the offset of its end (bytes)."""

    number: int
    rows: list[dict[str, Any]]
    size: int
    end: int


class LineReader:
    """Reads a file from `start` to its present end. Iterating gives `Line`s; bad lines go to `report`.

    After that, `mark` is the place to go on from when the file has grown: behind the last line that was ended by
    an LF. A last line without one is taken as far as it is whole, and read again from `mark`; the rest of it is
    reported as cut short, unless the file is known to be `growing`: then the rest is on its way. A line that
    `leaves_out` says True of is not read at all.
    """

    def __init__(
        self,
        path: Path,
        report: Report,
        start: Mark | None = None,
        *,
        growing: bool = False,
        line_bytes_max: int = LINE_BYTES_MAX,
        leaves_out: Callable[[bytes], bool] | None = None,
    ) -> None:
        self._path = path
        self._report = report
        self._growing = growing
        self._line_bytes_max = line_bytes_max
        self._leaves_out = leaves_out
        self.mark = start or Mark()

    def __iter__(self) -> Iterator[Line]:
        for raw, ended in self._raw_lines():
            offset, number = self.mark[0] + len(raw) + ended, self.mark[1] + 1
            if self._leaves_out is not None and self._leaves_out(raw):
                if ended:
                    self.mark = Mark(offset, number)
                continue
            try:  # the common case, kept short: one object, nothing around it
                rows = [orjson.loads(raw)]
                whole = type(rows[0]) is dict
            except orjson.JSONDecodeError:
                whole = False
            if not whole:
                rows = self._salvage(raw, number, ended)
            if rows:
                yield Line(number, rows, len(raw), offset)
            if ended:
                self.mark = Mark(offset, number)

    def _raw_lines(self) -> Iterator[tuple[bytes, bool]]:
        """Each line without its LF, and whether it had one."""
        with self._path.open("rb") as file:
            file.seek(self.mark.offset)
            pending = b""
            while block := file.read(BLOCK_BYTES):
                lines = block.split(b"\n")
                lines[0] = pending + lines[0]
                pending = lines.pop()
                for line in lines:
                    yield line, True
                if len(pending) > self._line_bytes_max:
                    self._skip_long_line(len(pending), file)
                    pending = b""
            if pending:
                yield pending, False

    def _skip_long_line(self, size: int, file: Any) -> None:
        """Reads to the end of a line that is too long to hold; the file stands behind it afterwards."""
        number = self.mark.line + 1
        self._report.bad_line(self._path, number, f"longer than {self._line_bytes_max:,} bytes; left out")
        while block := file.read(BLOCK_BYTES):
            end = block.find(b"\n")
            if end >= 0:
                size += end + 1
                file.seek(end + 1 - len(block), 1)
                self.mark = Mark(self.mark.offset + size, number)
                return
            size += len(block)

    def _salvage(self, raw: bytes, number: int, ended: bool) -> list[dict[str, Any]]:
        """The objects of a line that is not simply one object. What is wrong with it is reported."""
        text = raw.removeprefix(_BOM) if number == 1 else raw
        if not ended and self._growing:
            return _objects(text.strip(b"\0" + _BLANK))[0]
        bare = text.strip(b"\0" + _BLANK)
        if nuls := text.count(b"\0") - bare.count(b"\0"):
            self._report.bad_line(self._path, number, f"{nuls:,} NUL bytes around it; left out")
        if not bare:
            return []
        rows, why = _objects(bare)
        if why is not None:
            if not ended:
                why = "cut short: the last line is not complete yet"
            self._report.bad_line(self._path, number, why)
        return rows


def _objects(raw: bytes) -> tuple[list[dict[str, Any]], str | None]:
    """The objects that stand one after another in `raw` up to the first thing that is none, and what was wrong."""
    why = None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode(errors="replace")
        why = "invalid UTF-8, replaced by U+FFFD"
    rows: list[dict[str, Any]] = []
    decoder = json.JSONDecoder(parse_int=_int_or_float)
    at = 0
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as failure:
            taken = f"; the {len(rows)} before it taken" if rows else ""
            reason = getattr(failure, "msg", None) or "too deeply nested or too large a number"
            return rows, f"no JSON object at character {at + 1} ({reason}){taken}"
        if not isinstance(value, dict):
            return rows, f"a JSON {type(value).__name__} at character {at + 1}, not an object"
        rows.append(_without_lone_surrogates(value))
        at = end
        while at < len(text) and text[at] in " \t\r":
            at += 1
    return rows, why


def _int_or_float(digits: str) -> int | float:
    """As orjson reads numbers: beyond 64 bits as a float."""
    return int(digits) if len(digits) < 19 else float(digits)


def _without_lone_surrogates(value: Any) -> Any:
    """The value with each lone surrogate as U+FFFD, so that it can be written as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_without_lone_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_lone_surrogates(k): _without_lone_surrogates(v) for k, v in value.items()}
    return value
