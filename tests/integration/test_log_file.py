"""The SQLite log as a file: who may open it, what its views are, what its bytes hold."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.errors import LogUnavailable, UnknownEvent
from hearth.memory.events import reads
from hearth.memory.events.codec import encode
from hearth.memory.events.database import APPLICATION_ID, run_script
from hearth.memory.events.kinds import PageMoved
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.ports import MemoryFilter
from hearth.memory.types import PlacedBlock, Scope, Tails
from tests.events import START, ManualClock, erase, event, forget_memory, forget_page, memory, page, step

VIEWS = ("forgotten", "step_keys", "exchanges", "sessions", "pages", "injections", "memories", "labels")
HOLD = """
import asyncio, sys
from pathlib import Path
from hearth.memory.clock import SystemClock
from hearth.memory.events.sqlite_log import SqliteLog
async def hold():
    log = SqliteLog(Path(sys.argv[1]), clock=SystemClock())
    await log.start()
    sys.stdout.write("open\\n"); sys.stdout.flush()
    await asyncio.sleep(60)
asyncio.run(hold())
"""


def rows(path: Path, *tables: str) -> dict[str, list[Any]]:
    """The rows of those tables, without the bare places that forgotten exchanges leave."""
    with sqlite3.connect(path) as db:
        found = {t: sorted(db.execute(f"SELECT * FROM {t}").fetchall(), key=repr) for t in tables}
    db.close()
    if "exchanges" in found:
        found["exchanges"] = [row for row in found["exchanges"] if "forgotten" not in row]
    return found


def content(folder: Path) -> bytes:
    """Every byte of every file."""
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def a_busy_log(log: SqliteLog) -> None:
    """Loops, retries, branches, changes, forgettings and an erasure, over two users."""
    for n in range(12):
        at, name = START - timedelta(hours=12 - n), f"x{n}"
        tails = Tails(last_pair=f"p{n % 3}", last_two_pairs=f"t{n}", user_texts=f"u{n}", chain=f"c{n}")
        block = PlacedBlock(exchange=name, text="block", tokens=1, items=(f"m{n % 4}",), at=at)
        shared: dict[str, Any] = {
            "session": f"s{n % 3}",
            "tails": tails,
            "injected": (f"m{n}",),
            "trace": f"t{n}",
            "block": block,
        }
        await log.append([step(name, at=at, closes=False, retry_key=f"k{n}", **shared)])
        later, parent = at + timedelta(minutes=1), f"x{n - 3}"
        await log.append(
            [step(name, at=later, parent=parent, response_id=f"r{n}", **shared), page(name, at=at)]
        )
        await log.append([memory(f"fact {n}", id=f"m{n}", at=at), memory(user="bob"), step(user="bob")])
    await log.append([event(PageMoved(page="x4", state="inactive", reason="edited"))])
    await log.append(
        [step("lost", outcome="failed"), forget_page("x5"), forget_memory("m2"), forget_page("x9")]
    )
    await log.append([step("x9", at=START + timedelta(seconds=1)), memory("fact 3 b", id="m3")])
    await log.append([step(user="carol"), memory(user="carol"), erase(2, user="carol")])
    await log.append([memory("anew", user="carol", generation=2)])


async def test_folding_again_gives_the_same_views(tmp_path: Path, clock: ManualClock) -> None:
    """Views that were dropped and folded from the log equal those that grew with it."""
    log = SqliteLog(tmp_path / "log.db", clock=clock)
    await log.start()
    await a_busy_log(log)
    live = rows(tmp_path / "log.db", *VIEWS, "users")
    assert all(live.values())
    await log.rebuild_views()
    assert live == rows(tmp_path / "log.db", *VIEWS, "users")
    await log.close()


async def test_views_of_another_version_are_folded_at_start(tmp_path: Path, clock: ManualClock) -> None:
    """A file whose views are of another version gets this program's before anything is read."""
    path = tmp_path / "log.db"
    log = SqliteLog(path, clock=clock)
    await log.start()
    await a_busy_log(log)
    await log.close()
    live = rows(path, *VIEWS)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = 0 WHERE key = 'views'")
        db.execute("DROP TABLE pages")
        db.execute("DELETE FROM memories")
    db.close()
    await log.start()
    await log.close()
    assert live == rows(path, *VIEWS)


