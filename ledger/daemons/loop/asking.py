"""Asks a gate or a probe: a command that prints one JSON object. It runs under the agents' guard, with limits."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from ledger.daemons.agent import Stopping
from ledger.daemons.agent.processes import Process
from ledger.daemons.agent.results import agents_environment
from ledger.daemons.loop.journal import Journal

T = TypeVar("T")

ANSWER_BYTES_MAX = 64 * 1024
READ_S_MAX = 5.0  # after the end, for what may hold the pipe


class Unanswered(Exception):
    """Why there is no answer, in words for people."""


class GateAnswer(msgspec.Struct, frozen=True):
    ok: bool
    reason: str | None = None
    halt_reason: str | None = None


class ProbeAnswer(msgspec.Struct, frozen=True):
    loop_mode_eligible: bool


def ask_gate(words: Sequence[str], **how: Any) -> GateAnswer:
    """Raises Unanswered; also where the gate failed and yet said that all is well."""
    exit_code, said = _ask(words, **how)
    answer = _read(said, GateAnswer)
    if answer.ok and exit_code:
        raise Unanswered(f"it said ok, and ended with exit code {exit_code}")
    return answer


def ask_probe(words: Sequence[str], **how: Any) -> bool:
    """Whether the loop may run a round. Raises Unanswered."""
    exit_code, said = _ask(words, **how)
    eligible = _read(said, ProbeAnswer).loop_mode_eligible
    if eligible and exit_code:
        raise Unanswered(f"it said that a round may run, and ended with exit code {exit_code}")
    return eligible


def _ask(
    words: Sequence[str],
    *,
    journal: Journal,
    cwd: Path,
    time_s: float,
    stop: Stopping | None = None,
    environment: Mapping[str, str],
) -> tuple[int, bytes]:
    """The exit code, and what it printed."""
    found = agents_environment(journal.agents, journal.outbox.path, PWD=str(cwd), **environment)
    try:
        process = Process(words, environment=found, cwd=cwd, stdin=subprocess.DEVNULL, time_s=time_s)
    except OSError as error:
        raise Unanswered(f"{error.filename or words[0]}: {error.strerror}") from error
    kept = bytearray()
    readers = [
        threading.Thread(target=_read_on, args=(pipe, into), daemon=True)
        for pipe, into in zip(process.outputs, (kept, bytearray()), strict=True)
    ]
    for reader in readers:
        reader.start()
    outcome = process.wait(stop)
    for reader in readers:
        reader.join(READ_S_MAX)
    if outcome.trouble:
        raise Unanswered(f"{words[0]}: {outcome.trouble}")
    if outcome.timed_out:
        raise Unanswered(f"it took more than {time_s:g} s")
    return outcome.exit_code, bytes(kept)


def _read_on(pipe: IO[bytes], into: bytearray) -> None:
    """To the end, whatever it prints; one byte above the limit tells that there was more."""
    with pipe, suppress(OSError, ValueError):
        while data := pipe.read1(ANSWER_BYTES_MAX):  # type: ignore[attr-defined]
            into += data[: ANSWER_BYTES_MAX + 1 - len(into)]


def _read(said: bytes, kind: type[T]) -> T:
    if not said.strip():
        raise Unanswered("it printed nothing")
    if len(said) > ANSWER_BYTES_MAX:
        raise Unanswered(f"it printed more than {ANSWER_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(said, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unanswered(f"it printed {said[:60].decode(errors='replace')!r}: {error}") from error
