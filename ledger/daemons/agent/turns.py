"""One turn of an agent: it is given a prompt, works, and replies; all that it says meanwhile is told in a session."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ledger.client.redaction import Redactor
from ledger.client.saddle import Session
from ledger.daemons.agent.commands import feed
from ledger.daemons.agent.conversing import StreamReading
from ledger.daemons.agent.files import write_anew
from ledger.daemons.agent.leftovers import Mark, Note, end_leftovers
from ledger.daemons.agent.outputs import Keeper, Output, PlainReading, event
from ledger.daemons.agent.presets import preset_of, rows_of
from ledger.daemons.agent.processes import GRACE_S, NOT_STARTED, Outcome, Process, Stopping
from ledger.daemons.agent.results import agents_environment
from ledger.daemons.agent.templates import resolve_prompt
from ledger.errors import InvalidField
from ledger.events import kinds

TIMED_OUT = 124  # as timeout(1) has it

_WORD_BYTES_MAX = 128 * 1024 - 1  # MAX_ARG_STRLEN of Linux, of which one is for the NUL
_STDERR_BYTES_MAX = 2**20
_STDERR_EVENTS_MAX = 1000
_SHOWN_CHARS_MAX = 500


class Limits(msgspec.Struct, frozen=True):
    """`time_s` is how long a turn may take: then the agent is asked to end, and ended after `grace_s`. `output_bytes`
    is how much of what it prints is kept, `events` how many events come of it: the rest is read and dropped."""

    time_s: float = 3600.0
    output_bytes: int = 16 * 2**20
    events: int = 20_000
    grace_s: float = GRACE_S


class Turn(msgspec.Struct, frozen=True):
    """What an agent is to do.

    `command` is the name of a preset, or words of which each may hold `{prompt}` (the path of the prompt's file),
    `{prompt_content}`, `{cwd}`, `{output}`, `{artifact}` and `{resume}`; no shell sees them. The prompt is written to
    `prompt_path`. `output` is where the agent may write its reply, and `resume` the conversation that it is to go on
    with. On standard input it finds `stdin`; by default nothing, or the prompt where a preset wants it there.
    `environment` is added to ours, of which it is given `keep_variables` alone, if they are named, and never a token
    of the ledger.
    """

    command: tuple[str, ...] | str
    prompt: str
    prompt_path: Path
    cwd: Path
    output: Path | None = None
    artifact: str = ""
    resume: str | None = None
    stdin: bytes | None = None
    limits: Limits = Limits()
    environment: Mapping[str, str] = {}
    keep_variables: tuple[str, ...] | None = None


class Reply(msgspec.Struct, frozen=True):
    """How a turn ended.

    `exit_code` is as a shell has it: 127 for a program that was not found, 126 for one that could not be started
    (`last_words` says why), 124 where the time was over. It is 1 where the agent ended with 0 but says that it
    failed. `text` is the agent's last message where it prints a stream that is known, else what it printed, with
    U+FFFD for what is no UTF-8 (`undecodable`); `truncated` says that the limits cut something off what was told or
    kept. `interrupted` is the signal that asked us to end meanwhile. `resume`, `usage` and `cost_usd` are what the
    agent said of them; a cost that it did not name is None, whatever it used.
    """

    exit_code: int
    text: str = ""
    last_words: str = ""
    timed_out: bool = False
    truncated: bool = False
    interrupted: signal.Signals | None = None
    resume: str | None = None
    cost_usd: float | None = None
    usage: dict[str, int] = {}
    undecodable: bool = False

    @property
    def is_ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out and self.interrupted is None


def run_turn(
    turn: Turn,
    session: Session,
    *,
    actor: str,
    stop: Stopping | None = None,
    on_start: Callable[[int], None] | None = None,
) -> Reply:
    """Runs the agent to its end; nothing that it started is left. What it prints becomes events of `session` while it
    runs, without secrets; the reply has them still. `stop` ends it; `on_start` is told its process id.

    What an earlier runner that was killed has left of the turns beside `prompt_path` is ended first. An agent that
    cannot be started is a reply. Raises InvalidField for a command that is none.
    """
    words, stdin = _words(turn)
    rooms = {"stdout": turn.limits.events, "stderr": _STDERR_EVENTS_MAX}
    keepers = [Keeper(session, actor, name, room, Redactor()) for name, room in rooms.items()]
    keepers[0].keep([event(kinds.TOOL_CALL, actor, {"tool": "run", "args": {"command": _shown(turn, words)}})])
    mark = Mark()
    reading = _reading(turn, words, actor, mark)
    warnings = PlainReading(actor, "stderr", _STDERR_BYTES_MAX)
    if stop is not None and stop.is_set():
        outcome = Outcome(128 + signal.SIGTERM, stopped=True, trouble="it was stopped before it began")
    else:
        outputs = [Output(keepers[0], reading), Output(keepers[1], warnings)]
        outcome = _run(turn, words, stdin, session, mark, outputs, stop, on_start)
    reply = _reply(turn, outcome, reading, warnings, stop)
    keepers[0].keep([event(kinds.TOOL_RESULT, actor, _ending(reply, outcome))])
    keepers[1].keep([])
    return reply


def _run(
    turn: Turn,
    words: Sequence[str],
    stdin: bytes | None,
    session: Session,
    mark: Mark,
    outputs: Sequence[Output],
    stop: Stopping | None,
    on_start: Callable[[int], None] | None,
) -> Outcome:
    if trouble := _trouble_with(words):
        return Outcome(NOT_STARTED, trouble=trouble)
    note = Note(turn.prompt_path, mark)
    try:
        turn.prompt_path.parent.mkdir(parents=True, exist_ok=True)
        end_leftovers(turn.prompt_path.parent, grace_s=turn.limits.grace_s)
        write_anew(turn.prompt_path, turn.prompt.encode(errors="replace"))
        note.write()
        process = Process(
            words,
            environment=agents_environment(
                session, session.outbox_path, keep=turn.keep_variables, PWD=str(turn.cwd), **turn.environment
            ),
            cwd=turn.cwd,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            time_s=turn.limits.time_s,
            grace_s=turn.limits.grace_s,
            mark=mark,
        )
    except OSError as error:
        note.remove()
        return Outcome(NOT_STARTED, trouble=f"{error.filename or words[0]}: {error.strerror or error}")
    except ValueError as error:  # a NUL in the environment, or in a path
        note.remove()
        return Outcome(NOT_STARTED, trouble=f"{words[0]}: {error}")

    def started(pid: int) -> None:
        with suppress(OSError):  # the guard is there all the same
            note.write(process.guard_pid, pid)
        if on_start is not None:
            on_start(pid)

    try:
        for output, pipe in zip(outputs, process.outputs, strict=True):
            output.read(pipe)
        feed(process, stdin)
        outcome = process.wait(stop, started)
    finally:
        note.remove()
        for output in outputs:
            output.finish(turn.limits.grace_s)
    if outcome.trouble:
        return msgspec.structs.replace(outcome, trouble=f"{words[0]}: {outcome.trouble}")
    return outcome


def _reading(turn: Turn, words: Sequence[str], actor: str, mark: Mark) -> PlainReading | StreamReading:
    template = words if isinstance(turn.command, str) else turn.command  # the prompt is not to be taken for a flag
    rows = rows_of(template, turn.prompt_path)
    if rows is None:
        return PlainReading(actor, "stdout", turn.limits.output_bytes)
    return StreamReading(rows, actor, mark.name[:12], turn.limits.output_bytes)


def _reply(
    turn: Turn,
    outcome: Outcome,
    reading: PlainReading | StreamReading,
    warnings: PlainReading,
    stop: Stopping | None,
) -> Reply:
    heard = reading.heard if isinstance(reading, StreamReading) else None
    exit_code = TIMED_OUT if outcome.timed_out else outcome.exit_code
    if exit_code == 0 and heard is not None and heard.error is not None:
        exit_code = 1
    interrupted = getattr(stop, "signal", None) or signal.SIGTERM if outcome.stopped else None
    text = reading.text()
    last_words = outcome.trouble or (heard.error if heard and heard.error else "")
    return Reply(
        exit_code=exit_code,
        text=text,
        last_words=last_words or warnings.last_words or reading.last_words,
        timed_out=outcome.timed_out,
        truncated=reading.truncated,
        interrupted=interrupted,
        resume=(heard.resume if heard else None) or turn.resume,
        cost_usd=heard.cost_usd if heard else None,
        usage=heard.usage if heard else {},
        undecodable=reading.undecodable,
    )


def _ending(reply: Reply, outcome: Outcome) -> dict[str, object]:
    payload: dict[str, object] = {"tool": "run", "exit_code": reply.exit_code}
    if outcome.trouble:
        payload["output"] = outcome.trouble
    elif reply.timed_out:
        payload["output"] = "the time was over"
    elif reply.interrupted is not None:
        payload["output"] = f"stopped by {reply.interrupted.name}"
    return payload


def _words(turn: Turn) -> tuple[list[str], bytes | None]:
    """The words of the command, and what is on its standard input."""
    stdin, prompt = turn.stdin, turn.prompt.encode(errors="replace")
    if isinstance(turn.command, str):
        preset = preset_of(turn.command)
        template = preset.start if turn.resume is None else preset.resume
        stdin = prompt if stdin is None else stdin
    else:
        template = turn.command
    if not template or not template[0]:
        raise InvalidField(
            "command", "names no program", hint="Give a list of words, of which the first is a program."
        )
    tokens = {
        "prompt": str(turn.prompt_path),
        "prompt_content": prompt.decode(),
        "cwd": str(turn.cwd),
        "output": "" if turn.output is None else str(turn.output),
        "artifact": turn.artifact,
        "resume": turn.resume or "",
    }
    return [resolve_prompt(word, tokens) for word in template], stdin


def _trouble_with(words: Sequence[str]) -> str:
    """Why no program can be given these words, or nothing."""
    for word in words:
        if "\0" in word:
            return "a word of the command holds a NUL, which no program can be given: pass the prompt as {prompt}"
        size = len(word.encode(errors="surrogateescape"))
        if size > _WORD_BYTES_MAX:
            return (
                f"a word of the command has {size:,} bytes, of at most {_WORD_BYTES_MAX:,}:"
                " pass the prompt as {prompt}, the path of its file, instead of {prompt_content}"
            )
    return ""


def _shown(turn: Turn, words: Sequence[str]) -> str:
    """The command for people: without the prompt, which may be long."""
    shown = turn.command if isinstance(turn.command, str) else " ".join([words[0], *turn.command[1:]])
    return shown if len(shown) <= _SHOWN_CHARS_MAX else shown[: _SHOWN_CHARS_MAX - 1] + "…"
