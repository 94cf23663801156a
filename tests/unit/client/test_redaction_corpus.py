"""What redaction finds of the corpus, and that both ways of screening find the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.client.redaction import Redactor, redact, screening
from ledger.client.redaction.rules import rules
from tests.corpus.redaction import NAMED, Sample, counted, samples

SAMPLES = samples()
TEXTS = [sample.text for sample in SAMPLES]


def in_payload(text: str) -> str:
    cleaned: str = json.loads(Redactor().redact_payload(json.dumps({"text": text}, ensure_ascii=False).encode()))[
        "text"
    ]
    return cleaned


def in_ascii_payload(text: str) -> str:
    cleaned: str = json.loads(Redactor().redact_payload(json.dumps({"text": text}).encode()))["text"]
    return cleaned


def test_the_corpus_is_as_large_as_it_is_said_to_be() -> None:
    assert len(SAMPLES) >= 500
    assert {sample.kind for sample in SAMPLES if sample.goes} >= set(NAMED)
    assert sum(not sample.goes for sample in SAMPLES) >= 180


@pytest.mark.parametrize("clean", [redact, in_payload, in_ascii_payload])
def test_every_secret_of_a_named_kind_goes_as_a_whole_and_no_lookalike_is_changed(
    clean: Callable[[str], str],
) -> None:
    counts = counted(clean, SAMPLES)
    assert {kind: counts[kind].found / counts[kind].secrets for kind in NAMED} == dict.fromkeys(NAMED, 1.0)
    assert sum(count.changed for count in counts.values()) == 0


@pytest.mark.parametrize(
    "sample", [sample for sample in SAMPLES if sample.goes], ids=lambda sample: str(sample.number)
)
def test_what_has_been_cleaned_is_clean(sample: Sample) -> None:
    cleaned = redact(sample.text)
    assert redact(cleaned) == cleaned


PIECES = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(TEXTS).flatmap(lambda text: st.integers(0, len(text)).map(lambda at: text[:at])),
    st.sampled_from(
        ["\n", " ", '"', "\\", "\x1b[31m", "\\u002d", "=", ": ", "password", "token", "eyJ", "é", "\ud800"]
    ),
    st.text(max_size=8),
)


@settings(print_blob=True, max_examples=120, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=5).map("".join), st.booleans())
def test_hyperscan_and_python_find_the_same(text: str, ascii_only: bool) -> None:
    hyperscan = screening.screen_in_hyperscan()
    if hyperscan is None:
        pytest.skip("there is no Hyperscan for this platform")
    payload = json.dumps({"a": text, "b": [text[::-1]]}, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    found = []
    for screen in (hyperscan, screening.screen_in_python, all_rules):
        with patch.object(screening, "_screen_for", lambda size, screen=screen: screen):
            found.append((redact(text), Redactor().redact_payloads([b"{}", payload, b"[]"])))
    assert found[0] == found[1] == found[2]


def all_rules(joined: bytes) -> Iterator[tuple[int, int]]:
    """A screen that says that anything may be anywhere."""
    starts = [0, *(at + 1 for at, byte in enumerate(joined) if byte == 10)]
    return ((rule, start + 1) for start in starts for rule in (*range(len(rules())), screening.ODD))


def test_without_hyperscan_nothing_else_changes() -> None:
    screening.screen_in_hyperscan.cache_clear()
    try:
        with patch.dict("sys.modules", {"hyperscan": None}), patch.object(screening, "_screened_bytes", 1 << 40):
            assert screening.screen_in_hyperscan() is None
            assert [in_payload(text) for text in TEXTS[:40]] == [redact(text) for text in TEXTS[:40]]
    finally:
        screening.screen_in_hyperscan.cache_clear()
