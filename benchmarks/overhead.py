"""What Hearth costs a call: bare LiteLLM and Hearth in turns against the same local provider.

    python benchmarks/overhead.py [--embedder fast|quality] [--memories 10000] [--quick]

Both run one worker process on the same uvicorn. Short runs alternate (A B A B …), after each of Hearth's the
worker's backlog is waited for, so that it burdens no run of the other. A ratio is taken of each pair of
neighbours and the median of the ratios reported. On a machine with other work the CPU time a call is the
number to trust: where one core serves all calls, throughput is its inverse. A ratio with `!` is flattered:
more than 5 % of Hearth's calls met the deadline of recall and went on with less memory, or none.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from clients import Generator
from gateways import APP, MASTER, Served, bare, drained, hearth, provider
from stored import prepared

CACHE = Path(tempfile.gettempdir()) / "hearth-benchmark"
CONCURRENCY = (1, 16, 64)
DRAIN_SECONDS = 60.0
WITHOUT = 0.05
"""Share of calls without all their memory from which a ratio is marked: it is not for the same work."""


@dataclass
class Side:
    """All runs of one gateway at one point, one element a run."""

    rate: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    """Milliseconds to the first byte, of every call."""
    whole: list[float] = field(default_factory=list)
    """Milliseconds to the last byte, of every call."""
    hooks: list[float] = field(default_factory=list)
    """Milliseconds before the call is forwarded, as the gateway says."""
    capture: list[float] = field(default_factory=list)
    """Mean milliseconds until a capture was durable."""
    own_cpu: list[float] = field(default_factory=list)
    """Milliseconds of CPU a call, of the gateway's process."""
    child_cpu: list[float] = field(default_factory=list)
    """The same of its child, what it indexes afterwards included."""
    drain: list[float] = field(default_factory=list)
    """Seconds until the worker had caught up after a run."""
    status: dict[str, int] = field(default_factory=dict)

    def add(self, outcome: dict[str, Any], own: float, child: float) -> None:
        """One more run."""
        calls = len(outcome["whole"])
        self.rate.append(calls / outcome["seconds"])
        for name in ("first", "whole", "hooks"):
            getattr(self, name).extend(outcome[name])
        self.own_cpu.append(own / calls * 1e3)
        self.child_cpu.append(child / calls * 1e3)
        for name, count in outcome["status"].items():
            self.status[name] = self.status.get(name, 0) + count


class Bench:
    """Two gateways, a generator, and the runs."""

    def __init__(self, one: Served, other: Served, seconds: float) -> None:
        self._bare, self._hearth, self._seconds = one, other, seconds
        self._generator = Generator()
        self._seed = 0

    def point(self, *, stream: bool, concurrency: int, rounds: int) -> tuple[Side, Side]:
        """Runs in turns at one point; which of the two begins alternates too."""
        sides = Side(), Side()
        for number in range(rounds):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                served = (self._bare, self._hearth)[which]
                self._run(served, sides[which], stream=stream, concurrency=concurrency)
        return sides

    def warm(self) -> None:
        """Let every path run once."""
        for stream in (False, True):
            self.point(stream=stream, concurrency=4, rounds=1)

    def _run(self, served: Served, side: Side, *, stream: bool, concurrency: int) -> None:
        self._seed += 1
        ours = served is self._hearth
        key = APP if ours else MASTER
        captured = capture_seconds(served) if ours else (0.0, 0.0)
        before = served.cpu()
        outcome = self._generator.run(
            url=served.url,
            key=key,
            stream=stream,
            concurrency=concurrency,
            seconds=self._seconds,
            seed=self._seed,
        )
        if ours:
            side.drain.append(drained(served, seconds=DRAIN_SECONDS))
            now = capture_seconds(served)
            side.capture.append((now[0] - captured[0]) / max(now[1] - captured[1], 1) * 1e3)
        after = served.cpu()
        side.add(outcome, after[0] - before[0], after[1] - before[1])


