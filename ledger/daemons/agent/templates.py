"""Puts values into the places that a template names, such as `{prompt}`: once, so that what was put in is text."""

from __future__ import annotations

import re
from collections.abc import Mapping


def resolve_prompt(text: str, tokens: Mapping[str, str]) -> str:
    """The text with each `{name}` of `tokens` replaced. Other braces stay as they are, and a value that itself holds
    `{name}` is not looked at again."""
    if not tokens:
        return text
    names = "|".join(re.escape(name) for name in sorted(tokens, key=len, reverse=True))
    return re.sub(rf"\{{({names})\}}", lambda found: tokens[found[1]], text)
