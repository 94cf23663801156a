"""`ledgerd import`: transcripts of agents into a ledger, over its API. Other sources register themselves here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ledger.cli.connecting import connect
from ledger.cli.output import json_option, print_json, progress_bar
from ledger.cli.terminal import one_line

if TYPE_CHECKING:
    from ledger.client.api import Api
    from ledger.transcripts.model import BadLine, Batch, Report, Transcript, TranscriptSession

_PROJECT_CHARS = re.compile(r"[^a-z0-9._-]+")


@click.group("import")
def command() -> None:
    """Bring transcripts or another ledger into a ledger. Whatever is there already is not stored again.

    \b
    Example:
      ledgerd import claude-code ~/.claude/projects
    """


class Imported(msgspec.Struct):
    """What an import came to. `skipped` counts the rows left out on purpose, by type."""

    files: int = 0
    sessions: int = 0
    stored: int = 0
    duplicates: int = 0
    conflicts: int = 0
    rejected: int = 0
    bad_lines: int = 0
    failed_files: int = 0
    skipped: dict[str, int] = {}

    @property
    def went_through(self) -> bool:
        return not (self.conflicts or self.rejected or self.failed_files)


@command.command("claude-code")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH…")
@click.option("--project", metavar="ID", help="The project of the tasks; by default the working folder's name.")
@json_option
def claude_code(paths: tuple[Path, ...], project: str | None, as_json: bool) -> None:
    """Import Claude Code transcripts: files, or folders with *.jsonl files below them.

    Each session becomes a task of its own, unless it is there already; subagents become its child sessions.
    Importing the same files again stores nothing, importing a longer copy only what is new. Lines that cannot
    be read are named and left out. The exit code is 1 where something readable did not go through.

    \b
    Example:
      ledgerd import claude-code ~/.claude/projects
    """
    from ledger.transcripts import claude_code as format_
    from ledger.transcripts.model import Report

    report = Report(_show_bad_line)
    files = list(dict.fromkeys(path for root in paths for path in format_.discover(root)))
    with connect() as api:
        importer = _Importer(api, "cc", project, report)
        importer.run(files, format_.open_transcript)
    imported = importer.imported
    if as_json:
        print_json(imported)
    else:
        _show(imported)
    if not imported.went_through:
        raise SystemExit(1)


class _Importer:
    """Pushes transcripts, parents before children, and counts what became of them."""

    def __init__(self, api: Api, prefix: str, project: str | None, report: Report) -> None:
        self.imported = Imported()
        self._api = api
        self._prefix = prefix
        self._project = project
        self._report = report
        self._projects: set[str] = set()
        self._sessions: set[str] = set()

    def run(self, files: Iterable[Path], open_transcript: Callable[[Path, Report], Transcript]) -> None:
        opened = self._open_all(files, open_transcript)
        opened.sort(key=lambda pair: pair[1].session.parent_session_id is not None)
        sizes = [path.stat().st_size for path, _ in opened]
        with progress_bar("importing", sum(sizes), in_bytes=True) as progress:
            before = 0
            for (path, transcript), size in zip(opened, sizes, strict=True):
                self._import(path, transcript, before, progress)
                before += size
                progress(before)
        self.imported.sessions = len(self._sessions)
        self.imported.bad_lines = self._report.bad_lines
        self.imported.skipped = dict(sorted(self._report.skipped.items()))

    def _open_all(
        self, files: Iterable[Path], open_transcript: Callable[[Path, Report], Transcript]
    ) -> list[tuple[Path, Transcript]]:
        from ledger.transcripts.model import NoSession

        opened = []
        for path in files:
            try:
                opened.append((path, open_transcript(path, self._report)))
            except NoSession as nothing:
                click.echo(f"skipped: {one_line(str(nothing))}", err=True)
            except OSError as failure:
                self._failed(path, failure.strerror or str(failure))
        return opened

    def _import(self, path: Path, transcript: Transcript, before: int, progress: Callable[[int], None]) -> None:
        """`before` is the size of the files before this one."""
        from ledger.client.api import ApiError

        self.imported.files += 1
        try:
            for batch in transcript.batches():
                self._push(path, batch)
                progress(before + batch.offset)
        except OSError as failure:
            self._failed(path, failure.strerror or str(failure))
        except ApiError as error:
            if error.status is None or error.status in (401, 403):
                raise  # so would every other file
            self._failed(path, error.detail)

    def _push(self, path: Path, batch: Batch) -> None:
        session = batch.session
        receipt = self._receipt(session, batch.events)
        self.imported.stored += receipt["stored"]
        self.imported.duplicates += receipt["duplicates"]
        self.imported.conflicts += len(receipt["conflicts"])
        self.imported.rejected += len(receipt["rejected"])
        for conflict in receipt["conflicts"]:
            click.echo(f"conflict: {_where(path, session, conflict['seq'])}: there with other content", err=True)
        for rejected in receipt["rejected"]:
            where = _where(path, session, rejected["seq"])
            click.echo(f"rejected: {where}: {one_line(rejected['detail'])}", err=True)

    def _receipt(self, session: TranscriptSession, events: list[dict[str, Any]]) -> dict[str, Any]:
        """A session that is there stays as it was opened, under whatever task; only a new one is opened."""
        from ledger.client.api import ApiError

        try:
            receipt = self._api.push(session.session_id, events)
        except ApiError as error:
            if error.status != 404:
                raise
            receipt = self._api.push(session.session_id, events, open=self._opening(session, events))
        self._sessions.add(session.session_id)
        return receipt

    def _opening(self, session: TranscriptSession, events: list[dict[str, Any]]) -> dict[str, Any]:
        project_id = self._project or _project_of(session.cwd)
        if project_id and project_id not in self._projects:
            self._ensure_project(project_id)
            self._projects.add(project_id)
        task = {
            "id": f"{self._prefix}-{session.thread_id}",
            "title": session.title,
            "project_id": project_id,
        }
        fields = {
            "task": {name: value for name, value in task.items() if value is not None},
            "agent": session.agent,
            "model": session.model,
            "cwd": session.cwd,
            "parent_session_id": session.parent_session_id,
            "resumed_from": session.resumed_from,
            "at": next((event["at"] for event in events if event.get("at") is not None), None),
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _ensure_project(self, project_id: str) -> None:
        from ledger.client.api import ApiError

        try:
            self._api.create_project(project_id, id=project_id)
        except ApiError as error:
            # 409: it is there under another title; 403: a saddle's token may import, but not create projects
            if error.status not in (403, 409):
                raise

    def _failed(self, path: Path, why: str) -> None:
        self.imported.failed_files += 1
        click.echo(f"failed: {one_line(str(path))}: {one_line(why)}", err=True)


def _project_of(cwd: str | None) -> str | None:
    """The last folder of a working folder (POSIX or Windows), as an id: `My App` is `my-app`."""
    name = re.split(r"[/\\]", (cwd or "").rstrip("/\\"))[-1]
    return _PROJECT_CHARS.sub("-", name.lower()).strip("-.")[:100] or None


def _where(path: Path, session: TranscriptSession, seq: object) -> str:
    return f"{one_line(str(path))}: session {one_line(session.session_id)}, seq {seq}"


def _show_bad_line(bad: BadLine) -> None:
    click.echo(f"bad line: {one_line(str(bad))}", err=True)


def _show(imported: Imported) -> None:
    click.echo(f"{_counted(imported.files, 'file')}, {_counted(imported.sessions, 'session')}")
    click.echo(
        f"{_counted(imported.stored, 'event')} stored, {imported.duplicates} were there already,"
        f" {imported.conflicts} are there with other content, {imported.rejected} rejected"
    )
    if imported.bad_lines:
        click.echo(_counted(imported.bad_lines, "bad line"))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
