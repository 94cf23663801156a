from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ledger.daemons.sweep.register.texts import escaped, one_line

_MARKDOWN = MarkdownIt("commonmark").enable(["strikethrough", "table"])


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
        ("snake_case - a/b.c, 100 % in ~/x", "snake_case - a/b.c, 100 % in ~/x"),
        ("# One", r"\# One"),
        ("- [x] done", r"\- \[x\] done"),
        ("> said", r"\> said"),
        ("1. first", r"1\. first"),
        ("1.5 GB", r"1\.5 GB"),
        ("__init__.py", r"\_\_init\_\_.py"),
        ("~~not~~", r"\~\~not\~\~"),
    ],
)
def test_a_models_text_is_shown_as_it_is(said: str, shown: str) -> None:
    assert escaped(said) == shown


@given(st.text(st.sampled_from("a1 -+#>=|*_~`<>[]()!&;:/.\\\"'@w\n\té😀·"), max_size=40))
def test_a_parser_of_markdown_reads_one_paragraph_of_text_whatever_was_said(said: str) -> None:
    line = "x" + one_line(said, 100)  # without the letter, with it, and behind a bold word
    for before, text, marked in (
        ("", line[1:], []),
        ("", line, []),
        ("**A**: ", line, ["strong_open", "strong_close"]),
    ):
        if not text:
            continue
        tokens = _MARKDOWN.parse(f"# Before\n\n{before}{escaped(text)}\n\nbehind it\n")[3:-3]
        assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
        inline = [one for token in tokens for one in token.children or ()]
        assert [one.type for one in inline if one.type not in ("text", "text_special")] == marked
        assert "".join(one.content for one in inline) == before.replace("*", "") + text


def test_a_line_has_no_breaks_no_controls_and_nothing_that_is_not_seen() -> None:
    assert one_line("a\r\nb\x00c\x1b[1md\u2028e\u202ef\u200bg\ud800h\tï", 100) == "a b c [1md e f g h ï"


def test_a_line_is_cut_with_a_mark() -> None:
    assert one_line("abcdef", 5) == "abcd…"
    assert one_line("abcde", 5) == "abcde"
