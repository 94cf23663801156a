"""Candidates in the making: each rule and likeness once in a session, with what was said before it and after it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from ledger.daemons.sweep.model import BEHAVED, Candidate, Found, Moment
from ledger.daemons.sweep.prefilter.clipping import Clipper
from ledger.daemons.sweep.prefilter.matching import Rule
from ledger.events.times import format_instant, parse_instant

BEFORE, AFTER = 4, 4  # lines of a turn
MARK = "»"  # stands before the line of a turn that the snippet is of
MARKED_CHARS_MAX = 100


class Draft(msgspec.Struct):
    rule: Rule
    moment: Moment
    snippet: str
    evidence: tuple[str, ...]
    turn: list[str]
    lines_to_come: int = AFTER
    count: int = 1


class Line:
    """Something that was said or done, to be shown in one line if need be."""

    def __init__(self, who: str, text: str) -> None:
        self._who = who
        self._text = text
        self._shown: str | None = None

    def shown(self, clipper: Clipper) -> str:
        if self._shown is None:
            self._shown = f"{self._who}: {clipper.line(self._text)}"
            self._text = ""
        return self._shown


class Turn:
    """The lines around where a session stands, and the drafts that wait for lines to come."""

    def __init__(self, clipper: Clipper) -> None:
        self._clipper = clipper
        self._before: deque[Line] = deque(maxlen=BEFORE)
        self._asked: Line | None = None
        self._waiting: list[Draft] = []

    def line(self, who: str, text: str, *, asks: bool = False) -> None:
        """Comes behind all that has come. `asks`: a person's, which what follows answers."""
        line = Line(who, text)
        for draft in self._waiting:
            draft.turn.append(line.shown(self._clipper))
            draft.lines_to_come -= 1
        if self._waiting:
            self._waiting = [draft for draft in self._waiting if draft.lines_to_come > 0]
        if asks:
            self._asked = line
        self._before.append(line)

    def before(self) -> list[str]:
        lines = list(self._before)
        if self._asked is not None and self._asked not in lines:
            lines.insert(0, self._asked)
        return [line.shown(self._clipper) for line in lines]

    def wait(self, draft: Draft) -> None:
        self._waiting.append(draft)


class Gathering:
    """The drafts of one session."""

    def __init__(self, found: Found) -> None:
        self.left_out = 0
        self._found = found
        self._drafts: dict[tuple[str, str], Draft] = {}
        self._likenesses: dict[str, int] = {}

    def holds(self, rule: Rule, likeness: str) -> bool:
        return (rule.name, likeness) in self._drafts

    def again(self, rule: Rule, likeness: str, digest: str | None = None) -> bool:
        """Whether this has fired before in the session, or too many like it have; it is counted. The `digest` of a
        behaviour takes the place of the earlier one."""
        draft = self._drafts.get((rule.name, likeness))
        if draft is None:
            if self._likenesses.get(rule.name, 0) < rule.most:
                return False
            self.left_out += 1
            return True
        if digest is not None:
            draft.snippet = digest
        else:
            draft.count += 1
        return True

    def add(
        self,
        rule: Rule,
        likeness: str,
        moment: Moment,
        turn: Turn,
        *,
        who: str,
        snippet: str,
        evidence: Iterable[str] = (),
    ) -> Draft:
        """The first time that this fires; `snippet` and `evidence` are redacted and bounded."""
        behaved = rule.kind == BEHAVED
        lines = [] if behaved else [*turn.before(), f"{MARK} {who}: {snippet[:MARKED_CHARS_MAX]}"]
        draft = Draft(rule, moment, snippet, tuple(evidence), lines)
        self._drafts[rule.name, likeness] = draft
        self._likenesses[rule.name] = self._likenesses.get(rule.name, 0) + 1
        if not behaved:
            turn.wait(draft)
        return draft

    def candidates(self) -> tuple[Candidate, ...]:
        """The worst first, then in the order in which they fired."""
        drafts = sorted(self._drafts.values(), key=lambda draft: draft.rule.rank)
        return tuple(self._candidate(draft) for draft in drafts)

    def _candidate(self, draft: Draft) -> Candidate:
        at_ns = parse_instant(draft.moment.at)
        return Candidate(
            source=self._found.source,
            key=self._found.key,
            session_id=draft.moment.session_id,
            seq=draft.moment.seq,
            rule=draft.rule.name,
            kind=draft.rule.kind,
            rank=draft.rule.rank,
            why=draft.rule.why,
            snippet=draft.snippet,
            turn=tuple(draft.turn),
            evidence=draft.evidence,
            count=draft.count,
            at=None if at_ns is None else format_instant(at_ns),
        )
