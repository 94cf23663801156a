from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.daemons.loop.bench import Bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for name in ("LEDGERD_LOOP_ROLE", "LEDGERD_SESSION", "LEDGERD_OUTBOX"):
        monkeypatch.delenv(name, raising=False)
    return Bench(tmp_path)
