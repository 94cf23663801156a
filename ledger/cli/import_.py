"""`ledgerd import`: transcripts of agents into a ledger, over its API. Other sources register themselves here."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.cli.connecting import connect
from ledger.cli.output import json_option
from ledger.cli.transcripts import Bringing, bringing_options, finish

# agent → what it leaves behind
_FORMATS = {
    "claude-code": "Claude Code: transcripts, and what `claude --output-format stream-json` printed.",
    "codex": "Codex CLI: rollouts, and what `codex exec --json` printed.",
    "opencode": "opencode: its database, its older files, and what `opencode run --format json` printed.",
    "gemini": "Gemini CLI: chats.",
}


@click.group("import")
def command() -> None:
    """Bring transcripts or another ledger into a ledger. Whatever is there already is not stored again.

    \b
    Example:
      ledgerd import claude-code ~/.claude/projects
    """


def _import_command(agent: str, what: str) -> click.Command:
    @click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH…")
    @bringing_options
    @json_option
    def run(
        paths: tuple[Path, ...], project: str | None, redact: bool, patterns: tuple[str, ...], as_json: bool
    ) -> None:
        from ledger.transcripts.marks import Marks

        with connect() as api:
            bringing = Bringing(
                api,
                lambda: paths,
                {agent},
                Marks(None, ""),
                project=project,
                host=None,
                redact=redact,
                patterns=patterns,
                names_unknown=True,
            )
            imported = bringing.once(growing=False)
        finish(imported, as_json)

    text = f"""Import what agents left behind: files, or folders with such files below them.

    {what}

    Each session becomes a task of its own, unless it is there already; subagents become its child sessions.
    Importing the same files again stores nothing, importing a longer copy only what is new. Lines that cannot
    be read are named and left out. The exit code is 1 where something readable did not go through.

    \b
    Example:
      ledgerd import {agent} PATH
    """
    return click.command(agent, help=text, short_help=what)(run)


for _agent, _what in _FORMATS.items():
    command.add_command(_import_command(_agent, _what))
