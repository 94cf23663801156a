"""What `ledgerd import` and `ledgerd watch` share: bringing transcripts to a ledger, and telling what came of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from ledger.cli.output import print_json, progress_bar
from ledger.cli.redacting import redact_options, redactor_for
from ledger.cli.terminal import counted, one_line

if TYPE_CHECKING:
    from ledger.client.api import Api
    from ledger.transcripts.follow import Follower
    from ledger.transcripts.marks import Marks
    from ledger.transcripts.model import BadLine

F = TypeVar("F", bound=Callable[..., Any])


class Imported(msgspec.Struct):
    """What was brought. `rewritten` counts sessions told anew, under a name of their own; `conflicts` are records
    that an agent has edited since: there the first stands. `skipped` counts the rows left out on purpose, by type."""

    files: int = 0
    sessions: int = 0
    stored: int = 0
    duplicates: int = 0
    conflicts: int = 0
    rewritten: int = 0
    rejected: int = 0
    bad_lines: int = 0
    failed_files: int = 0
    unknown_files: int = 0
    skipped: dict[str, int] = {}

    @property
    def went_through(self) -> bool:
        return not (self.rejected or self.failed_files)


class Bringing:
    """A follower with all that it needs, and the account of what it did."""

    def __init__(
        self,
        api: Api,
        roots: Callable[[], Iterable[Path]],
        agents: Collection[str],
        marks: Marks,
        *,
        project: str | None,
        host: str | None,
        redact: bool,
        patterns: Iterable[str],
        names_unknown: bool,
    ) -> None:
        from ledger.transcripts.delivering import Delivery
        from ledger.transcripts.finding import Finder
        from ledger.transcripts.follow import Follower
        from ledger.transcripts.model import Report

        self._report = Report(_show_bad_line)
        redactor = redactor_for(redact, patterns)
        self._delivery = Delivery(api, project=project, host=host, redactor=redactor, say=say)
        self.follower: Follower = Follower(
            roots, Finder(agents), self._delivery, marks, self._report, names_unknown=names_unknown, say=say
        )

    def once(self, *, growing: bool, check: Callable[[], None] = lambda: None) -> Imported:
        """One pass over everything, with a bar on a terminal. `check` is called time and again: what it raises ends
        the pass, and what had been brought by then is remembered."""
        changed = self.follower.changed()
        if not changed:
            return self.imported
        with progress_bar("reading", sum(found.size for found in changed), in_bytes=True) as progress:

            def came(done: int) -> None:
                check()
                progress(done)

            self.follower.bring(changed, growing=growing, progress=came)
        return self.imported

    @property
    def imported(self) -> Imported:
        delivered, swept = self._delivery.delivered, self.follower.swept
        return Imported(
            files=swept.files,
            sessions=len(delivered.sessions),
            stored=delivered.stored,
            duplicates=delivered.duplicates,
            conflicts=delivered.conflicts,
            rewritten=delivered.rewritten,
            rejected=delivered.rejected,
            bad_lines=self._report.bad_lines,
            failed_files=swept.failed_files,
            unknown_files=swept.unknown_files,
            skipped=dict(sorted(self._report.skipped.items())),
        )


def bringing_options(command: F) -> F:
    """`--project`, `--redact/--no-redact`, `--redact-also`: passes `project`, `redact`, `patterns`."""
    project = click.option(
        "--project", metavar="ID", help="The project of new tasks; by default the working folder's name."
    )
    return project(redact_options(command))


def finish(imported: Imported, as_json: bool) -> None:
    """Shows what was brought; the exit code is 1 where something readable did not go through."""
    if as_json:
        print_json(imported)
    else:
        show(imported)
    if not imported.went_through:
        raise SystemExit(1)


def show(imported: Imported) -> None:
    click.echo(f"{counted(imported.files, 'file')}, {counted(imported.sessions, 'session')}")
    click.echo(
        f"{counted(imported.stored, 'event')} stored, {imported.duplicates} were there already,"
        f" {imported.rejected} rejected"
    )
    if imported.rewritten:
        click.echo(f"{counted(imported.rewritten, 'session')} told anew, beside what was there")
    if imported.conflicts:
        click.echo(f"{counted(imported.conflicts, 'record')} edited since; what was there first stands")
    if imported.bad_lines:
        click.echo(counted(imported.bad_lines, "bad line"))
    if imported.failed_files:
        click.echo(f"{counted(imported.failed_files, 'file')} failed")


def say(line: str) -> None:
    """A line about something that did not go through, on standard error."""
    click.echo(one_line(line), err=True)


def _show_bad_line(bad: BadLine) -> None:
    say(f"bad line: {bad}")
