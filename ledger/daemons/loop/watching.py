"""What a round must leave alone: the verifier's inputs, and the files outside of the scope."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ledger.daemons.loop import protecting, snapshots
from ledger.daemons.loop.config import Setup, digest_of
from ledger.daemons.loop.deciding import Halt
from ledger.daemons.loop.folders import LoopFolder, clear, read_text, write_whole
from ledger.daemons.loop.scopes import outside
from ledger.daemons.loop.snapshots import Snapshot
from ledger.errors import InvalidRequest
from projections.loop_reasons import Reason
from projections.loop_state import Round

FILES_NAMED_MAX = 20
BASE_BYTES_MAX = 256 * 2**20


class Watch:
    """Of one round of a loop whose agents work in `cwd`. What the round began with is in the journal, by digest, so
    that a tick that goes on with it compares with the same."""

    def __init__(self, folder: LoopFolder, setup: Setup, cwd: Path) -> None:
        self._folder = folder
        self._setup = setup
        self._cwd = cwd
        self._scope = setup.config.blast_radius.file_scope
        self._looks = bool(self._scope) or setup.config.brakes.no_progress
        self._before: Snapshot | None = None

    def begin(self, tick: int) -> dict[str, object]:
        """Looks at what is there before any agent is started; what the journal has to keep of it. Raises
        StorageError, InvalidLoop, GitFailed."""
        inputs = protecting.inputs_of(self._folder, self._setup, self._cwd)
        base = ""
        if self._looks:
            self._before = snapshots.take(self._cwd)
            text = self._before.text()
            write_whole(self._folder.base(tick), text)
            base = digest_of(text)
        return {"inputs": inputs, "base": base}

    def trouble(self, one: Round) -> Halt | None:
        """Why the round must be halted; None where it left alone what it must."""
        now = protecting.inputs_of(self._folder, self._setup, self._cwd)
        changed = protecting.changed(dict(one.inputs), now)
        if changed:
            return _named(Reason.VERIFIER_CHANGED, one.tick, changed)
        if not self._looks:
            return None
        before = self._base(one)
        if before is None:
            base = self._folder.base(one.tick)
            return _named(Reason.VERIFIER_CHANGED, one.tick, [str(base.relative_to(self._folder.project))])
        if not self._scope:
            return None
        try:
            touched = snapshots.touched(self._cwd, before, snapshots.take(self._cwd))
        except InvalidRequest as error:  # a repository that an agent has broken, or flooded
            return Halt(Reason.SCOPE_VIOLATION, f"what was touched cannot be told: {error.detail}", one.tick)
        names = outside(touched, self._scope)
        return _named(Reason.SCOPE_VIOLATION, one.tick, names) if names else None

    def changed(self, one: Round) -> bool | None:
        """Whether the repository is another one than before the round; None where nobody looks."""
        before = self._base(one) if self._looks else None
        with suppress(InvalidRequest):
            return None if before is None else snapshots.take(self._cwd) != before
        return None

    def end(self, tick: int) -> None:
        clear(self._folder.base(tick))

    def _base(self, one: Round) -> Snapshot | None:
        """What the repository was like before the round; None if that was tampered with, or lost."""
        if self._before is None:
            try:
                text = read_text(self._folder.base(one.tick), BASE_BYTES_MAX)
                self._before = snapshots.read_snapshot(text) if digest_of(text) == one.base else None
            except (OSError, ValueError, TypeError):
                return None
        return self._before


def _named(reason: Reason, tick: int, names: list[str]) -> Halt:
    files = tuple(names[:FILES_NAMED_MAX])
    more = f" and {len(names) - len(files)} more" if len(names) > len(files) else ""
    return Halt(reason, ", ".join(files) + more, tick, files)
