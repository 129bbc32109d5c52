"""A worker that lags drops nothing: the hard cap shows while it holds, and ends with the lag."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from hearth.memory.errors import StoreUnavailable
from hearth.memory.events.kinds import Event, StepCaptured
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.ports import Indexed
from hearth.memory.runner import Timing
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.stores.sqlite_short_term import SqliteShortTerm
from hearth.memory.types import Page, Scope, Step
from hearth.memory.worker import Worker
from hearth.testing.embedder import plain

ALICE = Scope(tenant="acme", user="alice", session="s1")
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class StandingClock:
    def now(self) -> datetime:
        return START + timedelta(hours=1)


class Outage(MemoryLongTerm):
    """Long-term memory that refuses what is written while it is down."""

    down = True

    async def upsert(self, records: Sequence[Indexed]) -> None:
        if self.down:
            raise StoreUnavailable("long-term memory", "it is down")
        await super().upsert(records)


async def say(log: SqliteLog, short_term: SqliteShortTerm, number: int) -> None:
    at = START + timedelta(seconds=number)
    step = Step(
        exchange=f"{number:032x}",
        user_text=f"t{number}",
        reply_text="ok",
        outcome="complete",
        closes=True,
        started_at=at,
        finished_at=at,
    )
    page = Page(
        id=step.exchange, scope=ALICE, generation=1, user_text=f"t{number}", reply_text="ok", occurred_at=at
    )
    event = Event(
        id=uuid4().hex,
        tenant="acme",
        user="alice",
        session="s1",
        generation=1,
        occurred_at=at,
        parent=f"{number - 1:032x}" if number else None,
        payload=StepCaptured(step=step),
    )
    await log.append([event])
    await short_term.push(page, vector=None, block=None)


async def test_case_46_what_the_hard_cap_drops_is_indexed_later(tmp_path: Path) -> None:
    """While the index is down the cap holds and shows; afterwards every page is indexed."""
    log = SqliteLog(tmp_path / "log.db", durability="process", clock=StandingClock())
    short_term = SqliteShortTerm(tmp_path / "short.db", capacity=3, hard_cap=10)
    await log.start()
    await short_term.start()
    long_term = Outage(plain())
    worker = Worker(
        log=log,
        consumers=log,
        mid_term=log,
        short_term=short_term,
        long_term=long_term,
        clock=StandingClock(),
        timing=Timing(backoff=0.001, longest_backoff=0.01),
    )
    for number in range(30):
        await say(log, short_term, number)
    draining = asyncio.create_task(worker.drain())
    view = await short_term.latest(ALICE, limit=50)
    assert ([page.user_text for page in view.pages], view.lagging) == ([f"t{n}" for n in range(20, 30)], True)
    long_term.down = False
    await draining
    view = await short_term.latest(ALICE, limit=50)
    assert ([page.user_text for page in view.pages], view.lagging) == (["t27", "t28", "t29"], False)
    kept = await long_term.get(ALICE.owner, [f"{n:032x}" for n in range(30)])
    assert [page.user_text for page in kept] == [f"t{n}" for n in range(30)]
    await worker.stop()
    await short_term.close()
    await log.close()
