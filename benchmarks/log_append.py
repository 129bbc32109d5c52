"""How fast the event log appends and answers: `python benchmarks/log_append.py [folder]`.

The folder's disk is what is measured. CPU is the whole process's, the making of the events left out.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal
from uuid import uuid4

from hearth.memory.clock import SystemClock
from hearth.memory.events.kinds import Event, StepCaptured
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.types import PlacedBlock, Scope, Step, Tails

APPENDS = 2_000
LOOKUPS = 2_000
SCOPE = Scope(tenant="acme", user="alice")


def captured(number: int) -> Event:
    """A step as a chat of some length leaves it: 1.5 kB of text, a block with six memories, every key set."""
    now = datetime.now(UTC)
    ids = [uuid4().hex for _ in range(16)]
    tails = Tails(last_pair=ids[0], last_two_pairs=ids[1], user_texts=ids[2], chain=ids[3])
    block = PlacedBlock(exchange=ids[4], text=" ".join(ids[5:16]), tokens=200, items=tuple(ids[5:11]), at=now)
    step = Step(
        exchange=ids[4],
        user_text=f"What should I wear in Oslo tomorrow, the {number}th? " * 6,
        reply_text=f"A warm coat, {ids[1]}, and boots; it will be {number % 30} degrees below zero. " * 15,
        outcome="complete",
        closes=True,
        injected=block.items,
        block=block,
        tails=tails,
        retry_key=ids[11],
        response_id=ids[12],
        started_at=now,
        finished_at=now,
    )
    return Event(
        id=ids[13],
        tenant="acme",
        user="alice",
        session=f"s{number % 50}",
        generation=1,
        occurred_at=now,
        payload=StepCaptured(step=step),
    )


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds that `work` took."""
    started = time.perf_counter()
    await work()
    return (time.perf_counter() - started) * 1000


async def append_all(log: SqliteLog, writers: int) -> str:
    """Append from that many tasks at once."""
    shares = [[captured(n) for n in range(APPENDS // writers)] for _ in range(writers)]
    took: list[float] = []

    async def write(share: list[Event]) -> None:
        took.extend([await timed(partial(log.append, [event])) for event in share])

    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(write, shares))
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return (
        f"{len(took) / seconds:6.0f} appends/s, p50 {statistics.median(took):.2f} ms,"
        f" p99 {sorted(took)[len(took) * 99 // 100]:.2f} ms, CPU {cpu / len(took) * 1000:.3f} ms each"
    )


async def look_up(log: SqliteLog, events: list[Event]) -> str:
    """Open calls that end in a captured pair."""
    steps = [event.payload.step for event in events if isinstance(event.payload, StepCaptured)]
    now, took = datetime.now(UTC), []
    for n in range(LOOKUPS):
        step = steps[n % len(steps)]
        query = {"tails": step.tails, "retry_key": step.retry_key, "response_id": "", "now": now}
        took.append(await timed(partial(log.open_call, SCOPE, **query)))
    return f"p50 {statistics.median(took):.3f} ms, p99 {sorted(took)[len(took) * 99 // 100]:.3f} ms"


async def measure(folder: Path, durability: Literal["power", "process"]) -> None:
    """One fresh log, filled by one writer and by sixteen, then asked."""
    log = SqliteLog(folder / f"{durability}.db", durability=durability, clock=SystemClock())
    await log.start()
    print(f"durability {durability}: commit p50 {(await log.health()).fsync_p50_ms:.2f} ms")
    for writers in (1, 16):
        print(f"  {writers:2} writers: {await append_all(log, writers)}")
    print(f"  open_call: {await look_up(log, await log.read(limit=1000))}")
    rebuild = await timed(log.rebuild_views)
    print(f"  views folded again: {rebuild:.0f} ms for {(await log.health()).events} events")
    await log.close()


async def main() -> None:
    """Measure both durabilities below the folder that was given, or the default one."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        for durability in ("power", "process"):
            await measure(Path(folder), durability)  # type: ignore[arg-type]


if __name__ == "__main__":
    asyncio.run(main())
