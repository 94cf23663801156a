"""The only place that starts agents: under a guard, with limits, and with all that they say told in a session.

`run_turn` gives an agent a prompt and takes its reply, for the daemons. `Agent` runs a command that somebody named,
with its output passing through, for `ledgerd run` and `ledgerd worker`.
"""

from ledger.daemons.agent.commands import PASSED_ON, Agent, passing_signals_on
from ledger.daemons.agent.leftovers import end_leftovers
from ledger.daemons.agent.outputs import LINE_BYTES_MAX, OUTPUT_LOST
from ledger.daemons.agent.presets import PRESETS, command_for
from ledger.daemons.agent.processes import Stopping
from ledger.daemons.agent.results import ACTOR, Ended, environment_of, push_result
from ledger.daemons.agent.stopping import Stop, stopping_on_signals
from ledger.daemons.agent.templates import resolve_prompt
from ledger.daemons.agent.turns import Limits, Reply, Turn, run_turn

__all__ = [
    "ACTOR",
    "LINE_BYTES_MAX",
    "OUTPUT_LOST",
    "PASSED_ON",
    "PRESETS",
    "Agent",
    "Ended",
    "Limits",
    "Reply",
    "Stop",
    "Stopping",
    "Turn",
    "command_for",
    "end_leftovers",
    "environment_of",
    "passing_signals_on",
    "push_result",
    "resolve_prompt",
    "run_turn",
    "stopping_on_signals",
]
