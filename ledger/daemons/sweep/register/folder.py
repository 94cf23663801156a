"""The register's folder: what stands in it, and what a plan makes of it. Everything is written through the guard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ledger.daemons.sweep.config import RegisterKeys
from ledger.daemons.sweep.filing import Filing, Plan
from ledger.daemons.sweep.guard import WriteGuard
from ledger.daemons.sweep.judging.prompt import Known
from ledger.daemons.sweep.register import incidents_file, index, reports
from ledger.daemons.sweep.register.incidents_file import Entry, Incidents, Odd
from ledger.errors import LedgerError
from ledger.events.times import NS_PER_S
from projections.incidents import Incident, Registers

INCIDENTS, INDEX, LATEST, REPORTS = "incidents.md", "index.json", "latest.md", "reports"


class RegisterUnreadable(LedgerError):
    code = "register_unreadable"
    hint = "Mend the file by hand; nothing was changed."


class Reindexed(msgspec.Struct, frozen=True):
    """What `reindex` found. `written` are the files that it changed, `odd` sections that look like incidents and are
    read as none."""

    counts: dict[str, int]
    written: tuple[Path, ...]
    odd: tuple[Odd, ...]


class Register:
    def __init__(self, folder: Path, name: str, keys: RegisterKeys, guard: WriteGuard) -> None:
        self._folder = folder
        self._name = name
        self._keys = keys
        self._guard = guard

    def known(self, registers: Registers) -> list[Known]:
        """All incidents that the register has, and those that it once had: filed is filed, also where a person has
        taken it out or given it another title. Raises RegisterUnreadable."""
        known = {
            one.fingerprint: Known(one.fingerprint, one.title, one.date, one.severity) for one in self._entries()
        }
        for incident in registers.of(self._name):
            known.setdefault(
                incident.fingerprint,
                Known(incident.fingerprint, incident.title, incident.date, incident.severity),
            )
        return list(known.values())

    def write(self, plan: Plan, registers: Registers, headline: str, notes: Sequence[str]) -> tuple[Path, ...]:
        """Writes what a plan asks for; the files, as named from the folder. Doing it again changes nothing. Raises
        RegisterUnreadable, WriteRefused, NotWritten."""
        before = self._text()
        incidents = self._incidents(before, registers)
        there = {entry.fingerprint for entry in incidents.entries}
        added = [_entry_of(filing) for filing in plan.filed if filing.fingerprint not in there]
        incidents = incidents_file.with_entries(incidents, added, self._keys.order)
        text = incidents_file.written(incidents).encode()
        report = reports.report(headline, plan, notes).encode()
        report_path = self._report_path(plan)
        facts = self._facts(registers, plan)
        files = {
            **({Path(INCIDENTS): text} if added or before is None else {}),
            Path(INDEX): self._index(incidents.entries, facts, plan.date),
            report_path: report,
            Path(LATEST): report,
        }
        for name in files:  # all of them are written, or none
            self._guard.check(self._folder / name)
        for name, content in files.items():
            self._guard.write(self._folder / name, content)
        by_this_plan = (Path(INCIDENTS),) if plan.filed else ()  # in an earlier run, it may be
        return tuple(dict.fromkeys((*by_this_plan, *files)))

    def reindex(self, registers: Registers, today: str) -> Reindexed:
        """Sorts the incidents anew, edits by hand included, and writes the index anew."""
        before = self._text()
        incidents = incidents_file.with_entries(self._incidents(before, registers), (), self._keys.order)
        text = incidents_file.written(incidents)
        generated = self._index(incidents.entries, self._facts(registers), today)
        written = []
        if before is None or incidents.entries != incidents_file.read(before).entries:
            self._guard.write(self._folder / INCIDENTS, text.encode())
            written.append(Path(INCIDENTS))
        if generated != self._guard.read(self._folder / INDEX, incidents_file.BYTES_MAX):
            self._guard.write(self._folder / INDEX, generated)
            written.append(Path(INDEX))
        counts = msgspec.json.decode(generated, type=index.Index).counts
        return Reindexed(counts, tuple(written), tuple(incidents_file.odd_sections(text)))

    def report_of(self, plan: Plan) -> Path:
        """Where the report of a plan that was written stands."""
        return self._folder / self._report_path(plan)

    def _entries(self) -> Iterable[Entry]:
        text = self._text()
        return () if text is None else incidents_file.read(text).entries

    def _incidents(self, text: str | None, registers: Registers) -> Incidents:
        """What the file holds. Where it is not there, the journal's incidents are what it held."""
        if text is not None:
            return incidents_file.read(text)
        lost = [_entry_of(incident) for incident in registers.of(self._name)]
        return incidents_file.with_entries(incidents_file.new(self._keys.title), lost, self._keys.order)

    def _text(self) -> str | None:
        path = self._folder / INCIDENTS
        data = self._guard.read(path, incidents_file.BYTES_MAX)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise RegisterUnreadable(f"{path} is not UTF-8: {error}") from error

    def _index(self, entries: Sequence[Entry], facts: Mapping[str, index.Fact], today: str) -> bytes:
        before = self._guard.read(self._folder / INDEX, incidents_file.BYTES_MAX)
        return index.index(self._keys.title, entries, facts, before, today=today)

    def _facts(self, registers: Registers, plan: Plan | None = None) -> dict[str, index.Fact]:
        """What the journal knows, and will know once the plan is recorded."""
        facts = {
            one.fingerprint: index.Fact(_day(one.filed_at), one.category, 1 + len(one.recurrences))
            for one in registers.of(self._name)
        }
        if plan is None:
            return facts
        for filing in plan.filed:
            facts.setdefault(filing.fingerprint, index.Fact(plan.date, filing.category))
        for again in plan.recurring:
            if (fact := facts.get(again.fingerprint)) is not None:
                facts[again.fingerprint] = msgspec.structs.replace(fact, times=fact.times + 1)
        return facts

    def _report_path(self, plan: Plan) -> Path:
        """The first name of the day that is free, or that holds the report of the same verdict."""
        number = 1
        while True:
            path = Path(REPORTS) / (f"{plan.date}.md" if number == 1 else f"{plan.date}-{number}.md")
            text = self._guard.read(self._folder / path, incidents_file.BYTES_MAX)
            if text is None or text.rstrip().endswith(reports.signature(plan).encode()):
                return path
            number += 1


def _entry_of(one: Filing | Incident) -> Entry:
    paragraphs = (("What", one.what), ("Cost", one.cost), ("Lesson", one.lesson))
    return incidents_file.entry(one.title, one.date, one.severity, paragraphs)


def _day(ns: int) -> str:
    return datetime.fromtimestamp(ns // NS_PER_S, UTC).date().isoformat()
