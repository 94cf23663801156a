"""What is looked for, and the part of it that has to go.

A rule gives spans of a text, each rule by itself and of the text as it came; so which of them are tried on a text,
and in which order, changes nothing as long as those that are left out find nothing there. For that a rule says what
a text must hold for it to find anything (`needs`), and also what the text must hold that is written as a JSON string:
there a newline is `\\n`, and a quote has a backslash before it.

The time is linear in the text: repeats are bounded or possessive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from ledger.client.redaction.harmless import is_code, is_harmless, is_operand, is_prose
from ledger.client.redaction.shapes import (
    ELSEWHERE,
    JWT,
    KEY_BEGINS,
    KEY_ENDS,
    PEM_IN_BASE64,
    PUTTY_BEGINS,
    PUTTY_ENDS,
    RUN,
    SHAPES,
)

Span = tuple[int, int]
Groups = Mapping[str, str]


class Rule(NamedTuple):
    """`needs` are patterns of which a text, also one that is written as JSON, must hold one; in lower case where
    `folds`. Every match of them begins with one of `near`; tokens alone, which have none, lie in a `RUN`.
    `spans(text, folded)` are what has to go, in order; `folded` is the text in lower case."""

    near: tuple[str, ...]
    needs: tuple[str, ...]
    spans: Callable[[str, str], Iterator[Span]]
    folds: bool = True


def finds(text: str, parts: tuple[str, ...]) -> Iterator[int]:
    """Where one of the parts begins, part by part."""
    for part in parts:
        at = text.find(part)
        while at >= 0:
            yield at
            at = text.find(part, at + len(part))


# Names that say secret: DB_PASSWORD, accessToken, x-api-key; not max_tokens, token_count, PWD=/home

_KEYS = (
    *("api", "access", "private", "secret", "encryption", "encrypt", "signing", "account", "auth", "master", "admin"),
    *("webhook", "hmac", "jwt", "openai", "anthropic", "stripe", "shared", "license", "session", "storage", "cookie"),
)
_PLAIN = r"password|passwd|passphrase|passcode|pwd(?!\W{1,5}[/~.])|secret_key_base|secret|token|credentials?"
_SECRETIVE = rf"(?:{_PLAIN}|(?:{'|'.join(_KEYS)})[_.-]?key)"
_LIKE_SECRETIVE = r"(?:pass(?:word|wd|phrase|code)|pwd|secret(?:_key_base)?|token|credentials?|[a-z]{2,12}[_.-]?key)"
_KEY_BEHIND = "|".join(f"(?<={what})|(?<={what}[_.-])" for what in _KEYS)
_NAMES = rf"{_PLAIN}|(?<=[_&?-])pass|(?<=[_/:\"'])auth|(?:{_KEY_BEHIND})key"  # found by what they begin with
_NAME_WORDS = ("pass", "pwd", "secret", "token", "credential", "key", "auth")
_LIKE_NAMES = r"(?:pass(?:word|wd|phrase|code)?|pwd|secret(?:_key_base)?|token|credentials?|key|auth)"
_NAME = re.compile(rf"[\w.-]{{0,100}}?(?:{_SECRETIVE}|[_-]pass)|pass|_?auth|(?:proxy-)?authorization", re.I | re.A)

_QUOTE = r"\\{0,8}[\"']"
_QUOTED = r"(?:(?!(?<!\\)(?P=quote))[^\n]){1,8000}+"  # to the same quote: one with more backslashes lies within
_BARE = (
    r"[^\s\"'\\,;&|)}\]<>]{1,4000}+(?:[,;)}|&](?=[a-z0-9!#%^*+~][^\s=:\"'\\]{0,100}+(?:\n|\Z))[^\s\"'\\]{1,100}+)?"
)
_VALUE = rf"(?:[bruf]{{0,2}}(?P<quote>{_QUOTE}))?(?P<value>(?(quote){_QUOTED}|{_BARE}))"
_GAP = r"(?:[\\\"'\]\sntrf])*"  # spaces and quotes, as JSON writes them too


def _value_rule(near: tuple[str, ...], needs: str, pattern: str, keeps: Callable[[Groups], bool]) -> Rule:
    """Spans of the group `value` of what `pattern`, in lower case, matches at one of `near`, unless `keeps` says of
    its groups, and of what comes `after`, that it may stay."""
    compiled = re.compile(pattern, re.ASCII)

    def spans(text: str, folded: str) -> Iterator[Span]:
        end = 0
        for at in sorted(set(finds(folded, near))):
            match = compiled.match(folded, at) if at >= end else None
            if match is None:
                continue
            groups = {name: text[slice(*match.span(name))] for name, value in match.groupdict().items() if value}
            if not keeps({**groups, "after": text[match.end() : match.end() + 8]}):
                yield match.span("value")
                end = match.end("value")

    return Rule(near, (needs,), spans)


def _harmless(groups: Groups) -> bool:
    return is_harmless(groups["value"])


def _code(groups: Groups) -> bool:
    value, sign = groups["value"], groups["sign"]
    if groups["name"].lower() in ("pass", "auth") and is_prose(value):
        return True  # first_pass = done, "auth": "bearer"
    quoted = "quote" in groups
    if not quoted and is_operand(groups["name"], sign, value, groups["after"]):
        return True
    return is_code(groups["name"], sign, value, quoted=quoted)


def _harmless_header(groups: Groups) -> bool:
    value = groups["value"]
    if groups.get("scheme", "").strip():
        return is_harmless(value) or value.lower() in ("token", "tokens", "authentication", "auth", "header")
    return is_prose(value) or (":" not in groups["sign"] and is_code("authorization", " = ", value, quoted=False))


def _prose(groups: Groups) -> bool:
    return is_prose(groups["value"])


# Private keys

_KEY_MARKS = re.compile(rf"(?P<begins>{KEY_BEGINS}|{PUTTY_BEGINS})|{KEY_ENDS}|{PUTTY_ENDS}")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{24,}")
_KEY_HEAD = r"(?:[\s\\nr]{0,8}[A-Z][A-Za-z-]{1,20}: [^\n\\]{1,200}+)"
_KEY_CUT = re.compile(  # as far as lines of base64 go, also numbered, quoted or escaped, and a last one's beginning
    rf"{_KEY_HEAD}{{0,4}}(?:(?:\\[nrt]|[^\w+/=]){{0,40}}(?:[0-9]{{1,6}}(?:\\t|\W){{1,3}})?[A-Za-z0-9+/=]{{24,}}+)+"
    r"(?:(?:\\[nrt]|[^\w+/=]){0,40}+(?:[0-9]{1,6}(?:\\t|\W){1,3})?[A-Za-z0-9+/=]{1,64}+)?"
)


def _private_keys(text: str, folded: str) -> Iterator[Span]:
    """From a beginning to the end that follows it, if a key lies between; else as far as lines of base64 go."""
    begun: re.Match[str] | None = None
    for mark in _KEY_MARKS.finditer(text):
        if mark["begins"]:
            if begun is not None:
                yield from _cut_key(text, begun, mark.start())
            begun = mark
        elif begun is not None:
            if _KEY_LINE.search(text, begun.end(), mark.start()):
                yield begun.start(), mark.end()
            begun = None
    if begun is not None:
        yield from _cut_key(text, begun, len(text))


def _cut_key(text: str, begun: re.Match[str], end: int) -> Iterator[Span]:
    body = _KEY_CUT.match(text, begun.end(), end)
    if body is not None:
        yield begun.start(), body.end()


# Tokens

_UNESCAPED = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))"  # what an escape ends with is no letter of a word
_RUN = re.compile(RUN)
TOKENS = (*(shape for _, shape in SHAPES), JWT, PEM_IN_BASE64)


def _shape_rule(near: str, shape: str) -> Rule:
    pattern = re.compile(shape)

    def spans(text: str, folded: str) -> Iterator[Span]:
        found = (pattern.match(text, at) for at in finds(text, (near,)))
        return (match.span() for match in found if match is not None)

    return Rule((near,), (shape,), spans, folds=False)


def _token_rule() -> Rule:
    pattern = re.compile(f"{_UNESCAPED}(?:{'|'.join(TOKENS)})")

    def spans(text: str, folded: str) -> Iterator[Span]:
        for run in _RUN.finditer(text):
            yield from (match.span() for match in pattern.finditer(text, *run.span()))

    return Rule((), TOKENS, spans, folds=False)


# Commands and phrases that take a password without a name

_COMMANDS = (
    r"(?:curl\b[^\n|;]{0,300}?\s(?:-u|--user)[\s=]{1,2}[\"']?[^\s:\"'/$]{1,100}:"
    r"|sshpass\s{1,3}-p\s?|redis-cli\b[^\n|;]{0,200}?\s(?:-a|--pass)\s|docker login\b[^\n|;]{0,200}?\s-p\s"
    r"|mysql(?:dump|admin|import)?\b[^\n|;]{0,200}?\s-p|identified by\s{1,3}|with (?:encrypted )?password\s{1,3}"
    r"|login\s{1,3}\S{1,100}\s{1,3}password\s{1,3})"
)
_COMMAND_WORDS = ("curl", "sshpass", "redis-cli", "docker login", "mysql", "identified by", "with ", "login")
_LIKE_COMMANDS = (
    r"(?:curl|sshpass|redis-cli|docker login|mysql|identified by|with (?:encrypted )?password|login[\s\\])"
)
_SPOKEN = rf"(?:-(?:[a-z0-9]{{1,20}}[_-]){{0,4}}|\b(?:env|arg|setx?) [\w./:@-]{{0,80}}?)(?P<name>{_SECRETIVE})"


@cache
def rules() -> tuple[Rule, ...]:
    """All rules; made when first asked for, since that takes longer than most programs look for secrets."""
    names = rf"(?P<name>{_NAMES})(?:{_QUOTE})?\]?(?P<sign>\s{{0,8}}(?::=|=>|:(?!:)|=(?!=))\s{{0,8}})"
    header = (
        rf"authorization(?:{_QUOTE})?(?P<sign>\s{{0,3}}[:=,]\s{{0,3}})(?:{_QUOTE})?"
        r"(?:(?P<scheme>(?:bearer|basic|token|apikey|negotiate|ssws|geniekey|splunk|bot|jwt|key|sso-key|apitoken"
        r"|zoho-oauthtoken|oauth)\s{1,3})|(?P<signed>(?:digest|hawk|mac|signature|aws4-hmac-sha256)\s{1,3}))?"
        r"(?P<value>(?(signed)[^\r\n'\\]{1,4000}+|(?:token=\"?)?[^\s\"'\\,;]{1,8000}+))"
    )
    return (
        Rule(("private key", "private-lines"), (r"private(?: key|-lines)",), _private_keys),
        _token_rule(),
        *(_shape_rule(near, shape) for _, near, shape in ELSEWHERE),
        _value_rule(
            ("://",),
            r"://[^\s/:@\"'<>\\]{0,200}+:[^\s/@\"'<>\\]{1,500}+@",
            r"://[^\s/:@\"'<>\\]{0,200}+:(?P<value>[^\s/@\"'<>\\]{1,500}+(?:@[^\s/@\"'<>\\]{1,100}(?=@))?)(?=@)",
            _harmless,
        ),
        _value_rule(("authorization",), rf"authorization{_GAP}[:=,]", header, _harmless_header),
        _value_rule(
            ("bearer",),
            r"bearer(?:\s|\\[nrtf]){1,3}[a-z0-9_.~+/=-]{16}",
            r"bearer\s{1,3}(?P<value>[a-z0-9_.~+/=-]{16,8000}+)",
            _prose,
        ),
        _value_rule(_NAME_WORDS, rf"{_LIKE_NAMES}{_GAP}(?::=|=>|:[^:]|=[^=])", rf"{names}{_VALUE}", _code),
        _value_rule(
            ("-", "env ", "arg ", "set ", "setx "),
            rf"(?:-(?:[a-z0-9]{{1,20}}[_-]){{0,4}}|(?:env|arg|setx?) [\w./:@-]{{0,80}}?){_LIKE_SECRETIVE}[ \t\\]",
            rf"{_SPOKEN}(?P<sign>[ \t]{{1,3}})(?![-=:|&>]){_VALUE}",
            _code,
        ),
        _value_rule(_COMMAND_WORDS, _LIKE_COMMANDS, rf"{_COMMANDS}{_VALUE}", _harmless),
    )


def is_secret(name: str | None, value: str) -> bool:
    """True for the value of a name that says secret, unless it gives nothing away or is a folder (PWD)."""
    if name is None or not value or _NAME.fullmatch(name) is None or is_harmless(value):
        return False
    if name.lower() in ("auth", "_auth", "pass"):
        return not is_prose(value)
    return not (name[-3:].lower() == "pwd" and value.startswith(("/", "~", ".")))
