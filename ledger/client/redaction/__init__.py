"""Takes secrets out of what agents wrote, before it leaves the host or is written down.

What is taken out becomes `[REDACTED]`: private keys, tokens by the shapes that their vendors give them, JWTs, the
values of Authorization headers, passwords in URLs, the values of names that say secret, passwords that commands take,
and whatever further patterns ask for. Variable references, booleans, stars and plain numbers stay, since they give
nothing away. The same text always becomes the same text, so that what is delivered again is still the same.

The rooms: `shapes` (what vendors' tokens look like), `harmless` (what may stay), `rules` (what is looked for),
`screening` and its `database` (which rules may find something where), `texts` and `payloads` (where it is taken out).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from ledger.client.redaction.shapes import REDACTED
from ledger.errors import InvalidField

__all__ = ["REDACTED", "Redactor", "redact", "redact_line", "redact_payload"]


class Redactor:
    """`further` are patterns (Python's `re`) of which every match is taken out too. Raises InvalidField for one that
    is none."""

    def __init__(self, further: Iterable[str] = ()) -> None:
        self._further = tuple(map(_compiled, further))

    def redact(self, text: str) -> str:
        """The text without secrets; the same object where there are none."""
        from ledger.client.redaction.texts import clean  # to compile the patterns takes longer than all other imports

        return clean(text, self._further)

    def redact_payload(self, payload: bytes) -> bytes:
        """JSON without secrets: in its strings, and as the value of a name that says secret. All else stays byte for
        byte; the same object where there are none. `payload` is valid JSON in UTF-8."""
        return self.redact_payloads([payload])[0]

    def redact_payloads(self, payloads: Sequence[bytes]) -> list[bytes]:
        """As `redact_payload`, and quicker for many: all are screened at once, and only those read that may hold
        something."""
        from ledger.client.redaction.payloads import clean_payloads

        return clean_payloads(payloads, self._further)

    def redact_line(self, line: bytes) -> bytes:
        """A line of what a program prints, without secrets; the same object where there are none. It is taken for
        JSON where it is an object or a list of it, else for text, of which bytes that are no UTF-8 stay."""
        if line.lstrip()[:1] in (b"{", b"["):
            try:
                json.loads(line)
            except (ValueError, RecursionError):
                pass
            else:
                return self.redact_payload(line)
        text = line.decode(errors="surrogateescape")
        cleaned = self.redact(text)
        return line if cleaned is text else cleaned.encode(errors="surrogateescape")


def redact(text: str) -> str:
    """The text without secrets of the kinds that are always looked for."""
    return _DEFAULT.redact(text)


def redact_payload(payload: bytes) -> bytes:
    """JSON without secrets of the kinds that are always looked for, as `Redactor.redact_payload`."""
    return _DEFAULT.redact_payload(payload)


def redact_line(line: bytes) -> bytes:
    """A line of output without secrets of the kinds that are always looked for, as `Redactor.redact_line`."""
    return _DEFAULT.redact_line(line)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidField("pattern", f"{pattern!r} is no regular expression: {error}") from error


_DEFAULT = Redactor()
