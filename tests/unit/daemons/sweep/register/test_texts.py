from __future__ import annotations

import pytest

from ledger.daemons.sweep.register.texts import escaped, one_line


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("<script>alert(1)</script>", r"\<script>alert(1)\</script>"),
        ("![x](http://evil/?q=1)", r"!\[x\](http\://evil/?q=1)"),
        ("[docs](https://evil)", r"\[docs\](https\://evil)"),
        ("see www.example.org", r"see www\.example.org"),
        ("HTTPS://EVIL", r"HTTPS\://EVIL"),
        ("mail me@example.org", r"mail me\@example.org"),
        ("run `rm -rf x` and *stop*", r"run \`rm -rf x\` and \*stop\*"),
        ("&lt;b&gt;", r"\&lt;b\&gt;"),
        (r"a \[b]", r"a \\\[b\]"),
        ("snake_case - a/b.c, 100 %", "snake_case - a/b.c, 100 %"),
    ],
)
def test_a_models_text_is_shown_as_it_is(said: str, shown: str) -> None:
    assert escaped(said) == shown


def test_a_line_has_no_breaks_no_controls_and_nothing_that_is_not_seen() -> None:
    assert one_line("a\r\nb\x00c\x1b[1md\u2028e\u202ef\u200bg\ud800h\tï", 100) == "a b c [1md e" + "fgh ï"


def test_a_line_is_cut_with_a_mark() -> None:
    assert one_line("abcdef", 5) == "abcd…"
    assert one_line("abcde", 5) == "abcde"
