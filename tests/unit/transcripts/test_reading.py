from __future__ import annotations

from pathlib import Path

import pytest

from ledger.transcripts import reading
from ledger.transcripts.model import BadLine, Report
from ledger.transcripts.reading import Line, LineReader, Mark


def lines_of(path: Path, start: Mark | None = None, **limits: int) -> tuple[list[Line], list[BadLine], Mark]:
    bad: list[BadLine] = []
    reader = LineReader(path, Report(bad.append), start, **limits)
    return list(reader), bad, reader.mark


def rows(lines: list[Line]) -> list[tuple[int, list[dict[str, object]]]]:
    return [(line.number, line.rows) for line in lines]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.jsonl"


def test_two_objects_on_one_line_are_two_rows_of_that_line(path: Path) -> None:
    path.write_bytes(b'{"a":1}{"b":2} {"c":3}\n{"d":4}\n')
    lines, bad, _ = lines_of(path)
    assert rows(lines) == [(1, [{"a": 1}, {"b": 2}, {"c": 3}]), (2, [{"d": 4}])]
    assert bad == []


def test_a_line_cut_in_the_middle_is_named_and_the_lines_around_it_are_taken(path: Path) -> None:
    path.write_bytes(b'{"a":1}\n{"b":{"c":\n{"d":4}\n')
    lines, bad, _ = lines_of(path)
    assert rows(lines) == [(1, [{"a": 1}]), (3, [{"d": 4}])]
    [only] = bad
    assert str(only).startswith(f"{path}:2: no JSON object at character 1")


def test_what_stands_before_the_damage_on_a_line_is_taken(path: Path) -> None:
    path.write_bytes(b'{"a":1}{"b":\n')
    lines, bad, _ = lines_of(path)
    assert rows(lines) == [(1, [{"a": 1}])]
    assert "the 1 before it taken" in bad[0].why


def test_a_half_last_line_waits_until_it_is_completed(path: Path) -> None:
    whole = '{"a":1}\n{"b":"ä€"}\n'.encode()
    for cut in range(9, len(whole) - 2):
        path.write_bytes(whole[:cut])
        lines, bad, mark = lines_of(path)
        assert rows(lines) == [(1, [{"a": 1}])]
        assert [one.line for one in bad] == [2]
        assert mark == Mark(8, 1)
        path.write_bytes(whole)
        later, bad, mark = lines_of(path, mark)
        assert rows(later) == [(2, [{"b": "ä€"}])]
        assert bad == []
        assert mark == Mark(len(whole), 2)


def test_a_whole_last_line_without_a_line_feed_is_taken_and_read_again_with_its_number(path: Path) -> None:
    path.write_bytes(b'{"a":1}\n{"b":2}')
    lines, bad, mark = lines_of(path)
    assert rows(lines)[1] == (2, [{"b": 2}])
    assert bad == []
    path.write_bytes(b'{"a":1}\n{"b":2}\n{"c":3}\n')
    later, _, _ = lines_of(path, mark)
    assert rows(later) == [(2, [{"b": 2}]), (3, [{"c": 3}])]


def test_a_run_of_nul_bytes_is_named_and_the_row_beside_it_taken(path: Path) -> None:
    path.write_bytes(b'{"a":1}\n' + b"\0" * 3000 + b'{"b":2}\n' + b"\0" * 10)
    lines, bad, _ = lines_of(path)
    assert rows(lines) == [(1, [{"a": 1}]), (2, [{"b": 2}])]
    assert [(one.line, one.why) for one in bad] == [
        (2, "3,000 NUL bytes around it; left out"),
        (3, "10 NUL bytes around it; left out"),
    ]


def test_a_character_cut_by_the_end_of_a_block_stays_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = '{"a":"äöü€😀"}\n{"b":"€"}\n'.encode()
    path.write_bytes(content)
    for size in range(1, len(content) + 1):
        monkeypatch.setattr(reading, "BLOCK_BYTES", size)
        lines, bad, mark = lines_of(path)
        assert rows(lines) == [(1, [{"a": "äöü€😀"}]), (2, [{"b": "€"}])]
        assert bad == []
        assert mark == Mark(len(content), 2)


def test_a_line_that_is_too_long_is_left_out_and_the_next_keeps_its_number(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b'{"a":1}\n{"b":"' + b"x" * 500 + b'"}\n{"c":3}\n'
    path.write_bytes(content)
    for size in (7, 64, 100):
        monkeypatch.setattr(reading, "BLOCK_BYTES", size)
        lines, bad, mark = lines_of(path, line_bytes_max=200)
        assert rows(lines) == [(1, [{"a": 1}]), (3, [{"c": 3}])]
        assert [(one.line, one.why) for one in bad] == [(2, "longer than 200 bytes; left out")]
        assert mark == Mark(len(content), 3)


def test_what_strict_json_refuses_is_mended_as_the_ledger_mends_it(path: Path) -> None:
    path.write_bytes(b'{"a":"\\ud83d!"}\n{"b":"\xff"}\n{"c":1e999}\n')
    lines, bad, _ = lines_of(path)
    assert rows(lines) == [(1, [{"a": "\ufffd!"}]), (2, [{"b": "\ufffd"}]), (3, [{"c": float("inf")}])]
    assert [(one.line, one.why) for one in bad] == [(2, "invalid UTF-8, replaced by U+FFFD")]


def test_a_pair_of_surrogates_stays_the_character_that_it_is(path: Path) -> None:
    path.write_bytes(b'{"a":"\\ud83d\\ude00 \\ud83d"}\n')
    lines, _, _ = lines_of(path)
    assert rows(lines) == [(1, [{"a": "😀 \ufffd"}])]


@pytest.mark.parametrize("line", [b"17", b'"text"', b"[]", b"null", b"[" * 20_000])
def test_a_line_that_holds_no_object_is_named(path: Path, line: bytes) -> None:
    path.write_bytes(line + b'\n{"a":1}\n')
    lines, bad, _ = lines_of(path)
    assert rows(lines) == [(2, [{"a": 1}])]
    assert [one.line for one in bad] == [1]


def test_blank_lines_carriage_returns_and_a_byte_order_mark_say_nothing(path: Path) -> None:
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n\r\n  \n{"b":2}\r\n')
    lines, bad, _ = lines_of(path)
    assert rows(lines) == [(1, [{"a": 1}]), (4, [{"b": 2}])]
    assert bad == []


def test_an_empty_file_has_no_lines(path: Path) -> None:
    path.write_bytes(b"")
    assert lines_of(path) == ([], [], Mark(0, 0))
