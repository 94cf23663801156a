"""`sweep init`: a configuration that says all it can, a register's folder, and a repository if it is wished for."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ledger.client.redaction import redact
from ledger.daemons.sweep.assembling import guard_of
from ledger.daemons.sweep.config import Config, parsed
from ledger.daemons.sweep.guard import WriteGuard
from ledger.daemons.sweep.register.folder import INCIDENTS, INDEX, Register
from ledger.daemons.sweep.repository import Repository
from ledger.errors import Conflict
from ledger.transcripts.formats import places
from projections.incidents import REGISTERS

TEMPLATE = """\
# `ledgerd sweep`: reads agents' transcripts, has a model judge what looks like damage, keeps a register of incidents.
# `ledgerd sweep config` shows every key and what is in force. Relative paths start at this file's folder.

{sources}
[scan]
first_run = "baseline"      # what is there now is not judged; "backfill" judges it
max_candidates = 50         # a run; sessions beyond that wait for the next
max_per_session = 12
exclude = []                # shell patterns of transcripts that are never judged

[judge]
backend = "claude"          # or "openai" (base_url, model, api_key_env), or "command" (command)
model = ""
timeout = 600

[ledger]
dir = {dir}
title = "Incidents"

[git]
enabled = {git}
push = false
# expected_remote_url = "git@example.org:team/incidents.git"

[state]
# file = "sweep.db"
# seen_list = "seen.txt"    # kept so that a lost state judges nothing again

[hooks]
# notify_cmd = "…"          # after something was filed: a summary on standard input, numbers in LEDGERD_SWEEP_*
# on_success_cmd = "…"      # after every good run: a heartbeat
# on_failure_cmd = "…"
"""

SOURCE = """\
[[source]]
type = {type}
path = {path}
"""


class AlreadyThere(Conflict):
    """Nothing is overwritten: exit code 2."""

    code = "already_there"
    hint = "Nothing was changed. Name another file with -c, or another folder."


def found(path: Path, folder: Path | None, *, git: bool) -> Config:
    """Writes the configuration at `path` and makes the register in `folder` (None: in the data folder). Raises
    AlreadyThere where either is there, and nothing was changed then; InvalidConfig, NotWritten, GitFailed."""
    if os.path.lexists(path):
        raise AlreadyThere(f"{path} is there already")
    text = _text(folder, git=git).encode()
    config = parsed(text, path)
    for name in (INCIDENTS, INDEX):
        if os.path.lexists(config.folder / name):
            raise AlreadyThere(f"{config.folder / name} is there already")
    if git and os.path.lexists(config.folder / ".git"):
        raise AlreadyThere(f"{config.folder} is a repository already")
    guard = guard_of(config)
    guard.make_folder_of(config.folder / INCIDENTS)
    Register(config.folder, config.register, config.keys.ledger, guard).reindex(REGISTERS.initial, "")
    if git:
        repository = Repository(config.folder, config.keys.git, redact)
        repository.make()
        repository.commit([Path(INCIDENTS), Path(INDEX)], "An empty register of incidents")
    WriteGuard([], [path]).write(path, text)
    return config


def _text(folder: Path | None, *, git: bool) -> str:
    """The configuration, with the agents that have transcripts on this host."""
    there = {agent: folders[0] for agent, folders in places().items() if folders and folders[0].is_dir()}
    sources = [
        SOURCE.format(type=json.dumps(agent), path=json.dumps(str(place / "*.db" if agent == "opencode" else place)))
        for agent, place in (there or {"claude-code": Path("~/.claude/projects")}).items()
    ]
    dir = "" if folder is None else str(folder.absolute())
    return TEMPLATE.format(
        sources="\n".join(sources), dir=json.dumps(dir, ensure_ascii=False), git="true" if git else "false"
    )
