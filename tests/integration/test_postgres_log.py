"""The event log in a real PostgreSQL server: many processes over it, and a server that fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import psycopg
import pytest

from hearth.config.switches import Switches
from hearth.gateway.switchboard import SharedSwitchboard
from hearth.memory.clock import SystemClock
from hearth.memory.errors import BadInput, LogUnavailable, StaleGeneration
from hearth.memory.events import postgres_pool
from hearth.memory.events.kinds import Event
from hearth.memory.events.postgres import SEQ_BITS, first_seq
from hearth.memory.events.postgres_log import PostgresLog
from hearth.memory.events.postgres_schema import upgrade
from hearth.memory.ports import MemoryFilter
from hearth.memory.types import Scope, Tails
from tests.events import ManualClock, erase, forget_memory, memory, step
from tests.faults import Relay, relay

NOW = datetime.now(UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture(name="schema")
def _schema() -> str:
    return f"t{uuid4().hex}"


@pytest.fixture(name="server")
def _server(postgres_url: str) -> Iterator[Relay]:
    """A relay before the server."""
    (folder,) = parse_qs(urlsplit(postgres_url).query)["host"]
    with relay(f"{folder}/.s.PGSQL.5432") as one:
        yield one


@asynccontextmanager
async def opened(url: str, schema: str, **options: Any) -> AsyncIterator[PostgresLog]:
    log = PostgresLog(url, schema=schema, clock=SystemClock(), **options)
    await log.start()
    try:
        yield log
    finally:
        await log.close()


def through(server: Relay) -> str:
    return f"postgresql://postgres@127.0.0.1:{server.port}/postgres"


async def rows(url: str, schema: str, query: str) -> list[Any]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as db:
        await db.execute(f"SET search_path = {schema}")
        return await (await db.execute(query)).fetchall()


async def texts(log: PostgresLog, user: str = "alice") -> list[str]:
    found = await log.memories("acme", user, where=MemoryFilter(), after=None, limit=10_000)
    return [one.text for one in found]


async def until_writable(log: PostgresLog) -> None:
    async with asyncio.timeout(60):
        while not (await log.health()).writable:  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(0.1)


# -- many processes -----------------------------------------------------------------------------------------


async def test_logs_that_start_at_once_make_one_set_of_tables(postgres_url: str, schema: str) -> None:
    """Of several processes at a new database one makes the tables, and all can use them."""
    logs = [PostgresLog(postgres_url, schema=schema, clock=SystemClock()) for _ in range(4)]
    await asyncio.gather(*(log.start() for log in logs))
    await asyncio.gather(*(until_writable(log) for log in logs))  # a busy server is asked again
    await asyncio.gather(*(log.append([memory(f"m{n}")]) for n, log in enumerate(logs)))
    assert {"m0", "m1", "m2", "m3"} == set(await texts(logs[0]))
    await asyncio.gather(*(log.close() for log in logs))


async def test_a_cursor_skips_nothing_that_several_processes_append(postgres_url: str, schema: str) -> None:
    """While three logs append for the same users, a reader that follows each partition sees every event once,
    each user's in the order of their commits.
    """
    users = [f"user{n}" for n in range(24)]
    sent: dict[str, list[str]] = {user: [] for user in users}

    async def write(log: PostgresLog, mine: list[str]) -> None:
        for n in range(20):
            batch = [memory(f"{n}", user=user, at=NOW) for user in mine]
            await asyncio.gather(*(log.append([one]) for one in batch))
            for one in batch:
                sent[one.user].append(one.id)

    seen: list[Event] = []

    async def follow(log: PostgresLog, done: asyncio.Event) -> None:
        places = dict.fromkeys(range(log.partitions), 0)
        last = False
        while not last:
            last = done.is_set()
            for place in places:
                lease = await log.lease("index", place, owner="one", seconds=30)
                assert lease is not None
                found = await log.pending(lease, limit=500, kinds=["memory.added"])
                seen.extend(found)
                if found:
                    await log.advance(lease, seq=found[-1].seq)

    async with (
        opened(postgres_url, schema) as one,
        opened(postgres_url, schema) as two,
        opened(postgres_url, schema) as three,
        opened(postgres_url, schema) as reader,
    ):
        done = asyncio.Event()
        following = asyncio.create_task(follow(reader, done))
        await asyncio.gather(write(one, users[:8]), write(two, users[8:16]), write(three, users[16:]))
        done.set()
        await following
    got = {user: [event.id for event in seen if event.user == user] for user in users}
    assert got == sent


async def test_one_user_is_in_one_order_for_all_processes(postgres_url: str, schema: str) -> None:
    """Two logs that append for one user at once leave positions that only grow with each commit."""
    async with opened(postgres_url, schema) as one, opened(postgres_url, schema) as two:
        for n in range(30):
            await asyncio.gather(one.append([memory(f"a{n}", at=NOW)]), two.append([memory(f"b{n}", at=NOW)]))
        found = await one.read(tenant="acme", user="alice")
    assert len(found) == 60
    pairs = [{event.payload.memory.text[1:] for event in found[at : at + 2]} for at in range(0, 60, 2)]  # type: ignore[union-attr]
    assert pairs == [{f"{n}"} for n in range(30)]


async def test_case_21_an_erasure_at_one_gateway_holds_at_all(postgres_url: str, schema: str) -> None:
    """The moment that one process has erased a user, another's work in flight is refused."""
    async with opened(postgres_url, schema) as one, opened(postgres_url, schema) as two:
        await two.append([memory("bees", at=NOW)])
        await one.append([erase(2)])
        with pytest.raises(StaleGeneration):
            await two.append([memory("late bees", at=NOW)])
        assert (await two.generation("acme", "alice"), await texts(two)) == (2, [])


