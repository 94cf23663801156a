"""What stands where a secret might and gives nothing away: references, placeholders, code that fetches one, words."""

from __future__ import annotations

import re

HARMLESS = re.compile(
    r"""[^A-Za-z0-9]+ | \[REDACTED\]? | x{3,} | [+-]?[0-9][0-9_.,]*  # stars, plain numbers
    | (?:true|false|yes|no|on|off|null|none|nil|undefined|void|str|string|bytes|int|bool|boolean|number|any|object)
    | (?:required|optional|redacted|masked|hidden|unset|include|omit|same-origin)
    | \\?[$].* | %[A-Za-z_]\w*%.* | %\(?[a-z_]*\)?[a-z] | \{\{?[A-Za-z_. ].* | [<@`].*  # references
    | !(?:Ref|Sub|GetAtt|env|vault) | [*&][A-Za-z].*
    | [\w-]{0,20}\{[A-Za-z_][^}]*\}.* | (?-i:[A-Z][A-Z_]+)  # TOKEN
    | .{0,12}(?:\.\.\.|…|\*{3,}|[xX]{4,}).{0,4}  # masked: sk-…, ab***
    | (?:your|my|the|some)[_ -](?:[a-z]{1,20}[_ -]){0,4}(?:password|passwd|passphrase|secret|token|key|credentials?)
        (?:[_ -]here)?
    | (?:\$?\{)?(?:process\.)?env[.\[(:].* | os\.(?:environ|getenv).*
    | (?:self|this|args|config|settings|secrets|vars|var|local|data|module)[.\[].*
    | [A-Za-z_]\w*+(?:(?:::|->|\?\.|!?\.)\w++)*+!?[(\[].*  # code that fetches it
    | (?-i:(?:~|\.{1,2})?(?:/[a-z0-9_.-]{1,40}){2,}/?)  # where it lies
    | (?:~|\.{1,2})/[\w./-]+
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL | re.ASCII,
)

# A word of letters alone, as code and prose have them behind a name that says secret
_WORD = re.compile(r"[A-Za-z_]++(?:(?:\.|::|->)[A-Za-z_]++)*+[?!]?", re.ASCII)
_VARIABLE = re.compile(
    r"""[a-z]++(?:_[a-z]++)++ | [a-z]++(?:[A-Z][a-z]++)++ | _++[a-z_]++  # snake_case, camelCase
    | await|new|yield|not|self|this|typeof|async|function|lambda|input|getpass|raw|value|values|data|result
    | text|line|default|args|name|match|user|item|field|next|prev|current|parts?|fn|await|let|const|if|else|for
    | [a-z]""",
    re.VERBOSE | re.ASCII,
)
_GOES_ON = re.compile(r"\s(?:or|and|if|else|in|is|for)\b|\s?(?:\?|\|\||&&)")
_BEHIND = "`.,;:!?')"  # what a sentence, or a call, puts behind a value
_MERE_WORDS = re.compile(r"[A-Za-z]?[a-z]++(?:[-_./][a-z]++)*+[.]?", re.ASCII)


def is_harmless(value: str) -> bool:
    return any(HARMLESS.fullmatch(one) is not None for one in (value, value.rstrip(_BEHIND)))


def is_operand(name: str, sign: str, value: str, after: str) -> bool:
    """True for a bare value that is part of an expression: something in brackets, an argument (of a name in lower
    case: others are variables of a shell), or, where there are spaces, one side of `or`."""
    if value.startswith(("(", "[")):
        return True
    if _WORD.fullmatch(value) is None:
        return False
    return (name.islower() and after.startswith((")", ", "))) or (sign != "=" and _GOES_ON.match(after) is not None)


def is_code(name: str, sign: str, value: str, *, quoted: bool) -> bool:
    """True also for a bare word where code, or prose, has one: behind a colon or a space, with a dot, one that only
    repeats its name, or a variable's name between spaces (`token = next_token`)."""
    if not quoted and _WORD.fullmatch(value) is not None:
        if sign.strip() not in ("=", ":=") or "." in value or "::" in value or "->" in value:
            return True
        if value.lower().endswith(name.lower()):
            return True
        if sign not in ("=", ":=") and _VARIABLE.fullmatch(value) is not None:
            return True
    return is_harmless(value)


def is_prose(value: str) -> bool:
    """True for mere words, joined or not: what stands behind `bearer` or `authorization:` in a sentence."""
    return _MERE_WORDS.fullmatch(value.rstrip(_BEHIND)) is not None or is_harmless(value)
