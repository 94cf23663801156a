"""Conditional appends over the wire: a decision is stored by one of those who decide at once, whole, and once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from ledger.client.api import Api, ApiError
from tests.live.serving import Server, assert_problem, event, events_of, fresh, opened, push, result, token_of

RUNNERS = 8


def decide(client: httpx.Client, session_id: str, expected_seq: int, *events: Any, **fields: Any) -> httpx.Response:
    body = {"session_id": session_id, "events": list(events), "expected_seq": expected_seq, **fields}
    return client.post("/api/saddle/chunks", json=body)


def test_a_chunk_is_stored_where_the_session_stands_as_expected(saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    assert push(saddle, session_id, [event(0), event(1)], expected_seq=-1)["high_seq"] == 1
    assert push(saddle, session_id, [event(2)], expected_seq=1)["stored"] == 1
    assert push(saddle, session_id, [], expected_seq=2)["stored"] == 0
    result(saddle, session_id, "done")  # lands in a slot of its own, and moves nobody
    assert push(saddle, session_id, [event(5)], expected_seq=2)["high_seq"] == 5


def test_a_session_that_has_moved_refuses_the_whole_chunk_and_says_where_it_stands(
    saddle: httpx.Client, reader: httpx.Client
) -> None:
    session_id, _ = opened(saddle)
    problem = assert_problem(decide(saddle, session_id, 4, event(5)), 409, "stream_moved")
    assert problem["last_seq"] == -1
    push(saddle, session_id, [event(0), event(3)])
    for expected, events in ((-1, [event(4)]), (0, [event(1), event(4)]), (7, []), (0, [])):
        problem = assert_problem(decide(saddle, session_id, expected, *events), 409, "stream_moved")
        assert problem["last_seq"] == 3
    assert [one["seq"] for one in events_of(reader, session_id)] == [0, 3]


def test_a_session_may_be_opened_by_the_chunk_that_expects_nothing_in_it(saddle: httpx.Client) -> None:
    session_id, opening = fresh("session"), {"task": {"title": "decided with its first events"}}
    assert_problem(decide(saddle, session_id, 0, event(1), open=opening), 409, "stream_moved")
    assert_problem(saddle.post("/api/saddle/chunks", json={"session_id": session_id, "events": []}), 404)
    assert decide(saddle, session_id, -1, event(0), open=opening).json()["stored"] == 1
    assert decide(saddle, session_id, -1, event(0), open=opening).json()["duplicates"] == 1
    assert_problem(decide(saddle, session_id, -1, event(0, payload=1), open=opening), 409, "stream_moved")


def test_a_chunk_whose_answer_was_lost_counts_as_duplicates_when_it_comes_again(
    saddle: httpx.Client, reader: httpx.Client
) -> None:
    session_id, _ = opened(saddle)
    chunk = [event(2), event(5, payload={"a": 1, "b": 2}), event(9)]
    assert push(saddle, session_id, chunk, expected_seq=-1)["stored"] == 3
    push(saddle, session_id, [event(12)])
    same = [event(2), event(5, payload={"b": 2, "a": 1}), event(9)]
    receipt = push(saddle, session_id, same, expected_seq=-1)
    assert (receipt["stored"], receipt["duplicates"], receipt["conflicts"], receipt["high_seq"]) == (0, 3, [], 12)
    for other in ([event(2), event(5, payload=0)], [event(2), event(3)], [event(2), event(9), event(10)]):
        assert_problem(decide(saddle, session_id, -1, *other), 409, "stream_moved")
    assert [one["seq"] for one in events_of(reader, session_id)] == [2, 5, 9, 12]


def test_one_event_that_cannot_be_stored_costs_a_conditional_chunk_all_of_it(
    saddle: httpx.Client, reader: httpx.Client
) -> None:
    session_id, _ = opened(saddle)
    problem = assert_problem(decide(saddle, session_id, -1, event(0), event(1, kind="")), 422, "invalid_kind")
    assert problem["field"] == "events[1]"
    assert_problem(decide(saddle, session_id, -2, event(0)), 422, "invalid_field")
    assert_problem(decide(saddle, session_id, 3, event(3)), 422, "invalid_seq")
    assert events_of(reader, session_id) == []


def test_another_saddles_session_looks_unknown_wherever_it_stands(
    saddle: httpx.Client, other_saddle: httpx.Client
) -> None:
    session_id, _ = opened(saddle)
    push(saddle, session_id, [event(0)])
    for expected in (-1, 0):
        assert_problem(decide(other_saddle, session_id, expected, event(1)), 404, "unknown_session")


def test_of_runners_that_decide_at_once_one_wins_and_fails_nobody_else(
    server: Server, saddle: httpx.Client, reader: httpx.Client
) -> None:
    session_id, _ = opened(saddle)
    other_id, _ = opened(saddle)
    token = token_of(saddle)

    def run(number: int) -> list[int]:
        """What this runner won."""
        with Api(server.url, token) as api:
            won = [seq for seq in range(10) if decided(api, number, seq)]
            receipts = [api.push(other_id, [event(100 * number + seq)]) for seq in range(10)]
        assert sum(receipt["stored"] for receipt in receipts) == 10
        return won

    def decided(api: Api, number: int, seq: int) -> bool:
        try:
            return bool(
                api.push(session_id, [event(seq, payload={"runner": number})], expected_seq=seq - 1)["stored"]
            )
        except ApiError as error:
            if error.code != "stream_moved":
                raise
            return False

    with ThreadPoolExecutor(RUNNERS) as pool:
        outcomes = list(pool.map(run, range(RUNNERS)))
    stored = events_of(reader, session_id)
    winners = {one["seq"]: one["payload"]["runner"] for one in stored}
    assert [one["seq"] for one in stored] == list(range(len(stored)))
    assert {seq: number for number, won in enumerate(outcomes) for seq in won} == winners
    assert len(events_of(reader, other_id)) == 10 * RUNNERS
