"""A log copied into another one of either form: the same afterwards, whatever happened on the way."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from hearth.memory.errors import LogUnavailable
from hearth.memory.events import copy_tables, rows
from hearth.memory.events.copy_check import tally
from hearth.memory.events.copy_tables import OTHERS, SECRETS, Stored
from hearth.memory.events.copying import Copied, copy, finish
from hearth.memory.events.kinds import Event, PageMoved
from hearth.memory.events.postgres_log import PostgresLog
from hearth.memory.events.sql_log import SqlLog
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.ports import MemoryFilter
from hearth.memory.types import PlacedBlock, Scope, Tails
from hearth.memory.working import CONSUMERS
from tests.events import ManualClock, erase, event, forget_memory, forget_page, memory, page, step

USERS = [f"user {n}" for n in range(20)]


class Place:
    """Somewhere a log can be, in either form."""

    def __init__(self, form: str, url: str, folder: Path, clock: ManualClock) -> None:
        self.name = f"t{uuid4().hex}"
        self.form, self.url, self.clock = form, url, clock
        self.path = folder / self.name / "log.db"

    @asynccontextmanager
    async def open(self, *, copying: bool = False) -> AsyncIterator[SqlLog]:
        """The log, open."""
        if self.form == "sqlite":
            log: SqlLog = SqliteLog(self.path, clock=self.clock, copying=copying)
        else:
            log = PostgresLog(
                self.url, schema=self.name, clock=self.clock, server_clock=self.clock, copying=copying
            )
        await log.start()
        try:
            yield log
        finally:
            await log.close()


Make = Callable[[str], Place]


class InterruptedCopyError(Exception):
    """The copy ends here."""


def interrupt(at: int) -> Callable[[str, int, int], None]:
    """Ends a copy once it has so many events."""

    def watch(stage: str, done: int, total: int) -> None:
        if done >= at:
            raise InterruptedCopyError

    return watch


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small log has many."""
    monkeypatch.setattr(copy_tables, "PAGE_ROWS", 37)


@pytest.fixture(name="make")
def _make(postgres_url: str, tmp_path: Path, clock: ManualClock) -> Make:
    return lambda form: Place(form, postgres_url, tmp_path, clock)


async def copied(source: Place, target: Place, watch: Any = lambda *_: None) -> Copied:
    async with source.open(copying=True) as one, target.open(copying=True) as two:
        found = await copy(one, two, CONSUMERS, watch)
        if not found.differences:
            await finish(two)
        return found


async def put(log: SqlLog, clock: ManualClock, *events: Event) -> None:
    """Append each by itself, a minute after the other."""
    for one in events:
        clock.advance(minutes=1)
        await log.append([one])


async def fill(log: SqlLog, clock: ManualClock) -> None:
    """Users who did all that a log knows of: forgot, were erased, branched, came again, failed."""
    for user in USERS:
        kept, gone = memory("likes tea", user=user), memory("likes rum", user=user)
        shown = PlacedBlock(
            exchange="x1", text="rum", tokens=1, at=clock.now(), items=(gone.payload.memory.id,)
        )  # type: ignore[union-attr]
        said = partial(step, user=user, tails=Tails(last_pair=f"pair {user}"))
        await put(
            log,
            clock,
            kept,
            gone,
            said("x1", block=shown, at=clock.now()),
            page("x1", user=user),
            said("x2", parent="x1", at=clock.now()),
            page("x2", user=user),
            event(PageMoved(page="x2", state="inactive", reason="edited"), user=user, session="s1"),
            said("x3", session="s2", at=clock.now(), outcome="failed"),
            said("x4", session="s3", at=clock.now(), closes=False),
            forget_memory(gone.payload.memory.id, user=user),  # type: ignore[union-attr]
            forget_page("x1", user=user),
        )
        await log.secret(f"tenant of {user}")
    await put(log, clock, erase(2, user=USERS[3]), memory("new", user=USERS[3], generation=2))
    await log.secret("acme")


