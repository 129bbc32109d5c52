"""Several workers over one log in a real PostgreSQL: they share the work, keep its order, and take over."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from hearth.memory.clock import SystemClock
from hearth.memory.events.kinds import Event, PageClosed
from hearth.memory.events.postgres_log import PostgresLog
from hearth.memory.ports import Indexed
from hearth.memory.runner import Timing
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.stores.memory_short_term import InMemoryShortTerm
from hearth.memory.worker import Worker
from hearth.memory.working import CONSUMERS, WorkersElsewhere
from hearth.testing.embedder import ScriptedEmbedder
from tests.events import forget_memory, memory, step

USERS = [f"user{n}" for n in range(30)]
QUICK = Timing(lease=2.0, poll=0.05, gather=0.0, backoff=0.01, longest_backoff=0.1, tick=60)


class Shared(MemoryLongTerm):
    """One long-term memory for all workers, which notes who wrote what and can hold a write up."""

    def __init__(self) -> None:
        super().__init__(ScriptedEmbedder())
        self.written: list[str] = []
        self.held = asyncio.Event()
        self.hold = ""

    async def upsert(self, records: Sequence[Indexed]) -> None:
        """Write, after a wait where a text is to be held up."""
        if self.hold and any(self.hold in record.text for record in records):
            self.hold = ""
            self.held.set()
            await asyncio.sleep(QUICK.lease * 2)
        await asyncio.sleep(0.002)
        await super().upsert(records)
        self.written += [record.record.id for record in records]


class Team:
    """Workers with logs of their own over one schema."""

    def __init__(self, url: str, long_term: Shared) -> None:
        self._url, self._schema = url, f"t{uuid4().hex}"
        self.long_term, self.short_term = long_term, InMemoryShortTerm(capacity=5)
        self.logs: list[PostgresLog] = []
        self.workers: list[Worker] = []

    async def log(self) -> PostgresLog:
        """One more process's log."""
        log = PostgresLog(self._url, schema=self._schema, clock=SystemClock(), connections=4)
        await log.start()
        self.logs.append(log)
        return log

    async def hire(self) -> Worker:
        """One more worker, at work."""
        log = await self.log()
        worker = Worker(
            log=log,
            consumers=log,
            mid_term=log,
            short_term=self.short_term,
            long_term=self.long_term,
            clock=SystemClock(),
            owner=uuid4().hex,
            timing=QUICK,
        )
        await worker.start()
        self.workers.append(worker)
        return worker

    async def kill(self, worker: Worker) -> None:
        """End a worker without a word: nothing is given back."""
        for task in worker._tasks:
            task.cancel()
        await asyncio.gather(*worker._tasks, return_exceptions=True)
        self.workers.remove(worker)


@pytest.fixture(name="team")
async def _team(postgres_url: str) -> AsyncIterator[Team]:
    team = Team(postgres_url, Shared())
    yield team
    await asyncio.gather(*(worker.stop() for worker in team.workers))
    await asyncio.gather(*(log.close() for log in team.logs))


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    async with asyncio.timeout(seconds):
        yield


async def say(log: PostgresLog, rounds: int) -> None:
    """Each user says something in each round."""
    for n in range(rounds):
        now = datetime.now(UTC)
        parent = f"x{n - 1}" if n else None
        await asyncio.gather(
            *(
                log.append([step(f"x{n}", user=user, at=now, parent=parent, user_text=f"{n}")])
                for user in USERS
            )
        )


async def pages_of(log: PostgresLog) -> list[Event]:
    return await log.read(kinds=["page.closed"], limit=10_000)


async def test_workers_share_the_log_and_keep_each_users_order(team: Team) -> None:
    """What three workers do together is done once for each exchange, and each user's pages in their order."""
    log = await team.log()
    for _ in range(3):
        await team.hire()
    await say(log, 8)
    async with within(60):
        await WorkersElsewhere(log).drain()
    closed = await pages_of(log)
    assert Counter(event.user for event in closed) == dict.fromkeys(USERS, 8)
    for user in USERS:
        assert [event.payload.page.id for event in closed if event.user == user] == [  # type: ignore[union-attr]
            f"x{n}" for n in range(8)
        ]
    assert [await team.long_term.count(f"acme/{user}") for user in USERS] == [8] * len(USERS)


async def test_a_killed_worker_is_taken_over_within_its_lease(team: Team) -> None:
    """What it was at when it was killed is done by another one, once."""
    log = await team.log()
    doomed = await team.hire()
    await say(log, 3)
    while not team.long_term.written:  # noqa: ASYNC110 (nothing tells of it)
        await asyncio.sleep(0.002)
    await team.kill(doomed)
    await team.hire()
    async with within(QUICK.lease * 3 + 30):
        await WorkersElsewhere(log).drain()
    assert Counter(event.user for event in await pages_of(log)) == dict.fromkeys(USERS, 3)
    assert all(isinstance(event.payload, PageClosed) for event in await pages_of(log))
    assert [await team.long_term.count(f"acme/{user}") for user in USERS] == [3] * len(USERS)


async def test_case_21_a_paused_worker_brings_nothing_forgotten_back(team: Team) -> None:
    """What a worker wrote late is put right, after another one has forgotten the memory meanwhile."""
    log = await team.log()
    team.long_term.hold = "kiwi"
    await team.hire()
    now = datetime.now(UTC)
    told = memory("allergic to kiwi", at=now)
    await log.append([told])
    await team.long_term.held.wait()
    await log.append([forget_memory(told.payload.memory.id, at=datetime.now(UTC))])  # type: ignore[union-attr]
    await team.hire()
    async with within(60):
        await WorkersElsewhere(log).drain()
        await asyncio.sleep(QUICK.lease * 2)
    assert await team.long_term.count("acme/alice") == 0


async def test_what_was_set_aside_is_retried_beside_workers(team: Team) -> None:
    """A process of its own handles it once more, in its turn where another one is at the same partition."""
    log = await team.log()
    told = memory("allergic to kiwi", at=datetime.now(UTC))
    await log.append([told])
    await team.hire()
    async with within(60):
        await WorkersElsewhere(log).drain()
    await team.long_term.clear("acme", "alice")
    await log.park("index", told, "boom")
    place = log.partition("acme", "alice")
    assert await log.lease("index", place, owner="busy", seconds=QUICK.lease / 2) is not None
    retrying = await team.hire()
    async with within(60):
        assert await retrying.retry_parked() == (1, 0)
    assert (await log.parked(), await team.long_term.count("acme/alice")) == ([], 1)


async def test_the_lag_of_workers_elsewhere_is_seen(team: Team) -> None:
    """A gateway without a worker of its own tells how many events wait, and for how long the oldest has."""
    log = await team.log()
    await say(log, 1)
    await asyncio.sleep(0.05)
    health = await WorkersElsewhere(log).health()
    assert health.lag == {name: len(USERS) if name == "pages" else 0 for name in CONSUMERS}
    assert health.waited > 0
    await team.hire()
    async with within(60):
        await WorkersElsewhere(log).drain()
    assert (await WorkersElsewhere(log).health()).waited == 0
