"""The two files beside loop.json, for people and scripts: written anew from the state, never the other way round."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from ledger.daemons.loop.folders import LoopFolder, write_whole
from projections.loop_state import Loop
from projections.loop_views import log_lines, state_item


def write_views(folder: LoopFolder, loop: Loop) -> None:
    """Leaves a file alone that says the same already. Raises StorageError."""
    state = json.dumps(state_item(loop), sort_keys=True, indent=2, ensure_ascii=False)
    _write(folder.state_view, state + "\n")
    _write(folder.log_view, "".join(f"{line}\n" for line in log_lines(loop)))


def _write(path: Path, text: str) -> None:
    data = text.encode(errors="replace")
    with suppress(OSError):
        if not path.is_symlink() and path.is_file() and path.read_bytes() == data:
            return
    write_whole(path, data.decode())
