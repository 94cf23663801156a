from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.cli.output import safe_json
from ledger.cli.terminal import one_line, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, – é 😀\n\tindented", "plain, – é 😀\n\tindented"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[r\x1b[1;1H\x1b[2Jgone", "gone"),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r\x1b\\x", "x"),
        ("\x9b31mred", "red"),
        ("\x1bcreset", "reset"),
        ("\x1b", ""),
        ("over\rwritten", "over␍written"),
        ("a\r\nb", "a\nb"),
        ("nul\x00 bell\x07 back\x08 del\x7f", "nul␀ bell␇ back␈ del␡"),
        ("right\u202eto left", "right‹U+202E›to left"),
        ("half a pair \ud83d", "half a pair ‹U+D83D›"),
    ],
)
def test_text_controls_nothing_and_hides_nothing_but_sequences(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_one_line_has_one_line() -> None:
    assert one_line("  a\n\tb\x1b[1m  c ") == "a b c"


@given(st.text(st.characters() | st.sampled_from("\x1b[]P^_;m0123\x07\\\x9b\x9d")))
def test_no_text_brings_a_control_character_through(text: str) -> None:
    shown = plain(text)
    assert all(char in "\n\t" or (ord(char) >= 0x20 and not 0x7F <= ord(char) < 0xA0) for char in shown)
    assert plain(shown) == shown


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_for_a_terminal_says_the_same_in_harmless_characters(text: str) -> None:
    import json

    said = safe_json({"text": text}, indent=2)
    assert json.loads(said) == {"text": text}
    assert all(char == "\n" or char.isprintable() for char in said)