async def test_an_event_sent_by_two_processes_is_stored_once(postgres_url: str, schema: str) -> None:
    """A spool that another gateway drains at the same moment doubles nothing."""
    events = [memory(f"{n}", at=NOW) for n in range(50)]
    async with opened(postgres_url, schema) as one, opened(postgres_url, schema) as two:
        await asyncio.gather(*(log.append([event]) for event in events for log in (one, two)))
        assert len(await one.read()) == 50


async def test_a_refused_append_fails_alone(postgres_url: str, schema: str) -> None:
    """Of appends that share a commit the outdated and the unreadable fail, and the others are there."""
    async with opened(postgres_url, schema) as log:
        await log.append([erase(2)])
        batch = [memory("a", generation=2), memory("b"), memory(user="x\ud83d"), memory("d", user="bob")]
        outcome = await asyncio.gather(*(log.append([one]) for one in batch), return_exceptions=True)
        assert [type(one) for one in outcome] == [type(None), StaleGeneration, BadInput, type(None)]
        assert (await texts(log), await texts(log, "bob")) == (["a"], ["d"])


# -- its tables ---------------------------------------------------------------------------------------------


async def test_payloads_go_by_month(postgres_url: str, schema: str) -> None:
    """A payload is in the table of the month in which it was recorded; the envelopes are together."""
    async with opened(postgres_url, schema) as log:
        await log.append([memory(at=NOW - timedelta(days=400))])
        (event,) = await log.read()
    (place,) = await rows(postgres_url, schema, "SELECT tableoid::regclass::text FROM payloads")
    assert place == (f"payloads_{event.recorded_at:%Y_%m}",)


async def test_a_position_tells_its_time(postgres_url: str, schema: str) -> None:
    """Positions grow with the server's clock and stay exact in readers of JSON."""
    async with opened(postgres_url, schema) as log:
        await log.append([memory(at=NOW)])
        (event,) = await log.read()
    assert event.recorded_at is not None
    assert first_seq(event.recorded_at) <= event.seq < first_seq(event.recorded_at) + (1 << SEQ_BITS)
    assert event.seq < 1 << 53


async def test_old_step_keys_leave(postgres_url: str, schema: str) -> None:
    """What a session can't be found by any more is removed when the tables are tidied."""
    clock = ManualClock(NOW)
    tails = Tails(last_pair="p")
    async with opened(postgres_url, schema, server_clock=clock) as log:
        await log.append([step(tails=tails, at=NOW)])
    clock.advance(days=9)
    async with opened(postgres_url, schema, server_clock=clock) as log:
        await log.append([step(tails=tails, at=clock.now())])
    assert len(await rows(postgres_url, schema, "SELECT FROM step_keys")) == 1