async def test_a_file_of_the_first_schema_is_brought_up_to_date(tmp_path: Path, clock: ManualClock) -> None:
    """Its events are read and found as before, and new ones stand beside them with their checksums. A copy of
    the file, as the older program left it, is kept.
    """
    old = memory("from long ago")
    stored = encode(old.payload)
    db = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
    for name in ("schema.sql", "views.sql"):
        run_script(db, name)
    db.execute("INSERT INTO users (tenant, name) VALUES ('acme', 'alice')")
    db.execute(
        "INSERT INTO events VALUES (1, ?, 1, 'memory.added', 'default', '', 1, 0, 0, NULL, ?)",
        (old.id, old.payload.memory.id),  # type: ignore[union-attr]
    )
    db.execute("INSERT INTO payloads VALUES (1, 1, ?)", (stored.body,))
    db.execute(f"PRAGMA application_id={APPLICATION_ID}")
    db.execute("PRAGMA user_version=1")
    db.close()
    log = SqliteLog(tmp_path / "log.db", clock=clock)
    await log.start()
    await log.append([memory("from today")])
    assert [e.payload.memory.text for e in await log.read()] == ["from long ago", "from today"]  # type: ignore[union-attr]
    assert (await log.check("acme", "alice")).missing == 0
    await log.close()
    found = rows(tmp_path / "log.db", "events")["events"]
    assert [len(row[-2]) for row in found] == [0, 16]
    with closing(sqlite3.connect(tmp_path / "log.db.schema-1")) as kept:
        assert kept.execute("SELECT id FROM events").fetchall() == [(old.id,)]
        assert kept.execute("PRAGMA user_version").fetchone() == (1,)


async def test_a_log_is_the_same_after_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    """Events, secret, cursor and parked events stand in the file; a second close is no error."""
    log = SqliteLog(tmp_path / "deep" / "log.db", clock=clock)
    await log.start()
    await log.append([memory("one"), memory("two")])
    secret, events = await log.secret("acme"), await log.read()
    lease = await log.lease("index", 0, owner="me", seconds=5)
    assert lease is not None
    await log.advance(lease, seq=1)
    await log.park("index", events[1], "boom")
    await log.close()
    await log.close()
    again = SqliteLog(tmp_path / "deep" / "log.db", clock=clock)
    await again.start()
    assert (secret, events) == (await again.secret("acme"), await again.read())
    renewed = await again.lease("index", 0, owner="me", seconds=5)
    assert (renewed and renewed.seq, renewed and renewed.epoch) == (1, 1)
    assert [("index", events[1], "boom")] == await again.parked()
    await again.close()


async def test_nothing_forgotten_is_left_in_the_files(tmp_path: Path, clock: ManualClock) -> None:
    """After an erasure and a truncation no file holds a word of the user, their sessions included."""
    log = SqliteLog(tmp_path / "log.db", clock=clock)
    await log.start()
    words = [f"zq{n}xv" for n in range(40)]
    for word in words:
        await log.append(
            [step(user_text=word, session=word, retry_key=word), memory(word, tags=(word,)), page(word)]
        )
    assert b"zq7xv" in content(tmp_path)
    await log.append([erase(2)])
    assert await log.truncate()
    left = content(tmp_path)
    assert [word for word in words if word.encode() in left] == []
    await log.close()


async def test_a_second_process_is_refused(tmp_path: Path, clock: ManualClock) -> None:
    """While a process has the log another one is told which, and gets it once that has died."""
    path = tmp_path / "log.db"
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(path), stdout=asyncio.subprocess.PIPE
    )
    log = SqliteLog(path, clock=clock)
    try:
        assert holder.stdout is not None
        assert await holder.stdout.readline() == b"open\n"
        with pytest.raises(LogUnavailable, match=rf"log\.db is in use by .* process {holder.pid}"):
            await log.start()
    finally:
        holder.kill()
        await holder.wait()
    await log.start()
    await log.close()


async def test_a_newer_programs_file_is_refused(tmp_path: Path, clock: ManualClock) -> None:
    """A schema that this program does not know is left alone, with a word on what to do."""
    path = tmp_path / "log.db"
    log = SqliteLog(path, clock=clock)
    await log.start()
    await log.append([memory()])
    await log.close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(LogUnavailable, match=r"newer Hearth .schema 99, this one knows 3.: upgrade"):
        await log.start()
    assert len(rows(path, "events")["events"]) == 1


@pytest.mark.parametrize("content", ["other database", "text"])
async def test_a_file_of_another_kind_is_refused(tmp_path: Path, clock: ManualClock, content: str) -> None:
    """A path that names something else is not overwritten."""
    path = tmp_path / "log.db"
    if content == "text":
        path.write_text("these are my notes, and no database at all " * 100)
    else:
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE mine (x)")
        db.close()
    before = path.read_bytes()
    with pytest.raises(LogUnavailable, match=r"log\.db"):
        await SqliteLog(path, clock=clock).start()
    if content == "text":
        assert before == path.read_bytes()
    else:
        assert rows(path, "mine") == {"mine": []}


async def test_a_path_that_cannot_be_written_is_said(tmp_path: Path, clock: ManualClock) -> None:
    """A folder that can't be made is a clear error at start, and the log stays closed."""
    (tmp_path / "file").write_text("")
    log = SqliteLog(tmp_path / "file" / "log.db", clock=clock)
    with pytest.raises(LogUnavailable, match="can't be opened"):
        await log.start()
    with pytest.raises(LogUnavailable, match="not open"):
        await log.append([memory()])
    assert not (await log.health()).writable


