"""`ledgerd watch`: follows the transcripts of the agents on this host."""

from __future__ import annotations

import hashlib
import os
import platform
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ledger.cli.connecting import connect
from ledger.cli.output import json_option
from ledger.cli.transcripts import Bringing, bringing_options, finish, say, show

if TYPE_CHECKING:
    from ledger.client.api import Api
    from ledger.transcripts.marks import Marks

AGENTS = ("claude-code", "codex", "opencode", "gemini")
RESCAN_S = 10.0  # how often new folders, and file systems that tell of no changes, are looked through
SETTLE_MS = 400  # changes that follow within this are looked at together
RETRY_S = 5.0  # how long a ledger that does not answer is left alone


@click.command("watch")
@click.option("--once", is_flag=True, help="Bring what is there, and end.")
@click.option(
    "--from",
    "paths",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="A file or folder to read instead of the agents' own folders; may be repeated.",
)
@click.option(
    "--only", "agents", multiple=True, type=click.Choice(AGENTS), help="Only this agent's; may be repeated."
)
@bringing_options
@json_option
def command(
    once: bool,
    paths: tuple[Path, ...],
    agents: tuple[str, ...],
    project: str | None,
    redact: bool,
    patterns: tuple[str, ...],
    as_json: bool,
) -> None:
    """Follow the transcripts of Claude Code, Codex CLI, opencode and Gemini CLI on this host: what is there first,
    then what is added. Ctrl-C ends it.

    Every event is stored once, however many watchers there are and however often they are started; what was
    interrupted is read again. Lines that cannot be read are named and left out. Secrets are taken out before
    anything is sent, unless --no-redact says otherwise.

    \b
    Example:
      ledgerd watch
      ledgerd watch --once --from transcripts/ --only codex
    """
    with connect() as api:

        def roots() -> list[Path]:
            return _roots(paths, agents or AGENTS)

        def bringing() -> Bringing:
            return Bringing(
                api,
                roots,
                agents or AGENTS,
                _marks(api, remember=not once),
                project=project,
                host=None if paths else platform.node() or None,
                redact=redact,
                patterns=patterns,
                names_unknown=bool(paths),
            )

        def enter() -> None:
            """A ledger that lets nobody in says so at once, also where there is nothing to bring."""
            api.heartbeat(host=platform.node())

        if once:
            enter()
            finish(bringing().once(growing=False), as_json)
        else:
            _follow(enter, bringing, roots)


def _follow(enter: Callable[[], None], begin: Callable[[], Bringing], roots: Callable[[], list[Path]]) -> None:
    with _stop_event() as stop:

        def check() -> None:
            if stop.is_set():
                raise _Stopped

        if not _again_until_answered(enter, stop):
            return
        bringing = begin()
        if not _again_until_answered(lambda: show(bringing.once(growing=True, check=check)), stop):
            return
        click.echo("following; Ctrl-C ends it")
        for _ in _wakes(roots, stop):
            _again_until_answered(lambda: bringing.once(growing=True, check=check), stop)


def _again_until_answered(work: Callable[[], object], stop: threading.Event) -> bool:
    """Does the work, again for as long as the ledger does not answer; says once that it waits. False when it was
    stopped meanwhile. Raises ApiError where waiting would not help."""
    from ledger.client.api import ApiError

    waits = False
    while not stop.is_set():
        try:
            work()
        except ApiError as error:
            if error.status in (401, 403) or error.code == "not_a_ledger":
                raise
            if not waits:
                say(f"waiting: {error.detail}")
                waits = True
            stop.wait(RETRY_S)
        except _Stopped:
            return False
        else:
            return True
    return False


def _wakes(roots: Callable[[], list[Path]], stop: threading.Event) -> Iterator[None]:
    """Once at first, then whenever something below the roots has changed, and every RESCAN_S seconds."""
    from watchfiles import watch

    yield
    while not stop.is_set():
        watched = roots()
        if not watched:
            stop.wait(RESCAN_S)
            yield
            continue
        changes = watch(
            *watched,
            watch_filter=None,
            debounce=SETTLE_MS,
            stop_event=stop,
            rust_timeout=int(RESCAN_S * 1000),
            yield_on_timeout=True,
            raise_interrupt=False,
            ignore_permission_denied=True,
        )
        try:
            for _ in changes:
                yield
                if roots() != watched:
                    break
        except OSError:  # a root has gone, or there are more folders than the kernel watches: then it is looked at
            stop.wait(RESCAN_S)
            yield


class _Stopped(Exception):
    """A signal came during a pass: what is left is brought by the next one."""


@contextmanager
def _stop_event() -> Iterator[threading.Event]:
    """Set by SIGTERM and SIGINT, so that what has been brought is remembered."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _roots(paths: tuple[Path, ...], agents: tuple[str, ...]) -> list[Path]:
    from ledger.transcripts.formats import places

    if paths:
        return list(paths)
    return [place for agent, of_agent in places().items() if agent in agents for place in of_agent if place.is_dir()]


def _marks(api: Api, *, remember: bool) -> Marks:
    """A single pass reads everything, whatever was remembered: it is the way to make sure."""
    from ledger.transcripts.marks import Marks

    ledger_id = str(api.call("GET", "/readyz").get("ledger_id", ""))
    if not remember or not ledger_id:
        return Marks(None, ledger_id)
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ledgerd"
    of_ledger = hashlib.blake2b(ledger_id.encode(), digest_size=8).hexdigest()
    return Marks(state / f"watch-{of_ledger}.json", ledger_id)
