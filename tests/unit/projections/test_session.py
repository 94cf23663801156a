from __future__ import annotations

from typing import Any

from projections.session import Lost, StreamFacts
from tests.unit.projections.story import START_NS, Story


def test_a_session_shows_how_it_was_opened() -> None:
    fields: dict[str, Any] = {
        "agent": "claude",
        "model": "opus",
        "cwd": "/src",
        "host": "box",
        "resumed_from": "z",
        "contiguous": True,
    }
    json = Story().started_goal().opened("a", "1", **fields).session_json("a")
    shown = {
        name: json[name] for name in ("task_id", "goal_id", "attempt", "state", "saddle", "agent", "model", "cwd")
    }
    assert shown == {
        "task_id": "1",
        "goal_id": "7",
        "attempt": 1,
        "state": "working",
        "saddle": "anvil",
        "agent": "claude",
        "model": "opus",
        "cwd": "/src",
    }
    assert (json["host"], json["resumed_from"], json["parent_session_id"], json["children"]) == ("box", "z", None, [])
    assert json["opened_at"] == "2023-11-14T22:13:24Z"


def test_a_session_shows_what_the_store_knows_of_it() -> None:
    facts = StreamFacts(
        events=9,
        high_seq=44,
        last_at=START_NS,
        missing=((41, 43),),
        conflicts=(Lost(7, "comment", "model", b'{"body": "other"}', START_NS),),
        deliveries={"deliveries": 3, "late": 1},
    )
    json = Story().task("12").opened("a", "12").session_json("a", facts)
    assert (json["events"], json["high_seq"], json["missing"]) == (9, 44, [[41, 43]])
    assert json["last_at"] == "2023-11-14T22:13:20Z"
    assert json["conflicts"] == [
        {
            "seq": 7,
            "kind": "comment",
            "actor": "model",
            "payload": {"body": "other"},
            "received_at": "2023-11-14T22:13:20Z",
        }
    ]
    assert json["deliveries"] == {"deliveries": 3, "late": 1}


def test_a_session_that_has_pushed_nothing_has_no_high_seq() -> None:
    json = Story().task("12").opened("a", "12").session_json("a")
    assert (json["high_seq"], json["last_at"], json["goal_id"]) == (None, None, None)


def test_the_first_terminal_push_ends_a_session_for_good() -> None:
    story = Story().task("12").opened("a", "12").result("a", "failed", seq=5).result("a", "done", seq=9)
    assert story.result("a", "working", seq=10).session_json("a")["state"] == "failed"


def test_a_model_that_is_no_text_is_still_shown() -> None:
    assert Story().task("12").opened("a", "12", model=4, resumed_from=17).session_json("a")["model"] == "4"
