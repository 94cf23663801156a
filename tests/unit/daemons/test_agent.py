from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest

from ledger.client import Saddle
from ledger.client.outbox import Added
from ledger.client.redaction import Redactor
from ledger.client.saddle import Session
from ledger.daemons.agent import LINE_BYTES_MAX, Agent, Ended, environment_of, push_result
from ledger.errors import StorageFull
from ledger.events.content import payload_object
from ledger.events.model import NewEvent


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Saddle("http://127.0.0.1:9", "none", outbox=tmp_path / "outbox.db", drain=False) as saddle:
        yield saddle.open_session("s", task={"title": "T"})


def emitted(session: Session) -> list[tuple[str, dict[str, Any]]]:
    with session._saddle.outbox._file.reading() as db:
        rows = db.execute("SELECT kind, payload FROM events WHERE seq >= 0 ORDER BY seq").fetchall()
    return [(kind, payload_object(payload)) for kind, payload in rows]


def run(session: Session, script: str, **more: Any) -> Ended:
    return Agent(session, ["/bin/sh", "-c", script], environment=os.environ, **more).run("the script")


def test_a_long_line_becomes_several_events(session: Session) -> None:
    run(session, f"head -c {2 * LINE_BYTES_MAX + 10} /dev/zero | tr '\\0' x")
    texts = [payload["text"] for kind, payload in emitted(session) if kind == "output"]
    assert [len(text) for text in texts] == [LINE_BYTES_MAX, LINE_BYTES_MAX, 10]


def test_what_is_kept_and_told_is_without_secrets_and_what_passes_through_is_as_it_came(
    session: Session, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = "ghp_" + "a1B2" * 9
    redactor = Redactor()
    ended = run(session, f"echo token {secret}; exit 3", redactor=redactor)
    push_result(session, f"deploy --token {secret}", ended, redactor)
    assert capfd.readouterr().out == f"token {secret}\n"
    assert secret not in str(emitted(session))
    assert {"stream": "stdout", "text": "token [REDACTED]"} in [payload for _, payload in emitted(session)]


def test_what_it_reads_is_given_to_it_even_if_it_reads_nothing(session: Session) -> None:
    assert run(session, "cat", input=b"an order\n").last_words == "an order"
    assert run(session, "exit 0", input=b"x" * 1_000_000).exit_code == 0


def test_an_outbox_that_fails_stops_nothing_and_the_loss_is_told_afterwards(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = session.add, [StorageFull("no room")] * 2

    def add(events: list[NewEvent]) -> Added:
        if failures:
            raise failures.pop()
        return real(events)

    monkeypatch.setattr(session, "add", add)
    ended = run(session, "echo lost")
    assert ended.exit_code == 0
    kinds = [kind for kind, _ in emitted(session)]
    assert kinds == ["output.lost", "tool_result"]
    assert emitted(session)[0][1]["lines"] == 2


def test_what_was_lost_of_an_output_that_says_nothing_more_is_told_in_the_end(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = session.add

    def add(events: list[NewEvent]) -> Added:
        if any(b"stderr" in event.payload and event.kind == "output" for event in events):
            raise StorageFull("no room")
        return real(events)

    monkeypatch.setattr(session, "add", add)
    run(session, "echo lost >&2")
    assert emitted(session)[-1] == ("output.lost", {"stream": "stderr", "lines": 1})


def test_a_signal_that_comes_before_the_command_has_started_is_not_lost(session: Session) -> None:
    agent = Agent(session, ["sleep", "60"], environment=os.environ)
    agent.signal(SIGTERM)
    ended = agent.run("sleep")
    assert (ended.exit_code, ended.stopped_by) == (128 + SIGTERM, SIGTERM)


@pytest.mark.parametrize(
    ("ended", "state", "summary"),
    [
        (Ended(0, "bye", None), "done", "make ended well"),
        (Ended(0, "bye", SIGTERM), "done", "make ended well"),
        (Ended(2, "no rule", None), "failed", "make ended with exit code 2: no rule"),
        (Ended(2, " ", None), "failed", "make ended with exit code 2"),
        (Ended(137, "", None), "failed", "make was ended by SIGKILL"),
        (Ended(143, "", SIGTERM), "cancelled", "make was stopped by SIGTERM"),
    ],
)
def test_the_result_follows_from_how_the_command_ended(
    session: Session, ended: Ended, state: str, summary: str
) -> None:
    push_result(session, "make", ended)
    with session._saddle.outbox._file.reading() as db:
        [(payload,)] = db.execute("SELECT payload FROM events WHERE kind = 'result'").fetchall()
    assert payload_object(payload) == {"state": state, "summary": summary}


def test_what_the_command_said_itself_stays(session: Session) -> None:
    session.result("suspended", "until Friday")
    push_result(session, "make", Ended(0, "", None))
    assert session.last_state() == "suspended"
    push_result(session, "make", Ended(1, "", None))
    assert session.last_state() == "failed"


def test_the_command_is_told_its_session_and_outbox(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGERD_SESSION", "an outer one")
    environment = environment_of(session, Path("outbox.db"), LEDGERD_GOAL_ID=None)
    assert (environment["LEDGERD_SESSION"], environment["LEDGERD_OUTBOX"]) == ("s", "outbox.db")
    assert "LEDGERD_GOAL_ID" not in environment
    assert environment["PATH"] == os.environ["PATH"]


def test_an_outbox_that_hangs_holds_up_nothing_and_counts_what_had_no_room(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The outbox hangs until the command has written 40 MB and ended."""
    real, at_the_end = session.add, tmp_path / "ended"
    watcher = threading.Event()

    def add(events: list[NewEvent]) -> Added:
        if any(event.kind == "output" for event in events):
            assert watcher.wait(60)
        return real(events)

    def let_go() -> None:
        while not at_the_end.exists() and not watcher.wait(0.01):
            pass
        watcher.set()

    monkeypatch.setattr(session, "add", add)
    letting = threading.Thread(target=let_go)
    letting.start()
    try:
        line = "x" * 999
        ended = run(session, f"yes {line} | head -c 40000000 >&2; touch {at_the_end}")
    finally:
        watcher.set()
        letting.join()
    assert ended.exit_code == 0
    told = emitted(session)
    kept = sum(kind == "output" for kind, _ in told)
    lost = sum(payload["lines"] for kind, payload in told if kind == "output.lost")
    assert lost > 0
    assert kept + lost == pytest.approx(40_000, abs=2)
