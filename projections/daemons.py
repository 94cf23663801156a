"""The names (`agent`) that the ledger's own daemons open their sessions with."""

from __future__ import annotations

LOOP = "ledgerd-loop"
LOOP_AGENTS = "ledgerd-loop-agents"  # what the agents of a loop say, a child of the loop's session
REMEDIATION = "ledgerd-remediation"
SWEEP = "ledgerd-sweep"

RESTING = frozenset({LOOP, LOOP_AGENTS, REMEDIATION})  # rest between ticks, so their silence says nothing
NO_AGENTS = frozenset({LOOP, REMEDIATION, SWEEP})  # decide; what works under them has sessions of its own
