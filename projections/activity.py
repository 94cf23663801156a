"""What an agent is doing: its newest remark or command, as one line.

A command that carries a remark (`… | ledgerd comment`, a heredoc) is never shown as activity: the remark is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from immutables import Map

from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import Recorded
from projections.payloads import fact_of, text
from projections.session import time_of

LINE_CHARS_MAX = 200

# Counted repeats, and classes that share no character, keep the search linear on hostile text.
_CARRIES_REMARK = re.compile(
    r"""(?<![\w.-]) ledgerd(?:\.exe)? ["']?                      # the program, bare or at the end of a path
        (?: (?:\\?\s)+ -[^\s\\]+ (?:(?:\\?\s)+ [^\s\\-][^\s\\]*)? ){0,8}?  # flags of its own, with values
        (?:\\?[\s"',])+ comment (?![\w-])""",
    re.VERBOSE,
)
_COMMANDS = ("command", "cmd", "script", "shell_command")
_SUBJECTS = ("file_path", "path", "filename", "pattern", "query", "url", "description", "prompt")
_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")


class Current(msgspec.Struct, frozen=True, gc=False):
    """The newest activity: `line` as it is shown, `since` in ns."""

    line: str
    since: int


class Activity(msgspec.Struct, frozen=True):
    """Of a root and each of its tasks. `high_seqs` is the highest seq of an activity by session; `seen` is what a
    task has shown, with the session that was the first to tell it, so that copies are not taken for news."""

    current: Current | None = None
    tasks: Map[str, Current] = Map()
    high_seqs: Map[str, int] = Map()
    seen: Map[str, Map[bytes, str]] = Map()


def evolve(activity: Activity, event: Recorded) -> Activity:
    """With a `comment` or a `tool_call`. Within a session the highest seq is the newest, across sessions the later
    position."""
    if event.task_id is None:
        return activity
    payload = payload_object(event.payload)
    line = _line_of(event.kind, payload)
    if not line:
        return activity
    seen = activity.seen.get(event.task_id, Map())
    mark = _mark(event, payload)
    if seen.get(mark, event.session_id) != event.session_id:
        return activity
    seen = seen.set(mark, event.session_id)
    activity = msgspec.structs.replace(activity, seen=activity.seen.set(event.task_id, seen))
    if event.seq <= activity.high_seqs.get(event.session_id, -1):
        return activity
    current = Current(line, time_of(event))
    return Activity(
        current,
        activity.tasks.set(event.task_id, current),
        activity.high_seqs.set(event.session_id, event.seq),
        activity.seen,
    )


def command_line(payload: Mapping[str, Any]) -> str | None:
    """A `tool_call` as one line of at most 200 characters: its command, or `tool: subject`. None where it carries a
    remark, and so is not to be shown."""
    args = _args(payload)
    if any(map(carries_remark, _texts(args))):
        return None
    tool = text(payload, "tool")
    if isinstance(args, dict):
        for name in _COMMANDS:
            if command := _command(args.get(name)):
                return _one_line(command)
        subject = next((value for name in _SUBJECTS if (value := text(args, name))), "")
    else:
        subject = " ".join(_texts(args))
    return _one_line(f"{tool}: {subject}" if subject else tool)


def carries_remark(command: str) -> bool:
    """True where a shell command runs (or mentions) `ledgerd comment`: behind a pipe, with a heredoc, after
    variables, by its full path."""
    return "comment" in command and _CARRIES_REMARK.search(command) is not None


def _mark(event: Recorded, payload: Mapping[str, Any]) -> bytes:
    """What a copy has in common with the first: the fact that is told, else its seq and content."""
    fact = fact_of(payload)
    if fact is None:
        return event.seq.to_bytes(8, "big", signed=True) + event.digest[:8]
    return hashlib.sha256(f"{event.kind} {fact}".encode(errors="replace")).digest()[:16]


def _line_of(kind: str, payload: Mapping[str, Any]) -> str | None:
    if kind == kinds.COMMENT:
        return text(payload, "body")
    return command_line(payload)


def _args(payload: Mapping[str, Any]) -> Any:
    """The arguments; some agents send them as JSON text."""
    args = payload.get("args")
    if isinstance(args, str) and args.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(args)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            return args
    return args


def _texts(value: Any) -> Iterator[str]:
    """Every string in a JSON value; a list of strings as the command that its words make."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            if all(isinstance(word, str) for word in value):
                yield " ".join(value)
            else:
                waiting.extend(value)


def _command(value: Any) -> str:
    """A command as text: of `["bash", "-lc", "make test"]` what the shell is given to run."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        if len(value) == 3 and _SHELLS.fullmatch(value[0]) and value[1].startswith("-"):
            return str(value[2])
        return " ".join(value)
    return ""


def _one_line(words: str) -> str:
    line = " ".join(words[: 4 * LINE_CHARS_MAX].split())
    return line if len(line) <= LINE_CHARS_MAX else line[: LINE_CHARS_MAX - 1] + "…"
