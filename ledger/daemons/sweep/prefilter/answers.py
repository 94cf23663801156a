"""Short answers of a person that go along with the work: a yes, thanks, a request, a question, what was asked
for. What is none of these may be an objection in words that nobody foresaw."""

from __future__ import annotations

import re

from ledger.daemons.sweep.prefilter.shell import words

_REQUESTS = re.compile(
    r"^(?:please|pls|let['’]?s|lets|(?:can|could|would|will) (?:you|we)|i(?:['’]d| would)? (?:want|need|like|prefer)"
    r"(?: you)? to|we (?:need|should|want) to|go ahead)\b",
    re.IGNORECASE,
)
_OPENINGS = re.compile(
    r"^(?:now|then|also|and|ok(?:ay)?|great|good|nice|next|just|so|alright|cool|thanks|thank you|perfect|hi|hello|hey"
    r"|yes|yep|yeah|sure|finally|first|again|in \S+|you (?:can|may))\b[\s,.!:;-]*",
    re.IGNORECASE,
)
_YES = words(
    "absolutely agreed all another approve approved awesome both continue cool correct done either exactly"
    " excellent fine go good great lgtm like looks love neither nevermind nice nvm ok okay option perfect proceed"
    " resume retry right sounds sure thank thanks the-second works wow y yeah yep yes yup"
)
_VERBS = words(
    "add allow analyse analyze apply ask build bump change check clean close combine comment commit compare"
    " complete configure convert copy cover create debug define delete deploy describe design do document draft"
    " drop enable ensure estimate evaluate expand explain explore export extend extract figure fill find finish"
    " fix focus follow format generate get give handle help here hide highlight implement import improve include"
    " increase initialize inspect install integrate investigate keep leave limit link list load look lower make"
    " merge migrate mock modify move name note open optimise optimize organise organize plan polish port prepare"
    " print propose provide publish pull push put read recommend reduce refactor remember remove rename reorder"
    " replace report reproduce rerun research reset resolve restart return review rewrite run save scan search see"
    " send set setup share ship shorten show simplify skip sort split start submit suggest summarise summarize"
    " support swap switch sync take tell test think track translate try turn tweak update upgrade use validate"
    " verify view wait walk work wrap write zoom"
)
_QUESTIONS = words(
    "what what's whats how how's which where when who does do is are can could should would will any anything did"
    " has have was why"
)
_ASIDE = re.compile(
    r"\bplease\b|\bno need\b|\bnot needed\b|^(?:the )?(?:first|second|third|last|latter|former)\b|^i (?:like|love)\b"
)
_QUESTION = re.compile(r"\?[\s)*_\"'”’»`]*$", re.MULTILINE)
_QUESTION_LINES = 3  # the last ones: choices may stand behind it
# What speaks of what was done, or of its end, rather than naming what was asked for
_OF_THE_WORK = re.compile(
    r"^(?:you|u|ur|this|that|these|those|it|nothing|everything|nobody|same|still|never|again|oh|omg|hm+|huh|wtf|dude"
    r"|excuse|bad)\b|\b(?:you|ur|your)\b|n['’]?t\b|\b(?:not|never|nothing|lost|gone|down|wrong|broken|redo|again"
    r"|frustrat\w*|uncommitted|garbage|everything|because)\b|!"
)
_COMMAND = re.compile(r"[/!@#] ?\S|https?://|\[")


def asks(text: str) -> bool:
    """Whether what an agent says ends with a question, or with choices behind one."""
    lines = [line for line in text[-2_000:].splitlines() if line.strip()]
    return any(_QUESTION.search(line) for line in lines[-_QUESTION_LINES:])


def is_plain(text: str, *, asked: bool = False) -> bool:
    """Whether a short answer is a yes, a request or a question by how it begins, or a command, a list or a number;
    where something was `asked`, also whatever says nothing of the work."""
    left = text.strip().lower()
    if asked and not _OF_THE_WORK.search(left):
        return True
    if _ASIDE.search(left):
        return True
    if _COMMAND.match(left) or not re.search(r"[a-z]{2}", left):
        return True
    began_plainly = False
    for _ in range(4):
        opened = _OPENINGS.match(left)
        if opened is None:
            break
        left, began_plainly = left[opened.end() :], True
    if _REQUESTS.match(left):
        return True
    first = re.match(r"[a-z'’]+", left)
    if first is None:
        return began_plainly or not left or not left[0].isascii()
    word = first[0].replace("’", "'")
    return word in _YES or word in _VERBS or word in _QUESTIONS or (began_plainly and len(left.split()) < 4)
