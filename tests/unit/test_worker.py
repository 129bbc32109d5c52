"""The worker over a real log: what it copies, what it survives, and what it sets aside."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from hearth.memory import metrics
from hearth.memory.errors import StoreUnavailable
from hearth.memory.events.kinds import (
    Event,
    MemoryAdded,
    MemoryForgotten,
    PageForgotten,
    Payload,
    RecallDrawn,
    StepCaptured,
    UserErased,
)
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.ports import Indexed, ModelReply, ModelRequest
from hearth.memory.runner import Timing
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.stores.memory_short_term import InMemoryShortTerm
from hearth.memory.tiers.life import ExtractionPolicy, LifePolicy
from hearth.memory.types import Memory, Page, Ranked, Ranking, Scope, Step, ToolUse
from hearth.memory.worker import Worker
from hearth.testing.embedder import ScriptedEmbedder

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALICE = Scope(tenant="acme", user="alice", agent="coder", session="s1")
QUICK = Timing(backoff=0.001, longest_backoff=0.01, poll=60, tick=60)


class SetClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> datetime:
        return self.at


class FaultyLongTerm(MemoryLongTerm):
    """Long-term memory that can be down, and that chokes on texts with certain words."""

    def __init__(self) -> None:
        super().__init__(ScriptedEmbedder())
        self.down = False
        self.faults: dict[str, Exception] = {}
        self.contexts: dict[str, str] = {}
        self.refused = 0

    async def upsert(self, records: Sequence[Indexed]) -> None:
        self._check()
        for record in records:
            for word, fault in self.faults.items():
                if word in record.text:
                    self.refused += 1
                    raise fault
        await super().upsert(records)
        self.contexts.update({record.record.id: record.context for record in records})

    async def count(self, owner: str) -> int:
        self._check()
        return await super().count(owner)

    def _check(self) -> None:
        if self.down:
            self.refused += 1
            raise StoreUnavailable("long-term memory", "it is down")


class World:
    """A log, the stores and a worker over them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = SetClock()
        self.log = SqliteLog(path, durability="process", clock=self.clock)
        self.short_term = InMemoryShortTerm(capacity=2)
        self.long_term = FaultyLongTerm()
        self.worker = self.new_worker()
        self.steps = 0

    def new_worker(self, owner: str = "embedded", batch: int = 64, **given: Any) -> Worker:
        parts: dict[str, Any] = {"policy": lambda *_: LifePolicy(facts="off"), **given}
        return Worker(
            **parts,
            log=self.log,
            consumers=self.log,
            mid_term=self.log,
            short_term=self.short_term,
            long_term=self.long_term,
            clock=self.clock,
            owner=owner,
            batch=batch,
            timing=QUICK,
        )

    async def append(
        self, payload: Payload, *, scope: Scope = ALICE, parent: str | None = None, generation: int = 1
    ) -> Event:
        self.clock.at += timedelta(seconds=1)
        event = Event(
            id=uuid4().hex,
            tenant=scope.tenant,
            user=scope.user,
            agent=scope.agent,
            session=scope.session,
            generation=generation,
            occurred_at=self.clock.at,
            parent=parent,
            payload=payload,
        )
        await self.log.append([event])
        return event

    async def say(
        self,
        exchange: str,
        text: str,
        *,
        scope: Scope = ALICE,
        parent: str | None = None,
        generation: int = 1,
        **step: Any,
    ) -> Event:
        """Append a complete exchange of one step and push its page, as a capture does."""
        fields: dict[str, Any] = {"reply_text": "ok", "outcome": "complete", "closes": True, **step}
        at = self.clock.at + timedelta(seconds=1)
        captured = Step(
            exchange=exchange,
            user_text=text,
            isolated=scope.isolated,
            started_at=at,
            finished_at=at,
            **fields,
        )
        page = Page(
            id=exchange, scope=scope, generation=generation, user_text=text, reply_text="ok", occurred_at=at
        )
        await self.short_term.push(page, vector=None, block=None)
        return await self.append(
            StepCaptured(step=captured), scope=scope, parent=parent, generation=generation
        )

    async def indexed(self, *ids: str, scope: Scope = ALICE) -> list[str]:
        """Those of the ids that long-term memory has."""
        return [record.id for record in await self.long_term.get(scope.owner, ids)]

    async def recent(self, scope: Scope = ALICE) -> list[str]:
        return [page.id for page in (await self.short_term.latest(scope, limit=20)).pages]


