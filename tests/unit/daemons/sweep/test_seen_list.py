from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.daemons.sweep import seen_list
from ledger.daemons.sweep.guard import WriteGuard, WriteRefused
from ledger.daemons.sweep.journal import KEY_CHARS_MAX, plain_key
from ledger.daemons.sweep.seen_list import SeenListDamaged
from projections.sweep import name_of

SOURCES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}", fullmatch=True)


@given(st.sets(st.tuples(SOURCES, st.text(max_size=30).map(plain_key))))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_what_is_written_is_read_again_whatever_the_keys_hold(tmp_path: Path, pairs: set[tuple[str, str]]) -> None:
    path = tmp_path / "seen.txt"
    guard = WriteGuard([], [path])
    names = {name_of(source, key) for source, key in pairs}
    seen_list.write(path, names, guard)
    assert seen_list.read(path, guard) == names


def test_a_list_that_is_not_there_is_empty_and_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "seen.txt"
    guard = WriteGuard([], [path])
    assert seen_list.read(path, guard) == frozenset()
    (tmp_path / "other").write_text("claude\tkey\n")
    path.symlink_to(tmp_path / "other")
    with pytest.raises(WriteRefused):
        seen_list.read(path, guard)


@pytest.mark.parametrize("line", [b"no tab", b"\tno source", b"claude\tbad \\x escape", b"claude\t\xff"])
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "seen.txt"
    path.write_bytes(b"# head\n\nclaude\tfine\n" + line + b"\n")
    with pytest.raises(SeenListDamaged, match=r"seen\.txt:4: "):
        seen_list.read(path, WriteGuard([], [path]))


@given(st.text(st.characters(), max_size=50), st.text(st.characters(), max_size=50))
def test_keys_are_text_of_bounded_length_and_different_ones_stay_different(one: str, other: str) -> None:
    for text in (one, one * 100):
        plain = plain_key(text)
        plain.encode()
        assert len(plain) <= KEY_CHARS_MAX
    long = "x" * KEY_CHARS_MAX
    assert (plain_key(long + one) == plain_key(long + other)) == (one == other)
