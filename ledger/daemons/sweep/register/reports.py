"""The report of a run that judged something: what was filed, what was not and why, what nobody spoke of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ledger.daemons.sweep.filing import Plan, Shown
from ledger.daemons.sweep.register.texts import escaped


def report(headline: str, plan: Plan, notes: Sequence[str]) -> str:
    """The report in Markdown. `notes` are what else a person should know of the run, a line each."""
    shown = {one.id: one for one in plan.candidates}
    parts = [f"# Sweep of {plan.date}", escaped(headline)]
    for filing in plan.filed:
        parts += [
            f"## Filed: {escaped(filing.title)}",
            f"{filing.date} · {filing.severity} · {filing.category}",
            *(escaped(text) for text in (filing.what, filing.why) if text),
            *_list(_named(filing.candidates, shown)),
        ]
    if plan.recurring:
        parts += [
            "## Known already",
            *_list(
                f"{escaped(one.title)} ({one.date}): {len(one.sessions)} session{'s'[: len(one.sessions) != 1]}"
                for one in plan.recurring
            ),
        ]
    if plan.excluded:
        parts += ["## Excluded"]
        for one in plan.excluded:
            known = f" (duplicate of {one.duplicate_of})" if one.duplicate_of else ""
            parts += [escaped(one.reason) + known, *_list(_named(one.candidates, shown))]
    if plan.rejected:
        parts += [
            "## Rejected: the judge's own mistakes",
            *_list(f"{escaped(one.title or 'untitled')}: {escaped(one.why)}" for one in plan.rejected),
        ]
    if plan.unmentioned:
        parts += ["## Not mentioned by the judge", *_list(_named(plan.unmentioned, shown))]
    if plan.patterns:
        parts += ["## Patterns", escaped(plan.patterns)]
    if notes:
        parts += ["## Also", *_list(map(escaped, notes))]
    return "\n\n".join([*parts, signature(plan)]) + "\n"


def signature(plan: Plan) -> str:
    """The last line of a report: by it the report of a verdict is known again."""
    return f"Verdict {plan.verdict}"


def _named(ids: Iterable[str], shown: Mapping[str, Shown]) -> Iterable[str]:
    for id in ids:
        one = shown[id]
        yield f"{id} · {escaped(one.rule)} · {escaped(one.session)}: {escaped(one.snippet)}"


def _list(lines: Iterable[str]) -> list[str]:
    items = [f"- {line}" for line in lines]
    return ["\n".join(items)] if items else []
