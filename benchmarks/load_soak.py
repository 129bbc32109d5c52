"""Steady traffic for long through one gateway on the embedded stores, and what its processes hold."""

from __future__ import annotations

import asyncio
import csv
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pygal
from arrivals import Times
from filled import filled
from gateways import Served, drained
from load_gateway import DRAIN_SECONDS, Traffic, deployed, keys
from population import Population, Progress
from processes import MIB, memory_by_role, processes
from pygal.style import CleanStyle

WARM_RATE = 3.0
"""Times the rate for the calls before those that count."""
STRETCH = 0.2
"""Of the time that counts: how long its first and last stretch are, which are compared."""
FLAT = 0.02
"""Growth from the first stretch to the last, as a share, up to which memory counts as flat."""
SHOWN = ("rss", "own")
CALLS = 100_000
"""Callers drawn, after whom the first comes again."""


@dataclass(frozen=True)
class Sample:
    """What one process holds at one moment, in MiB."""

    seconds: float
    process: str
    calls: int
    """Calls answered so far."""
    rss: float
    pss: float
    own: float


class Soak:
    """One gateway, its traffic, and the samples."""

    def __init__(self, served: Served, population: Population, *, rate: float, every: float) -> None:
        self._served, self._rate, self._every = served, rate, every
        self.warming, self.times, self.samples = Times(), Times(), list[Sample]()
        self._began = time.perf_counter()
        users = population.draw(np.random.default_rng(42), CALLS).tolist()
        self.traffic = Traffic(population, [served], users)

    async def run(self, *, warm: int, seconds: float) -> None:
        """Make the calls of the warming up, then call at the rate for so long; sample again and again."""
        count = max(round(self._rate * seconds), 1)
        sampling = asyncio.create_task(self._sample(warm + count))
        try:
            await self.traffic.run(rate=self._rate * WARM_RATE, count=warm, first=0, times=self.warming)
            await self.traffic.run(rate=self._rate, count=count, first=warm, times=self.times)
        finally:
            sampling.cancel()
            with suppress(asyncio.CancelledError):
                await sampling
        self._take()

    async def _sample(self, calls: int) -> None:
        progress = Progress("calls", calls, every=60.0)
        while True:
            self._take()
            progress.at(self.samples[-1].calls)
            await asyncio.sleep(self._every)

    def _take(self) -> None:
        seconds, calls = time.perf_counter() - self._began, self.warming.count + self.times.count
        found = memory_by_role(processes({"gateway": self._served.process.pid}))
        for process, memory in found.items():
            self.samples.append(Sample(round(seconds, 1), process, calls, **memory))


def run(
    *, minutes: float, rate: float, warm: int, pages: int, embedder: str, every: float, out: Path
) -> Mapping[str, list[dict[str, Any]]]:
    """Soak a gateway over a copy of a population; write `out`.csv and `out`.svg."""
    population = Population(pages)
    with tempfile.TemporaryDirectory(prefix="hearth-load-") as name:
        data = Path(name) / "data"
        shutil.copytree(filled(pages), data)
        section = {"data_dir": str(data), "embedder": embedder, "keys": keys(population)}
        with deployed(Path(name), [section]) as (served,):
            soak = Soak(served, population, rate=rate, every=every)
            asyncio.run(soak.run(warm=warm, seconds=minutes * 60))
            behind = drained(served, seconds=DRAIN_SECONDS)
    write_csv(out.with_suffix(".csv"), soak.samples)
    draw(out.with_suffix(".svg"), soak.samples, title=f"{warm} calls, then {rate:g} a second")
    whole = soak.traffic.status["ok"] / (warm + soak.times.count)
    calls = {"minutes": minutes, "rate": rate, **soak.times.numbers(), "recalls whole": round(whole, 3)}
    return {
        "Calls": [{**calls, "worker behind at the end, s": round(behind, 1)}],
        "Memory from the first stretch to the last, MiB": growth(soak.samples, after=warm),
    }


def growth(samples: Sequence[Sample], *, after: int) -> list[dict[str, Any]]:
    """Of each process and kind of memory: the medians of the first and last stretch after so many calls."""
    counted = [sample for sample in samples if sample.calls >= after]
    return [
        _growth([one for one in counted if one.process == process], process, kind)
        for process in dict.fromkeys(sample.process for sample in counted)
        for kind in SHOWN
    ]


def _growth(samples: Sequence[Sample], process: str, kind: str) -> dict[str, Any]:
    length = max(round(len(samples) * STRETCH), 1)
    first, last = (
        (statistics.median(getattr(one, kind) for one in part), statistics.median(one.calls for one in part))
        for part in (samples[:length], samples[-length:])
    )
    grown = last[0] / first[0] - 1
    return {
        "process": process,
        "memory": kind,
        "first": round(first[0], 1),
        "last": round(last[0], 1),
        "growth %": round(grown * 100, 1),
        "kB a call": round((last[0] - first[0]) * MIB / 1e3 / max(last[1] - first[1], 1), 2),
        "flat": grown <= FLAT,
    }


def write_csv(path: Path, samples: Sequence[Sample]) -> None:
    """One line a sample."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Sample.__dataclass_fields__)
        writer.writerows(tuple(getattr(one, name) for name in Sample.__dataclass_fields__) for one in samples)


def draw(path: Path, samples: Sequence[Sample], *, title: str) -> None:
    """A line for each process and kind of memory over the minutes."""
    chart = pygal.XY(
        title=title,
        x_title="minutes",
        y_title="MiB",
        range=(0, max(sample.rss for sample in samples) * 1.1),
        style=CleanStyle,
        show_dots=False,
        js=(),
        width=900,
        height=450,
        legend_at_bottom=True,
    )
    for process in dict.fromkeys(sample.process for sample in samples):
        for kind in SHOWN:
            line = [(one.seconds / 60, getattr(one, kind)) for one in samples if one.process == process]
            chart.add(f"{process}, {kind}", line)
    path.write_bytes(chart.render())
