from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ledger.daemons.sweep.register import incidents_file
from ledger.daemons.sweep.register.incidents_file import entry, new, odd_sections, read, with_entries, written
from ledger.daemons.sweep.register.texts import one_line

BY_HAND = """\
# Our incidents

Written by all of us.

## How to read this

Top down.

## Lost a branch · 2026-01-05 · HIGH

**What**: gone.

### Afterwards

A note by hand.

```
## no heading · 2026-01-01 · LOW
```

## Slow day · 2026-01-09 · LOW
**What**: slow.
## Thoughts

Ours alone.

## Odd · 2026-01-09 · CRITICAL

text"""


def titles(text: str) -> list[str]:
    return [one.title for one in read(text).entries]


def test_a_file_that_people_wrote_is_read() -> None:
    incidents = read(BY_HAND)
    assert [(one.title, one.date, one.severity) for one in incidents.entries] == [
        ("Lost a branch", "2026-01-05", "HIGH"),
        ("Slow day", "2026-01-09", "LOW"),
    ]
    assert incidents.preamble.endswith("Top down.\n\n")
    assert "### Afterwards" in incidents.entries[0].text
    assert "## no heading" in incidents.entries[0].text
    assert [one.splitlines()[0] for one in incidents.others] == ["## Thoughts", "## Odd · 2026-01-09 · CRITICAL"]


def test_new_incidents_are_sorted_in_and_what_stands_there_stays() -> None:
    added = [
        entry("Newest", "2026-02-01", "LOW", [("What", "a")]),
        entry("Worse", "2026-01-06", "HIGH", [("What", "b")]),
        entry("Middle", "2025-01-01", "MEDIUM", [("What", "c")]),
    ]
    text = written(with_entries(read(BY_HAND), added, "severity"))
    assert titles(text) == ["Worse", "Lost a branch", "Middle", "Newest", "Slow day"]
    for line in BY_HAND.splitlines():
        assert line in text.splitlines()
    text = written(with_entries(read(BY_HAND), added, "newest"))
    assert titles(text) == ["Newest", "Slow day", "Worse", "Lost a branch", "Middle"]


def test_a_sorted_file_is_written_as_it_is() -> None:
    text = written(with_entries(new("Incidents"), [entry("One", "2026-02-01", "LOW", [("What", "a")])], "severity"))
    assert text == "# Incidents\n\n## One · 2026-02-01 · LOW\n\n**What**: a\n\n"
    assert written(with_entries(read(text), (), "severity")) == text


def test_line_ends_of_another_system_and_spaces_are_understood() -> None:
    text = "# T\r\n\r\n##  A title  ·  2026-02-01 · high \r\nx\r\n"
    [one] = read(text).entries
    assert (one.title, one.severity) == ("A title", "HIGH")
    assert written(read(text)) == text


def test_a_title_may_hold_the_sign_between_the_parts() -> None:
    added = entry("A · 2020-01-01 · LOW · B", "2026-02-01", "HIGH", [("What", "x")])
    [one] = read(written(with_entries(new("T"), [added], "severity"))).entries
    assert (one.title, one.date, one.severity) == ("A · 2020-01-01 · LOW · B", "2026-02-01", "HIGH")


def test_sections_that_look_like_incidents_and_are_none_are_told_with_their_line() -> None:
    odd = [(one.line, one.heading) for one in odd_sections(BY_HAND + "\n## X · 2026-02-30 · LOW\n")]
    assert odd == [(27, "## Odd · 2026-01-09 · CRITICAL"), (30, "## X · 2026-02-30 · LOW")]


MARKDOWN = st.text(st.sampled_from(list("ab#` \t\n\r>-*_[]()!<&\\~=|:.1·@/")), max_size=60)


@given(st.lists(MARKDOWN, min_size=3, max_size=3))
def test_a_models_text_makes_no_heading_whatever_it_says(texts: list[str]) -> None:
    title, what, lesson = ("x" + one_line(text, 200) for text in texts)
    added = entry(title, "2026-02-01", "LOW", [("What", what), ("Lesson", lesson)])
    text = written(with_entries(new("T"), [added], "severity"))
    headings = [line for line in text.splitlines() if re.match(r" {0,3}#", line)]
    assert len(headings) == 2
    assert len(read(text).entries) == 1
    assert read(text).entries[0].fingerprint == added.fingerprint


@given(st.lists(st.sampled_from(BY_HAND.splitlines(keepends=True)), max_size=40))
def test_every_line_of_a_person_is_there_afterwards(lines: list[str]) -> None:
    text = "".join(lines)
    added = entry("New", "2026-02-01", "HIGH", [("What", "a")])
    after = written(with_entries(read(text), [added], "severity"))
    kept = sorted(line for line in text.splitlines() if line.strip())
    mine = [line for line in added.text.splitlines() if line.strip()]
    assert sorted(line for line in after.splitlines() if line.strip()) == sorted([*kept, *mine])
    assert incidents_file.written(with_entries(read(after), (), "severity")) == after