@pytest.fixture(name="world")
async def _world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path / "log.db")
    await world.log.start()
    yield world
    await world.worker.stop()
    await world.log.close()


def memory(text: str, *, scope: Scope = ALICE) -> Memory:
    return Memory(
        id=uuid4().hex,
        scope=scope,
        generation=1,
        text=text,
        occurred_at=NOON,
        created_at=NOON,
        updated_at=NOON,
    )


async def until(condition: Any) -> None:
    """Wait for an async condition; the test fails after ten seconds."""
    async with asyncio.timeout(10):
        while not await condition():  # noqa: ASYNC110 - the condition is in another task's stores
            await asyncio.sleep(0.005)


async def test_what_was_said_stands_in_long_term_memory_once(world: World) -> None:
    """After draining each exchange has one record, found by its text, with the page before it as context."""
    await world.say("x1", "I live in Oslo")
    await world.say("x2", "And I ski", parent="x1")
    await world.worker.drain()
    assert await world.long_term.count(ALICE.owner) == 2
    assert world.long_term.contexts == {"x1": "I live in Oslo\nok", "x2": "I live in Oslo\nok\nAnd I ski\nok"}
    assert (await world.worker.health()).lag == {
        "pages": 0,
        "facts": 0,
        "index": 0,
        "drawn": 0,
        "segments": 0,
        "extraction": 0,
        "concepts": 0,
    }


async def test_draining_again_changes_nothing(world: World) -> None:
    """A second worker over the same log finds nothing left to do."""
    await world.say("x1", "I live in Oslo")
    await world.worker.drain()
    before = await world.log.read()
    await world.new_worker().drain()
    assert await world.log.read() == before


async def test_indexed_pages_leave_short_term_memory_beyond_capacity(world: World) -> None:
    """Pages settle once they are indexed, so that only the newest stay."""
    for number in range(4):
        await world.say(f"x{number}", f"t{number}", parent=f"x{number - 1}" if number else None)
    assert await world.recent() == ["x0", "x1", "x2", "x3"]
    await world.worker.drain()
    assert await world.recent() == ["x2", "x3"]
    assert await world.indexed("x0", "x1", "x2", "x3") == ["x0", "x1", "x2", "x3"]


async def test_a_branch_that_is_left_goes_and_comes_back(world: World) -> None:
    """An edited message takes its sibling out of both memories; going on with the sibling brings it back."""
    await world.say("a", "hello")
    await world.say("b", "I live in Bern", parent="a")
    await world.say("b2", "I live in Basel", parent="a")
    await world.worker.drain()
    assert await world.indexed("a", "b", "b2") == ["a", "b2"]
    assert "b" not in await world.recent()
    await world.say("c", "really", parent="b")
    await world.worker.drain()
    assert await world.indexed("a", "b", "b2", "c") == ["a", "b", "c"]


async def test_forgetting_reaches_an_isolated_agents_records(world: World) -> None:
    """A tombstone does not say whether the agent was isolated; its page and memory go all the same."""
    nurse = msgspec.structs.replace(ALICE, agent="nurse", isolated=True)
    told = memory("allergic to kiwi", scope=nurse)
    await world.say("x1", "I am allergic", scope=nurse)
    await world.append(MemoryAdded(memory=told), scope=nurse)
    await world.worker.drain()
    assert await world.indexed("x1", told.id, scope=nurse) == ["x1", told.id]
    assert await world.indexed("x1", told.id) == []
    await world.append(PageForgotten(page="x1"), scope=nurse)
    await world.append(MemoryForgotten(memory=told.id), scope=nurse)
    await world.worker.drain()
    assert await world.indexed("x1", told.id, scope=nurse) == []
    assert await world.recent(nurse) == []


