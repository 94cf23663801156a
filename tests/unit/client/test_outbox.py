from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.client.outbox import NEXT_SEQ, Backlog, Outbox, OutboxFull, default_path
from ledger.errors import InvalidField, NotFound, SessionElsewhere, StoreMismatch
from ledger.events.decode import new_event
from ledger.events.model import NewEvent

ROOM = 8 * 2**20
DAY_NS = 24 * 3600 * 10**9


def note(n: int = 0, seq: int = NEXT_SEQ, size: int = 0) -> NewEvent:
    return new_event(seq, "note", "model", {"n": n, "fill": "x" * size})


class Clock:
    now = 1_800_000_000 * 10**9

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outbox(tmp_path: Path, clock: Clock) -> Iterator[Outbox]:
    outbox = Outbox(tmp_path / "outbox.db", bytes_max=ROOM, clock=clock)
    outbox.open_session("s", {"task": {"title": "T"}})
    yield outbox
    outbox.close()


@pytest.fixture
def backlog(outbox: Outbox, clock: Clock) -> Iterator[Backlog]:
    backlog = Backlog(outbox.path, bytes_max=ROOM, clock=clock)
    yield backlog
    backlog.close()


def send_all(backlog: Backlog) -> list[int]:
    """Acknowledges all that waits, as a sender would; the seqs."""
    sent = []
    for session in backlog.waiting():
        backlog.opening_acknowledged(session)
        for event in backlog.batch(session, bytes_max=10**9, events_max=10**6):
            sent.append(event.seq)
            backlog.acknowledged(session, event.seq)
        backlog.end_acknowledged(session)
    return sent


def test_seqs_count_up_from_zero_over_calls_batches_and_restarts(outbox: Outbox) -> None:
    assert outbox.add("s", [note()]).seqs == [0]
    assert outbox.add("s", [note(), note()]).seqs == [1, 2]
    again = Outbox(outbox.path)
    assert again.add("s", [note()]).seqs == [3]
    again.close()
    assert outbox.add("s", [note()]).seqs == [4]


def test_what_was_emitted_is_read_back_byte_for_byte_and_in_order(outbox: Outbox, backlog: Backlog) -> None:
    events = [note(n) for n in range(5)]
    outbox.add("s", events)
    [session] = backlog.waiting()
    batch = backlog.batch(session, bytes_max=10**6, events_max=100)
    assert [event.payload for event in batch] == [event.payload for event in events]
    assert [event.seq for event in batch] == [0, 1, 2, 3, 4]


def test_a_batch_is_bounded_by_bytes_and_by_events_but_never_empty(outbox: Outbox, backlog: Backlog) -> None:
    outbox.add("s", [note(size=1000) for _ in range(10)])
    [session] = backlog.waiting()
    assert len(backlog.batch(session, bytes_max=3500, events_max=100)) == 3
    assert len(backlog.batch(session, bytes_max=10**6, events_max=7)) == 7
    assert len(backlog.batch(session, bytes_max=1, events_max=100)) == 1


