"""The hook itself: takes its input, leaves it in the spool, and is gone. Loads nothing but the interpreter's own."""

from __future__ import annotations

import os
import sys

from ledger.hooks import spool, troubles

AGENTS = ("claude-code", "codex", "gemini")

_CARRIER = ("-P", "-m", "ledger.hooks.carrying")  # -P: the agent's folder is no place to load modules from
_READ_BYTES = 64 * 1024
_FILES_MAX = 1024  # that may have been left open by the agent


def receive(agent: str, words: list[str]) -> None:
    """Takes one hook's input: the last of `words`, as Codex notifies, else standard input. Raises nothing, prints
    nothing; what goes wrong is noted in the file of `troubles`, where that can be written."""
    try:
        outbox = spool.default_outbox()
        try:
            body = os.fsencode(words[-1]) if words else _standard_input()
            if body.strip():
                spool.put(outbox, agent, os.environ.get("LEDGERD_SESSION", ""), body)
                start_carrier(outbox)
        except Exception as error:
            troubles.note(outbox, f"{agent}: {error}")
    except BaseException:  # noqa: S110 — the agent must not notice
        pass


def start_carrier(outbox: str) -> None:
    """Sees to it that a carrier runs. It is nobody's child and holds no file of the agent's open, so that nobody
    waits for it. What it finds of the ledger's server it finds in this environment."""
    if _is_carried(outbox) or os.fork() != 0:
        return
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for file in (0, 1, 2):
            os.dup2(nothing, file)
        os.closerange(3, _FILES_MAX)
        os.chdir("/")
        os.execv(sys.executable, [sys.executable, *_CARRIER, outbox])  # noqa: S606 — our own interpreter
    finally:
        os._exit(127)


def _is_carried(outbox: str) -> bool:
    file = os.open(spool.carrier_path(outbox), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        return not spool.try_lock(file)
    finally:
        os.close(file)


def _standard_input() -> bytes:
    parts: list[bytes] = []
    size = 0
    while not os.isatty(0) and (part := os.read(0, _READ_BYTES)) and size <= spool.RECORD_BYTES_MAX:
        parts.append(part)
        size += len(part)
    return b"".join(parts)
