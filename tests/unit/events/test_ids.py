"""What may be an id."""

from __future__ import annotations

import pytest

from ledger.errors import InvalidField
from ledger.events.ids import checked_id


@pytest.mark.parametrize("value", ["a", "x" * 200, "run 7/a", "päivä", "a@b", "..."])
def test_an_id_is_taken_as_it_is(value: str) -> None:
    assert checked_id(value, "session_id") == value


@pytest.mark.parametrize(("value", "text"), [(12, "12"), (-1, "-1"), (2**64, "18446744073709551616")])
def test_an_integer_is_its_decimal_string(value: int, text: str) -> None:
    assert checked_id(value, "session_id") == text


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x" * 201,
        "@goal/7",
        "a\nb",
        "a\x00",
        "a\x7f",
        "a\x85",
        "\ud83d",
        "a\ufffd",
        10**200,
        pytest.param(10**5000, id="5,001 digits"),
        True,
        None,
        1.0,
    ],
)
def test_what_cannot_be_an_id_names_its_field_and_says_what_to_do(value: str | int) -> None:
    with pytest.raises(InvalidField) as caught:
        checked_id(value, "open.task_id")
    assert caught.value.field == "open.task_id"
    assert caught.value.hint
    caught.value.detail.encode()


def test_the_ledgers_own_streams_are_ids_only_where_they_are_asked_for() -> None:
    assert checked_id("@goal/7", "stream", own_streams_ok=True) == "@goal/7"


def test_a_slash_is_refused_where_the_id_stands_in_an_address() -> None:
    with pytest.raises(InvalidField, match="slash"):
        checked_id("a/b", "task_id", slash_ok=False)
