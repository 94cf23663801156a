"""A session as a whole: what candidates show, what they hide, and that they are always the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.client.redaction import REDACTED
from ledger.daemons.sweep.model import Candidate, Found, Moment, SessionText, SessionUnreadable
from ledger.daemons.sweep.prefilter.clipping import LINE_CHARS_MAX, SNIPPET_CHARS_MAX
from ledger.daemons.sweep.prefilter.filtering import Prefilter
from ledger.daemons.sweep.prefilter.shell import words
from ledger.daemons.sweep.sources.files import FileSource
from ledger.events import kinds
from ledger.transcripts import reading
from tests.unit.daemons.sweep.prefilter.told import PREFILTER, Story

TOKEN = "ghp_" + "a1B2" * 9
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + ("MIIEowIBAAKCAQEA" * 4 + "\n") * 25 + "-----END RSA PRIVATE KEY-----"


def texts(candidate: Candidate) -> list[str]:
    return [candidate.snippet, *candidate.turn, *candidate.evidence]


def test_a_session_in_which_nothing_happened_has_no_candidates() -> None:
    found = Story().user("Hello").agent("Hello. What shall I do?").candidates()
    assert (found.found, found.moments, found.left_out) == ((), 2, 0)


def test_secrets_are_in_no_text_of_a_candidate() -> None:
    story = (
        Story()
        .user(f"Use {TOKEN} to push.")
        .runs(f"git push --force https://x:{TOKEN}@example.org/a.git", f"using {TOKEN}\n{KEY}\nTraceback (most", 1)
        .agent(f"I made a mistake and printed {TOKEN}.")
        .user(f"why did you print {TOKEN}??")
    )
    found = story.candidates().found
    shown = "\n".join(text for candidate in found for text in texts(candidate))
    assert {candidate.rule for candidate in found} >= {
        "git-push-force",
        "secret-in-command",
        "admits-mistake",
        "objects",
    }
    assert REDACTED in shown
    assert TOKEN not in shown
    assert "MIIE" not in shown


def test_a_secret_that_is_cut_by_a_bound_is_not_shown_in_part() -> None:
    for fill in range(LINE_CHARS_MAX - 50, LINE_CHARS_MAX + 10):
        story = Story().user("x" * 10 + " " + "y" * (fill - 11) + " " + TOKEN + " z").agent("Oops.")
        assert not any("ghp_" in text for text in texts(story.only("admits-mistake")))


def test_a_key_of_many_lines_is_hidden_though_only_some_of_them_would_be_shown() -> None:
    output = KEY + "\nTraceback (most recent call last):\n  File x\nValueError: y"
    candidate = Story().runs("make", output, 1).only("traceback")
    assert candidate.snippet == "Traceback (most recent call last):"
    assert not any("MIIE" in text for text in texts(candidate))


def test_without_a_redactor_texts_stay_as_they_are() -> None:
    candidate = Story().agent(f"Oops, {TOKEN}").only("admits-mistake", Prefilter())
    assert candidate.snippet == f"Oops, {TOKEN}"


@pytest.mark.parametrize("length", [10, 1_000, 100_000])
def test_every_text_is_bounded_and_one_line(length: int) -> None:
    wide = "word " * (length // 5)
    story = (
        Story()
        .user(wide)
        .runs(f"rm -rf src {wide}", wide.replace("word 1", "word\n"), 1)
        .agent(f"{wide} oops {wide}")
    )
    story.runs("make", f"{wide} Segmentation fault {wide}", 1)
    found = story.candidates().found
    assert len(found) == 3
    for candidate in found:
        assert len(candidate.snippet) <= SNIPPET_CHARS_MAX
        assert all(len(text) <= LINE_CHARS_MAX + 20 for text in (*candidate.turn, *candidate.evidence))
        assert len(candidate.turn) + len(candidate.evidence) < 25
        assert all(text.isprintable() for text in texts(candidate))
    assert "oops" in story.only("admits-mistake").snippet
    assert "Segmentation fault" in story.only("segfault").snippet


def test_control_characters_and_escape_sequences_are_taken_out() -> None:
    story = Story().runs("rm -rf src\x1b[2J\u202e\x00", "\x1b[31mred\x1b[0m\r\n\x07", 1)
    candidate = story.only("remove-tree")
    assert candidate.snippet == "rm -rf src"
    assert candidate.evidence == ("exit 1", "red")


def test_subagents_in_one_file_are_told_apart() -> None:
    story = Story().runs("pytest", "1 failed", 1)
    other = Story("s-1.sidechain").agent("All tests pass.").runs("rm -rf src")
    story.moments += other.moments
    found = story.candidates().found
    assert [(candidate.session_id, candidate.rule) for candidate in found] == [("s-1.sidechain", "remove-tree")]


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("2026-03-01T11:00:00.500+01:00", "2026-03-01T10:00:00.5"),
        (1_772_359_200_000, "2026-03-01T10:00:00"),
        ("?", None),
    ],
)
def test_when_it_was_is_told_in_utc_however_it_was_written(at: Any, shown: str | None) -> None:
    story = Story().runs("rm -rf src")
    story.moments = [msgspec.structs.replace(moment, at=at) for moment in story.moments]
    told_at = story.only("remove-tree").at
    assert told_at is None if shown is None else told_at is not None and told_at.startswith(shown)


def test_a_session_that_cannot_be_read_to_its_end_gives_nothing() -> None:
    def moments() -> Any:
        yield from Story().runs("rm -rf src").moments
        raise SessionUnreadable("gone")

    with pytest.raises(SessionUnreadable):
        PREFILTER.candidates(SessionText(Found("a", "k", "w", "x"), "t", None, moments()))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
names = st.sampled_from(
    sorted(words("role text body tool args call_id output exit_code is_error state message summary"))
)
known_kinds = st.sampled_from(
    [
        kinds.MESSAGE,
        kinds.COMMENT,
        kinds.TOOL_CALL,
        kinds.TOOL_RESULT,
        kinds.OUTPUT,
        kinds.ERROR,
        kinds.USAGE,
        kinds.RESULT,
        "codex.new",
    ]
)


@given(st.lists(st.tuples(known_kinds, st.dictionaries(names, values, max_size=5)), max_size=6))
@settings(max_examples=30, deadline=None)
def test_payloads_of_any_shape_are_gone_through(told: list[tuple[str, dict[str, Any]]]) -> None:
    story = Story()
    for kind, payload in told:
        story.moments.append(Moment("s", len(story.moments), kind, "model", payload))
    assert story.candidates().moments == len(told)


said = st.sampled_from(
    [
        ("user", "why did you delete it??"),
        ("assistant", "Oops, my mistake. All tests pass."),
        ("assistant", "These failures are pre-existing. " + "é" * 40),
        ("user", "go on"),
    ]
)
ran = st.sampled_from(
    [
        ("rm -rf src", "", 0),
        ("pytest -q", "1 failed", 1),
        ("git push --force", f"remote {TOKEN}\n ! [rejected] x", 1),
        ("make", "Traceback (most recent call last):\n" + "línea\n" * 30, 1),
        ("kill -9 7", "", 0),
    ]
)


@given(st.lists(said | ran, max_size=25), st.integers(min_value=1, max_value=300))
@settings(max_examples=30, deadline=None)
def test_candidates_are_the_same_whatever_pieces_a_file_is_read_in(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[Any, ...]], block: int
) -> None:
    root = tmp_path_factory.mktemp("transcripts")
    write(root / "s.jsonl", told)
    with pytest.MonkeyPatch.context() as patch:
        whole = found_in(root)
        patch.setattr(reading, "BLOCK_BYTES", block)
        assert found_in(root) == whole
    assert found_in(root) == whole


def write(path: Path, told: list[tuple[Any, ...]]) -> None:
    """A Claude Code transcript of what was said and run."""
    rows: list[dict[str, Any]] = []
    for number, one in enumerate(told):
        if len(one) == 2:
            role, text = one
            rows.append({"type": role, "message": {"role": role, "content": [{"type": "text", "text": text}]}})
        else:
            command, output, code = one
            call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
            text = f"Exit code {code}\n{output}" if code else output
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text, "is_error": bool(code)}
            rows.append({"type": "assistant", "message": {"role": "assistant", "content": [call]}})
            rows.append({"type": "user", "message": {"role": "user", "content": [result]}})
    lines = [json.dumps({"sessionId": "s", "cwd": "/home/dev/app", **row}, ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def found_in(root: Path) -> list[tuple[Candidate, ...]]:
    source = FileSource("claude-code", "told", root)
    return [PREFILTER.candidates(source.read(found)).found for found in source.sessions() if isinstance(found, Found)]
