"""`scan --show`."""

from __future__ import annotations

from ledger.daemons.sweep.prefilter.filtering import Prefilter
from ledger.daemons.sweep.showing import shown
from tests.unit.daemons.sweep.prefilter.told import Story


def test_every_candidate_is_shown_with_its_rule_its_reason_and_what_stands_around_it() -> None:
    story = (
        Story().user("Clean up.").runs("rm -rf src", "rm: src: busy", 1).runs("kill 1").runs("kill 2").agent("Oops.")
    )
    text = "\n".join(shown([story.candidates(), Story().candidates()]))
    for part in [
        "told  A session",
        "in /home/dev/app",
        "8 moments, 3 candidates",
        "  remove-tree  (removes real paths)  seq 1",
        "    A folder is deleted with all that it holds.",
        "    rm -rf src",
        "      | user: Clean up.",
        "      > exit 1",
        "      > rm: src: busy",
        "  kill  (kills)  ×2  seq 3",
        "3 candidates of 2 sessions, 8 moments",
        "      1  admits-mistake",
    ]:
        assert part in text, part


def test_nothing_that_is_shown_moves_the_cursor() -> None:
    story = Story(cwd="/x\x1b[2J").agent("oops \x1b[2J\x9b1A\u202e\r")
    assert all(line.isprintable() for line in shown([story.candidates(Prefilter())]))
