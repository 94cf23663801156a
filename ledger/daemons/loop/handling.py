"""What a person does with a loop: makes one, sets its task, halts it, resumes it, looks at it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files

import msgspec

from ledger.client.saddle import Saddle
from ledger.daemons.loop.config import parse_config, read_setup
from ledger.daemons.loop.deciding import Halt
from ledger.daemons.loop.folders import CONFIG_FILE, LoopFolder, write_whole
from ledger.daemons.loop.journal import Journal, halted, new_session, open_journal, resumed
from ledger.daemons.loop.locking import tick_lock
from ledger.daemons.loop.ticking import record_setup
from ledger.daemons.loop.views import write_views
from ledger.errors import Conflict, Forbidden, InvalidField, NotFound
from projections.loop_brakes import CLEARED_BY_A_RESUME, held_by
from projections.loop_reasons import Reason
from projections.loop_state import IMPLEMENT, ORCHESTRATE, TASK_SET, VERIFY, Loop

TASK_CHARS_MAX = 100_000
BLANK = "blank"
ROLE_VARIABLE = "LEDGERD_LOOP_ROLE"  # which role's agent runs us

OpenSaddle = Callable[[], Saddle]

_TEMPLATES = files("ledger.daemons.loop") / "templates"


def templates() -> list[str]:
    """The names of the templates, the plainest first."""
    names = sorted(entry.name for entry in _TEMPLATES.iterdir() if entry.is_dir() and entry.name != BLANK)
    return [BLANK, *names]


def init(folder: LoopFolder, open_saddle: OpenSaddle, template: str = BLANK) -> list[str]:
    """Makes a loop from a template; the names of the files that were written. Raises Conflict where there is one."""
    if folder.is_there:
        raise Conflict(
            f"{folder.home} is there already", code="loop_exists", hint="Take another name, or remove that folder."
        )
    texts = {entry.name: entry.read_text(encoding="utf-8") for entry in (_TEMPLATES / template).iterdir()}
    config = msgspec.structs.replace(parse_config(texts.pop(CONFIG_FILE), template), name=folder.name)
    folder.make()
    for name, text in sorted(texts.items()):
        if not (folder.home / name).exists():  # a prompt that somebody wrote before
            write_whole(folder.home / name, text)
    with open_saddle() as saddle:
        new_session(saddle, folder, config)  # one of its own, even if there was a loop of that name before
    shown = msgspec.json.format(msgspec.json.encode(config), indent=2).decode()
    write_whole(folder.config, shown + "\n")  # last: now it is a loop
    with journal_of(folder, open_saddle) as journal:
        write_views(folder, journal.loop)
    return [*sorted(texts), CONFIG_FILE]


def set_task(folder: LoopFolder, open_saddle: OpenSaddle, task: str) -> None:
    _refuse_agents("set its task", (IMPLEMENT, VERIFY))
    if not task.strip() or len(task) > TASK_CHARS_MAX:
        raise InvalidField(
            "task", f"is empty, or longer than {TASK_CHARS_MAX} characters", hint="Say what is to be done."
        )
    with journal_of(folder, open_saddle) as journal:
        journal.add(lambda _: [(TASK_SET, {"task": task})])
        write_views(folder, journal.loop)


def halt(folder: LoopFolder, open_saddle: OpenSaddle, detail: str = "") -> bool:
    """False if it stands already. A role that runs is not broken off, but no other is started after it."""
    with journal_of(folder, open_saddle) as journal:
        new = halted(Halt(Reason.HUMAN_INTERVENTION, detail))
        done = journal.add(lambda loop: [] if loop.halt else new)
        write_views(folder, journal.loop)
        return done


def resume(folder: LoopFolder, open_saddle: OpenSaddle) -> str | None:
    """What still holds the loop after it; None if nothing does. Where nothing held it, nothing is done."""
    _refuse_agents("resume it", (IMPLEMENT, VERIFY, ORCHESTRATE))
    with journal_of(folder, open_saddle) as journal:
        journal.read_usage()
        journal.add(lambda loop: resumed() if loop.halt or held_by(loop) in CLEARED_BY_A_RESUME else [])
        write_views(folder, journal.loop)
        return held_by(journal.loop)


def look(folder: LoopFolder, open_saddle: OpenSaddle) -> Loop:
    """The loop as it stands, with what it has cost."""
    with journal_of(folder, open_saddle) as journal:
        return journal.read_usage()


@contextmanager
def journal_of(folder: LoopFolder, open_saddle: OpenSaddle) -> Iterator[Journal]:
    """The loop's journal, made where there is a loop.json and no more. A loop that is known already can be halted
    and looked at whatever stands in its loop.json by now. Raises NotFound, InvalidLoop, Conflict."""
    if not folder.is_there:
        raise NotFound(
            f"there is no loop {folder.name!r} in {folder.project}",
            code="unknown_loop",
            hint=f"`ledgerd loop init {folder.name}` makes one; --project names another folder.",
        )
    if not folder.outbox.exists():
        read_setup(folder)  # so that one that cannot be read leaves nothing behind
    folder.make()
    with open_saddle() as saddle:
        journal = open_journal(saddle, folder)
        if journal is None:
            setup = read_setup(folder)
            with tick_lock(folder.lock) as taken:
                journal = open_journal(saddle, folder, setup.config if taken else None)
        if journal is None:
            raise Conflict("the loop is being run for the first time right now", hint="Try again in a moment.")
        if not journal.loop.config_digest:
            record_setup(journal, read_setup(folder))
        yield journal


def _refuse_agents(what: str, roles: tuple[str, ...], environment: Mapping[str, str] = os.environ) -> None:
    role = environment.get(ROLE_VARIABLE)
    if role in roles:
        raise Forbidden(
            f"the loop's {role} agent may not {what}",
            hint=f"That is for people. Unset {ROLE_VARIABLE} if you are one.",
        )