async def test_case_21_an_erased_user_is_gone_and_others_stay(world: World) -> None:
    """Erasure reaches both memories in its place in the log: what is said afterwards stays."""
    bob = msgspec.structs.replace(ALICE, user="bob")
    await world.say("x1", "I keep bees")
    await world.say("y1", "I keep cats", scope=bob)
    await world.append(UserErased(generation=2), generation=2)
    await world.say("x2", "hello again", generation=2)
    await world.worker.drain()
    assert await world.indexed("x1", "x2") == ["x2"]
    assert await world.indexed("y1", scope=bob) == ["y1"]
    assert (await world.recent(), await world.recent(bob)) == (["x2"], ["y1"])


async def test_a_carry_over_is_settled_and_not_indexed(world: World) -> None:
    """A compaction summary leaves short-term memory in its turn without ever being recallable."""
    await world.say("x1", "summary of all before", kind="carry-over")
    await world.say("x2", "go on", parent="x1")
    await world.say("x3", "and on", parent="x2")
    await world.worker.drain()
    assert await world.indexed("x1", "x2", "x3") == ["x2", "x3"]
    assert await world.recent() == ["x2", "x3"]


async def test_the_next_message_closes_a_tool_loop_that_was_left(world: World) -> None:
    """What the user said before an abandoned tool call is recallable once the client goes on."""
    await world.say("x1", "find my keys", closes=False, tools=(ToolUse(name="look"),), reply_text="Looking.")
    await world.worker.drain()
    assert await world.indexed("x1") == []
    await world.say("x2", "never mind", parent="x1")
    await world.worker.drain()
    assert await world.indexed("x1", "x2") == ["x1", "x2"]
    assert world.long_term.contexts["x2"].startswith("find my keys\nLooking.\n")


async def test_ten_idle_minutes_close_an_open_exchange(world: World) -> None:
    """An exchange that nothing follows becomes a page after ten minutes, and only once."""
    await world.say("x1", "find my keys", closes=False, tools=(ToolUse(name="look"),))
    await world.worker.drain()
    world.clock.at += timedelta(minutes=9)
    assert await world.worker.tick() == 0
    world.clock.at += timedelta(minutes=2)
    assert await world.worker.tick() == 1
    assert await world.worker.tick() == 0
    await world.worker.drain()
    assert await world.indexed("x1") == ["x1"]


async def test_a_cut_or_equal_regeneration_leaves_nothing_open_or_unsettled(world: World) -> None:
    """The page stays the complete reply's, the exchange is closed, and its page can leave in its turn."""
    await world.say("x1", "tell me", reply_text="all of it")
    await world.worker.drain()
    await world.say("x1", "tell me", reply_text="half", outcome="partial")
    await world.say("x1", "tell me", reply_text="all of it")
    await world.say("x2", "more", parent="x1")
    await world.say("x3", "and more", parent="x2")
    await world.worker.drain()
    assert await world.log.idle_exchanges(before=world.clock.at + timedelta(hours=1), limit=5) == []
    assert await world.recent() == ["x2", "x3"]
    page = await world.log.record("acme", "alice", "x1")
    assert isinstance(page, Page)
    assert page.reply_text == "all of it"


async def test_notify_wakes_a_worker_that_would_look_much_later(world: World) -> None:
    """What was said is recallable without waiting for the next look at the log."""
    await world.worker.start()
    await asyncio.sleep(0.02)
    await world.say("x1", "I live in Oslo")
    world.worker.notify()
    await until(lambda: world.indexed("x1"))
    assert (await world.worker.health()).running


async def test_what_the_last_consumer_decides_is_recallable_at_once(world: World) -> None:
    """A fact that a model read is indexed by a worker whose consumers look at the log once a minute."""

    class Model:
        async def complete(self, request: ModelRequest) -> ModelReply:
            text = '{"facts": ["I live in Oslo."]}' if "Oslo" in request.prompt else '{"facts": []}'
            return ModelReply(text=text, model="reader")

    life = LifePolicy(facts="model", extraction=ExtractionPolicy(model="reader", gather_seconds=0))
    world.worker = world.new_worker(model=Model(), policy=lambda *_: life)
    await world.worker.start()
    await world.say("x1", "I live in Oslo.", reply_text="Nice.")
    await world.say("x2", "Good night.", parent="x1")
    world.worker.notify()

    async def fact_is_indexed() -> bool:
        return await world.long_term.count(ALICE.owner) == 3

    await until(fact_is_indexed)


