"""What one server counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from ledger.http.bodies import Admission
from ledger.http.hub import Hub
from ledger.store.base import Written

OUTCOMES = ("stored", "duplicate", "conflict", "rejected", "repaired")


class Metrics:
    """The counters of one server since it started."""

    def __init__(self, hub: Hub, admission: Admission) -> None:
        self.registry = CollectorRegistry()
        events = Counter(
            "ledgerd_events_total", "Events that came in, by what became of them", ["outcome"], registry=self.registry
        )
        self._of = {name: events.labels(name) for name in OUTCOMES}
        self.position = Gauge(
            "ledgerd_position", "The last position of each bucket", ["bucket"], registry=self.registry
        )
        live = Gauge("ledgerd_live_readers", "Readers of /api/live, and waiting asks", registry=self.registry)
        live.set_function(lambda: len(hub))
        in_flight = Gauge("ledgerd_in_flight_bytes", "Bytes of bodies being worked on", registry=self.registry)
        in_flight.set_function(lambda: admission.in_flight_bytes)

    def pushed(self, written: Written, *, rejected: int = 0, repaired: int = 0) -> None:
        counts = {
            "stored": written.stored,
            "duplicate": written.duplicates,
            "conflict": len(written.conflicts),
            "rejected": rejected,
            "repaired": repaired,
        }
        for name, count in counts.items():
            if count:
                self._of[name].inc(count)
