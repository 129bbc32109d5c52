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
from processes import memory_by_role, processes
from pygal.style import CleanStyle

WARM_SHARE, WINDOW_SHARE = 0.2, 0.2
"""Of the time: what is left out at the start, and how long the two stretches are that are compared."""
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
        self.times, self.samples = Times(), list[Sample]()
        users = population.draw(np.random.default_rng(42), CALLS).tolist()
        self.traffic = Traffic(population, [served], users)

    async def run(self, seconds: float) -> None:
        """Call at the rate for so long and take a sample again and again."""
        sampling = asyncio.create_task(self._sample(seconds))
        try:
            count = max(round(self._rate * seconds), 1)
            await self.traffic.run(rate=self._rate, count=count, first=0, times=self.times)
        finally:
            sampling.cancel()
            with suppress(asyncio.CancelledError):
                await sampling
        self._take(time.perf_counter() - self._began)

    async def _sample(self, seconds: float) -> None:
        self._began = time.perf_counter()
        progress = Progress("seconds of traffic", round(seconds), every=60.0)
        while True:
            now = time.perf_counter() - self._began
            self._take(now)
            progress.at(round(now))
            await asyncio.sleep(self._every)

    def _take(self, seconds: float) -> None:
        found = memory_by_role(processes({"gateway": self._served.process.pid}))
        for process, memory in found.items():
            self.samples.append(Sample(round(seconds, 1), process, self.times.count, **memory))


def run(
    *, minutes: float, rate: float, pages: int, embedder: str, every: float, out: Path
) -> Mapping[str, list[dict[str, Any]]]:
    """Soak a gateway over a copy of a population; write `out`.csv and `out`.svg."""
    population = Population(pages)
    with tempfile.TemporaryDirectory(prefix="hearth-load-") as name:
        data = Path(name) / "data"
        shutil.copytree(filled(pages), data)
        section = {"data_dir": str(data), "embedder": embedder, "keys": keys(population)}
        with deployed(Path(name), [section]) as (served,):
            soak = Soak(served, population, rate=rate, every=every)
            asyncio.run(soak.run(minutes * 60))
            behind = drained(served, seconds=DRAIN_SECONDS)
    write_csv(out.with_suffix(".csv"), soak.samples)
    draw(out.with_suffix(".svg"), soak.samples, title=f"{rate:g} calls a second for {minutes:g} minutes")
    whole = soak.traffic.status["ok"] / max(soak.times.count, 1)
    calls = {"minutes": minutes, "rate": rate, **soak.times.numbers(), "recalls whole": round(whole, 3)}
    return {
        "Calls": [{**calls, "worker behind at the end, s": round(behind, 1)}],
        "Memory from the first stretch to the last, MiB": growth(soak.samples),
    }


def growth(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Of each process and kind of memory: the median after warming up, and that of the end."""
    last = max(sample.seconds for sample in samples)
    rows = []
    for process in dict.fromkeys(sample.process for sample in samples):
        of_it = [sample for sample in samples if sample.process == process]
        early = _between(of_it, WARM_SHARE * last, (WARM_SHARE + WINDOW_SHARE) * last)
        late = _between(of_it, (1 - WINDOW_SHARE) * last, last)
        for kind in SHOWN:
            first, then = (statistics.median(getattr(one, kind) for one in part) for part in (early, late))
            grown = then / first - 1
            row = {"process": process, "memory": kind, "first": round(first, 1), "last": round(then, 1)}
            rows.append({**row, "growth %": round(grown * 100, 1), "flat": grown <= FLAT})
    return rows


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


def _between(samples: Sequence[Sample], start: float, end: float) -> Sequence[Sample]:
    return [sample for sample in samples if start <= sample.seconds <= end] or samples
