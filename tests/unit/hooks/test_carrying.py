"""The carrier: what it does with records that are bad, with an outbox that fails, and when it ends."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.client.outbox import OutboxFull
from ledger.client.saddle import Saddle
from ledger.hooks import carrying, spool, troubles
from ledger.hooks.carrying import Carrier
from ledger.hooks.telling import Teller
from tests.unit.hooks.hooked import S, claude


@pytest.fixture
def saddle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Saddle]:
    """What is carried stays in the outbox. A carrier ends at once where nothing comes, drained or not."""
    for name in ("LINGER_S", "PATIENCE_S", "POLL_S", "FAILED_POLL_S"):
        monkeypatch.setattr(carrying, name, 0)
    with Saddle("http://127.0.0.1:9", "token", outbox=tmp_path / "outbox.db", drain=False) as saddle:
        yield saddle


@pytest.fixture
def carry(saddle: Saddle) -> Callable[[], int]:
    """Runs a carrier to its end; the file of its place, which it must have closed."""

    def carry() -> int:
        place = os.open(spool.carrier_path(str(saddle.outbox.path)), os.O_RDWR | os.O_CREAT)
        fcntl.flock(place, fcntl.LOCK_EX)
        Carrier(saddle, place).run()
        return place

    return carry


def put(saddle: Saddle, *hooks: dict[str, Any] | bytes) -> None:
    for hook in hooks:
        body = hook if isinstance(hook, bytes) else json.dumps(hook).encode()
        spool.put(str(saddle.outbox.path), "claude-code", "", body)


def test_it_tells_all_that_lies_there_empties_the_spool_and_leaves(saddle: Saddle, carry: Callable[[], int]) -> None:
    put(saddle, claude("UserPromptSubmit", prompt="Fix it"), claude("Stop"))
    place = carry()
    assert saddle.outbox.has_session(f"{S}.hook")
    assert os.path.getsize(spool.spool_path(str(saddle.outbox.path))) == 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(place)


def test_a_bad_record_is_noted_and_holds_up_no_other(saddle: Saddle, carry: Callable[[], int]) -> None:
    strange = claude("PostToolUse", tool_name={}, tool_input=7, session_id="aaaa-2\n")
    put(saddle, b"no json", strange, claude("Stop"))
    carry()
    assert saddle.outbox.has_session(f"{S}.hook")
    assert [line.split()[1] for line in troubles.read(str(saddle.outbox.path))] == ["claude-code:", "claude-code:"]


def test_what_the_outbox_would_not_take_is_told_again(
    saddle: Saddle, carry: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tell, failures = Teller.tell, iter([OutboxFull("it is full")])

    def failing_once(teller: Teller, record: Any) -> None:
        for failure in failures:
            raise failure
        tell(teller, record)

    monkeypatch.setattr(Teller, "tell", failing_once)
    put(saddle, claude("Stop"))
    carry()
    assert saddle.outbox.has_session(f"{S}.hook")
    assert "it is full" in troubles.read(str(saddle.outbox.path))[0]


def test_a_second_carrier_finds_the_place_taken_and_goes(saddle: Saddle) -> None:
    put(saddle, claude("Stop"))
    outbox = str(saddle.outbox.path)
    with open(spool.carrier_path(outbox), "w") as place:
        fcntl.flock(place, fcntl.LOCK_EX)
        carrying.main(outbox)
    assert not saddle.outbox.has_session(f"{S}.hook")
