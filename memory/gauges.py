"""Health as gauges for Prometheus, of the moment in which they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hearth.memory.health import Health, Part, State


def exposed(health: Health) -> bytes:
    """The gauges in Prometheus' text format, to go behind the counters."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(HealthGauges(health))
    return generate_latest(registry)


class HealthGauges(Collector):
    """What health found. A number that a part could not tell has no sample."""

    def __init__(self, health: Health) -> None:
        self._parts = health.parts

    def collect(self) -> Iterator[Metric]:
        """Every gauge, always in the same order."""
        yield self._states()
        yield self._lag()
        yield self._number(
            "hearth_worker_waited_seconds",
            "Time since the oldest event was recorded that no worker has handled.",
            ("worker", "waited_s"),
        )
        yield self._number(
            "hearth_worker_parked_events",
            "Events set aside because they failed three times.",
            ("worker", "parked"),
        )
        yield self._number(
            "hearth_verified_timestamp_seconds",
            "When the last nightly verification that this process made ended.",
            ("worker", "verified_at"),
        )
        yield self._number(
            "hearth_verified_damaged_events",
            "Events that it found damaged, or gone.",
            ("worker", "damaged"),
        )
        yield self._number(
            "hearth_verified_drift_records",
            "Records of stores and rows of views that it found different from the events, and repaired.",
            ("worker", "drift"),
        )
        yield self._number(
            "hearth_extraction_lag_events", "Events that no model has read yet.", ("extraction", "lag")
        )
        yield self._number(
            "hearth_extraction_waited_seconds",
            "Time since the oldest of them was recorded.",
            ("extraction", "waited_s"),
        )
        yield self._number(
            "hearth_spool_events", "Captures in the spool that wait for the log.", ("spool", "waiting")
        )

    def _states(self) -> Metric:
        gauge = GaugeMetricFamily(
            "hearth_part_state",
            "1 for the state that the part is in, 0 for the others.",
            labels=["part", "state"],
        )
        for name, part in self._parts.items():
            for state in get_args(State):
                gauge.add_metric([name, state], float(part.state == state))
        return gauge

    def _lag(self) -> Metric:
        gauge = GaugeMetricFamily(
            "hearth_worker_lag_events", "Events that the consumer has not handled.", labels=["consumer"]
        )
        for consumer, events in self._of("worker").numbers.get("lag", {}).items():
            gauge.add_metric([consumer], events)
        return gauge

    def _number(self, name: str, meaning: str, place: tuple[str, str]) -> Metric:
        part, key = place
        return GaugeMetricFamily(name, meaning, value=self._of(part).numbers.get(key))

    def _of(self, name: str) -> Part:
        return self._parts.get(name, Part())
