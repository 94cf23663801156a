"""Puts a sweep together from its configuration. What reaches a server comes from outside: the composition root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

from ledger.client.redaction import Redactor
from ledger.client.saddle import Saddle
from ledger.daemons.agent.processes import Stopping
from ledger.daemons.sweep.config import Config, InvalidConfig, Keys
from ledger.daemons.sweep.guard import WriteGuard
from ledger.daemons.sweep.journal import SIDE_FILES, Journal, damage_named
from ledger.daemons.sweep.judging.backends import judge_of
from ledger.daemons.sweep.model import Source
from ledger.daemons.sweep.prefilter.filtering import Prefilter
from ledger.daemons.sweep.register.folder import Register
from ledger.daemons.sweep.repository import Repository
from ledger.daemons.sweep.runner import Parts
from ledger.daemons.sweep.sources.ledger import Reads
from ledger.daemons.sweep.sources.opening import open_source
from ledger.errors import InvalidField

STATE_BYTES_MAX = 8 * 2**30  # the journal is kept for good

Connect = Callable[[str | None], tuple[str, Reads]]
OpenSaddle = Callable[[Path, int], Saddle]  # an outbox, and how large it may grow


def assembled(
    config: Config,
    *,
    connect: Connect,
    open_saddle: OpenSaddle,
    sends: bool,
    say: Callable[[str], None],
    stop: Stopping | None = None,
    today: Callable[[], date] = lambda: datetime.now(UTC).date(),
) -> Parts:
    """All parts of a run. Nothing is read or written yet. Raises InvalidConfig for a pattern that is none."""
    keys = config.keys
    redactor = redactor_of(keys)
    redact = redactor.redact if redactor is not None else str
    guard = guard_of(config)
    return Parts(
        config,
        sources_of(config, connect),
        prefilter_of(config, redactor),
        judge_of(keys.judge, redact, stop),
        redact,
        guard,
        Register(config.folder, config.register, keys.ledger, guard),
        Repository(config.folder, keys.git, redact) if keys.git.enabled else None,
        lambda: opened_journal(config, guard, open_saddle, sends=sends),
        today,
        say,
        stop,
    )


def redactor_of(keys: Keys) -> Redactor | None:
    """None where nothing is to be redacted."""
    return Redactor(keys.privacy.extra_redact_patterns) if keys.privacy.redact else None


def guard_of(config: Config) -> WriteGuard:
    return WriteGuard([config.folder], written_files(config))


def written_files(config: Config) -> list[Path]:
    """The files outside the register's folder that a run may write."""
    beside = [config.state.with_name(config.state.name + suffix) for suffix in SIDE_FILES]
    return [config.state, *beside, config.lock, *filter(None, [config.seen_list])]


def prefilter_of(config: Config, redactor: Redactor | None) -> Prefilter:
    scan = config.keys.scan
    try:
        return Prefilter(
            redactor,
            extra_destructive=scan.extra_destructive,
            extra_benign=scan.extra_benign,
            extra_alarm=scan.extra_alarm,
        )
    except InvalidField as error:
        raise InvalidConfig(f"{config.file}: {error.detail}", hint=error.hint or None) from error


def sources_of(config: Config, connect: Connect) -> list[Source]:
    base = config.file.parent
    return [
        open_source(one.type, one.called, _place(one.type, one.path, base), connect) for one in config.keys.source
    ]


@contextmanager
def opened_journal(config: Config, guard: WriteGuard, open_saddle: OpenSaddle, *, sends: bool) -> Iterator[Journal]:
    """The journal in the state file; `sends` says that there is a server for it. Raises StateDamaged, WriteRefused,
    NotWritten."""
    guard.make_folder_of(config.state)
    for path in written_files(config):
        guard.check(path)
    with damage_named(config.state):
        saddle = open_saddle(config.state, STATE_BYTES_MAX)
    with saddle:
        yield Journal(saddle, config.register, config.keys.ledger.title, sends=sends)


def _place(type_: str, path: str, base: Path) -> str | None:
    if not path or type_ == "ledger":
        return path or None
    return str(base / Path(path).expanduser())