async def everything(place: Place) -> Any:
    """All that the log's readers see of every user."""
    found: dict[str, Any] = {}
    async with place.open() as log:
        for user in await log.users("acme", after="", limit=1000):
            for name, answer in {
                "memories": log.memories("acme", user, where=MemoryFilter(), after=None, limit=1000),
                "exchanges": log.exchanges("acme", user, session=None, after=None, limit=1000),
                "sessions": log.sessions("acme", user, after=None, limit=1000),
                "pages": log.pages("acme", user, limit=1000),
                "generation": log.generation("acme", user),
                "events": log.read(tenant="acme", user=user, limit=1000),
                "call": log.open_call(
                    Scope(tenant="acme", user=user),
                    tails=Tails(last_pair=f"pair {user}"),
                    retry_key="",
                    response_id="",
                    now=place.clock.now(),
                ),
            }.items():
                found[f"{user}: {name}"] = _placeless(await answer)  # type: ignore[misc]
        found["secret"] = await log.secret("acme")
        found["parked"] = [(name, one.id, error) for name, one, error in await log.parked()]
        found["lag"] = {name: lag.events for name, lag in (await log.lag(CONSUMERS)).items()}
    return found


def _placeless(answer: Any) -> Any:
    """Without positions, which are each log's own."""
    if isinstance(answer, list) and answer and isinstance(answer[0], Event):
        return [{**_fields(one), "seq": 0} for one in answer]
    return answer


def _fields(one: Event) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}


async def digest(place: Place) -> dict[tuple[str, str], tuple[int, int]]:
    """Every table's rows, as far as they are the same in every log."""
    async with place.open(copying=True) as log:
        found = await tally(log, lambda _: None)
    return {sort: found.of(sort) for sort in found.sorts()}


FORMS = [(one, two) for one in ("sqlite", "postgres") for two in ("sqlite", "postgres")]


@pytest.mark.parametrize(("one", "two"), FORMS)
async def test_a_copy_answers_everything_as_its_source_does(
    make: Make, clock: ManualClock, one: str, two: str
) -> None:
    """Memories, exchanges, sessions, pages, generations, tails, secrets and events are the same; the source
    is left as it was.
    """
    source, target = make(one), make(two)
    async with source.open() as log:
        await fill(log, clock)
        (event, *_) = await log.read(tenant="acme", user=USERS[5])
        await log.park("index", event, "broken")
        assert await log.start_attempt("pages", event) == 1
    before, seen = await digest(source), await everything(source)
    found = await copied(source, target)
    assert found.differences == []
    assert found.kinds["memory.added"] == 2 * len(USERS) + 1
    assert found.redacted > len(USERS)
    assert (found.rows["users"], found.rows["secrets"]) == (len(USERS), len(USERS) + 1)
    assert await everything(target) == seen
    assert await digest(source) == before == await digest(target)
    async with target.open() as log:
        assert await log.start_attempt("pages", event) == 2


@pytest.mark.parametrize("other", ["sqlite", "postgres"])
async def test_there_and_back_is_what_it_was(make: Make, clock: ManualClock, other: str) -> None:
    """A log that was copied to another form and back has every row that it had."""
    start, there, back = make("sqlite"), make(other), make("sqlite")
    async with start.open() as log:
        await fill(log, clock)
    first, second = await copied(start, there), await copied(there, back)
    assert first.digest == second.digest
    assert await digest(start) == await digest(back)
    assert await everything(start) == await everything(back)


async def test_views_that_were_copied_are_those_that_are_folded(make: Make, clock: ManualClock) -> None:
    """In a log of which nothing was redacted, folding the copy's events again changes nothing."""
    source, target = make("sqlite"), make("sqlite")
    async with source.open() as log:
        for user in USERS:
            said = [step(f"x{n}", user=user, at=clock.now(), session=f"s{n % 3}") for n in range(6)]
            await put(log, clock, memory(user=user), *said, page("x1", user=user), page("x4", user=user))
    await copied(source, target)
    before = await digest(target)
    async with target.open() as log:
        await log.rebuild_views()
    assert await digest(target) == before


async def test_payloads_go_to_the_month_in_which_they_were_recorded(
    make: Make, clock: ManualClock, postgres_url: str
) -> None:
    """Positions tell the time of the events, whenever they are copied."""
    source, target = make("sqlite"), make("postgres")
    async with source.open() as log:
        for _ in range(4):
            await put(log, clock, memory())
            clock.advance(days=31)
    await copied(source, target)
    async with await psycopg.AsyncConnection.connect(postgres_url) as db:
        found = await db.execute(f"SELECT DISTINCT tableoid::regclass::text FROM {target.name}.payloads")
        names = sorted(row[0].rpartition(".")[2] for row in await found.fetchall())
    assert names == [f"payloads_2026_{month:02}" for month in (3, 4, 5, 6)]