async def test_case_44_an_outage_parks_nothing_and_loses_nothing(world: World) -> None:
    """While long-term memory is down the cursor waits, however often it is tried; afterwards all is there."""
    await world.say("x1", "I live in Oslo")
    world.long_term.down = True
    draining = asyncio.create_task(world.worker.drain())

    async def tried_often() -> bool:
        return world.long_term.refused > 8

    await until(tried_often)
    health = await world.worker.health()
    assert (health.lag["index"], health.parked) == (1, 0)
    assert "it is down" in health.errors["index"]
    world.long_term.down = False
    await draining
    health = await world.worker.health()
    assert (await world.indexed("x1"), health.parked, health.errors) == (["x1"], 0, {})


@pytest.mark.parametrize(
    "fault", [ValueError("can't embed that"), StoreUnavailable("long-term memory", "the child died")]
)
async def test_a_poisonous_event_is_parked_and_the_others_go_on(world: World, fault: Exception) -> None:
    """An event that always fails, or takes the store down with it, is set aside after three starts."""
    world.long_term.faults["poison"] = fault
    for number, text in enumerate(["fine", "poison", "good"]):
        await world.say(f"x{number}", text)
    await world.worker.drain()
    assert await world.indexed("x0", "x1", "x2") == ["x0", "x2"]
    assert (await world.worker.health()).parked == 1
    ((consumer, event, error),) = await world.log.parked()
    assert (consumer, event.kind, bool(error)) == ("index", "page.closed", True)


async def test_a_parked_event_can_be_tried_again(world: World) -> None:
    """Once the cause is gone a retry indexes it; while it is not, the event stays parked."""
    world.long_term.faults["poison"] = ValueError("can't embed that")
    await world.say("x1", "poison")
    await world.worker.drain()
    ((_, event, _),) = await world.log.parked()
    with pytest.raises(ValueError, match="can't embed"):
        await world.worker.retry("index", event.id)
    assert (await world.worker.health()).parked == 1
    world.long_term.faults.clear()
    assert await world.worker.retry("index", event.id)
    assert (await world.indexed("x1"), (await world.worker.health()).parked) == (["x1"], 0)
    assert not await world.worker.retry("index", event.id)


async def test_all_that_is_parked_is_tried_again(world: World) -> None:
    """What works now is handled; what still fails stays parked, and so does what a killed process was at."""
    world.long_term.faults |= dict.fromkeys(("poison", "venom"), ValueError("can't embed that"))
    await world.say("x1", "poison")
    await world.say("x2", "venom")
    await world.worker.drain()
    del world.long_term.faults["venom"]
    assert await world.worker.retry_parked() == (1, 1)
    assert await world.indexed("x1", "x2") == ["x2"]
    world.long_term.faults["poison"] = asyncio.CancelledError()  # type: ignore[assignment]
    with pytest.raises(asyncio.CancelledError):
        await world.worker.retry_parked()
    assert (await world.worker.health()).parked == 1
    world.long_term.faults.clear()
    assert await world.worker.retry_parked() == (1, 0)
    assert await world.worker.retry_parked() == (0, 0)


async def test_an_event_that_kills_the_process_is_parked_without_being_started_again(world: World) -> None:
    """Three starts that left no trace of an end are enough; the event after it is handled."""
    world.long_term.faults["deadly"] = AssertionError("it must not be started a fourth time")
    await world.say("x1", "deadly")
    await world.say("x2", "fine")
    pages = world.new_worker()
    await pages._runners[0].catch_up()
    (deadly, _) = await world.log.read(kinds=["page.closed"])
    for _ in range(3):
        await world.log.start_attempt("index", deadly)
    await world.worker.drain()
    assert (await world.indexed("x1", "x2"), world.long_term.refused) == (["x2"], 0)
    assert (await world.worker.health()).parked == 1


