from __future__ import annotations

from typing import Any

import click
from rich.text import Text

from ledger.cli.connecting import connect
from ledger.cli.narrative import print_facts, print_heading, print_story
from ledger.cli.output import console, json_option, print_json, print_table, status
from ledger.cli.terminal import one_line

WORDS_OF_SESSIONS = 5  # the newest: what they were asked, and what they said last
WORDS_CHARS_MAX = 300


@click.command("task")
@click.argument("task_id", metavar="ID")
@json_option
def command(task_id: str, as_json: bool) -> None:
    """Show what a task went through: its attempts and sessions, each thing that happened once, what it cost.

    \b
    Example:
      ledgerd task 12
    """
    with connect() as api:
        task = api.task(task_id)
    if as_json:
        print_json(task)
        return
    print_heading("task", task)
    console().print(Text("\nSessions", style="bold"))
    print_table(
        ["attempt", "state", "saddle", "agent", "session", "did"],
        [
            (
                str(session["attempt"]),
                status(session["state"]),
                session["saddle"] or "",
                session["agent"] or "",
                session["session_id"],
                _did(session),
            )
            for session in task["sessions"]
        ],
    )
    _print_words(task["sessions"])
    print_story(task)
    print_facts(task)


def _did(session: dict[str, Any]) -> str:
    counts = ((session[name], name.replace("_", " ")) for name in ("messages", "tool_calls", "failed_calls"))
    return ", ".join(f"{count:,} {name}" for count, name in counts if count)


def _print_words(sessions: list[dict[str, Any]]) -> None:
    for session in sessions[-WORDS_OF_SESSIONS:]:
        for what, words in (("asked", session["first_prompt"]), ("last words", session["last_words"])):
            if words:
                line = one_line(words[:WORDS_CHARS_MAX])
                console().print(Text(f"{one_line(session['session_id'])}, {what}: {line}"))
