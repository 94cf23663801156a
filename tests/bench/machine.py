"""What the numbers depend on besides the code."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from pathlib import Path
from statistics import median

import msgspec

_SYNCS = 50
_PAGE_BYTES = 4096


class Machine(msgspec.Struct, frozen=True):
    """`sync_ms` is the median time of a durable write of 4 KiB; `load` the runnable processes of the last minute
    before the bench began: near or above `cores`, other work has disturbed it."""

    cores: int
    load: float
    sync_ms: float
    python: str
    sqlite: str


def machine(folder: Path) -> Machine:
    return Machine(
        os.cpu_count() or 1, os.getloadavg()[0], _sync_ms(folder), platform.python_version(), sqlite3.sqlite_version
    )


def _sync_ms(folder: Path) -> float:
    times = []
    with (folder / "sync").open("wb", buffering=0) as file:
        for _ in range(_SYNCS):
            began = time.perf_counter()
            file.write(bytes(_PAGE_BYTES))
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return median(times) * 1e3
