from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ledger.client.outbox import default_path
from ledger.hooks import spool
from ledger.hooks.carrying import Tray

ROOT = Path(__file__).parents[3]


@pytest.fixture
def outbox(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "outbox.db")


def test_what_was_put_is_read_once_in_order(outbox: str) -> None:
    before = time.time_ns() // spool.TICK_NS
    spool.put(outbox, "codex", "s 1", b'{"a":\n 1}\n')
    spool.put(outbox, "gemini", "", "{“b”}".encode())
    tray = Tray(outbox)
    records = list(tray.records())
    assert [(one.agent, one.within, one.body.strip()) for one in records] == [
        ("codex", "s 1", b'{"a":  1}'),
        ("gemini", "", "{“b”}".encode()),
    ]
    assert before <= records[0].tick < records[1].tick
    assert list(tray.records()) == []


def test_only_its_owner_may_read_it(outbox: str) -> None:
    spool.put(outbox, "codex", "", b"{}")
    assert stat.S_IMODE(os.stat(spool.spool_path(outbox)).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(outbox)).st_mode) == 0o700


def test_a_record_cut_short_spoils_no_other(outbox: str) -> None:
    spool.put(outbox, "codex", "", b"{}")
    with open(spool.spool_path(outbox), "ab") as file:
        file.write(b"\ncodex\t17")
    spool.put(outbox, "gemini", "", b"{}")
    assert [one.agent for one in Tray(outbox).records()] == ["codex", "gemini"]


def test_records_of_many_at_once_are_whole_and_have_ticks_of_their_own(outbox: str) -> None:
    code = f"from ledger.hooks import spool\nfor n in range(25): spool.put({outbox!r}, 'codex', '', b'x' * 9000)"
    many = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) for _ in range(4)]
    assert [one.wait(60) for one in many] == [0] * 4
    records = list(Tray(outbox).records())
    ticks = [one.tick for one in records]
    assert {one.body.strip() for one in records} == {b"x" * 9000}
    assert len(records) == 100
    assert ticks == sorted(set(ticks))


def test_a_record_that_was_not_told_is_read_again(outbox: str) -> None:
    for n in range(3):
        spool.put(outbox, "codex", str(n), b"{}")
    tray = Tray(outbox)
    reading = tray.records()
    assert [next(reading).within, next(reading).within] == ["0", "1"]
    reading.close()
    assert [one.within for one in tray.records()] == ["1", "2"]


def test_it_is_emptied_only_when_all_of_it_was_read(outbox: str) -> None:
    spool.put(outbox, "codex", "", b"{}")
    tray = Tray(outbox)
    list(tray.records())
    spool.put(outbox, "gemini", "", b"{}")
    tray.clear()
    assert [one.agent for one in tray.records()] == ["gemini"]
    tray.clear()
    assert os.path.getsize(spool.spool_path(outbox)) == 0
    spool.put(outbox, "codex", "", b"{}")
    assert [one.agent for one in tray.records()] == ["codex"]


def test_a_carrier_leaves_only_an_empty_spool(outbox: str) -> None:
    spool.put(outbox, "codex", "", b"{}")
    tray = Tray(outbox)
    place = os.open(spool.carrier_path(outbox), os.O_RDWR | os.O_CREAT)
    assert not tray.leave(place)
    list(tray.records())
    assert tray.leave(place)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(place)


def test_a_full_spool_takes_no_more_and_stays_as_it_is(outbox: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "BYTES_MAX", 100)
    spool.put(outbox, "codex", "", b"x" * 90)
    with pytest.raises(spool.SpoolError, match="is full"):
        spool.put(outbox, "codex", "", b"x" * 90)
    assert len(list(Tray(outbox).records())) == 1


def test_one_who_holds_the_lock_for_ever_is_not_waited_for(outbox: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "LOCK_S_MAX", 0.01)
    os.makedirs(os.path.dirname(outbox))
    with spool.Lock(outbox), pytest.raises(spool.SpoolError, match="was held"):
        spool.put(outbox, "codex", "", b"{}")


def test_it_lies_beside_the_outbox_that_the_other_commands_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LEDGERD_OUTBOX", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert spool.default_outbox() == str(default_path())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert spool.default_outbox() == str(default_path())
    monkeypatch.setenv("LEDGERD_OUTBOX", str(tmp_path / "mine.db"))
    assert spool.default_outbox() == str(default_path())