@pytest.mark.parametrize(("one", "two"), FORMS)
async def test_what_was_handled_stays_handled(make: Make, clock: ManualClock, one: str, two: str) -> None:
    """A consumer that stopped amid each partition goes on with the very events that it had not seen."""
    source, target = make(one), make(two)
    seen: set[str] = set()
    async with source.open() as log:
        for n in range(4):
            await put(log, clock, *(step(f"x{n}", user=user, at=clock.now()) for user in USERS))
        kinds = CONSUMERS["pages"]
        for place in range(log.partitions):
            lease = await log.lease("pages", place, owner="me", seconds=30)
            assert lease is not None
            some = await log.pending(lease, limit=30 if log.partitions == 1 else 1 + place % 3, kinds=kinds)
            if some:
                await log.advance(lease, seq=some[-1].seq)
            seen |= {event.id for event in some}
        sent = [event.id for event in await log.read(limit=1000)]
    assert 0 < len(seen) < len(sent)
    assert (await copied(source, target)).differences == []
    async with target.open() as log:
        rest: list[Event] = []
        for place in range(log.partitions):
            lease = await log.lease("pages", place, owner="other", seconds=30)
            assert lease is not None
            rest += await log.pending(lease, limit=1000, kinds=kinds)
    assert {event.id for event in rest} == set(sent) - seen
    assert len(rest) == len(sent) - len(seen)
    for user in USERS:
        expected = [id for id in sent if id in {event.id for event in rest if event.user == user}]
        assert [event.id for event in rest if event.user == user] == expected


async def test_events_of_a_newer_program_survive(make: Make, clock: ManualClock, tmp_path: Path) -> None:
    """A kind and a version that this program can't read are copied byte by byte, there and back."""
    source, there, back = make("sqlite"), make("postgres"), make("sqlite")
    async with source.open() as log:
        await put(log, clock, memory(), memory(), memory())
    with sqlite3.connect(source.path) as db:
        db.execute("UPDATE events SET kind = 'memory.dreamt' WHERE seq = 2")
        db.execute("UPDATE payloads SET version = 99, body = x'00ff' WHERE seq IN (2, 3)")
    db.close()
    assert (await copied(source, there)).differences == []
    assert (await copied(there, back)).kinds == {"memory.added": 2, "memory.dreamt": 1}
    with sqlite3.connect(back.path) as db:
        found = db.execute(
            "SELECT kind, version, body FROM events JOIN payloads USING (seq) ORDER BY seq"
        ).fetchall()
    db.close()
    assert found[1:] == [("memory.dreamt", 99, b"\0\xff"), ("memory.added", 99, b"\0\xff")]


async def test_ids_that_postgres_cannot_hold_are_the_same_after_all(make: Make, clock: ManualClock) -> None:
    """A NUL, a substitute character and quotes in what clients name go there and back."""
    source, there, back = make("sqlite"), make("postgres"), make("sqlite")
    async with source.open() as log:
        for n, odd in enumerate(("a\0b", "\x1a", "\x1a0", 'it\'s "x"', "Zoë 🐝")):
            said = step(f"x{n}", user=odd, session=odd, at=clock.now())
            await put(log, clock, said, memory(odd, user=odd, tags=(odd,)))
        await log.secret("acme")
    assert (await copied(source, there)).differences == []
    assert (await copied(there, back)).differences == []
    assert await everything(source) == await everything(back)


OWN = {
    *("users.id", "events.user_id", "events.partition", "payloads.seq", "events.seq"),
    *("consumers.owner", "consumers.lease_until", "consumers.epoch", "payloads.archive"),
}
"""Columns that each log makes for itself."""
ELSEWHERE = {"meta", "probes", "copies", "migrations", "usable", "notes", "archives", "sqlite_stat1"}
"""Tables that are about a log's own file or server; switches, which `notes` holds, move by
themselves, and a copy has all payloads in its own tables.
"""