def capture_seconds(served: Served) -> tuple[float, float]:
    """(sum, count) of the capture histogram."""
    text = httpx.get(f"{served.url}/memory/metrics", timeout=30).text
    found = dict(re.findall(r"^hearth_capture_seconds_(sum|count) (\S+)$", text, re.MULTILINE))
    return float(found["sum"]), float(found["count"])


def report(name: str, one: Side, other: Side) -> None:
    """Print a point: requests/s, first byte, ratio, CPU, hooks."""
    ratio = statistics.median(h / b for b, h in zip(one.rate, other.rate, strict=True))
    rates = f"{statistics.median(one.rate):6.1f} {statistics.median(other.rate):6.1f}"
    first = " ".join(f"{value:6.1f}" for side in (one, other) for value in percentiles(side.first))
    whole = " ".join(f"{percentiles(side.whole)[0]:6.1f}" for side in (one, other))
    cpu = [statistics.median(part) for part in (one.own_cpu, other.own_cpu, other.child_cpu)]
    hooks = " ".join(f"{value:5.1f}" for value in percentiles(other.hooks))
    spent = f"{cpu[0]:6.2f} {cpu[1]:6.2f} {cpu[2]:6.2f} {cpu[0] / cpu[1] * 100:4.0f}%"
    after = f"{statistics.median(other.capture):5.1f} | {statistics.median(other.drain):4.1f}"
    short = "!" if _without(other) > WITHOUT else " "
    line = (rates, f"{ratio * 100:4.0f}%{short}", "|", first, "|", whole, "|", spent, "|", hooks, after, "|")
    print(f"{name:12}", *line, _shares(other), flush=True)


HEAD = (
    "             req/s bare, Hearth, ratio | first byte ms: bare p50 p99, Hearth p50 p99"
    " | whole p50 | CPU ms a call: bare, Hearth, child, ratio | hooks p50 p99, capture mean"
    " | backlog s | status"
)


def percentiles(values: list[float]) -> tuple[float, float]:
    """p50 and p99."""
    p50, p99 = np.percentile(values, (50, 99))
    return float(p50), float(p99)


def _without(side: Side) -> float:
    """Share of the calls that went on without all their memory."""
    return 1 - side.status.get("ok", 0) / max(len(side.whole), 1)


def _shares(side: Side) -> str:
    calls = sum(count for name, count in side.status.items() if name != "recalled")
    return " ".join(f"{name} {count / calls * 100:.0f}%" for name, count in sorted(side.status.items()))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--embedder", choices=("fast", "quality"), default="fast")
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of one run")
    parser.add_argument("--words", type=int, default=16, help="of each reply, one an event where streamed")
    parser.add_argument("--concurrency", type=int, nargs="*", default=CONCURRENCY)
    parser.add_argument("--modes", nargs="*", choices=("plain", "stream"), default=("plain", "stream"))
    parser.add_argument(
        "--deadline-ms", type=int, default=150, help="for recall; more, and no call does without"
    )
    parser.add_argument("--quick", action="store_true", help="one round of two seconds")
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.seconds = 1, 2.0
    stored = prepared(CACHE, given.embedder, given.memories)
    with tempfile.TemporaryDirectory(prefix="hearth-overhead-") as name:
        folder = Path(name)
        shutil.copytree(stored, folder / "data")
        with provider(folder, words=given.words) as url:
            one = bare(folder, url)
            recall = {"deadline_ms": given.deadline_ms}
            other = hearth(folder, url, data_dir=str(folder / "data"), embedder=given.embedder, recall=recall)
            try:
                _measure(Bench(one, other, given.seconds), given)
            finally:
                one.stop()
                other.stop()


def _measure(bench: Bench, given: argparse.Namespace) -> None:
    bench.warm()
    about = f"{given.embedder}, {given.memories} memories, deadline {given.deadline_ms} ms"
    print(f"{about}, load average {os.getloadavg()}", flush=True)
    print(HEAD)
    for mode in given.modes:
        for concurrency in given.concurrency:
            sides = bench.point(stream=mode == "stream", concurrency=concurrency, rounds=given.rounds)
            report(f"{mode} {concurrency}", *sides)
    print(f"load average {os.getloadavg()}")


if __name__ == "__main__":
    main()
