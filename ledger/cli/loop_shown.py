"""A loop for a person at a terminal, from the JSON of its view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from ledger.cli.output import console, moment, print_table
from ledger.cli.terminal import one_line

SCORES_SHOWN = 40
ROUNDS_SHOWN = 20
REASONS_SHOWN = 3
_BARS = "▁▂▃▄▅▆▇█"
_BRAKE_BAR = 10
_STYLES = {"halted": "bold yellow", "passed": "green", "failing": "red"}

_Json = dict[str, Any]


def print_loop(loop: _Json) -> None:
    out = console()
    title = Text(f"loop {one_line(loop['name'])}  ", style="bold")
    out.print(title.append(loop["status"], style=_STYLES.get(loop["status"], "")))
    if loop["description"]:
        out.print(Text(one_line(loop["description"])))
    out.print(Text(f"task: {one_line(loop['current_task'] or 'none is set')}"))
    if loop["halt"]:
        halt = loop["halt"]
        said = f"{halt['halt_reason']}: {halt['sentence']} {halt['detail']}"
        out.print(Text(f"halted since {moment(halt['at'])}: {one_line(said)}", style="yellow"))
        out.print(Text(f"`ledgerd loop resume {one_line(loop['name'])}` lets it go on", style="dim"))
    elif loop["held_by"]:
        out.print(Text(f"held by {one_line(loop['held_by'])}: {one_line(loop['held_sentence'])}", style="yellow"))
    out.print(Text(" · ".join(_facts(loop)), style="dim"))
    if loop["brakes"]:
        out.print(Text("\nBrakes", style="bold"))
        print_table(["brake", "", "how far"], [_brake(brake) for brake in loop["brakes"]])
    scores = [one["score"] for one in loop["scores"] if one["score"] is not None]
    if scores:
        out.print(Text("\nScores", style="bold"))
        out.print(Text(f"{sparkline(scores[-SCORES_SHOWN:])}  {scores[-1]:g}"))
    if loop["rounds"]:
        out.print(Text("\nRounds (UTC)", style="bold"))
        rows = [_round(one) for one in reversed(loop["rounds"][:ROUNDS_SHOWN])]
        print_table(["round", "began", "outcome", "score", "why"], rows)


def sparkline(scores: Sequence[float]) -> str:
    """The scores as bars between the least and the greatest of them."""
    least, most = min(scores), max(scores)
    if most == least:
        return _BARS[len(_BARS) // 2] * len(scores)
    return "".join(_BARS[round((score - least) / (most - least) * (len(_BARS) - 1))] for score in scores)


def _facts(loop: _Json) -> list[str]:
    rounds = f"{loop['iteration_count']} rounds"
    facts = [rounds if loop["iteration_count"] != 1 else "1 round", f"agents ran {loop['agent_seconds']:,.0f} s"]
    if loop["cost_usd"] is not None:
        facts.append(f"${loop['cost_usd']:,.2f}")
    if loop["usage"]["unpriced"]:
        facts.append("some of what they used has no known cost")
    if loop["resumed_count"]:
        facts.append(f"resumed {loop['resumed_count']} times")
    if loop["worktree_branch"]:
        facts.append(f"on branch {one_line(loop['worktree_branch'])}")
    return facts


def _brake(brake: _Json) -> tuple[Text, str, Text]:
    style = "yellow" if brake["holds"] else ""
    share = 1.0 if brake["limit"] == 0 else min(1.0, brake["value"] / brake["limit"])
    filled = round(share * _BRAKE_BAR)
    bar = "█" * filled + "░" * (_BRAKE_BAR - filled)
    how_far = f"{brake['value']:g} of {brake['limit']:g} {brake['unit']}"
    return Text(brake["reason"], style=style), bar, Text(how_far, style=style)


def _round(one: _Json) -> tuple[str, str, Text, str, Text]:
    verdict, halt = one["verdict"], one["halt"]
    score = "" if verdict is None or verdict["score"] is None else f"{verdict['score']:g}"
    if halt is not None:
        why = f"{halt['reason']}: {halt['detail'] or halt['sentence']}"
    else:
        why = "; ".join([] if verdict is None else verdict["reasons"][:REASONS_SHOWN])
    outcome = Text(one["outcome"], style=_STYLES.get(one["outcome"], ""))
    return str(one["tick"]), moment(one["started_at"]), outcome, score, Text(one_line(why))
