"""What was said: an agent that admits a mistake, a person who objects, an alarm, blame of others' code.

The patterns are data, in `phrases`. Of what stands in a person's place only that counts which a person typed:
`typed` finds it. A short answer that goes along with nothing (`answers`) is taken though nothing in it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.daemons.sweep.model import ALARMED, FAINT, OBJECTED, SAID, WENT_WRONG
from ledger.daemons.sweep.prefilter import phrases
from ledger.daemons.sweep.prefilter.answers import is_plain
from ledger.daemons.sweep.prefilter.matching import Hit, Patterns, Rule, configured, table

ANSWER_CHARS_MAX = 200  # of an answer that is taken though nothing in it is known
WEAK_CHARS_MAX = 600  # of a text in which a plain "no" counts: in longer ones it is about something else

EXTRA_ALARM = Rule("extra-alarm", SAID, ALARMED, "A pattern of the configuration: scan.extra_alarm.")
REFUSED = Rule("person-refuses", SAID, OBJECTED, "A person refused what the agent was about to do.")
ANSWERS = Rule("answers-otherwise", SAID, FAINT, "A person answers with no yes, no request and no question.", most=3)


class Said:
    """What the configuration adds is part of it. Raises InvalidField for a bad pattern."""

    def __init__(self, extra_alarm: Iterable[str] = ()) -> None:
        alarms = table(SAID, ALARMED, phrases.ALARMS, fold=True)
        alarms += configured("scan.extra_alarm", extra_alarm, EXTRA_ALARM)
        admits = table(SAID, ALARMED, phrases.ADMITS, fold=True)
        others = [
            *table(SAID, WENT_WRONG, phrases.GIVES_WAY, fold=True),
            *table(SAID, WENT_WRONG, phrases.SHORTCUTS, fold=True),
            *table(SAID, WENT_WRONG, phrases.BLAMES, fold=True),
            *table(SAID, FAINT, phrases.REGRETS, fold=True, most=3),
        ]
        self._agent = Patterns([*admits, *alarms, *others])
        self._thought = Patterns(rule for rule in admits if rule[0].name == "admits-damage")
        self._person = Patterns([*table(SAID, OBJECTED, phrases.OBJECTS, fold=True), *alarms])
        self._person_in_short = Patterns(table(SAID, WENT_WRONG, phrases.OBJECTS_IN_SHORT, fold=True))

    def by_agent(self, text: str) -> Iterator[Hit]:
        return self._agent.hits(text)

    def thought(self, text: str) -> Iterator[Hit]:
        """Of what a model thinks, which is full of doubts, only damage counts."""
        return self._thought.hits(text)

    def by_person(self, text: str, *, answers: bool, done: bool, asked: bool) -> list[Hit]:
        """`text` as `typed` gives it; `answers` where an agent had said something before, `done` where it had done
        something, `asked` where it had ended with a question."""
        found = list(self._person.hits(text))
        if not found and answers and len(text) <= WEAK_CHARS_MAX:
            found = list(self._person_in_short.hits(text))
            if not found and done and len(text) <= ANSWER_CHARS_MAX and not is_plain(text, asked=asked):
                found = [Hit(ANSWERS, text, 0, len(text.encode(errors="replace")))]
        return found