async def test_an_unknown_event_stops_only_those_who_would_read_it(
    sqlite_log: SqliteLog, tmp_path: Path
) -> None:
    """A consumer gets what comes before a newer program's event, then the error; others read on."""
    await sqlite_log.append([memory("one"), memory("two"), step()])
    with sqlite3.connect(tmp_path / "log.db") as db:
        db.execute("UPDATE payloads SET version = 9 WHERE seq = 2")
    db.close()
    lease = await sqlite_log.lease("index", 0, owner="me", seconds=5)
    assert lease is not None
    assert [e.seq for e in await sqlite_log.pending(lease, limit=9, kinds=["memory.added"])] == [1]
    lease = await sqlite_log.advance(lease, seq=1)
    with pytest.raises(UnknownEvent, match=r"memory.added of version 9.*knows versions up to 1"):
        await sqlite_log.pending(lease, limit=9, kinds=["memory.added"])
    assert [e.seq for e in await sqlite_log.pending(lease, limit=9, kinds=["step.captured"])] == [3]


async def test_health_says_how_the_log_does(sqlite_log: SqliteLog) -> None:
    """Events are counted, the disk is measured at start, and a broken file shows as not writable."""
    await sqlite_log.append([memory(), memory()])
    health = await sqlite_log.health()
    assert (health.events, health.writable, health.last_error) == (2, True, "")
    assert health.fsync_p50_ms > 0
    assert health.wal_bytes > 0


async def test_a_full_disk_fails_the_append_and_not_the_log(sqlite_log: SqliteLog, tmp_path: Path) -> None:
    """What does not fit is refused whole and shown in health; once there is room, appends go on."""
    writer = sqlite_log._writer
    assert writer is not None
    await sqlite_log.append([memory("before")])
    size = writer._db.execute("PRAGMA page_count").fetchone()[0]
    writer._db.execute(f"PRAGMA max_page_count = {size}")
    with pytest.raises(LogUnavailable, match="full"):
        await sqlite_log.append([memory("too big " + "".join(chr(200 + n) for n in range(50_000)))])
    health = await sqlite_log.health()
    assert (health.writable, health.events) == (False, 1)
    assert "full" in health.last_error
    writer._db.execute("PRAGMA max_page_count = 1000000")
    await sqlite_log.append([memory("after")])
    found = await sqlite_log.memories("acme", "alice", where=MemoryFilter(), after=None, limit=9)
    assert {"before", "after"} == {m.text for m in found}
    assert (await sqlite_log.health()).writable


async def test_a_long_reader_holds_up_nobody(sqlite_log: SqliteLog, tmp_path: Path) -> None:
    """While another connection reads, appends and look-ups go on and only the truncation waits."""
    await sqlite_log.append([memory()])
    reader = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    await sqlite_log.append([memory(), step("x", tails=Tails(last_pair="p"))])
    state = await sqlite_log.open_call(
        Scope(tenant="acme", user="alice"),
        tails=Tails(last_pair="p"),
        retry_key="",
        response_id="",
        now=START,
    )
    assert (state.hit and state.hit.exchange) == "x"
    assert not await sqlite_log.truncate()
    reader.execute("ROLLBACK")
    assert await sqlite_log.truncate()
    assert (await sqlite_log.health()).wal_bytes == 0
    reader.close()


async def test_look_ups_of_each_request_and_step_read_no_whole_table(sqlite_log: SqliteLog) -> None:
    """Every statement behind opening a call and deciding a page goes through an index of that user."""
    for n in range(3):
        await sqlite_log.append(
            [step(f"x{n}", parent="root", tails=Tails(last_pair="p", user_texts="u")), page(f"x{n}")]
        )
    seen: list[str] = []
    near = sqlite_log._near
    assert near is not None
    (event,) = await sqlite_log.read(limit=1)
    near.set_trace_callback(seen.append)
    alice = Scope(tenant="acme", user="alice")
    for tails in (Tails(last_pair="p"), Tails(user_texts="u")):
        await sqlite_log.open_call(alice, tails=tails, retry_key="k", response_id="r", now=START)
    state = reads.exchange_state(near, event)
    reads.idle_exchanges(near, before=START, limit=9)
    near.set_trace_callback(None)
    assert len(state.siblings) == 2
    plans = {sql: [row[3] for row in near.execute(f"EXPLAIN QUERY PLAN {sql}")] for sql in seen}
    assert len(plans) > 12
    scans = [line for plan in plans.values() for line in plan if line.startswith("SCAN")]
    assert {"SCAN up", "SCAN down"} == set(scans)
    by_time = [line for sql, plan in plans.items() for line in plan if "exchanges_by_time" in line]
    assert by_time == []
