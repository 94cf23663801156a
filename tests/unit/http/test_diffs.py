from __future__ import annotations

from ledger.http.diffs import LINES_COMPARED_MAX, drawn, edit_of, is_diff

UNIFIED = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n-old\n+new"


def test_an_edit_is_what_it_changes() -> None:
    assert edit_of({"old_string": "a\nb\nc", "new_string": "a\nB\nc"}).splitlines()[1:] == [" a", "-b", "+B", " c"]


def test_several_edits_of_one_call_follow_each_other() -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    assert edit_of({"edits": edits}).count("@@") == 4


def test_a_patch_is_taken_as_it_is() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-one\n+two\n*** End Patch"
    assert edit_of({"input": patch}) == patch


def test_arguments_that_edit_nothing_are_no_edit() -> None:
    for args in (None, [], "x", {"command": "make"}, {"old_string": 5, "new_string": "x"}, {"edits": "no"}):
        assert edit_of(args) == ""


def test_a_large_edit_is_not_compared_but_shown() -> None:
    lines = [str(number) for number in range(2 * LINES_COMPARED_MAX)]
    change = edit_of({"old_string": "\n".join(lines), "new_string": "\n".join(reversed(lines))}).splitlines()
    assert change == [*(f"-{line}" for line in lines), *(f"+{line}" for line in reversed(lines))]


def test_only_texts_with_changes_in_them_are_diffs() -> None:
    assert is_diff(UNIFIED)
    assert not is_diff("+ one\n- two")
    assert not is_diff("@@ no change @@")


def test_lines_of_a_kind_are_drawn_together_and_nothing_in_them_is_markup() -> None:
    html = drawn(f"{UNIFIED}\n+<script>\x1b[31m")
    assert '<span class="del">-old</span>' in html
    assert '<span class="add">+new\n+&lt;script&gt;</span>' in html
    assert '<span class="hunk">--- a\n+++ b\n@@ -1,2 +1,2 @@</span>' in html
