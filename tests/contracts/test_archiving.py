"""Archives of a log: what is in them is read, forgotten and erased like all else, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard

from hearth.memory.errors import LogUnavailable
from hearth.memory.events import archiving
from hearth.memory.events.archive import ArchiveFolder
from hearth.memory.events.archiving import Archiving
from hearth.memory.events.kinds import Event
from hearth.memory.events.sql_log import SqlLog
from hearth.memory.ports import EventFilter, MemoryFilter
from tests.events import START, ManualClock, erase, forget_page, memory, page, step

LATER = START + timedelta(days=1)


@pytest.fixture(name="log", params=["sqlite_log", "postgres_log"])
def _log(request: pytest.FixtureRequest, tmp_path: Path) -> SqlLog:
    log: SqlLog = request.getfixturevalue(request.param)
    log.archive = ArchiveFolder(tmp_path / "archive")
    return log


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "FILE_EVENTS", 7)


def words(folder: Path) -> str:
    """All that the archives hold."""
    said = b""
    for path in sorted((folder / "archive").glob("*.zst")):
        with path.open("rb") as file:
            said += zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    return said.decode()


async def fill(log: SqlLog) -> list[Event]:
    """Dialogue of two users, and a memory in force."""
    for user in ("alice", "bob"):
        for n in range(6):
            said = {"user_text": f"{user} said {n}", "user": user, "at": START + timedelta(seconds=n)}
            await log.append([step(f"{user}{n}", **said), page(f"{user}{n}", **said)])
    await log.append([memory("alice likes tea")])
    return await log.read()


async def everything(log: SqlLog) -> list[Any]:
    """What the log answers."""
    exchanges = [
        await log.exchanges("acme", user, session=None, after=None, limit=50) for user in ("alice", "bob")
    ]
    memories = await log.memories("acme", "alice", where=MemoryFilter(), after=None, limit=9)
    pages = await log.pages("acme", "alice", limit=50)
    found = await log.find(EventFilter(tenant="acme", words="said 3"), limit=50)
    return [await log.read(), exchanges, memories, pages, found.events]


async def consistent(log: SqlLog, folder: Path) -> None:
    """The folder has the files that the log tells of, and none holds more than it says."""
    files = await log.ask(archiving._files)
    assert {f"{one.name}.zst" for one in files} == {path.name for path in (folder / "archive").iterdir()}
    assert all(one.state == "live" and one.held == one.events for one in files)


async def test_what_is_in_archives_is_read_as_before(log: SqlLog, tmp_path: Path) -> None:
    """Payloads move, what is in force, younger or too little stays, and every answer is the same."""
    await fill(log)
    before = await everything(log)
    one = Archiving(log, owner="one")
    assert (await one.archive("acme", START)).events == 0
    full = await one.archive("acme", LATER, least=10**9)
    rest = await one.archive("acme", LATER)
    assert [(done.events, done.files) for done in (full, rest)] == [(21, 3), (3, 1)]
    assert "bob said 5" in words(tmp_path)
    assert "likes tea" not in words(tmp_path)
    assert await everything(log) == before
    await log.rebuild_views()
    assert await everything(log) == before
    counted = await log.count_events("acme")
    assert {one.kind: one.archived for one in counted} == {
        "memory.added": 0,
        "page.closed": 12,
        "step.captured": 12,
    }
    assert (await one.archive("acme", LATER)).events == 0
    await consistent(log, tmp_path)


async def test_case_21_forgetting_and_erasing_reach_archives(log: SqlLog, tmp_path: Path) -> None:
    """Out of reach at once; after a purge no file holds a word of it, and what else was in it is read on."""
    await fill(log)
    one = Archiving(log, owner="one")
    await one.archive("acme", LATER)
    kept = await log.read(user="bob", tenant="acme")
    await log.append([forget_page("alice2")])
    assert await log.exchange("acme", "alice", "alice2") is None
    assert await one.purge() == 1
    assert "alice said 2" not in words(tmp_path)
    assert "alice said 1" in words(tmp_path)
    await log.append([erase(2)])
    assert await one.purge() > 0
    assert "alice" not in words(tmp_path)
    assert await log.read(user="bob", tenant="acme") == kept
    await consistent(log, tmp_path)
    await log.append([erase(2, user="bob")])
    assert await one.purge() > 0
    assert list((tmp_path / "archive").iterdir()) == []


class EndedError(Exception):
    """The process ends here."""


def ends_at(call: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Lets calls pass, over all that it wraps, until that one."""
    left = [call]

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def passed(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise EndedError
            return function(*given, **named)

        return passed

    return wrap


@pytest.mark.parametrize("at", [1, 2, 12, 13, 14, 15, 16, 17])
async def test_a_killed_process_leaves_nothing_behind(
    log: SqlLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Ended at any step of archiving and purging, the next one completes it; no answer ever changes."""
    await fill(log)
    one, forgotten = Archiving(log, owner="one"), forget_page("alice2")
    wrap = ends_at(at)
    with monkeypatch.context() as patched:
        for owner, name in ((log, "change"), (log.archive, "write"), (log.archive, "remove")):
            patched.setattr(owner, name, wrap(getattr(owner, name)))
        ended = False
        try:
            await one.archive("acme", LATER)
            await log.append([forgotten])
            await one.purge()
        except EndedError:
            ended = True
    assert ended is (at < 17)
    await log.append([forgotten])
    told = await everything(log)
    assert len(told[0]) == 24
    await one.purge()
    await one.archive("acme", LATER)
    assert await everything(log) == told
    assert "alice said 2" not in words(tmp_path)
    await consistent(log, tmp_path)


async def test_what_is_forgotten_while_it_moves_does_not_stay(
    log: SqlLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is forgotten between the reading and the move is in the file, and leaves it."""
    await fill(log)
    one = Archiving(log, owner="one")
    change, told = log.change, []

    async def forgets(run: Any, **named: Any) -> Any:
        told.append(await log.append([forget_page("alice2")]))
        return await change(run, **named)

    with monkeypatch.context() as patched:
        patched.setattr(archiving, "FILE_EVENTS", 100)
        patched.setattr(log, "change", forgets)
        await one.archive("acme", LATER)
    assert "alice said 2" in words(tmp_path)
    assert await one.purge() == 1
    assert "alice said 2" not in words(tmp_path)


async def test_a_folder_that_is_not_there_is_said(log: SqlLog, tmp_path: Path, clock: ManualClock) -> None:
    """A process that looks elsewhere, and a second one that would archive, are refused in plain words."""
    await fill(log)
    await Archiving(log, owner="one").archive("acme", LATER)
    with pytest.raises(LogUnavailable, match="Another process is at the archives"):
        await Archiving(log, owner="two").archive("acme", LATER)
    await Archiving(log, owner="one").release()
    assert (await Archiving(log, owner="two").archive("acme", LATER)).events == 0
    log.archive = ArchiveFolder(tmp_path / "elsewhere")
    with pytest.raises(LogUnavailable, match=r"archive is missing.*archive_dir is one folder"):
        await log.read()