async def test_an_event_of_a_newer_program_stops_its_consumer_alone(world: World) -> None:
    """What comes before is handled, the consumer stops and health says why; the other one goes on."""
    await world.say("x1", "fine")
    told = await world.append(MemoryAdded(memory=memory("from the future")))
    with sqlite3.connect(world.path) as db:
        db.execute(
            "UPDATE payloads SET version = 99 WHERE seq = (SELECT seq FROM events WHERE id = ?)", (told.id,)
        )
    db.close()
    await world.say("x2", "also fine")
    await world.worker.drain()
    health = await world.worker.health()
    assert health.lag["pages"] == 0
    assert "memory.added of version 99" in health.stopped["index"]
    assert health.parked == 0


async def test_a_second_worker_waits_for_the_first_ones_lease(world: World) -> None:
    """Nothing is handled under another's lease; given back, it is taken over at once."""
    await world.say("x1", "I live in Oslo")
    held = await world.log.lease("index", 0, owner="other", seconds=60)
    assert held is not None
    draining = asyncio.create_task(world.worker.drain())

    async def waits() -> bool:
        return "LeaseLost" in (await world.worker.health()).errors.get("index", "")

    await until(waits)
    assert await world.indexed("x1") == []
    await world.log.lease("index", 0, owner="other", seconds=0)
    world.clock.at += timedelta(seconds=1)
    await draining
    assert await world.indexed("x1") == ["x1"]


async def test_a_worker_that_lost_its_lease_moves_no_cursor(world: World) -> None:
    """A worker that slept past its lease can't overtake the one that took over."""
    await world.say("x1", "I live in Oslo")
    first, second = world.new_worker("first"), world.new_worker("second")
    await first._runners[0].catch_up()
    await first._runners[1].catch_up()
    lease = await first._runners[2].lease(0)
    world.clock.at += timedelta(seconds=31)
    assert await second._runners[2].lease(0) is not None
    assert lease is not None
    draining = asyncio.create_task(first.drain())

    async def lost() -> bool:
        return "LeaseLost" in (await first.health()).errors.get("index", "")

    await until(lost)
    assert (await first.health()).lag["index"] == 1
    await second.stop()
    world.clock.at += timedelta(seconds=1)
    await draining
    assert await world.long_term.count(ALICE.owner) == 1


async def test_stopping_gives_the_leases_back(world: World) -> None:
    """Another worker need not wait for the lease of one that was stopped."""
    await world.say("x1", "one")
    await world.worker.drain()
    await world.worker.stop()
    world.clock.at += timedelta(milliseconds=1)
    await world.say("x2", "two", parent="x1")
    other = world.new_worker("other")
    await other.drain()
    assert await world.indexed("x1", "x2") == ["x1", "x2"]
    await other.stop()


async def test_case_26_steps_of_one_exchange_make_one_page_at_any_batch_size(world: World) -> None:
    """A loop of three steps, a repeated event and a regeneration leave one page and one record."""
    worker = world.new_worker(batch=2)
    await world.say("x1", "ask", closes=False, tools=(ToolUse(name="a"),), reply_text="one", retry_key="k1")
    last = await world.say("x1", "ask", reply_text="two", retry_key="k2")
    await world.log.append([last])
    await worker.drain()
    await world.say("x1", "ask", reply_text="three", retry_key="k2")
    await worker.drain()
    (page,) = await world.log.pages("acme", "alice", limit=10)
    assert page.reply_text == "one\n\nthree"
    assert await world.long_term.count(ALICE.owner) == 1
    assert world.long_term.contexts["x1"] == "ask\none\n\nthree"
    await worker.stop()


class LostLongTerm(FaultyLongTerm):
    """Long-term memory that comes up empty and says so."""

    needs_rebuild = True

    async def mark_rebuilt(self) -> None:
        self.needs_rebuild = False


async def test_long_term_memory_that_lost_its_data_is_filled_from_the_log(world: World) -> None:
    """An empty index that says so gets every live record again, and nothing is decided anew."""
    await world.say("x1", "I live in Oslo")
    await world.say("x2", "poison", parent="x1")
    await world.say("x3", "gone", parent="x2")
    await world.append(PageForgotten(page="x3"))
    await world.worker.drain()
    before = await world.log.read()
    world.long_term = LostLongTerm()
    world.long_term.faults["poison"] = ValueError("can't embed that")
    world.worker = world.new_worker()
    await world.worker.start()

    async def rebuilt() -> bool:
        return not world.long_term.needs_rebuild  # type: ignore[attr-defined]

    await until(rebuilt)
    assert await world.indexed("x1", "x2", "x3") == ["x1"]
    assert await world.log.read() == before


