"""Kills the gateway with -9 amid concurrent calls, again and again, and looks for each reply in the log.

    python benchmarks/durability.py [--rounds 20] [--calls 1000] [--seed N]

Each round starts the gateway on the same data folder, sends all calls at once (three routes, half of them
streamed, a marker in each message) and kills it when a random share of them is complete. Nobody tries again.
At the end the log is read: a reply that a client has received completely, to a stream's terminal event or a
body's last byte, must be there once and whole; no marker may be there twice, in steps or in pages. A killed
process is all that this shows; what a power cut leaves is another matter, which the log's own tests look at.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import httpx
from clients import PATHS, body
from gateways import APP, Served, drained, hearth, provider

from hearth.memory.clock import SystemClock
from hearth.memory.events.kinds import Event, PageClosed, StepCaptured
from hearth.memory.events.sqlite_log import SqliteLog

ROUTES = tuple(PATHS)
TERMINAL = {"chat": b"data: [DONE]", "messages": b"event: message_stop", "responses": b"response.completed"}
MARKER = re.compile(r"marker-\d+-\d+")
READ_ROWS = 1000
ROUND_SECONDS = 180.0
"""After which a round is killed, however few of its calls are complete."""


@dataclass
class Round:
    """What the clients of one round saw."""

    enough: int
    """Complete replies after which the gateway is killed."""
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    complete: set[str] = field(default_factory=set)
    """Markers of the calls whose reply came whole."""
    cut: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    """Replies that were no success, by HTTP status."""
    killed_after: float = 0.0
    """Seconds from the first call."""


@dataclass(frozen=True)
class Verdict:
    """What the log says of all rounds."""

    rounds: Sequence[Round]
    missing: Sequence[str]
    """Markers of complete replies without a complete step in the log."""
    doubled: Sequence[str]
    """Markers with more than one step or page."""
    steps: int
    parked: int
    """Events that the worker has set aside."""

    @property
    def complete(self) -> int:
        """Replies that clients received whole."""
        return sum(len(one.complete) for one in self.rounds)


def run(
    folder: Path, *, rounds: int, calls: int, seed: int, spread: float = 0.0, say: Any = print
) -> Verdict:
    """All rounds in `folder`, then the look into the log."""
    chance = random.Random(seed)
    seen: list[Round] = []
    with provider(folder, words=8, gap_ms=2.0) as url:
        for number in range(rounds):
            served = hearth(folder, url, data_dir=str(folder / "data"))
            one = asyncio.run(_round(served, number, calls, chance, spread))
            seen.append(one)
            say(
                f"round {number + 1}: killed after {one.killed_after:.1f} s, {len(one.complete)} complete,"
                f" {one.cut} cut, {dict(one.refused)} refused"
            )
        served = hearth(folder, url, data_dir=str(folder / "data"))
        drained(served, seconds=300)
        health = httpx.get(f"{served.url}/memory/v1/health", timeout=30).json()
        served.stop()
    events = asyncio.run(_events(folder / "data" / "log.db"))
    return judge(seen, events, parked=health["parts"]["worker"]["numbers"]["parked"])


def judge(rounds: Sequence[Round], events: Sequence[Event], *, parked: int) -> Verdict:
    """Compare what clients received with what the log holds."""
    steps: Counter[str] = Counter()
    whole: set[str] = set()
    pages: Counter[str] = Counter()
    for event in events:
        match event.payload:
            case StepCaptured(step=step):
                marker = _marker(step.user_text)
                steps[marker] += 1
                if step.outcome == "complete" and step.reply_text:
                    whole.add(marker)
            case PageClosed(page=page):
                pages[_marker(page.user_text)] += 1
    received = {marker for one in rounds for marker in one.complete}
    doubled = {marker for counts in (steps, pages) for marker, count in counts.items() if count > 1}
    return Verdict(
        rounds=rounds,
        missing=sorted(received - whole),
        doubled=sorted(doubled),
        steps=sum(steps.values()),
        parked=parked,
    )


def _marker(text: str) -> str:
    found = MARKER.search(text)
    return found.group() if found else text


async def _round(served: Served, number: int, calls: int, chance: random.Random, spread: float) -> Round:
    """Kill when a random share of the calls is complete, and up to 50 ms later."""
    seen = Round(enough=int(calls * chance.uniform(0.05, 0.95)))
    began = time.monotonic()
    limits = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=ROUND_SECONDS)
    async with aiohttp.ClientSession(connector=limits, timeout=timeout) as session:
        clients = [
            asyncio.create_task(_call(session, served, number, call, seen, after=call * spread))
            for call in range(calls)
        ]
        with suppress(TimeoutError):
            await asyncio.wait_for(seen.reached.wait(), ROUND_SECONDS)
        await asyncio.sleep(chance.uniform(0, 0.05))
        served.kill()
        seen.killed_after = time.monotonic() - began
        await asyncio.gather(*clients)
    return seen


async def _call(
    session: aiohttp.ClientSession, served: Served, number: int, call: int, seen: Round, *, after: float
) -> None:
    await asyncio.sleep(after)
    marker, route, stream = f"marker-{number}-{call}", ROUTES[call % 3], call % 2 == 0
    headers = {"authorization": f"Bearer {APP}", "x-hearth-user": f"user-{call % 50}"}
    asked = body(route, f"Please remember {marker} for me.", stream=stream)
    received = bytearray()
    status, length = 0, -1
    try:
        async with session.post(served.url + PATHS[route], json=asked, headers=headers) as reply:
            status, length = reply.status, int(reply.headers.get("content-length", -1))
            async for piece in reply.content.iter_any():
                received += piece
    except (aiohttp.ClientError, TimeoutError):
        pass
    if status not in (0, 200):
        seen.refused[status] += 1
    elif status and (TERMINAL[route] in received if stream else len(received) == length):
        seen.complete.add(marker)
        if len(seen.complete) >= seen.enough:
            seen.reached.set()
    else:
        seen.cut += 1


async def _events(path: Path) -> list[Event]:
    """All steps and pages of a log that nobody has open."""
    log = SqliteLog(path, clock=SystemClock())
    await log.start()
    events: list[Event] = []
    try:
        after = 0
        while batch := await log.read(after=after, limit=READ_ROWS, kinds=("step.captured", "page.closed")):
            events += batch
            after = batch[-1].seq
    finally:
        await log.close()
    return events


def main() -> None:
    """Run the benchmark; exit status 1 if a reply is missing or doubled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spread-ms", type=float, default=0.0, help="between the starts of two calls")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="hearth-durability-"))
    spread = given.spread_ms / 1000
    verdict = run(folder, rounds=given.rounds, calls=given.calls, seed=given.seed, spread=spread)
    print(
        f"{verdict.complete} complete replies, {len(verdict.missing)} of them missing,"
        f" {len(verdict.doubled)} markers doubled; {verdict.steps} steps in the log, {verdict.parked} parked"
    )
    if verdict.missing or verdict.doubled or verdict.parked:
        print(f"missing {verdict.missing[:10]}, doubled {verdict.doubled[:10]}; all is kept in {folder}")
        raise SystemExit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
