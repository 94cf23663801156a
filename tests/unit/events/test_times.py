"""Instants: the right one, or none; never shifted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.times import NS_PER_S, format_instant, parse_instant

NOON = 1_741_089_600  # 2025-03-04T12:00:00Z
INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2025-03-04T12:00:00Z", NOON * NS_PER_S),
        ("2025-03-04t12:00:00z", NOON * NS_PER_S),
        ("2025-03-04 12:00:00Z", NOON * NS_PER_S),
        ("2025-03-04T12:00Z", NOON * NS_PER_S),
        ("20250304T120000Z", NOON * NS_PER_S),
        ("2025-03-04T17:30:00+05:30", NOON * NS_PER_S),
        ("2025-03-04T17:30:00+0530", NOON * NS_PER_S),
        ("2025-03-04T07:00:00-05", NOON * NS_PER_S),
        ("2025-03-04T12:00:00-00:00", NOON * NS_PER_S),
        ("2025-03-05T11:59:00+23:59", NOON * NS_PER_S),
        ("2025-03-04T12:00:00.5Z", NOON * NS_PER_S + 500_000_000),
        ("2025-03-04T12:00:00,5Z", NOON * NS_PER_S + 500_000_000),
        ("2025-03-04T12:00:00.123456Z", NOON * NS_PER_S + 123_456_000),
        ("2025-03-04T12:00:00.123456789Z", NOON * NS_PER_S + 123_456_789),
        ("2025-03-04T120000.1234567Z", NOON * NS_PER_S + 123_456_700),
        ("2025-03-04T12:00:00.1234567899999Z", NOON * NS_PER_S + 123_456_789),
        ("2025-03-04T17:30:00.000000001+05:30", NOON * NS_PER_S + 1),
        ("1969-12-31T23:59:59.9Z", -100_000_000),
        ("1677-09-21T00:12:43.145224192Z", -(2**63)),
        ("2262-04-11T23:47:16.854775807Z", 2**63 - 1),
    ],
)
def test_a_text_with_its_offset_is_read_to_the_nanosecond(text: str, ns: int) -> None:
    assert parse_instant(text) == ns


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ("2016-12-31T23:59:60.5Z", "2017-01-01T00:00:00.5Z"),
        ("2017-01-01T05:29:60+05:30", "2017-01-01T00:00:00Z"),
        ("2016-12-31T23:59:60+05:30", "2016-12-31T18:30:00Z"),
        ("2025-03-04T24:00Z", "2025-03-05T00:00:00Z"),
        ("2025-03-04T24:00:00.000Z", "2025-03-05T00:00:00Z"),
        ("2024-02-29T24:00:00+01:00", "2024-02-29T23:00:00Z"),
    ],
)
def test_a_leap_second_and_the_end_of_a_day_are_the_instant_after_them(text: str, same: str) -> None:
    assert parse_instant(text) == parse_instant(same) is not None


@pytest.mark.parametrize(
    ("number", "ns"),
    [
        (0, 0),
        (NOON, NOON * NS_PER_S),
        (NOON * 10**3 + 7, NOON * NS_PER_S + 7_000_000),
        (NOON * 10**6 + 7, NOON * NS_PER_S + 7_000),
        (NOON * 10**9 + 7, NOON * NS_PER_S + 7),
        (-1, -NS_PER_S),
        (2**63 - 1, 2**63 - 1),
        (NOON + 0.123, NOON * NS_PER_S + 123_000_000),
        (NOON * 1000.0 + 0.25, NOON * NS_PER_S + 250_000),
        (1e3, 1000 * NS_PER_S),
    ],
)
def test_an_epoch_number_is_read_by_its_magnitude(number: float, ns: int) -> None:
    assert parse_instant(number) == ns


@pytest.mark.parametrize(
    "value",
    [
        "2025-03-04T12:00:00",
        "2025-03-04T12:00:00.123456",
        "2025-03-04",
        "12:00:00Z",
        "2025-02-29T12:00:00Z",
        "2025-13-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "2025-03-04T25:00:00Z",
        "2025-03-04T24:00:01Z",
        "2025-03-04T24:00:00.1Z",
        "2025-03-04T12:60:00Z",
        "2025-03-04T12:00:61Z",
        "2025-03-04T12:30:60Z",
        "2025-03-04T12:00:00+24:00",
        "2025-03-04T12:00:00+05:60",
        "2025-03-04x12:00:00Z",
        "1677-09-21T00:12:43.145224191Z",
        "2262-04-11T23:47:16.854775808Z",
        "9999-12-31T23:59:59Z",
        "٢٠٢٥-03-04T12:00:00Z",
        "Tue, 04 Mar 2025 12:00:00 GMT",
        "1741089600",
        "now",
        "",
        True,
        None,
        [],
        {"$date": 0},
        2**63,
        -(2**63) - 1,
        10**40,
        10**10,
        float("nan"),
        float("inf"),
        1e300,
    ],
)
def test_what_names_no_instant_for_certain_is_none(value: object) -> None:
    assert parse_instant(value) is None


@pytest.fixture
def _host_in_los_angeles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_host_in_los_angeles")
def test_the_zone_of_the_host_shifts_nothing() -> None:
    assert time.localtime(0).tm_hour == 16
    assert parse_instant("2025-07-04T12:00:00Z") == 1_751_630_400 * NS_PER_S
    assert parse_instant("2025-07-04T12:00:00") is None
    assert format_instant(1_751_630_400 * NS_PER_S) == "2025-07-04T12:00:00Z"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (NOON * NS_PER_S + 120_000_000, "2025-03-04T12:00:00.120Z"),
        (NOON * NS_PER_S + 120_000, "2025-03-04T12:00:00.000120Z"),
        (NOON * NS_PER_S + 10, "2025-03-04T12:00:00.000000010Z"),
    ],
)
def test_an_instant_is_written_with_as_many_digits_as_it_needs(ns: int, text: str) -> None:
    assert format_instant(ns) == text


@given(INT64)
def test_what_is_written_is_read_back_exactly(ns: int) -> None:
    assert parse_instant(format_instant(ns)) == ns


@given(
    st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),
    st.integers(-23 * 60 - 59, 23 * 60 + 59),
    st.sampled_from(["seconds", "milliseconds", "microseconds"]),
)
def test_the_same_instant_in_any_zone_is_the_same_number(utc: datetime, offset: int, precision: str) -> None:
    utc = utc.replace(tzinfo=UTC)
    text = utc.isoformat(timespec=precision)
    local = utc + timedelta(minutes=offset)
    zone = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"
    elsewhere = local.replace(tzinfo=None).isoformat(timespec=precision) + zone
    assert parse_instant(elsewhere) == parse_instant(text) == parse_instant(text.replace("+00:00", "Z")) is not None


@given(
    st.one_of(st.text(), st.floats(), st.integers(), st.from_regex(r"\d{4}-\d\d-\d\dT[\d:.]{2,20}(Z|\+\d\d:\d\d)"))
)
def test_no_value_makes_it_raise(value: object) -> None:
    ns = parse_instant(value)
    assert ns is None or -(2**63) <= ns < 2**63
