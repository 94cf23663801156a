from __future__ import annotations

from pathlib import Path

import pytest

from ledger.hooks import troubles


def test_troubles_are_read_in_the_order_in_which_they_were_noted(tmp_path: Path) -> None:
    outbox = str(tmp_path / "outbox.db")
    assert troubles.read(outbox) == []
    troubles.note(outbox, "codex: one\nline")
    troubles.note(outbox, "gemini: two")
    assert [line.partition(" ")[2] for line in troubles.read(outbox)] == ["codex: one line", "gemini: two"]


def test_the_file_stays_small_and_keeps_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(troubles, "BYTES_MAX", 1000)
    outbox = str(tmp_path / "outbox.db")
    for n in range(200):
        troubles.note(outbox, f"trouble {n}")
    lines = troubles.read(outbox)
    assert Path(troubles.path_of(outbox)).stat().st_size <= 1000
    assert lines[-1].endswith("trouble 199")
    assert len(lines) > 5
    assert all("trouble" in line for line in lines)