def test_only_the_owner_can_read_the_file(outbox: Outbox) -> None:
    for path in outbox.path.parent.glob("outbox.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_session_has_to_be_opened_first(outbox: Outbox) -> None:
    with pytest.raises(NotFound, match="not in this outbox"):
        outbox.add("other", [note()])
    with pytest.raises(InvalidField):
        outbox.open_session("@task/1", {})


def test_opening_again_changes_nothing_and_under_another_task_is_refused(outbox: Outbox) -> None:
    assert outbox.open_session("t", {"task_id": "1"}) is True
    outbox.add("t", [note()])
    assert outbox.open_session("t", {"task_id": 1}) is False
    assert outbox.add("t", [note()]).seqs == [1]
    with pytest.raises(SessionElsewhere):
        outbox.open_session("t", {"task_id": "2"})


def test_the_first_end_counts(outbox: Outbox, backlog: Backlog) -> None:
    first, second = (new_event(NEXT_SEQ, "result", "", {"state": state}) for state in ("failed", "done"))
    assert outbox.end("s", first) is True
    assert outbox.end("s", second) is False
    assert outbox.last_state("s") == "failed"
    [session] = backlog.waiting()
    kept = backlog.end(session)
    assert session.ended
    assert kept is not None
    assert kept.payload == first.payload


def test_a_seq_of_ones_own_is_a_duplicate_or_a_conflict_where_it_is_taken(outbox: Outbox, backlog: Backlog) -> None:
    added = outbox.add("s", [note(1, seq=5), note(1, seq=5), note(2, seq=5), note(9), note(3, seq=2)])
    assert (added.seqs, added.duplicates, added.conflicts) == ([5, 5, 5, 6, 2], 1, 1)
    [letter] = backlog.dead_letters()
    assert (letter.code, letter.event.seq, letter.event.payload) == ("conflict", 5, note(2).payload)
    assert send_all(backlog) == [2, 5, 6]


def test_what_is_put_below_an_unanswered_batch_is_not_skipped_by_its_acknowledgement(
    outbox: Outbox, backlog: Backlog
) -> None:
    outbox.add("s", [note(seq=10), note(seq=12)])
    [session] = backlog.waiting()
    batch = backlog.batch(session, bytes_max=10**6, events_max=100)
    outbox.add("s", [note(seq=11)])
    backlog.acknowledged(session, batch[-1].seq)
    assert 11 in send_all(backlog)


def test_threads_that_share_an_outbox_get_seqs_of_their_own(outbox: Outbox) -> None:
    seqs: list[int] = []
    threads = [
        threading.Thread(target=lambda: seqs.extend(outbox.add("s", [note()]).seqs[0] for _ in range(20)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seqs) == list(range(80))


def fill(outbox: Outbox) -> int:
    """Emits until no more fits; how many did."""
    for n in range(1000):
        try:
            outbox.add("s", [note(n, size=100_000)])
        except OutboxFull:
            return n
    raise AssertionError("it never filled up")


def test_a_full_outbox_refuses_what_is_new_and_keeps_all_that_waits(outbox: Outbox, backlog: Backlog) -> None:
    kept = fill(outbox)
    assert 10 < kept < ROOM / 100_000
    assert send_all(backlog) == list(range(kept))


def test_in_a_full_outbox_the_oldest_acknowledged_events_make_room(outbox: Outbox, backlog: Backlog) -> None:
    kept = fill(outbox)
    send_all(backlog)
    assert outbox.add("s", [note(size=100_000)]).seqs == [kept]
    assert send_all(backlog) == [kept]
    assert outbox.path.stat().st_size <= ROOM


def test_a_sender_can_mark_and_bury_where_emitters_find_the_file_full(outbox: Outbox, backlog: Backlog) -> None:
    fill(outbox)
    [session] = backlog.waiting()
    [event] = backlog.batch(session, bytes_max=1, events_max=1)
    backlog.bury(session, [(event, "payload_too_large", "too large")])
    backlog.acknowledged(session, event.seq)
    assert len(backlog.dead_letters()) == 1


def test_what_was_acknowledged_long_ago_is_dropped_and_an_ended_session_with_it(
    outbox: Outbox, backlog: Backlog, clock: Clock
) -> None:
    outbox.open_session("ended", {"task": {"title": "E"}})
    for session_id in ("s", "ended"):
        outbox.add(session_id, [note()])
    outbox.end("ended", new_event(NEXT_SEQ, "result", "", {"state": "done"}))
    send_all(backlog)
    clock.now += 6 * DAY_NS
    backlog.drop_old()
    assert backlog.standing().kept == 3
    clock.now += 2 * DAY_NS
    outbox.add("s", [note()])
    backlog.drop_old()
    standing = backlog.standing()
    assert (standing.kept, standing.waiting, standing.sessions) == (0, 1, 1)
    assert outbox.add("s", [note()]).seqs == [2]
    assert not outbox.has_session("ended")


def test_a_session_without_an_end_goes_on_after_weeks_and_is_forgotten_after_months(
    outbox: Outbox, backlog: Backlog, clock: Clock
) -> None:
    outbox.add("s", [note()])
    send_all(backlog)
    clock.now += 80 * DAY_NS
    backlog.drop_old()
    assert outbox.add("s", [note()]).seqs == [1]
    clock.now += 100 * DAY_NS
    backlog.drop_old()
    assert backlog.standing().waiting == 1  # whatever waits is never dropped
    send_all(backlog)
    backlog.drop_old()
    assert not outbox.has_session("s")


def test_the_standing_says_what_waits_and_since_when(outbox: Outbox, backlog: Backlog, clock: Clock) -> None:
    began = clock.now
    outbox.add("s", [note(), note()])
    clock.now += DAY_NS
    outbox.end("s", new_event(NEXT_SEQ, "result", "", {"state": "done"}))
    standing = backlog.standing()
    assert (standing.waiting, standing.oldest, standing.kept, standing.dead_letters) == (3, began, 0, 0)
    assert not backlog.is_drained("s")
    assert backlog.is_drained("another")
    send_all(backlog)
    assert backlog.is_drained()


def test_dead_letters_come_back_under_new_seqs(outbox: Outbox, backlog: Backlog) -> None:
    outbox.add("s", [note(n) for n in range(3)])
    [session] = backlog.waiting()
    buried = backlog.batch(session, bytes_max=10**6, events_max=1)[0]
    backlog.bury(session, [(buried, "conflict", "taken")])
    assert outbox.revive_dead_letters() == 1
    [session] = backlog.waiting()
    seqs_and_payloads = {e.seq: e.payload for e in backlog.batch(session, bytes_max=10**6, events_max=9)}
    assert list(seqs_and_payloads) == [1, 2, 3]
    assert seqs_and_payloads[3] == buried.payload
    assert backlog.dead_letters() == []


def test_an_ask_whose_answer_was_lost_is_asked_again_under_the_same_id(outbox: Outbox, clock: Clock) -> None:
    assert outbox.begin_ask("one") == "one"
    assert outbox.begin_ask("two") == "two"  # while the first may still be under way
    outbox.end_ask("one", answered=False)
    assert outbox.begin_ask("three") == "one"
    outbox.adopt("one", "12")
    outbox.end_ask("two", answered=True)
    assert outbox.begin_ask("four") == "four"
    clock.now += DAY_NS  # its process was killed
    assert outbox.begin_ask("five") == "four"


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to look at it", b"SQLite format 3\0" + b"\0" * 84]
)
def test_a_file_that_is_no_outbox_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(StoreMismatch, match="no outbox"):
        Outbox(path)
    assert path.read_bytes() == content


def test_a_ledger_of_a_server_is_no_outbox(tmp_path: Path, sqlite_ledger: Callable[[Path], None]) -> None:
    sqlite_ledger(tmp_path / "ledger.db")
    with pytest.raises(StoreMismatch, match="no outbox"):
        Outbox(tmp_path / "ledger.db")


def test_the_outbox_is_found_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEDGERD_OUTBOX", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "ledgerd" / "outbox.db"
    monkeypatch.setenv("LEDGERD_OUTBOX", "elsewhere.db")
    assert default_path() == Path("elsewhere.db")