async def test_every_column_of_every_table_is_copied(make: Make, postgres_url: str) -> None:
    """A column that is added to a log and not to its copies is noticed here, in both forms."""
    copied = {
        f"{table.name}.{column}"
        for table in (copy_tables.USERS, SECRETS, *OTHERS)
        for column in table.columns
    }
    copied |= {f"events.{name}" for name in Stored._fields} | {
        "payloads.version",
        "payloads.body",
        "payloads.seal",
    }
    copied |= {f"consumers.{name}" for name in ("name", "partition", "seq")} | OWN
    here, there = make("sqlite"), make("postgres")
    async with here.open(), there.open():
        pass
    with sqlite3.connect(here.path) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {f"{name}.{row[1]}" for name in tables for row in db.execute(f"PRAGMA table_xinfo({name})")}
    db.close()
    async with await psycopg.AsyncConnection.connect(postgres_url) as server:
        asked = await server.execute(
            "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = %s"
            " AND table_name !~ '^(payloads_|term_)'",
            (there.name,),
        )
        found |= {row[0] for row in await asked.fetchall()}
    assert {name for name in found if name.partition(".")[0] not in ELSEWHERE} - copied == set()


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["sqlite", "postgres"])
async def test_a_target_that_holds_something_is_refused(make: Make, clock: ManualClock, form: str) -> None:
    """It stays as it is."""
    source, target = make("sqlite"), make(form)
    for place in (source, target):
        async with place.open() as log:
            await put(log, clock, memory())
    before = await digest(target)
    with pytest.raises(LogUnavailable, match="holds events already"):
        await copied(source, target)
    assert await digest(target) == before


async def test_an_empty_source_is_refused(make: Make) -> None:
    """Nothing can be copied from a log in which nothing ever happened: it is the wrong one."""
    with pytest.raises(LogUnavailable, match="holds nothing"):
        await copied(make("sqlite"), make("sqlite"))


@pytest.mark.parametrize("form", ["sqlite", "postgres"])
async def test_an_unfinished_copy_is_opened_by_nobody_and_mixed_with_nothing(
    make: Make, clock: ManualClock, form: str
) -> None:
    """A gateway does not start on it, and another log is not copied over it; the same copy goes on."""
    source, other, target = make("sqlite"), make("sqlite"), make(form)
    for place in (source, other):
        async with place.open() as log:
            await fill(log, clock)
    with pytest.raises(InterruptedCopyError):
        await copied(source, target, interrupt(100))
    with pytest.raises(LogUnavailable, match="unfinished copy"):
        async with target.open() as log:
            await log.read()
    with pytest.raises(LogUnavailable, match="of another log"):
        await copied(other, target)
    assert (await copied(source, target)).differences == []
    assert await everything(source) == await everything(target)


@pytest.mark.parametrize("form", ["sqlite", "postgres"])
async def test_what_was_erased_between_two_starts_is_not_in_the_copy(
    make: Make, clock: ManualClock, form: str
) -> None:
    """A source that went on after the copy was interrupted is copied anew."""
    source, target = make("sqlite"), make(form)
    async with source.open() as log:
        await fill(log, clock)
    with pytest.raises(InterruptedCopyError):
        await copied(source, target, interrupt(200))
    async with source.open() as log:
        await put(log, clock, erase(2, user=USERS[0]))
    assert (await copied(source, target)).differences == []
    assert await digest(source) == await digest(target)


async def test_a_source_that_is_written_to_meanwhile_is_noticed(make: Make, clock: ManualClock) -> None:
    """The copy is not called whole, and the next start makes it so."""
    source, target = make("postgres"), make("sqlite")
    async with source.open() as log:
        await fill(log, clock)
    async with source.open(copying=True) as one, target.open(copying=True) as two:
        waiting = [memory(user=USERS[0])]

        def watch(stage: str, done: int, total: int) -> None:
            if stage == "Comparing" and waiting:
                assert isinstance(one, PostgresLog)
                one._pool.call(
                    lambda connection: one._database(connection).transact(lambda db: rows.append(db, waiting))
                )

        with pytest.raises(LogUnavailable, match="written to meanwhile"):
            await copy(one, two, CONSUMERS, watch)
    with pytest.raises(LogUnavailable, match="unfinished copy"):
        async with target.open():
            pass
    assert (await copied(source, target)).differences == []


