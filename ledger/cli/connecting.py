"""How a command reaches the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.cli.settings import current_settings

if TYPE_CHECKING:
    from ledger.client.api import Api


def connect() -> Api:
    """A client of the server that the settings `url` and `token` name, else of the one on this machine with the
    owner token that it left beside its store. Used as a context manager."""
    from ledger.client.api import Api, server_from_environment

    settings = current_settings()
    url, token = server_from_environment()
    return Api(settings.url or url, settings.token or token)
