"""What talks to a ledger. Daemons embed `Saddle`, or `AsyncSaddle` in asyncio; tools use `ledger.client.api.Api`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledger.client.asynchronous import AsyncSaddle
    from ledger.client.saddle import Saddle

__all__ = ["AsyncSaddle", "Saddle"]

_HOMES = {"AsyncSaddle": "ledger.client.asynchronous", "Saddle": "ledger.client.saddle"}


def __getattr__(name: str) -> Any:
    """Loads what is asked for: a command that only reads needs no outbox."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
