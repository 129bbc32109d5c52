"""A power cut: the disk forgets whatever was written and not synced.

SQLite runs here over a file system of ours that keeps unsynced writes apart, under the very writer, SQL and
settings of the log. It has no shared memory, so the connection locks exclusively; nothing else differs.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from hearth.memory.events import cursors, rows, writer
from hearth.memory.events.database import Synchronous, configure_writer, prepare_schema
from hearth.memory.events.kinds import Event
from hearth.memory.events.sqlite import SqliteDatabase
from hearth.memory.events.writer import Writer
from tests.events import ManualClock, step

WRITERS = 4
APPENDS = 60
CUTS = 12


class Disk(apsw.VFS):
    """Files that are written through to the real disk, and what a power cut would leave of them."""

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.synced: dict[str, bytearray] = {}
        self.unsynced: dict[str, list[tuple[int, bytes | None]]] = {}
        super().__init__("forgetful", "", makedefault=False)

    def xOpen(self, name: Any, flags: list[int]) -> DiskFile:  # noqa: N802 - SQLite's names, here and below
        return DiskFile(self, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(name, syncdir)
        with self.mutex:
            del self.synced[name], self.unsynced[name]

    def sync(self, name: str) -> None:
        with self.mutex:
            _apply(self.synced[name], self.unsynced[name])
            self.unsynced[name].clear()

    def after_a_cut(self, chance: random.Random) -> dict[str, bytes]:
        """What is left if the power goes now: all that was synced, and any part of what was not."""
        left = {name: bytearray(content) for name, content in self.synced.items()}
        for name, writes in self.unsynced.items():
            keep = chance.choice([0.0, 0.5])
            _apply(left[name], [write for write in writes if chance.random() < keep])
        return {Path(name).name: bytes(content) for name, content in left.items()}


class DiskFile(apsw.VFSFile):
    """One file of the disk."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        disk.synced.setdefault(self._name, bytearray())
        disk.unsynced.setdefault(self._name, [])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        with self._disk.mutex:
            self._disk.unsynced[self._name].append((offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        super().xTruncate(size)
        with self._disk.mutex:
            self._disk.unsynced[self._name].append((size, None))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._disk.sync(self._name)


def _apply(content: bytearray, writes: Sequence[tuple[int, bytes | None]]) -> None:
    for offset, data in writes:
        if data is None:
            del content[offset:]
            continue
        content.extend(b"\0" * (offset - len(content)))
        content[offset : offset + len(data)] = data


class Connection:
    """apsw's connection with the manners of sqlite3's, as far as the writer knows them."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self.rowcount = self.lastrowid = 0

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, sql: str, values: Any = ()) -> Result:
        return Result(self._db, sql, values)

    def executemany(self, sql: str, values: Any) -> None:
        self._db.executemany(sql, values)


class Result:
    """The rows of one statement, which has run to its end."""

    def __init__(self, db: apsw.Connection, sql: str, values: Any) -> None:
        self._rows = list(db.execute(sql, values))
        self.rowcount, self.lastrowid = db.changes(), db.last_insert_rowid()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def fetchone(self) -> Any:
        return self._rows.pop(0) if self._rows else None

    def fetchall(self) -> list[Any]:
        return self._rows


async def lost_at_power_cuts(folder: Path, synchronous: Synchronous) -> int:
    """Append from several tasks, cut the power at random moments; the acknowledged events that were gone."""
    disk, path = Disk(), folder / "log.db"
    db: Any = Connection(apsw.Connection(str(path), vfs="forgetful"))
    db.execute("PRAGMA locking_mode=EXCLUSIVE")
    configure_writer(db, synchronous)
    prepare_schema(db, path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    work = Writer(db, wal=folder / "log.db-wal", synchronous=synchronous)
    work.start()
    acknowledged: list[str] = []
    chance, clock = random.Random(5), ManualClock()
    cuts: list[tuple[list[str], dict[str, bytes]]] = []

    def add(event: Event, db: sqlite3.Connection) -> None:
        rows.append(SqliteDatabase(db, clock), [event])

    def count(event: Event, db: sqlite3.Connection) -> None:
        cursors.start_attempt(SqliteDatabase(db, clock), "index", 0, event)

    async def append(user: str) -> None:
        for _ in range(APPENDS):
            event = step(user=user, reply_text="x" * 500)
            await work.do(partial(add, event))
            acknowledged.append(event.id)
            await work.do(partial(count, event), relaxed=True)
            if chance.random() < CUTS / (WRITERS * APPENDS):
                with disk.mutex:
                    cuts.append((list(acknowledged), disk.after_a_cut(chance)))

    await asyncio.gather(*(append(f"user{n}") for n in range(WRITERS)))
    await asyncio.to_thread(work.stop)
    assert len(cuts) > CUTS / 3
    return sum(len(set(told) - left_over(folder / f"cut{n}", files)) for n, (told, files) in enumerate(cuts))


def left_over(folder: Path, files: dict[str, bytes]) -> set[str]:
    """The events that a start after the cut finds, in a database that is whole."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with sqlite3.connect(folder / "log.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        found = {row[0] for row in db.execute("SELECT id FROM events JOIN payloads USING (seq)")}
    db.close()
    return found


@pytest.mark.parametrize("checkpoint_bytes", [60_000, 1 << 30])
async def test_a_power_cut_takes_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint_bytes: int
) -> None:
    """With durability `power` every acknowledged event is there after any cut, amid checkpoints or not."""
    monkeypatch.setattr(writer, "MAX_WAL_BYTES", checkpoint_bytes)
    assert await lost_at_power_cuts(tmp_path, "FULL") == 0


async def test_without_the_sync_a_power_cut_does_take_events(tmp_path: Path) -> None:
    """With durability `process` acknowledged events are lost: the cuts above really forget."""
    assert await lost_at_power_cuts(tmp_path, "NORMAL") > 0