async def test_tables_of_a_newer_program_are_left_alone(postgres_url: str, schema: str) -> None:
    """Where it did more than add they are not used, and the log says what to do, once however often it is
    asked.
    """
    async with opened(postgres_url, schema):
        pass
    await change_tables(postgres_url, schema, step="9999", usable="9998")
    async with opened(postgres_url, schema) as log:
        with pytest.raises(LogUnavailable, match=r"newer Hearth .step 9999, usable since 9998; .*: upgrade"):
            await log.append([memory()])
        first, second = await log.health(), await log.health()
        assert not first.writable
        assert first.last_error == second.last_error


async def test_tables_to_which_a_newer_program_only_added_are_used(postgres_url: str, schema: str) -> None:
    """After a step back to this program it reads and writes them, and the newer one's step stays noted."""
    async with opened(postgres_url, schema) as log:
        await log.append([memory("before")])
    await change_tables(postgres_url, schema, step="9999", usable="0001")
    async with opened(postgres_url, schema) as log:
        await log.append([memory("after")])
        assert set(await texts(log)) == {"before", "after"}
    assert await rows(postgres_url, schema, "SELECT version_num FROM migrations") == [("9999",)]


async def change_tables(url: str, schema: str, *, step: str, usable: str) -> None:
    """As a newer program's step leaves them, with a column that this one does not know."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as db:
        await db.execute(f"SET search_path = {schema}")
        await db.execute("UPDATE migrations SET version_num = %s", [step])
        await db.execute("UPDATE usable SET since = %s", [usable])
        await db.execute("ALTER TABLE users ADD COLUMN hue text")


async def test_nothing_of_a_forgotten_text_is_left_in_the_tables(postgres_url: str, schema: str) -> None:
    """Neither the payload nor a view has it."""
    async with opened(postgres_url, schema) as log:
        one = memory("a secret about kiwis", at=NOW)
        await log.append([one])
        await log.append([forget_memory(one.payload.memory.id, at=NOW + MINUTE)])  # type: ignore[union-attr]
    assert await rows(postgres_url, schema, "SELECT FROM memories") == []
    assert len(await rows(postgres_url, schema, "SELECT FROM payloads")) == 1
    assert len(await rows(postgres_url, schema, "SELECT FROM events")) == 2


# -- a server that fails ------------------------------------------------------------------------------------


async def test_round_trips_are_few_and_do_not_grow(
    postgres_url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look-up before a call costs one round trip; an append costs two, and three for a new user."""
    trips = 0
    real = psycopg.Pipeline.sync

    def counted(stream: psycopg.Pipeline) -> None:
        nonlocal trips
        trips += 1
        real(stream)

    monkeypatch.setattr(psycopg.Pipeline, "sync", counted)
    async with opened(postgres_url, schema) as log:
        await log.append([memory(at=NOW)])
        scope = Scope(tenant="acme", user="alice")
        tails = Tails(last_pair="p", user_texts="u")

        async def look() -> int:
            before = trips
            await log.open_call(scope, tails=tails, retry_key="r", response_id="i", now=NOW)
            return trips - before

        async def add(events: list[Event]) -> int:
            before = trips
            await log.append(events)
            return trips - before

        await look()
        assert await look() == 1
        assert await add([step(tails=tails, retry_key="r", at=NOW)]) == 2
        assert await add([step(tails=tails, at=NOW) for _ in range(40)]) == 2
        assert await add([step(user="new", at=NOW)]) == 3
        for n in range(20):
            await log.append([step(user=f"u{n}", tails=tails, at=NOW) for _ in range(5)])
        assert (await look(), await add([step(tails=tails, at=NOW)])) == (1, 2)


async def test_a_server_that_is_down_at_start_is_awaited(server: Relay, schema: str) -> None:
    """The log starts, refuses what is asked of it, and is well by itself once the server answers."""
    server.mode = "refuse"
    async with opened(through(server), schema) as log:
        with pytest.raises(LogUnavailable):
            await log.append([memory()])
        assert not (await log.health()).writable
        server.mode = "pass"
        await until_writable(log)
        await log.append([memory("at last", at=NOW)])
        assert await texts(log) == ["at last"]


