"""What a command finds its session by, and how a session is said to have ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from ledger.client.redaction import Redactor
from ledger.client.saddle import Session
from ledger.events import kinds

ACTOR = "harness"

_SUMMARY_CHARS_MAX = 500
_NAME_CHARS_MAX = 100


class Ended(msgspec.Struct, frozen=True):
    """How a command ended. `exit_code` is as a shell has it: 128 and the signal's number where a signal ended it, 127
    where it could not be found, 126 where it could not be started. `last_words` is the last line that it wrote;
    `stopped_by` the signal that asked it to end, if one did."""

    exit_code: int
    last_words: str
    stopped_by: signal.Signals | None


def environment_of(session: Session, outbox: Path, **more: str | None) -> dict[str, str]:
    """What a command finds its session by: `ledgerd comment` inside of it lands there."""
    return {**os.environ, **_found_by(session, outbox), **_given(more)}


def agents_environment(
    session: Session, outbox: Path, *, keep: Collection[str] | None = None, **more: str | None
) -> dict[str, str]:
    """The same for an agent that works on its own: without anything of ours beside, so that it holds no token of the
    ledger. With `keep`, of our variables it is given those alone."""
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("LEDGERD_") and (keep is None or name in keep)
    }
    return {**ours, **_found_by(session, outbox), **_given(more)}


def push_result(session: Session, title: str, ended: Ended, redactor: Redactor | None = None) -> None:
    """Says how the session ended: 0 is done, a command that was asked to stop is cancelled, any other failed. Without
    secrets where there is a `redactor`.

    What the command has said itself counts: a result before this one stays, and a command that parked its session
    (waiting, suspended) and then ended well leaves it parked.
    """
    if ended.exit_code == 0 and session.last_state() in (kinds.WAITING, kinds.SUSPENDED):
        return
    title, last_words = (text if redactor is None else redactor.redact(text) for text in (title, ended.last_words))
    name = title if len(title) <= _NAME_CHARS_MAX else title[: _NAME_CHARS_MAX - 1] + "…"
    if ended.exit_code == 0:
        session.result(kinds.DONE, f"{name} ended well", actor=ACTOR)
    elif ended.stopped_by is not None:
        session.result(kinds.CANCELLED, f"{name} was stopped by {ended.stopped_by.name}", actor=ACTOR)
    else:
        said = f": {last_words.strip()[:_SUMMARY_CHARS_MAX]}" if last_words.strip() else ""
        session.result(kinds.FAILED, f"{name} {_how(ended.exit_code)}{said}", actor=ACTOR)


def _found_by(session: Session, outbox: Path) -> dict[str, str]:
    return {"LEDGERD_SESSION": session.id, "LEDGERD_OUTBOX": str(outbox)}


def _given(values: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def _how(exit_code: int) -> str:
    with suppress(ValueError):
        if exit_code > 128:
            return f"was ended by {signal.Signals(exit_code - 128).name}"
    return f"ended with exit code {exit_code}"
