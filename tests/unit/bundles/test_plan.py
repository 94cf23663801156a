"""The file of a bundle."""

from __future__ import annotations

import json

import msgspec
import pytest

from bundles import plan
from bundles.plan import Bundle, CreateGoal, Decide, End, Ending, Event, Expected, Open, Push
from ledger.errors import InvalidRequest

BUNDLE = Bundle(
    1,
    "7",
    "12",
    Expected("ab" * 32, "failed", {"12": Ending("failed", 1, "No room.")}),
    (
        CreateGoal("owner", "7", "Port it", None, "All of it.", "port"),
        Decide("owner", "goals", "7", "start"),
        Open("saddle", "s1", "12", {"agent": "scripted"}),
        Push("saddle", "s1", (Event(0, "note", "model", msgspec.Raw(b'{ "n":1e999}'), "2026-02-03T04:05:06Z"),)),
        End("saddle", "s1", "failed", "No room."),
    ),
)


def test_a_bundle_is_read_as_it_was_written_with_its_payloads_byte_for_byte() -> None:
    written = plan.dump(BUNDLE)
    assert b'{ "n":1e999}' in written
    assert plan.load(written) == BUNDLE
    assert plan.dump(plan.load(written)) == written


def test_the_file_has_one_step_a_line() -> None:
    lines = plan.dump(BUNDLE).splitlines()
    assert [json.loads(line.rstrip(b","))["do"] for line in lines[1:-1]] == [
        "create_goal",
        "decide",
        "open",
        "push",
        "end",
    ]


def test_a_bundle_without_steps_is_json_too() -> None:
    empty = msgspec.structs.replace(BUNDLE, steps=())
    assert plan.load(plan.dump(empty)) == empty


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"ledgerd_bundle":1}', b'{"ledgerd_bundle":"1"}'])
def test_what_is_no_bundle_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="no bundle"):
        plan.load(data)


def test_another_version_is_refused_by_its_number() -> None:
    with pytest.raises(InvalidRequest, match="version 2"):
        plan.load(b'{"ledgerd_bundle":2,"anything":[]}')


@pytest.mark.parametrize(
    ("kind", "payload", "ends"),
    [
        ("result", '{"state":"failed"}', True),
        ("result", '{"state":"suspended"}', False),
        ("result", "[]", False),
        ("comment", '{"state":"failed"}', False),
    ],
)
def test_only_a_terminal_result_ends_a_session(kind: str, payload: str, ends: bool) -> None:
    assert Event(0, kind, "model", msgspec.Raw(payload.encode())).is_terminal is ends
