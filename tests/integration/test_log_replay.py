"""Memory made anew from its log: the same as before, beside what is in use, and after any kill."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.clock import SystemClock
from hearth.memory.events.kinds import PageClosed, PageForgotten
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.migrating import Installation
from hearth.memory.opening import LOG_FILE, LONG_TERM, Servers, opened_log
from hearth.memory.replaying import PARTS, Part, _restore_short_term, replay
from hearth.memory.stores import edge_fresh
from hearth.memory.stores.edge_fresh import EdgeFresh, finish_switch, settle
from hearth.memory.stores.memory_short_term import InMemoryShortTerm
from hearth.memory.types import Scope
from hearth.testing import standing
from hearth.testing.embedder import plain
from hearth.testing.operations import Operations
from tests.events import ManualClock, event, memory, page

ROOT = Path(__file__).parents[2]
PLAIN = "hearth.testing.embedder:plain"
OPERATIONS = int(os.environ.get("HEARTH_OPERATIONS", "150"))
"""So many in the suite; ten thousand where there is an hour."""


def installation(home: Path) -> Installation:
    return Installation(home=home, spool=home / "spool", servers=Servers(), embedder=PLAIN)


async def replayed(home: Path, *parts: Part, watch: Callable[..., None] = lambda *_: None) -> Any:
    return await replay(installation(home), parts or PARTS, watch)


async def told(home: Path, count: int) -> None:
    """A log with so many memories, and nothing else."""
    log = SqliteLog(home / LOG_FILE, clock=ManualClock())
    await log.start()
    await log.append([memory(f"thing {n}", id=f"{n:032x}") for n in range(count)])
    await log.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of work that a kill cut off
async def test_replayed_state_equals_live_state_after_any_mix_of_operations(tmp_path: Path) -> None:
    """Told, corrected, forgotten, erased and killed at random: views, index and words are the same, record
    for record, heat to the last bit, and nothing is embedded again. Short-term memory holds what it held, and
    what else the log has of the latest pages.
    """
    operations = Operations(tmp_path, seed=8)
    await operations.run(OPERATIONS)
    assert operations.kills
    views, index = standing.views(tmp_path), standing.long_term(tmp_path, plain())
    words, pages = standing.terms(tmp_path), standing.short_term(tmp_path)
    await _in_order(tmp_path)
    done = await replayed(tmp_path)
    assert (done.embedded, done.records) == (0, len(index))
    assert standing.views(tmp_path) == views
    assert standing.long_term(tmp_path, plain()) == index
    assert standing.terms(tmp_path) == words
    again = standing.short_term(tmp_path)
    assert all(again[owner].items() >= held.items() for owner, held in pages.items())
    assert all(len(held) <= 10 for held in again.values())


async def _in_order(home: Path) -> None:
    """Each user's views are as they are folded anew, one by one, however they came about."""
    async with opened_log(home, "process", SystemClock(), Servers()) as log:
        for user in await log.walk_users(after=0, limit=100):
            found = await log.compare_views(user.scope.tenant, user.scope.user)
            assert (found.drift, found.unfolded) == (0, False), user


async def test_a_lost_index_is_filled_from_the_log_alone(tmp_path: Path) -> None:
    """Without a vector kept all is embedded once, and the second replay embeds nothing."""
    await told(tmp_path, 5)
    first = await replayed(tmp_path, "long-term")
    again = await replayed(tmp_path, "long-term")
    assert [(done.records, done.embedded) for done in (first, again)] == [(5, 5), (5, 0)]
    assert len(standing.long_term(tmp_path, plain())) == 5


async def test_a_killed_replay_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kill -9 in the middle: the index in use is as it was, and what was filled is not filled again."""
    await told(tmp_path, 40)
    await replayed(tmp_path, "long-term")
    before = standing.long_term(tmp_path, plain())
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(tmp_path), cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    await child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert standing.long_term(tmp_path, plain()) == before
    seen: list[int] = []
    done = await replayed(tmp_path, "long-term", watch=lambda stage, count, total: seen.append(count))
    assert (done.records, min(filter(None, seen))) == (40, 40)
    assert standing.long_term(tmp_path, plain()) == before


async def test_a_replay_that_ended_before_its_switch_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All was filled, and its place kept: nothing is filled again, and the exchange is made."""
    await told(tmp_path, 3)
    with monkeypatch.context() as ended:
        ended.setattr(EdgeFresh, "switch", interrupted)
        with pytest.raises(InterruptedError):
            await replayed(tmp_path, "long-term")
    seen: list[int] = []
    done = await replayed(tmp_path, "long-term", watch=lambda stage, count, total: seen.append(count))
    assert (done.records, done.embedded, sum(seen)) == (3, 3, 0)
    assert len(standing.long_term(tmp_path, plain())) == 3


