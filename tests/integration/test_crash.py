"""What a machine does to a memory: torn writes, disks that take nothing, clocks that jump, newer programs."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.errors import LogUnavailable, StoreUnavailable
from hearth.memory.events import rows
from hearth.memory.events.database import connect_writer
from hearth.memory.events.sqlite import SqliteDatabase
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.ports import MemoryFilter
from hearth.memory.stores.edge import EdgeLongTerm
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.tiers.overflow import ShortTermPolicy
from hearth.memory.types import Scope
from hearth.testing.embedder import plain
from tests.api import open_api
from tests.events import ManualClock, memory

ALICE = Scope(tenant="acme", user="alice", session="s1")


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteLog]:
    log = SqliteLog(path, durability="process", clock=ManualClock())
    await log.start()
    try:
        yield log
    finally:
        await log.close()


async def test_a_torn_last_write_costs_that_write_alone(tmp_path: Path) -> None:
    """Cut anywhere in its last commit the log opens with all the others, whole, and takes new ones."""
    path = tmp_path / "log.db"
    async with opened(path):
        pass
    db = connect_writer(path, "NORMAL")
    sizes = []
    for text in ("one", "two", "the last one " * 50):
        db.execute("BEGIN")
        rows.append(SqliteDatabase(db, ManualClock()), [memory(text)])
        db.execute("COMMIT")
        sizes.append((tmp_path / "log.db-wal").stat().st_size)
    file, written = path.read_bytes(), (tmp_path / "log.db-wal").read_bytes()
    db.close()
    for size in (sizes[1] + 1, (sizes[1] + sizes[2]) // 2, sizes[2] - 1):
        cut = tmp_path / f"cut {size}"
        cut.mkdir()
        (cut / "log.db").write_bytes(file)
        (cut / "log.db-wal").write_bytes(written[:size])
        async with opened(cut / "log.db") as log:
            await log.append([memory("three")])
            found = await log.memories("acme", "alice", where=MemoryFilter(), after=None, limit=9)
            assert {one.text for one in found} == {"one", "two", "three"}


@pytest.mark.parametrize(
    ("fail", "mend", "said"),
    [
        ("max_page_count = 1", "max_page_count = 1000000", "full"),
        ("query_only = ON", "query_only = OFF", "readonly"),
    ],
    ids=["full disk", "read-only disk"],
)
async def test_what_a_disk_does_not_take_waits_in_the_spool(
    tmp_path: Path, fail: str, mend: str, said: str
) -> None:
    """The log says so and is read on; captures go to the spool, and once into the log when it is mended."""
    async with open_api(tmp_path) as api:
        await api.engine.capture(ALICE, "before", "ok")
        await api.engine.drain()
        log: Any = api.engine.log
        db = log._writer._db
        db.execute(f"PRAGMA {fail}")
        big = "".join(chr(200 + n) for n in range(5_000))
        with pytest.raises(LogUnavailable, match=said):
            await log.append([memory(big)])
        assert not (await log.health()).writable
        opened = await api.engine.capture(ALICE, f"meanwhile {big}", "ok")
        assert await log.exchange("acme", "alice", opened.exchange) is None
        db.execute(f"PRAGMA {mend}")
        await api.engine.capture_path._spool.drain(log)
        await api.engine.drain()
        assert (await log.health()).writable
        pages = await log.pages("acme", "alice", limit=9)
        assert [one.user_text[:9] for one in pages] == ["before", "meanwhile"]


async def test_a_clock_that_jumps_either_way_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Back a day and on a year: every exchange is one page, a session goes on, and heat stays a number."""
    clock = ManualClock()
    life = LifePolicy(short_term=ShortTermPolicy(pages=2))
    async with open_api(tmp_path, clock=clock, life=life) as api:
        for number, jump in enumerate((0, -1, 0, 366, -400, 1)):
            clock.advance(days=jump, minutes=1)
            await api.engine.capture(ALICE, f"My boat number {number} is in the harbour.", "Noted.")
            await api.engine.drain()
        exchanges = await api.engine.exchanges("acme", "alice")
        assert len(exchanges) == 6
        assert {one.scope.session for one in exchanges} == {"s1"}
        pages = await api.engine.log.pages("acme", "alice", limit=99)
        assert sorted(one.user_text for one in pages) == [
            f"My boat number {number} is in the harbour." for number in range(6)
        ]
        segments = await api.engine.mid_term.segments("acme", "alice", ALICE.owner)
        assert segments
        assert all(math.isfinite(one.heat.level) for one in segments)
        await api.engine.forget_exchange(ALICE, exchanges[0].id)
        await api.engine.drain()
        assert len(await api.engine.log.pages("acme", "alice", limit=99)) == 5


async def test_a_newer_programs_collection_is_refused_and_stays(tmp_path: Path) -> None:
    """It is not emptied for being of another format, and the message says what to do."""
    first = EdgeLongTerm(tmp_path, plain())
    await first.close()
    described = tmp_path / f"{plain().name}-{plain().dimension}" / "collection.json"
    newer = json.loads(described.read_text()) | {"format": 99}
    described.write_text(json.dumps(newer))
    with pytest.raises(StoreUnavailable, match=r"newer Hearth \(format 99, .*: upgrade Hearth, or move"):
        EdgeLongTerm(tmp_path, plain())
    assert (described.parent / "shard").exists()
    described.write_text(json.dumps(newer | {"format": 1}))
    older = EdgeLongTerm(tmp_path, plain())
    assert older.needs_rebuild
    await older.close()
