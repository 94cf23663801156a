"""Takes secrets out of JSON: of its strings, and as the value of a name that says secret. All else stays byte for
byte."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from ledger.client.redaction.rules import is_secret
from ledger.client.redaction.screening import suspects
from ledger.client.redaction.shapes import REDACTED
from ledger.client.redaction.texts import clean_by

_LITERAL = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*+:\s*+)?', re.DOTALL)


def clean_payloads(payloads: Sequence[bytes], further: Sequence[re.Pattern[str]] = ()) -> list[bytes]:
    """The payloads without secrets, each the same object where there are none."""
    masks = dict.fromkeys(range(len(payloads)), 0) if further else {}
    masks |= suspects(payloads)
    cleaned = list(payloads)
    for number, mask in masks.items():
        cleaned[number] = _clean(mask, payloads[number], further)
    return cleaned


def _clean(mask: int, payload: bytes, further: Sequence[re.Pattern[str]]) -> bytes:
    pieces: list[bytes] = []
    end = end_of_name = 0
    name: str | None = None
    for literal in _LITERAL.finditer(payload):
        text = _text_of(literal[1])
        is_name = literal[2] is not None
        hidden = not is_name and literal.start() == end_of_name and is_secret(name, text)
        whole = REDACTED if hidden else clean_by(mask, text, further)
        name, end_of_name = text if is_name else None, literal.end()
        if whole is not text:
            written = json.dumps(whole, ensure_ascii=False)[1:-1].encode(errors="surrogatepass")
            pieces += [payload[end : literal.start(1)], written]
            end = literal.end(1)
    return b"".join([*pieces, payload[end:]]) if pieces else payload


def _text_of(literal: bytes) -> str:
    """What stands between the quotes of a JSON string."""
    text: str = json.loads(b'"%b"' % literal, strict=False) if b"\\" in literal else literal.decode(errors="replace")
    return text
