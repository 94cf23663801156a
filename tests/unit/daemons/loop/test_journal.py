from __future__ import annotations

import pytest

from ledger.client.saddle import Saddle
from ledger.daemons.loop import requests
from ledger.daemons.loop.config import LoopConfig
from ledger.daemons.loop.folders import LoopFolder
from ledger.daemons.loop.journal import Journal, New, open_journal
from ledger.daemons.loop.requests import Request
from ledger.errors import StorageError
from ledger.events.content import payload_object
from projections.loop_state import Loop
from tests.unit.daemons.loop.bench import Bench


def opened(bench: Bench, saddle: object, name: str = "l") -> Journal:
    journal = open_journal(saddle, LoopFolder(bench.project, name), LoopConfig(goal_id="g"))  # type: ignore[arg-type]
    assert journal is not None
    return journal


def test_a_loop_has_one_session_for_ever_on_a_task_of_its_own(bench: Bench) -> None:
    with bench.saddle() as saddle:
        first = opened(bench, saddle)
    with bench.saddle() as saddle:
        again = opened(bench, saddle)
        opening = payload_object(again.session.kept()[0].payload)
    assert again.session.id == first.session.id
    assert opening["task"] == {"id": first.session.id, "title": "Loop l", "goal_id": "g"}
    assert opening["agent"] == "ledgerd-loop"


def test_loops_with_names_alike_are_told_apart(bench: Bench) -> None:
    with bench.saddle() as saddle:
        ids = [opened(bench, saddle, name).session.id for name in ("a", "a-0a1b2c3d", "a.b", "axb")]
        assert [opened(bench, saddle, name).session.id for name in ("a", "a-0a1b2c3d", "a.b", "axb")] == ids
        assert len(set(ids)) == 4


def test_secrets_that_an_agent_said_are_neither_in_the_journal_nor_in_its_reply(
    bench: Bench,
) -> None:
    secret = "ghp_" + "a1B2" * 9
    bench.configure(description=f"password={secret}", roles={"verify": {"prompt": "verify.md"}}).task()
    bench.agent("verify", f'echo "{{\\"pass\\": false, \\"reasons\\": [\\"saw {secret}\\"]}}"').tick()
    bench.agent("verify", f"echo 'Authorization: Bearer {secret}' >&2; exit 1").tick()
    assert "[REDACTED]" in bench.folder.reply(1, "verify").read_text()
    kept = bench.events()
    assert [kind for kind, _ in kept[-2:]] == ["loop.halted", "result"]
    assert secret not in repr(kept)
    assert repr(kept).count("[REDACTED]") == 6  # config, twice a verdict, a problem, a halt and its result


def test_one_who_was_overtaken_decides_again(bench: Bench) -> None:
    with bench.saddle() as one, bench.saddle() as other:
        slow, fast = opened(bench, one), opened(bench, other)
        asked: list[str | None] = []

        def decide(loop: Loop) -> list[New]:
            asked.append(loop.current_task)
            if len(asked) == 1:
                fast.add(lambda _: [("loop.task_set", {"task": "fast"})])
            return [("loop.task_set", {"task": "slow"})]

        assert slow.add(decide)
        assert asked == [None, "fast"]
        assert fast.read().current_task == "slow"


def test_nothing_is_appended_where_nothing_is_decided(bench: Bench) -> None:
    with bench.saddle() as saddle:
        journal = opened(bench, saddle)
        assert not journal.add(lambda _: [])
        assert [event.seq for event in journal.session.kept()] == [-1]


def test_a_stream_that_never_stands_still_is_given_up_on(bench: Bench) -> None:
    with bench.saddle() as saddle:
        journal = opened(bench, saddle)

        def decide(_: Loop) -> list[New]:
            journal.session.emit("comment", {"body": "again"})
            return [("loop.task_set", {"task": "t"})]

        with pytest.raises(StorageError, match="moves faster"):
            journal.add(decide)


def test_what_the_owner_asked_for_is_done_once_each_in_order(bench: Bench) -> None:
    with bench.saddle() as saddle:
        journal = opened(bench, saddle)
        asked = [
            Request(3, "halt", "look at this", "olga"),
            Request(5, "resume"),
            Request(6, "dance"),
            Request(8, "halt"),
        ]
        for _ in range(2):
            requests.take(journal, asked)
        loop = journal.read()
        assert [halt.detail for halt in loop.halts.values()] == ["look at this", "The owner halted it on its page."]
        assert (len(loop.resumes), set(loop.taken_requests)) == (1, {3, 5, 8})
        assert loop.halt is not None
        assert journal.session.last_state() == "suspended"


@pytest.mark.parametrize("token", ["", "a-token"])
def test_a_server_that_is_away_or_not_ours_asks_for_nothing(bench: Bench, token: str) -> None:
    with Saddle("http://127.0.0.1:9", token, outbox=bench.folder.outbox, drain=False) as saddle:
        assert requests.asked(saddle, "s", -1) == []