async def test_gateways_that_are_connected_are_noticed(make: Make, clock: ManualClock) -> None:
    """A server that lists another process of Hearth on either side is refused."""
    source, target = make("sqlite"), make("postgres")
    async with source.open() as log:
        await put(log, clock, memory())
    async with make("postgres").open() as gateway:
        await gateway.generation("acme", "alice")
        with pytest.raises(LogUnavailable, match="connected to the target"):
            await copied(source, target)


async def test_a_damaged_copy_is_told(make: Make, clock: ManualClock) -> None:
    """A row that changed on the way is a difference, and the target stays unfinished."""
    source, target = make("sqlite"), make("sqlite")
    async with source.open() as log:
        await fill(log, clock)

    def watch(stage: str, done: int, total: int) -> None:
        if stage == "Comparing" and done == total // 2:
            with sqlite3.connect(target.path) as db:
                db.execute("UPDATE payloads SET body = x'00' WHERE seq = 1")
                db.execute("DELETE FROM sessions WHERE id = 's2'")
                db.execute("UPDATE memories SET folded = 'x'")
            db.close()

    found = await copied(source, target, watch)
    assert "memories: " in " ".join(found.differences)
    assert "sessions: 57 in the source, 38 in the target" in found.differences
    assert "events memory.added: 41 on both sides, but not the same" in found.differences
    with pytest.raises(LogUnavailable, match="unfinished copy"):
        async with target.open():
            pass


# -- killed and large ---------------------------------------------------------------------------------------

COPY = """
import asyncio, sys
from pathlib import Path
import psutil
from hearth.memory.clock import SystemClock
from hearth.memory.events.copying import copy, finish
from hearth.memory.events.postgres_log import PostgresLog
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.working import CONSUMERS

async def main(path, url, schema):
    source = SqliteLog(Path(path), clock=SystemClock(), copying=True)
    target = PostgresLog(url, schema=schema, clock=SystemClock(), copying=True)
    await source.start()
    await target.start()
    held = psutil.Process().memory_info
    before = held().rss
    watch = lambda *seen: print(*seen, (held().rss - before) >> 20, flush=True)
    found = await copy(source, target, CONSUMERS, watch)
    assert not found.differences, found.differences
    await finish(target)
    await source.close()
    await target.close()

asyncio.run(main(*sys.argv[1:]))
"""
EVENTS = 8_000
BODY = 12_000
"""Characters of each memory; half as many bytes are left when it is compressed: 48 MB in all."""
MOST_GROWN = 60
"""Megabytes: less than the bodies alone would take."""


NEVER = float("inf")


def run(command: list[str], until: float) -> tuple[list[int], int]:
    """Run the copy until it has read so many events, and kill it.

    How many it had, page by page, with those that it compared on top, and its growth in megabytes.
    """
    done: list[int] = []
    grown = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            stage, events, _, megabytes = line.split()
            done.append(int(events) + EVENTS * (stage == "Comparing"))
            grown = max(grown, int(megabytes))
            if done[-1] >= until:
                process.kill()
                break
    assert process.returncode == (0 if until == NEVER else -signal.SIGKILL)
    return done, grown


async def test_a_copy_that_is_killed_again_and_again_ends_equal(make: Make, clock: ManualClock) -> None:
    """SIGKILL at any place, and the next start goes on there; memory never holds a log that is large."""
    source, target = make("sqlite"), make("postgres")
    async with source.open() as log:
        for at in range(0, EVENTS, 500):
            batch = [memory(os.urandom(BODY // 2).hex(), user=f"user {n % 500}") for n in range(at, at + 500)]
            await log.append(batch)
    command = [sys.executable, "-c", COPY, str(source.path), target.url, target.name]
    copied = 0
    for until in (0.1 * EVENTS, 0.9 * EVENTS, 1.5 * EVENTS, NEVER):
        done, grown = await asyncio.to_thread(run, command, until)
        assert done == sorted(done)
        assert done[0] >= copied
        assert grown < MOST_GROWN
        copied = min(done[-1], EVENTS)
    assert await digest(source) == await digest(target)
