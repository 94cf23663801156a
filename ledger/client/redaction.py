"""Takes secrets out of what agents wrote, before it leaves the host or is written down.

What is taken out becomes `[REDACTED]`: private keys, tokens by the shapes that their vendors give them, JWTs, the
values of Authorization headers, passwords in URLs, the values of names that say secret, and whatever further patterns
ask for. Variable references, booleans, stars and plain numbers stay, since they give nothing away. The same text
always becomes the same text, so that what is delivered again is still the same.

The shapes follow what the vendors document and what detect-secrets and gitleaks look for. The time is linear in the
text: repeats are bounded or possessive, and no pattern is tried on a text that lacks what it needs.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from ledger.errors import InvalidField

REDACTED = "[REDACTED]"

Groups = Mapping[str, str]

# Shapes of tokens. Each holds 15 characters in a row of those that `_RUN` names, from its beginning.
_TOKENS = (
    # GitHub, GitLab
    r"gh[pousr]_[A-Za-z0-9]{30,255}",
    r"github_pat_[A-Za-z0-9_]{22,255}",
    r"gl(?:pat|dt|rt|ptt|ft|soat|cbt|imt|agent|ffct)-[A-Za-z0-9_.-]{20,300}",
    # AWS, Google, DigitalOcean
    r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"AIza[A-Za-z0-9_-]{35}",
    r"ya29\.[A-Za-z0-9_-]{20,500}",
    r"GOCSPX-[A-Za-z0-9_-]{20,64}",
    r"do[opr]_v1_[a-f0-9]{64}",
    # Anthropic, OpenAI, OpenRouter, DeepSeek; Groq, xAI, Perplexity, Hugging Face, Replicate
    r"sk-(?:(?:ant|proj|svcacct|admin|or|lf)-[A-Za-z0-9_-]{16,300}|[A-Za-z0-9]{20,200})",
    r"gsk_[A-Za-z0-9]{40,100}",
    r"xai-[A-Za-z0-9]{60,120}",
    r"pplx-[A-Za-z0-9]{40,80}",
    r"hf_[A-Za-z0-9]{30,100}",
    r"r8_[A-Za-z0-9]{37,60}",
    # Slack, Telegram, Twilio, SendGrid, Mailgun
    r"xox[abeoprs]-[A-Za-z0-9-]{10,250}",
    r"xapp-[A-Za-z0-9-]{10,250}",
    r"SK[a-f0-9]{32}(?![A-Za-z0-9])",
    r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",
    r"key-[a-f0-9]{32}",
    # Stripe, Shopify, Databricks, package registries, Docker
    r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,250}",
    r"whsec_[A-Za-z0-9]{20,100}",
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    r"dapi[a-f0-9]{32}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_-]{50,500}",
    r"rubygems_[a-f0-9]{48}",
    r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,60}",
    # Vault, Doppler, Linear, Notion, Figma, Supabase, Postman, Atlassian, Grafana, New Relic, Sentry, age
    r"hvs\.[A-Za-z0-9_-]{20,300}",
    r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9]{40,44}",
    r"lin_api_[A-Za-z0-9]{32,64}",
    r"ntn_[A-Za-z0-9]{40,60}",
    r"figd_[A-Za-z0-9_-]{20,60}",
    r"sbp_[a-f0-9]{40}",
    r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    r"ATATT3[A-Za-z0-9_=-]{20,300}",
    r"glsa_[A-Za-z0-9_]{32,60}",
    r"NRAK-[A-Z0-9]{27}",
    r"sntrys_[A-Za-z0-9+/=_-]{40,300}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{58}",
    # a ledger's own
    r"ld_(?:owner|reader|saddle)_[A-Za-z0-9_-]{30,100}",
    # JWTs
    r"eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{4,16000}\.[A-Za-z0-9_-]{0,2000}",
)
_RUN = re.compile(r"[A-Za-z0-9_.-]{15,}+")
_OTHER_TOKENS = (
    r":AA[A-Za-z0-9_-]{33}",  # Telegram
    r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,200}",
)
_KEY_BEGINS = r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_PRIVATE_KEY = rf"{_KEY_BEGINS}(?:[^-]|-(?!----END))*+(?:{_KEY_BEGINS.replace('BEGIN', 'END')})?"
_IN_URL = r"(?P<kept>://[^\s/:@\"'<>\\]{0,200}+:)(?P<value>[^\s/@\"'<>\\]{1,500}+)(?=@)"
_AUTHORIZATION = (
    r"(?P<kept>authorization(?:\\{0,4}[\"'])?\s{0,3}[:=]\s{0,3}(?:\\{0,4}[\"'])?"
    r"(?:(?:bearer|basic|token|digest|apikey|negotiate)\s{1,3})?)(?P<value>[^\s\"'\\,;]{1,5000}+)"
)
_BEARER = r"(?P<kept>bearer\s{1,3})(?P<value>[A-Za-z0-9_.~+/=-]{16,5000}+)"

# The end of a name that says secret: DB_PASSWORD, accessToken, x-api-key; not max_tokens, token_count, PWD=/home
_KEYS = ("api", "access", "private", "secret", "encryption", "signing", "account", "auth")
_SECRETIVE = (
    r"(?:password|passwd|passphrase|passcode|pwd(?!\W{1,5}[/~.])|secret|token|credentials?"
    rf"|(?:{'|'.join(_KEYS)})[_.-]?key)"
)
_SECRET_NAME = re.compile(rf"[\w.-]{{0,100}}?{_SECRETIVE}|(?:proxy-)?authorization", re.IGNORECASE)
_WORDS = ("password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential", "key")
_ASSIGNED = (  # found by one of the words, so what stands before `key` is looked at behind it
    r"(?P<name>password|passwd|passphrase|passcode|pwd(?!\W{1,5}[/~.])|secret|token|credentials?"
    rf"|(?:{'|'.join(f'(?<={what})|(?<={what}[_.-])' for what in _KEYS)})key)"
    r"(?:\\{0,4}[\"'])?(?P<sign>\s{0,3}(?::=|=>|[:=])\s{0,3})(?P<quote>\\{0,4}[\"'])?"
    r"(?P<value>(?(quote)[^\"'\\\n]{1,2000}+|[^\s\"'\\,;&|)}\]<>]{1,2000}+))"
)
_FLAGGED = rf"-(?:[a-z0-9]{{1,20}}[_-]){{0,4}}(?P<name>{_SECRETIVE})(?P<sign> )"
_FLAG = rf"(?P<kept>{_FLAGGED}(?P<quote>[\"'])?)(?P<value>[^\s\"'-][^\s\"']{{0,2000}}+)"

_HARMLESS = re.compile(
    r"""[^A-Za-z0-9]+ | \[REDACTED\]? | x{3,} | [+-]?[0-9][0-9_.,]*                        # stars, plain numbers
    | (?:true|false|yes|no|on|off|null|none|nil|undefined|void|str|string|bytes|int|bool|boolean|number|any|object)
    | \\?[$].* | %[A-Za-z_]\w*%.* | \{\{?[A-Za-z_. ].* | <.* | @.* | (?-i:[A-Z][A-Z_]+)      # $X, %X%, {{ x }}, TOKEN
    | (?:process\.)?env[.\[(].* | os\.(?:environ|getenv).* | (?:self|this|args|config|settings|secrets|vars)[.\[].*
    | [A-Za-z_][\w.]*[(\[].*                                                              # code that fetches it
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_CODE_WORD = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*")
_LITERAL = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*+:\s*+)?', re.DOTALL)


class _Rule(NamedTuple):
    """`near` is what `pattern` begins with, as texts or as a pattern that is quick to find. Where `keeps` is None all
    that is matched is taken out; else both are written in lower case, and `keeps` says of a match (by its groups,
    as they stand in the text) whether it stays, else its `value` is taken out."""

    near: tuple[str, ...] | re.Pattern[str]
    pattern: re.Pattern[str]
    keeps: Callable[[Groups], bool] | None = None

    def hits(self, text: str, folded: str) -> Iterator[int]:
        """Where the pattern matches, or may."""
        searched = text if self.keeps is None else folded
        if isinstance(self.near, re.Pattern):
            yield from (hit.start() for hit in self.near.finditer(searched))
        else:
            found = sorted(at for near in self.near for at in _finds(searched, near))
            yield from (at for at in found if self.pattern.match(searched, at))

    def applied(self, text: str, folded: str) -> str:
        if self.keeps is None:
            return self.pattern.sub(REDACTED, text)
        pieces, end = [], 0
        for hit in self.hits(text, folded):
            match = self.pattern.match(folded, hit) if hit >= end else None
            if match is None:
                continue
            groups = {name: text[slice(*match.span(name))] for name in match.groupdict()}
            if not self.keeps(groups):
                pieces += [text[end : match.start("value")], REDACTED]
                end = match.end("value")
        return "".join([*pieces, text[end:]]) if pieces else text


def _finds(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _is_harmless(groups: Groups) -> bool:
    return _HARMLESS.fullmatch(groups["value"]) is not None


def _reads_like_code(groups: Groups) -> bool:
    """True also for a bare word behind a space, with a dot, or that only repeats its name: code, or prose."""
    value = groups["value"]
    is_word = not groups["quote"] and _CODE_WORD.fullmatch(value) is not None
    if is_word and (
        groups["sign"] not in ("=", ":=") or "." in value or value.lower().endswith(groups["name"].lower())
    ):
        return True
    return _is_harmless(groups)


_ANY_TOKEN = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_TOKENS)})")
_TOKEN = _Rule(_ANY_TOKEN, _ANY_TOKEN)
_RULES = (
    _Rule(re.compile(_KEY_BEGINS), re.compile(_PRIVATE_KEY)),
    _TOKEN,
    *(_Rule(re.compile(shape), re.compile(shape)) for shape in _OTHER_TOKENS),
    _Rule(re.compile(_IN_URL), re.compile(_IN_URL), _is_harmless),
    _Rule(("authorization",), re.compile(_AUTHORIZATION), _is_harmless),
    _Rule(("bearer",), re.compile(_BEARER), _is_harmless),
    _Rule(_WORDS, re.compile(_ASSIGNED), _reads_like_code),
    _Rule(re.compile(_FLAGGED), re.compile(_FLAG), _reads_like_code),
)


class Redactor:
    """`further` are patterns (Python's `re`) of which every match is taken out too. Raises InvalidField for one that
    is none."""

    def __init__(self, further: Iterable[str] = ()) -> None:
        own = map(_compiled, further)
        self._rules = (*_RULES, *(_Rule(pattern, pattern) for pattern in own))

    def redact(self, text: str) -> str:
        """The text without secrets; the same object where there are none."""
        return _applied(self._rules, text)

    def redact_payload(self, payload: bytes) -> bytes:
        """JSON without secrets: in its strings, and as the value of a name that says secret. All else stays byte for
        byte; the same object where there are none. `payload` is valid JSON in UTF-8."""
        return self.redact_payloads([payload])[0]

    def redact_payloads(self, payloads: Sequence[bytes]) -> list[bytes]:
        """As `redact_payload`, and quicker for many: all are searched at once, and only those read that may hold
        something."""
        text = b"\n".join(payloads).decode("latin-1")  # a character for each byte: what is looked for is ASCII
        folded = text.lower()
        starts = list(accumulate((len(payload) + 1 for payload in payloads), initial=0))
        suspects: set[int] = set()
        rules: list[_Rule] = []
        for rule in self._rules:
            if rule is _TOKEN and not rule.pattern.search("\n".join(set(_RUN.findall(text)))):
                continue
            if hits := {bisect_right(starts, hit) - 1 for hit in rule.hits(text, folded)}:
                suspects |= hits
                rules.append(rule)
        return [_read(rules, one) if number in suspects else one for number, one in enumerate(payloads)]


def _read(rules: Sequence[_Rule], payload: bytes) -> bytes:
    """A payload without what these rules take out, and without the values of names that say secret."""
    pieces: list[bytes] = []
    end = end_of_name = 0
    name: str | None = None
    for literal in _LITERAL.finditer(payload):
        text = _text_of(literal[1])
        is_name = literal[2] is not None
        is_secret = not is_name and literal.start() == end_of_name and _is_secret(name, text)
        clean = REDACTED if is_secret else _applied(rules, text)
        name, end_of_name = text if is_name else None, literal.end()
        if clean is not text:
            written = json.dumps(clean, ensure_ascii=False)[1:-1].encode(errors="surrogatepass")
            pieces += [payload[end : literal.start(1)], written]
            end = literal.end(1)
    return b"".join([*pieces, payload[end:]]) if pieces else payload


def _is_secret(name: str | None, value: str) -> bool:
    """True for the value of a name that says secret, unless it gives nothing away or is a folder (PWD)."""
    if name is None or not value or _SECRET_NAME.fullmatch(name) is None or _HARMLESS.fullmatch(value):
        return False
    return not (name[-3:].lower() == "pwd" and value.startswith(("/", "~", ".")))


def _applied(rules: Sequence[_Rule], text: str) -> str:
    folded = _folded(text)
    for rule in rules:
        if next(rule.hits(text, folded), None) is not None:
            clean = rule.applied(text, folded)
            if clean != text:
                text, folded = clean, _folded(clean)
    return text


def redact(text: str) -> str:
    """The text without secrets of the kinds that are always looked for."""
    return _DEFAULT.redact(text)


def redact_payload(payload: bytes) -> bytes:
    """JSON without secrets of the kinds that are always looked for, as `Redactor.redact_payload`."""
    return _DEFAULT.redact_payload(payload)


def _folded(text: str) -> str:
    """In lower case, character for character."""
    lower = text.lower()
    return (
        lower
        if len(lower) == len(text)
        else text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")
    )


def _text_of(literal: bytes) -> str:
    """What stands between the quotes of a JSON string."""
    text: str = json.loads(b'"%b"' % literal, strict=False) if b"\\" in literal else literal.decode(errors="replace")
    return text


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidField("pattern", f"{pattern!r} is no regular expression: {error}") from error


_DEFAULT = Redactor()
