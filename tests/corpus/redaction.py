"""Texts as agents' transcripts have them, with made-up secrets in them or with what only looks like one.

`redaction.jsonl` holds one on a line: `kind`, whether the secret `goes`, the `text` with `{}` where the secret
stands, and the `secret` in parts, which are joined here so that no scanner takes the file for a leak.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

PATH = Path(__file__).with_suffix(".jsonl")
NAMED = ("private_key", "vendor_token", "jwt", "authorization", "url_password", "secret_key_value")
PIECE_CHARS = 6  # so much of a secret must not be left


class Sample(NamedTuple):
    number: int
    kind: str
    goes: bool
    text: str
    secret: str
    around: str

    def is_left(self, cleaned: str) -> bool:
        """Whether a piece of the secret is left that does not stand around it as well."""
        size = min(PIECE_CHARS, len(self.secret))
        pieces = {self.secret[at : at + size] for at in range(len(self.secret) - size + 1)}
        return any(piece in cleaned and piece not in self.around for piece in pieces)


class Count(NamedTuple):
    """Of the secrets of a kind, those that went; of the texts without one, those that were changed."""

    secrets: int = 0
    found: int = 0
    lookalikes: int = 0
    changed: int = 0


def samples() -> list[Sample]:
    lines = PATH.read_text(encoding="utf-8").splitlines()
    return [_sample(number, json.loads(line)) for number, line in enumerate(lines, 1)]


def _sample(number: int, row: dict[str, object]) -> Sample:
    kind, goes, text, parts = row["kind"], row["goes"], row["text"], row["secret"]
    assert isinstance(kind, str)
    assert isinstance(text, str)
    assert isinstance(parts, list)
    secret = "".join(parts)
    whole = text.replace("{}", secret, 1) if parts else text
    return Sample(number, kind, bool(goes), whole, secret, text)


def counted(clean: Callable[[str], str], of: Iterable[Sample]) -> dict[str, Count]:
    counts: dict[str, Count] = defaultdict(Count)
    for sample in of:
        cleaned, count = clean(sample.text), counts[sample.kind]
        if sample.goes:
            went = cleaned != sample.text and not sample.is_left(cleaned)
            counts[sample.kind] = count._replace(secrets=count.secrets + 1, found=count.found + went)
        else:
            changed = cleaned != sample.text
            counts[sample.kind] = count._replace(lookalikes=count.lookalikes + 1, changed=count.changed + changed)
    return dict(counts)
