"""What owners decide about incidents: acknowledge, resolve, reopen; who, when and why stays for good.

Decisions about all incidents lie in one of the ledger's own streams. Each is appended behind all that its decider has
seen there, so of two owners who decide at once one decides again, on what the other has said.
"""

from __future__ import annotations

from ledger.commands.incidents_reading import Incidents
from ledger.commands.reading import TEXT_CHARS_MAX, again_if_moved, bounded, unknown
from ledger.errors import NotOffered
from ledger.events.decode import new_event
from ledger.events.model import NO_EVENTS
from ledger.store.base import Opening, Store, Write
from projections import incidents_views as views
from projections.incidents_decided import KIND_OF, ROOT, STREAM


class IncidentCommands:
    def __init__(self, store: Store, incidents: Incidents) -> None:
        self._store = store
        self._incidents = incidents

    async def decide(self, id: str, action: str, reason: str, actor: str) -> None:
        """Raises NotFound, NotOffered, InvalidField."""
        reason = bounded(reason, "reason", TEXT_CHARS_MAX)

        async def decided() -> None:
            board, known = await self._incidents.standing()
            one = views.incident(board, known, id)
            if one is None:
                raise unknown("incident", id)
            if action not in one.standing.actions:
                raise NotOffered(
                    f"incident {id} is {one.standing.status}: {action} is not open to it,"
                    f" {' and '.join(one.standing.actions)} {'is' if len(one.standing.actions) == 1 else 'are'}",
                    hint="The JSON of an incident lists the decisions that are open to it under `actions`.",
                )
            about = {"incident": id, "register": one.found.register, "fingerprint": one.found.fingerprint}
            payload = {**about, "title": one.head.title, "reason": reason}
            founds = known.last_seq == NO_EVENTS
            event = new_event(0 if founds else known.last_seq + 1, KIND_OF[action], actor, payload)
            opening = Opening(ROOT, None, actor) if founds else None
            await self._store.append([Write(STREAM, [event], opening, expected_seq=known.last_seq)])

        await again_if_moved(decided)
