"""Calls that begin when they were meant to, whatever became of those before them, and how long each took.

A client that waits for a reply before it sends the next request asks least when the server is slowest, and
its percentiles leave out what it did not ask (coordinated omission). Here the moments are drawn beforehand,
as a Poisson process, and a call's time counts from the moment at which it was meant to begin.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram

LONGEST = 600_000_000
"""Microseconds; a call that takes longer counts as this."""


@dataclass
class Times:
    """How long calls took, within one per mille."""

    histogram: HdrHistogram = field(default_factory=lambda: HdrHistogram(1, LONGEST, 3))

    def add(self, seconds: float) -> None:
        """One more call."""
        self.histogram.record_value(min(max(round(seconds * 1e6), 1), LONGEST))

    @property
    def count(self) -> int:
        """Calls so far."""
        return int(self.histogram.get_total_count())

    def at(self, percent: float) -> float:
        """Milliseconds that so many per cent of the calls did not exceed; 0 where there was none."""
        return float(self.histogram.get_value_at_percentile(percent)) / 1e3 if self.count else 0.0

    def numbers(self) -> dict[str, Any]:
        """For a report: the usual percentiles, in milliseconds."""
        named = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99, "longest_ms": 100}
        return {"calls": self.count} | {name: round(self.at(percent), 3) for name, percent in named.items()}


def moments(rate: float, count: int, seed: int) -> Sequence[float]:
    """Seconds from the start at which each of `count` calls is meant to begin, `rate` a second on average."""
    gaps = np.random.default_rng((21, seed)).exponential(1 / rate, count)
    drawn: list[float] = np.cumsum(gaps).tolist()
    return drawn


async def open_loop(
    call: Callable[[int], Awaitable[object]], *, rate: float, count: int, seed: int, times: Times
) -> float:
    """Make `count` calls at their moments, wait for the last reply; returns the seconds all took together.

    A call that raises ends the run. Seconds from a call's meant beginning to its end go to `times`.
    """
    began = time.perf_counter()

    async def one(number: int, meant: float) -> None:
        await call(number)
        times.add(time.perf_counter() - began - meant)

    async with asyncio.TaskGroup() as group:
        for number, meant in enumerate(moments(rate, count, seed)):
            await asyncio.sleep(max(began + meant - time.perf_counter(), 0))
            group.create_task(one(number, meant))
    return time.perf_counter() - began