async def test_what_is_left_of_a_switch_is_no_place_to_go_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed as it removed what it no longer needs, the marker of the switch before all else."""
    await told(tmp_path, 3)
    with monkeypatch.context() as killed:
        killed.setattr(edge_fresh, "rmtree", lambda path, **_: None)
        await replayed(tmp_path, "long-term")
    (tmp_path / LONG_TERM / "replay" / "switching").unlink()
    assert (await replayed(tmp_path, "long-term")).records == 3
    assert len(standing.long_term(tmp_path, plain())) == 3


async def test_short_term_memory_holds_what_the_log_says_by_now(tmp_path: Path) -> None:
    """What is forgotten between the reading and the writing of it does not come back. Of whom the log knows
    nothing, as after an older one was restored, nothing is left.
    """
    log = SqliteLog(tmp_path / LOG_FILE, clock=ManualClock())
    await log.start()
    await log.append([page(f"{n:032x}", user_text=f"said {n}") for n in range(3)])
    forgotten = [event(PageForgotten(page=f"{1:032x}"))]

    class ShortTerm(InMemoryShortTerm):
        async def restore(self, scope: Scope, *given: Any, **more: Any) -> None:
            if forgotten:
                await log.append([forgotten.pop()])
                await self.drop(scope, [f"{1:032x}"])
            await super().restore(scope, *given, **more)

    store = ShortTerm()
    unknown = page("b", user="bob").payload
    assert isinstance(unknown, PageClosed)
    await store.push(unknown.page, vector=None, block=None)
    await _restore_short_term(log, store, 1, lambda *_: None)
    view = await store.latest(Scope(tenant="acme", user="alice"), limit=9)
    assert [one.user_text for one in view.pages] == ["said 0", "said 2"]
    assert not (await store.latest(unknown.page.scope, limit=9)).pages
    await log.close()


def interrupted(fresh: EdgeFresh) -> None:
    raise InterruptedError


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from hearth.memory import replaying
from hearth.memory.stores import edge_fresh
from hearth.memory.stores.edge_fresh import EdgeFresh
from tests.integration.test_log_replay import installation

replaying.TOGETHER, replaying.KEPT_EVERY = 8, 16
keep, kept = EdgeFresh.keep_place, []

def keep_and_die(self, place):
    keep(self, place)
    kept.append(place)
    if len(kept) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

EdgeFresh.keep_place = keep_and_die
asyncio.run(replaying.replay(installation(Path(sys.argv[1])), ["long-term"], lambda *_: None))
"""


@pytest.mark.parametrize("step", ["begun", "old one aside", "new one in place", "done"])
def test_a_switch_that_is_killed_at_any_step_ends_with_the_fresh_index(tmp_path: Path, step: str) -> None:
    """Whatever renaming was the last one, the next process has the whole of the fresh collection."""
    live = tmp_path / "model-3"
    beside = tmp_path / "replay"
    fresh = beside / "model-3"
    for folder, content in ((live, "old"), (fresh, "new")):
        folder.mkdir(parents=True)
        (folder / "shard").write_text(content)
    (beside / "switching").touch()
    if step != "begun":
        live.rename(beside / "stale")
    if step in ("new one in place", "done"):
        fresh.rename(live)
    if step == "done":
        finish_switch(tmp_path)
    settle(tmp_path)
    assert (live / "shard").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["model-3"]


async def test_an_abandoned_replay_leaves_nothing_that_nobody_would_forget(tmp_path: Path) -> None:
    """A gateway that opens the memory removes what an unfinished replay wrote beside it."""
    await told(tmp_path, 3)
    fresh = EdgeFresh(tmp_path / LONG_TERM, embedder=plain().name, dimension=plain().dimension)
    fresh.keep_place(b"{}")
    fresh.close()
    settle(tmp_path / LONG_TERM)
    assert not (tmp_path / LONG_TERM / "replay").exists()
