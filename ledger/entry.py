"""Where the command `ledgerd` begins. An agent runs a hook at every step and waits for it, so hooks go past the
command line, of which loading alone would take longer than all that a hook does."""

from __future__ import annotations

import os
import sys


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["hook"]:
        from ledger.hooks.receiving import AGENTS, receive

        if words[1:2] and words[1] in AGENTS and not {"-h", "--help"} & set(words[2:]):
            receive(words[1], words[2:])
            os._exit(0)  # whatever has happened: an agent takes other codes for a veto

    from ledger.cli import main as command_line

    command_line(prog_name="ledgerd")
