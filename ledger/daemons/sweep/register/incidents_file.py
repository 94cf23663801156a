"""`incidents.md`: a preamble, a section for each incident (`## title · date · SEVERITY`), and what people wrote.

Sections are moved, never rewritten: of a section that stands in the file, every byte stays. A section whose heading
is none of an incident's belongs to a person; it stays behind the incidents, in the order in which such sections
stood. Headings inside fenced code are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date

import msgspec

from ledger.daemons.sweep.register.texts import escaped
from projections.incidents import SEVERITIES, fingerprint, newest_first, severity_rank

BYTES_MAX = 64 * 2**20  # of a file that is read

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_SECTION = re.compile(r" {0,3}##(?=[ \t\r\n]|$)")
_TITLE = re.compile(r" {0,3}#(?=[ \t\r\n]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_INCIDENT = re.compile(
    rf" {{0,3}}##[ \t]+(?P<title>.*\S)[ \t]+·[ \t]+(?P<date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[ \t]+·[ \t]+"
    rf"(?P<severity>{'|'.join(SEVERITIES)})[ \t]*#*[ \t]*",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


class Entry(msgspec.Struct, frozen=True):
    """An incident in the file. `text` is its whole section, the heading and the line ends included."""

    title: str
    date: str
    severity: str
    text: str

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.title)


class Incidents(msgspec.Struct, frozen=True):
    """The file. `others` are the sections of people that stand behind the first incident."""

    preamble: str
    entries: tuple[Entry, ...] = ()
    others: tuple[str, ...] = ()


class Odd(msgspec.Struct, frozen=True):
    """A section that looks as if an incident was meant. `line` counts from 1."""

    line: int
    heading: str


def new(title: str) -> Incidents:
    """A register in which nothing stands yet."""
    return Incidents(f"# {escaped(title)}\n\n")


def read(text: str) -> Incidents:
    preamble, *sections = _parted(text)
    entries: list[Entry] = []
    others: list[str] = []
    for section in sections:
        entry = _entry(section)
        if entry is not None:
            entries.append(entry)
        elif entries:
            others.append(section)
        else:
            preamble += section
    return Incidents(preamble, tuple(entries), tuple(others))


def written(incidents: Incidents) -> str:
    return _joined([incidents.preamble, *(entry.text for entry in incidents.entries), *incidents.others])


def with_entries(incidents: Incidents, entries: Iterable[Entry], order: str) -> Incidents:
    """With more incidents, all of them sorted: by severity and then the newest first, or the newest first alone. What
    ties stays in the order in which it stood, new ones in front."""

    def rank(entry: Entry) -> tuple[int, tuple[int, ...]]:
        return (severity_rank(entry.severity) if order == "severity" else 0, newest_first(entry.date))

    return msgspec.structs.replace(incidents, entries=tuple(sorted((*entries, *incidents.entries), key=rank)))


def entry(title: str, date: str, severity: str, paragraphs: Sequence[tuple[str, str]]) -> Entry:
    """A new section. `title` and the texts of the paragraphs, each with its name, are one line each, as they were
    said: here they become Markdown that shows them as they are."""
    parts = [f"## {escaped(title)} · {date} · {severity}"]
    parts += [f"**{name}**: {escaped(text)}" for name, text in paragraphs if text]
    return Entry(title, date, severity, "\n\n".join(parts) + "\n\n")


def odd_sections(text: str) -> list[Odd]:
    """Sections with a `·` in the heading that are read as no incident: a date or a severity is wrong."""
    line, odd = 1, []
    for section in _parted(text):
        heading = section.split("\n", 1)[0].strip()
        if "·" in heading and heading.startswith("##") and _entry(section) is None:
            odd.append(Odd(line, heading))
        line += section.count("\n")
    return odd


def _parted(text: str) -> list[str]:
    """What stands before the first section (the heading of the file included), and each section."""
    parts: list[list[str]] = [[]]
    fence = ""
    for line in _LINE.findall(text):
        marked = _FENCE.fullmatch(line.rstrip("\r\n"))
        if fence:
            if marked and marked[1].startswith(fence) and not marked[2].strip():
                fence = ""
        elif marked and not (marked[1][0] == "`" and "`" in marked[2]):
            fence = marked[1]
        elif _SECTION.match(line) or (len(parts) > 1 and _TITLE.match(line)):
            parts.append([])
        parts[-1].append(line)
    return ["".join(part) for part in parts]


def _entry(section: str) -> Entry | None:
    heading = section.split("\n", 1)[0].rstrip("\r")
    found = _INCIDENT.fullmatch(heading)
    if found is None or not _is_date(found["date"]):
        return None
    title = _ESCAPE.sub(r"\1", found["title"])
    return Entry(title, found["date"], found["severity"].upper(), section)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _joined(parts: Sequence[str]) -> str:
    """The parts, with an empty line between them: a section may move behind one that ended without."""
    joined = ""
    for part in parts:
        if joined and part:
            joined += "" if joined.endswith("\n") else "\n"
            joined += "" if re.search(r"\n[ \t]*\r?\n\Z", joined) else "\n"
        joined += part
    return joined
