from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.postgres import postgres

__all__ = ["postgres"]

# Hundreds of servers and commands run in processes of their own: none of them shall compile ledgerd anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# What is compiled once and kept lies in this checkout, not in the user's own cache
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).resolve().parent.parent / ".pytest_cache" / "xdg")

settings.register_profile(
    "ledgerd", print_blob=True, deadline=None
)  # a failure can be repeated, a slow machine is none
settings.load_profile("ledgerd")

SHARED_IN_A_MODULE = frozenset({"server", "browser"})


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run in parallel (`--dist loadgroup`), those that share a module's server or browser share a
    process too. All others run wherever there is room."""
    for item in items:
        if SHARED_IN_A_MODULE & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