def ranking(*items: str) -> Ranking:
    """Of a recall that showed those."""
    ranked = tuple(Ranked(id=item, shown=True, values=(0.5, 0.25)) for item in items)
    return Ranking(signals=("text", "lexical"), items=ranked)


async def drawn_on(world: World) -> list[RecallDrawn]:
    """What was decided of replies, in the order of the log."""
    await world.worker.drain()
    events = await world.log.read(kinds=["recall.drawn"])
    return [event.payload for event in events if isinstance(event.payload, RecallDrawn)]


async def test_what_a_reply_drew_on_is_decided_once(world: World) -> None:
    """Of each injected item its share and whether it was used, with the recall's numbers; nothing twice."""
    bees, tea, gone = memory("I keep bees in Oslo"), memory("I like green tea"), memory("I sold the boat")
    for added in (bees, tea, gone):
        await world.append(MemoryAdded(memory=added))
    await world.append(MemoryForgotten(memory=gone.id))
    injected = (bees.id, tea.id, gone.id)
    step = {"trace": "t1", "injected": injected, "ranking": ranking(*injected)}
    before = [counter._value.get() for counter in (metrics.INJECTED_ITEMS, metrics.DRAWN_ITEMS)]
    await world.say("x1", "Where are my bees?", reply_text="You keep them in Oslo.", **step)
    (decided,) = await drawn_on(world)
    assert (decided.trace, decided.exchange, decided.ranking) == ("t1", "x1", ranking(*injected))
    assert [(item.id, item.used) for item in decided.items] == [(bees.id, True), (tea.id, False)]
    assert decided.items[0].share > decided.items[1].share == 0
    after = [counter._value.get() for counter in (metrics.INJECTED_ITEMS, metrics.DRAWN_ITEMS)]
    assert [b - a for a, b in zip(before, after, strict=True)] == [2, 1]
    await world.worker.stop()
    world.worker = world.new_worker()
    assert await drawn_on(world) == [decided]


async def test_of_a_tool_loop_the_step_that_recalled_is_taken(world: World) -> None:
    """Its later steps carry the same block; the reply is that of the whole exchange."""
    bees = memory("I keep bees in Oslo")
    await world.append(MemoryAdded(memory=bees))
    step = {"trace": "t1", "injected": (bees.id,), "ranking": ranking(bees.id)}
    call = (ToolUse(name="map"),)
    await world.say("x1", "Where are my bees?", reply_text="", closes=False, tools=call, **step)
    await world.say("x1", "Where are my bees?", reply_text="In Oslo.", injected=(bees.id,))
    (decided,) = await drawn_on(world)
    assert decided.trace == "t1"
    assert decided.items[0].used


async def test_without_anything_recalled_nothing_is_decided(world: World) -> None:
    """Nor where the reply is empty, or where the exchange is from before rankings were kept."""
    bees = memory("I keep bees in Oslo")
    await world.append(MemoryAdded(memory=bees))
    await world.say("x1", "Hi")
    await world.say("x2", "Where?", reply_text="Oslo", injected=(bees.id,), trace="t1")
    await world.say("x3", "Hm", reply_text="", injected=(bees.id,), trace="t2", ranking=ranking(bees.id))
    assert await drawn_on(world) == []


async def test_what_a_reply_drew_on_goes_with_the_exchange_and_the_user(world: World) -> None:
    """A forgotten exchange takes it along, and an erased user all of it."""
    bees = memory("I keep bees in Oslo")
    await world.append(MemoryAdded(memory=bees))
    step = {"reply_text": "In Oslo.", "injected": (bees.id,), "trace": "t", "ranking": ranking(bees.id)}
    await world.say("x1", "Where are my bees?", **step)
    await world.say("x2", "And where are they now?", **step)
    assert [decided.exchange for decided in await drawn_on(world)] == ["x1", "x2"]
    await world.append(PageForgotten(page="x1"))
    assert [decided.exchange for decided in await drawn_on(world)] == ["x2"]
    await world.append(UserErased(generation=2), generation=2)
    assert await drawn_on(world) == []
