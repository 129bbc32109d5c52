"""Verification over real logs: what was altered is named, and what the stores hold otherwise is repaired."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from hearth.memory.events.kinds import SessionSummarised
from hearth.memory.events.refolding import COMPARED
from hearth.memory.events.sql_log import SqlLog
from hearth.memory.nightly import AT, NIGHTS, Nightly
from hearth.memory.runner import Timing
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.stores.memory_short_term import InMemoryShortTerm
from hearth.memory.tiers.indexed import index_record
from hearth.memory.types import Memory, Page, Scope, SummaryLine
from hearth.memory.verify import Drift, Verified, Verifier
from hearth.memory.worker import Worker
from hearth.testing.embedder import ScriptedEmbedder
from tests.events import START, ManualClock, erase, event, forget_memory, forget_page, memory, page, step

ALICE = Scope(tenant="acme", user="alice")


class World:
    """A log and its stores, filled by the worker."""

    def __init__(self, log: SqlLog, clock: ManualClock) -> None:
        self.log, self.clock = log, clock
        self.short_term = InMemoryShortTerm(capacity=50)
        self.long_term = MemoryLongTerm(ScriptedEmbedder())
        parts: dict[str, Any] = {"log": log, "short_term": self.short_term, "long_term": self.long_term}
        self.verifier = Verifier(consumers=log, **parts)
        self.worker = Worker(consumers=log, mid_term=log, clock=clock, timing=Timing(gather=0), **parts)

    async def fill(self) -> None:
        """Dialogue, memories, and what was forgotten and erased of either."""
        for n in range(4):
            said = {"user_text": f"said {n}", "at": START + timedelta(seconds=n)}
            await self.log.append([step(f"x{n}", **said), page(f"x{n}", **said)])
            await self.log.append([memory(f"fact {n}", id=f"m{n}")])
        await self.log.append([forget_page("x3"), forget_memory("m3")])
        await self.log.append([step(user="bob"), memory("bob's", user="bob"), erase(2, user="bob")])
        await self.log.append([memory("bob's again", user="bob", generation=2)])
        await self.worker.drain()

    async def verify(self, **given: Any) -> Verified:
        """All of the tenant."""
        done, after = Verified(), ""
        while True:
            found, following = await self.verifier.some("acme", after=after, **given)
            done += found
            if following is None:
                return done
            after = following


@pytest.fixture(name="world", params=["sqlite_log", "postgres_log"])
def _world(request: pytest.FixtureRequest, clock: ManualClock) -> World:
    return World(request.getfixturevalue(request.param), clock)


async def test_a_memory_in_order_is_found_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After forgetting and erasing too nothing is damaged and nothing differs; each event was looked at."""
    await world.fill()
    monkeypatch.setattr("hearth.memory.verify.PAGE", 3)
    found = await world.verify(repair=True)
    counted = await world.log.count_events("acme")
    assert found.damaged == ()
    assert (found.drift, found.repaired, found.behind, found.unsealed) == (0, 0, 0, 0)
    assert found.users == 2
    assert found.events == sum(one.events for one in counted)
    assert found.redacted == sum(one.redacted for one in counted) > 4
    assert found.records == 7


async def test_what_was_altered_is_named(world: World) -> None:
    """A torn payload, another in its place, one that is gone and a changed envelope: each by its place."""
    await world.fill()
    by_text = {
        event.payload.memory.text: event
        for event in await world.log.read(kinds=["memory.added"], tenant="acme", user="alice")
    }
    torn, swapped, gone = (by_text[f"fact {n}"] for n in range(3))
    (closed, *_) = await world.log.read(kinds=["page.closed"], tenant="acme", user="alice")
    cut = "substr(body, 1, length(body) - 5)"
    other = "(SELECT body FROM payloads WHERE seq = ?)"

    def alter(db: Any) -> None:
        db.execute(f"UPDATE payloads SET body = {other} WHERE seq = ?", (torn.seq, swapped.seq))
        db.execute(f"UPDATE payloads SET body = {cut} WHERE seq = ?", (torn.seq,))
        db.execute("DELETE FROM payloads WHERE seq = ?", (gone.seq,))
        db.execute("UPDATE events SET occurred = occurred - 1 WHERE seq = ?", (closed.seq,))

    await world.log.change(alter)
    part = await world.log.check("acme", "alice")
    told = {one.id: one.reason for one in part.damaged}
    assert set(told) == {torn.id, swapped.id, gone.id, closed.id}
    assert "can't be read" in told[torn.id]
    assert told[swapped.id].endswith("was altered")
    assert told[gone.id] == "its payload is missing"
    assert told[closed.id] == "its envelope was altered"
    assert {one.seq for one in part.damaged} == {torn.seq, swapped.seq, gone.seq, closed.seq}


async def test_events_that_are_gone_whole_are_missed(world: World) -> None:
    """One amid the others and the last one, of each user and also where nothing else is left of an event."""
    await world.fill()
    events = [
        one for one in await world.log.read(tenant="acme") if one.kind in ("step.captured", "memory.added")
    ]
    gone = [events[0].seq, max(one.seq for one in events)]

    def remove(db: Any) -> None:
        for seq in gone:
            for table in ("payloads", "events"):
                db.execute(f"DELETE FROM {table} WHERE seq = ?", (seq,))

    await world.log.change(remove)
    found = await world.verify()
    assert (found.missing, found.damages) == (2, 0)
    assert found.views.extra > 0
    await world.log.append([memory("One more.")])
    assert (await world.verify()).missing == 2


