"""The options by which a command takes secrets out of what it tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ledger.client.redaction import Redactor

F = TypeVar("F", bound=Callable[..., Any])


def redact_options(command: F) -> F:
    """`--redact/--no-redact`, `--redact-also`: passes `redact`, `patterns`."""
    options = (
        click.option(
            "--redact/--no-redact", default=True, help="Take secrets out before anything is sent (default)."
        ),
        click.option(
            "--redact-also", "patterns", multiple=True, metavar="REGEX", help="Take out what this matches, too."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def redactor_for(redact: bool, patterns: Iterable[str]) -> Redactor | None:
    """None where nothing is to be taken out. Raises InvalidField for a pattern that is none."""
    from ledger.client.redaction import Redactor

    return Redactor(patterns) if redact else None
