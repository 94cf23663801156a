from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.http.agent_text import SPANS_MAX, first_sentence, plain, terminal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tab\tand\nline", "tab\tand\nline"),
        ("a\x00b\x07", "a␀b␇"),
        ("del\x7f", "del␡"),
        ("\x9b31m", "‹U+009B›31m"),
        ("safe\u202etxt.exe", "safe‹U+202E›txt.exe"),
        ("\u2066x\u2069", "‹U+2066›x‹U+2069›"),
        ("\u200fשלום", "‹U+200F›שלום"),
        ("zero\u200bwidth\ufeff", "zero‹U+200B›width‹U+FEFF›"),
        ("half \ud83d", "half \ufffd"),
        ("one\r\ntwo\rthree", "one\ntwo␍three"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[r\x1b[1;1Htop", "top"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x1b(Bcharset\x1bc", "charset"),
        ("ends in \x1b", "ends in ␛"),
    ],
)
def test_plain_text_has_no_sequences_and_nothing_invisible(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_sequence_that_never_ends_swallows_nothing() -> None:
    assert "the rest" in plain("\x1b]0;the rest")
    assert "the rest" in terminal("\x1bPthe rest")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m plain", '<span class="fg1">red</span> plain'),
        ("\x1b[1;92mbold\x1b[22m thin\x1b[39m", '<span class="fg10 bold">bold</span><span class="fg10"> thin</span>'),
        ("\x1b[44m\x1b[4mx", '<span class="bg4 underline">x</span>'),
        ("\x1b[31ma\x1b[31mb\x1b[mc", '<span class="fg1">ab</span>c'),
        ("\x1b[38;5;196mx", '<span class="fg9">x</span>'),
        ("\x1b[38;5;4mx", '<span class="fg4">x</span>'),
        ("\x1b[48;2;0;0;255mx", '<span class="bg12">x</span>'),
        ("\x1b[38;5;244mx", '<span class="fg7">x</span>'),
        ("\x1b[8mhidden", "hidden"),
        ("\x1b[38mx\x1b[38;5my\x1b[38;2;1mz", "xyz"),
        ("10%\r20%", "10%␍\n20%"),
        ("\x1b[31m<b>&", '<span class="fg1">&lt;b&gt;&amp;</span>'),
    ],
)
def test_colours_become_classes(text: str, shown: str) -> None:
    assert terminal(text) == shown


def test_colours_beyond_the_bound_are_dropped_and_the_text_is_kept() -> None:
    drawn = terminal("".join(f"\x1b[{31 + number % 6}m{number} " for number in range(10_000)))
    assert drawn.count("<span") == SPANS_MAX
    assert drawn.striptags() == " ".join(map(str, range(10_000)))


_PIECES = st.sampled_from(["\x1b", "[", "]", "31", ";", "m", "\x07", "\\", "<", "&", '"', "\x00", "\u202e", "a", " "])


@given(st.lists(_PIECES, max_size=60).map("".join) | st.text())
def test_whatever_comes_only_known_spans_are_markup(text: str) -> None:
    rest = re.sub(r'<span class="[a-z0-9 ]+">|</span>', "", terminal(text))
    assert "<" not in rest
    assert '"' not in rest
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", terminal(text))
    assert plain(plain(text)) == plain(text)


@pytest.mark.parametrize(
    ("remark", "sentence"),
    [
        ("It holds.", "It holds."),
        ("It holds. Fuzzed for ten minutes.", "It holds."),
        ("Use e.g. the mold linker. Then test.", "Use e.g. the mold linker."),
        ("Version 4.2 is out. Good.", "Version 4.2 is out."),
        ('He said "stop." Then it stopped.', 'He said "stop."'),
        ("A heading\nand the rest.", "A heading"),
        ("好的。然后测试。", "好的。"),
        ("No end", "No end"),
        ("  \n\n spaced. Out.", "spaced."),
        ("", ""),
    ],
)
def test_the_first_sentence_carries_the_information(remark: str, sentence: str) -> None:
    assert first_sentence(remark) == sentence


def test_a_sentence_without_end_is_cut_between_words() -> None:
    cut = first_sentence("word " * 500)
    assert len(cut) < 250
    assert cut.endswith("word …")
