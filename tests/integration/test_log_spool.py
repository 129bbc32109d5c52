"""The spool: events that wait on disk until the log takes them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from hearth.memory.errors import LogUnavailable
from hearth.memory.events.spool import Spool
from hearth.memory.events.sqlite_log import SqliteLog
from tests.events import START, ManualClock, erase, memory, step


@pytest.fixture(name="spool")
def _spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "spool").iterdir())


async def test_spooled_events_reach_the_log_once(spool: Spool, sqlite_log: SqliteLog, tmp_path: Path) -> None:
    """Draining appends what was spooled, skips what the log already has, and leaves no file."""
    sent = [step(f"x{n}") for n in range(250)]
    await asyncio.gather(*(asyncio.to_thread(spool.write, [e]) for e in sent[:5]))
    spool.write(sent[5:])
    await sqlite_log.append(sent[:3])
    assert (spool.pending(), len(files(tmp_path))) == (250, 1)
    assert await spool.drain(sqlite_log) == 250
    assert sorted(e.id for e in sent) == sorted(e.id for e in await sqlite_log.read())
    assert (spool.pending(), files(tmp_path)) == (0, [])
    assert await spool.drain(sqlite_log) == 0


async def test_a_spool_that_was_never_written_is_empty(spool: Spool, sqlite_log: SqliteLog) -> None:
    """Without a directory there is nothing to drain and nothing to count."""
    assert (spool.pending(), await spool.drain(sqlite_log)) == (0, 0)


def test_what_another_process_still_has_is_not_left_behind(spool: Spool, tmp_path: Path) -> None:
    """Of gateways that share a spool, one that ends speaks for no event that a living one will bring."""
    spool.write([step("one")])
    other = Spool(tmp_path / "spool")
    assert (other.pending(), other.left_behind()) == (1, 0)
    spool.close()
    assert (other.pending(), other.left_behind()) == (1, 1)


def test_counting_reads_a_file_again_only_when_it_has_changed(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Health asks often, and in a long outage there is much in the files; one may vanish amid the look."""
    read: list[Path] = []

    def noted(path: Path) -> bytes:
        read.append(path)
        with path.open("rb") as file:
            return file.read()

    monkeypatch.setattr(Path, "read_bytes", noted)
    spool.write([step("one")])
    spool.close()
    spool.write([step("two")])
    first, second = files(tmp_path)
    assert (spool.pending(), spool.pending(), read) == (2, 2, [first, second])
    spool.write([step("three")])
    assert (spool.pending(), read) == (3, [first, second, second])
    gone = tmp_path / "spool" / "gone.spool"
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: [gone, first, second])
    assert spool.pending() == 3
    spool.close()


async def test_a_line_that_was_cut_off_is_passed_over(
    spool: Spool, sqlite_log: SqliteLog, tmp_path: Path
) -> None:
    """A process that died while writing leaves whole lines, which count, and a piece, which does not."""
    whole, cut = step("whole"), step("cut")
    spool.write([whole, cut])
    spool.close()
    (path,) = files(tmp_path)
    os.truncate(path, path.stat().st_size - 9)
    after_restart = Spool(tmp_path / "spool")
    assert after_restart.pending() == 1
    assert await after_restart.drain(sqlite_log) == 1
    assert [whole.id] == [e.id for e in await sqlite_log.read()]
    assert files(tmp_path) == []


async def test_case_21_spooled_events_of_an_erased_user_are_dropped(
    spool: Spool, sqlite_log: SqliteLog
) -> None:
    """What waited while its user was erased is not appended; the others' events beside it are."""
    spool.write([memory("bees"), memory("wasps", user="bob")])
    await sqlite_log.append([erase(2)])
    await spool.drain(sqlite_log)
    assert [e.kind for e in await sqlite_log.read()] == ["user.erased", "memory.added"]
    assert spool.pending() == 0


async def test_a_log_that_is_down_keeps_the_spool(spool: Spool, tmp_path: Path, clock: ManualClock) -> None:
    """Nothing is removed before the log has it, also when it fails halfway."""
    spool.write([step()])
    closed = SqliteLog(tmp_path / "other.db", clock=clock)
    with pytest.raises(LogUnavailable):
        await spool.drain(closed)
    assert spool.pending() == 1
    await closed.start()
    assert await spool.drain(closed) == 1
    await closed.close()


async def test_what_cannot_be_read_or_taken_is_kept(
    spool: Spool, sqlite_log: SqliteLog, tmp_path: Path
) -> None:
    """A damaged line and an event that the log refuses stay in their file, and hold up no other event."""
    good, refused = step("good"), step("refused", generation=7)
    spool.write([good, refused])
    spool.close()
    (path,) = files(tmp_path)
    path.write_bytes(b"damaged\n" + path.read_bytes())
    assert await spool.drain(sqlite_log) == 1
    assert [good.id] == [e.id for e in await sqlite_log.read()]
    assert [path] == files(tmp_path)


async def test_a_file_that_is_being_written_is_left_to_its_process(
    spool: Spool, sqlite_log: SqliteLog, tmp_path: Path
) -> None:
    """Two gateways share a directory: neither drains what the other still writes to."""
    other = Spool(tmp_path / "spool")
    other.write([step("theirs")])
    spool.write([step("ours")])
    assert await spool.drain(sqlite_log) == 1
    assert spool.pending() == 1
    other.close()
    assert await spool.drain(sqlite_log) == 1


async def test_writing_goes_on_while_the_spool_is_drained(spool: Spool, sqlite_log: SqliteLog) -> None:
    """Events that come during a drain are in a new file and lost to none."""
    sent = [step(at=START) for _ in range(60)]

    async def write() -> None:
        for event in sent:
            await asyncio.to_thread(spool.write, [event])

    async def drain() -> None:
        while len(await sqlite_log.read()) < len(sent):
            await spool.drain(sqlite_log)

    await asyncio.wait_for(asyncio.gather(write(), drain()), timeout=60)
    assert spool.pending() == 0


def test_a_directory_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    """The caller learns at once that the event is not on disk."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Spool(tmp_path / "file" / "spool").write([step()])