@pytest.mark.parametrize("mode", ["refuse", "hang", "cut"])
async def test_a_server_that_fails_costs_no_event_and_no_thread(
    server: Relay, schema: str, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked meanwhile fails in bounded time, and afterwards all goes on, with nothing doubled."""
    monkeypatch.setattr(postgres_pool, "STUCK_SECONDS", 1.0)
    async with opened(through(server), schema, connections=3) as log:
        await log.append([memory("before", at=NOW)])
        server.mode = mode
        lost = [memory(f"{n}", at=NOW) for n in range(4)]
        work = [log.append([one]) for one in lost] + [log.generation("acme", "alice") for _ in range(8)]
        outcome = await asyncio.wait_for(asyncio.gather(*work, return_exceptions=True), 120)
        assert {LogUnavailable} == {type(one) for one in outcome}
        assert not (await log.health()).writable
        server.mode = "pass"
        async with asyncio.timeout(60):
            for one in lost:
                while True:
                    try:
                        await log.append([one])
                        break
                    except LogUnavailable:
                        await asyncio.sleep(0.1)
        assert sorted(await texts(log)) == ["0", "1", "2", "3", "before"]
        assert (await log.health()).writable


async def test_a_server_that_takes_no_writes_is_still_read(postgres_url: str, schema: str) -> None:
    """Where rights are missing an append fails as unavailable, and what is there is read."""
    async with opened(postgres_url, schema) as log:
        await log.append([memory("before", at=NOW)])
    user = f"reader{schema}"
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as db:
        await db.execute(f"CREATE ROLE {user} LOGIN")
        await db.execute(f"GRANT USAGE ON SCHEMA {schema} TO {user}")
        await db.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {user}")
    async with opened(postgres_url.replace("postgres@", f"{user}@"), schema) as log:
        with pytest.raises(LogUnavailable):
            await log.append([memory("after", at=NOW)])
        assert await texts(log) == ["before"]
        assert not (await log.health()).writable


# -- notes --------------------------------------------------------------------------------------------------


async def test_a_schema_of_another_role_is_named(postgres_url: str, schema: str) -> None:
    """As a dump has it that was restored by the administrator: the start says whose it has to be."""
    user = f"u{schema}"
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as db:
        await db.execute(f"CREATE ROLE {user} LOGIN")
        await db.execute(f"CREATE SCHEMA {schema}")
    with pytest.raises(
        LogUnavailable, match=f"role {user} may not use the schema {schema}: make it the owner"
    ):
        upgrade(postgres_url.replace("postgres@", f"{user}@"), schema)


async def test_switches_are_those_of_every_process(postgres_url: str, schema: str) -> None:
    """What one gateway switches another one sees at its next look; two that switch at once keep both."""
    async with opened(postgres_url, schema) as one, opened(postgres_url, schema) as two:
        here, there = SharedSwitchboard(one), SharedSwitchboard(two)
        assert here.current() == Switches(everyone="write", unread=True)
        await asyncio.gather(here.look(), there.look())
        assert here.current() == Switches()
        await asyncio.gather(here.set("off", tenant="acme"), there.set("read", key="alice"))
        await asyncio.gather(here.look(), there.look())
        expected = Switches(tenants={"acme": "off"}, keys={"alice": "read"})
        assert here.current() == there.current() == expected


@pytest.mark.parametrize("url", ["postgresql://u:hunter2@h/db?foo=1", "postgresql://u:hunter2@[h/db"])
def test_an_address_that_no_server_can_be_asked_by_is_refused(url: str) -> None:
    """Waiting would mend nothing; its password is not shown."""
    with pytest.raises(BadInput) as refused:
        PostgresLog(url, clock=SystemClock())
    assert refused.value.field == "postgres_url"
    assert "hunter2" not in str(refused.value)


async def test_the_last_known_switches_hold_while_the_server_is_away(server: Relay, schema: str) -> None:
    """A gateway goes on with what it knew, and a switch that can't be set is an error."""
    async with opened(through(server), schema) as log:
        board = SharedSwitchboard(log)
        await board.set("off", tenant="acme")
        server.mode = "refuse"
        with pytest.raises(LogUnavailable):
            await board.set("on", tenant="acme")
        following = asyncio.create_task(board.follow())
        await asyncio.sleep(0.1)
        following.cancel()
        assert board.current() == Switches(tenants={"acme": "off"})
