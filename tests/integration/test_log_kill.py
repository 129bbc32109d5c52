"""A process that is killed while it appends loses nothing that it had acknowledged."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from collections import Counter
from pathlib import Path

from hearth.memory.events.sqlite_log import SqliteLog
from tests.events import ManualClock

ROOT = Path(__file__).parents[2]
WRITERS = 16
ROUNDS = 4
APPEND_FOR_EVER = """
import asyncio, os, sys
from pathlib import Path
from hearth.memory.clock import SystemClock
from hearth.memory.events.sqlite_log import SqliteLog
from tests.events import page, step

async def write(log, writer):
    while True:
        captured = step(user=f"user{writer}", session=f"s{writer}")
        await log.append([captured, page(captured.payload.step.exchange, user=f"user{writer}")])
        os.write(1, f"{captured.id}\\n".encode())

async def main():
    log = SqliteLog(Path(sys.argv[1]), clock=SystemClock(), durability="process")
    await log.start()
    await asyncio.gather(*(write(log, n) for n in range(int(sys.argv[2]))))

asyncio.run(main())
"""


async def acknowledged_until_killed(path: Path, seconds: float) -> list[str]:
    """Run the appending process, kill it that long after its first acknowledgement; the ids it reported."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        APPEND_FOR_EVER,
        str(path),
        str(WRITERS),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert child.stdout is not None
    first = await child.stdout.readline()
    await asyncio.sleep(seconds)
    child.kill()
    rest = await child.stdout.read()
    await child.wait()
    return [line.decode() for line in (first + rest).split()]


async def test_acknowledged_events_survive_kill_9_exactly_once(tmp_path: Path, clock: ManualClock) -> None:
    """Sixteen writers, killed at random and started again on the same file, over and over."""
    path = tmp_path / "log.db"
    chance = random.Random(7)
    told: list[str] = []
    for _ in range(ROUNDS):
        told += await acknowledged_until_killed(path, chance.uniform(0.02, 0.4))
    log = SqliteLog(path, clock=clock)
    await log.start()
    await log.close()
    with sqlite3.connect(path) as db:
        there = Counter(row[0] for row in db.execute("SELECT id FROM events WHERE kind = 'step.captured'"))
        halves = db.execute("SELECT count(*) FROM exchanges WHERE state <> 'closed'").fetchone()[0]
        broken = db.execute("PRAGMA integrity_check").fetchone()[0]
    db.close()
    assert len(told) > ROUNDS * WRITERS
    assert [event for event in told if there[event] != 1] == []
    assert (halves, broken) == (0, "ok")
    assert len(there) - len(told) <= ROUNDS * WRITERS