@pytest.mark.parametrize("world", ["sqlite_log", "postgres_log", "encrypted_log"], indirect=True)
async def test_the_views_are_compared_with_the_events_and_put_right(world: World) -> None:
    """A row that is gone, one too much and altered ones, an encrypted text among them, of whichever user:
    each is counted once and is as it was after a repair; what nobody touched stays.
    """
    await world.fill()
    lines = (SummaryLine(page="x0", at=START, text="said 0"),)
    summed = SessionSummarised(session="s", owner=ALICE.owner, lines=lines)
    await world.log.append([event(summed, session="s")])
    before = await _views(world.log)

    def alter(db: Any) -> None:
        db.execute("DELETE FROM exchanges WHERE id = 'x1'")
        db.execute("UPDATE pages SET state = 'hidden' WHERE id IN ('x0', 'x2')")
        db.execute("UPDATE summaries SET lines = '[]'")
        db.execute("INSERT INTO evidence SELECT user_id, 'x0', id FROM memories WHERE id = 'm0'")
        db.execute("DELETE FROM memories WHERE user_id = (SELECT id FROM users WHERE name = 'bob')")

    await world.log.change(alter)
    assert (await world.verify()).views == Drift(missing=2, extra=1, different=3)
    found = await world.verify(repair=True)
    assert (found.views.total, found.repaired) == (6, 6)
    assert await _views(world.log) == before
    assert (await world.verify()).drift == 0


async def _views(log: SqlLog) -> dict[str, list[str]]:
    """All rows of the views, but for encrypted texts, which are never the same twice."""

    def rows(db: Any, table: str) -> list[str]:
        found = db.execute(f"SELECT * FROM {table}").fetchall()
        return sorted(repr([cell for cell in row if not str(cell).startswith("~")]) for row in found)

    return {one.name: await log.ask(partial(rows, table=one.name)) for one in COMPARED}


async def test_drift_is_counted_and_repaired(world: World) -> None:
    """Missing, extra, different and outdated records of both stores come to what the log says."""
    await world.fill()
    owner = ALICE.owner
    known = {one.id: one for one in await world.long_term.get(owner, ["x0", "x1", "m0", "m1"])}
    page_one, fact_one = known["x1"], known["m1"]
    assert isinstance(page_one, Page)
    assert isinstance(fact_one, Memory)
    await world.long_term.delete(owner, ["x0", "m0"])
    wrong = [
        msgspec.structs.replace(page_one, user_text="never said"),
        msgspec.structs.replace(fact_one, id="nobody's"),
        msgspec.structs.replace(fact_one, id="older", generation=0),
    ]
    await world.long_term.upsert([index_record(one, None) for one in wrong])
    ghost = msgspec.structs.replace(page_one, id="ghost")
    await world.short_term.push(ghost, vector=None, block=None)
    found = await world.verify()
    assert found.long_term == Drift(missing=2, extra=1, different=1, older=1)
    assert found.short_term == Drift(extra=1)
    assert found.repaired == 0
    assert (await world.verify(repair=True)).repaired == 6
    assert (await world.verify()).drift == 0
    left = await world.long_term.get(owner, ["x0", "m0", "nobody's", "older"])
    assert [one.id for one in left] == ["x0", "m0"]


async def test_what_the_worker_has_yet_to_file_is_no_drift(world: World) -> None:
    """Of a user whose events wait only the events are checked."""
    await world.fill()
    await world.log.append([memory("just now")])
    found = await world.verify(repair=True)
    assert (found.drift, found.repaired) == (0, 0)
    assert found.behind >= 1


async def test_one_worker_verifies_each_night(world: World) -> None:
    """It begins at its hour, goes on in parts, and says what it found; another worker leaves it at that."""
    await world.fill()
    one, two = (
        Nightly(log=world.log, consumers=world.log, verifier=world.verifier, clock=world.clock, owner=owner)
        for owner in ("one", "two")
    )
    await world.long_term.delete(ALICE.owner, ["x0"])
    await one.step()
    assert one.last is None
    world.clock.time = (START + timedelta(days=1)).replace(hour=AT.hour)
    for _ in range(3):
        await one.step()
        await two.step()
    assert one.last is not None
    assert two.last is None
    assert (one.last.found.drift, one.last.found.repaired, one.last.found.damages) == (1, 1, 0)
    assert len(await world.long_term.get(ALICE.owner, ["x0"])) == 1


async def test_a_users_views_are_folded_once_a_week(world: World) -> None:
    """Events and stores are compared each night; a wrong row of a view is put right within seven."""
    await world.fill()
    nightly = Nightly(
        log=world.log, consumers=world.log, verifier=world.verifier, clock=world.clock, owner="one"
    )
    await world.log.change(lambda db: db.execute("UPDATE pages SET state = 'hidden' WHERE id = 'x0'"))
    found = []
    for day in range(1, NIGHTS + 1):
        world.clock.time = (START + timedelta(days=day)).replace(hour=AT.hour)
        nightly.last = None
        while nightly.last is None:
            await nightly.step()
        found.append(nightly.last.found.views.total)
    assert sorted(found) == [0] * (NIGHTS - 1) + [1]
