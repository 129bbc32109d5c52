"""Long-term memory in a Qdrant server made anew beside what is in use, which others search and write."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from hearth.memory import replaying
from hearth.memory.clock import SystemClock
from hearth.memory.errors import StoreUnavailable
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.migrating import Installation
from hearth.memory.opening import LOG_FILE, LONG_TERM, Servers, open_memory
from hearth.memory.ports import Indexed, SearchRequest
from hearth.memory.replaying import Replayed, replay
from hearth.memory.runner import Timing
from hearth.memory.stores import qdrant_fresh, qdrant_succession
from hearth.memory.stores.memory_short_term import InMemoryShortTerm
from hearth.memory.stores.qdrant_fresh import QdrantFresh
from hearth.memory.stores.qdrant_names import numbered
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.qdrant_succession import QdrantSuccession
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.types import Memory, Scope
from hearth.memory.worker import Worker
from hearth.testing.embedder import plain
from tests.events import START, memory
from tests.qdrant_shim import QdrantShim

PLAIN = "hearth.testing.embedder:plain"
ALIAS = "hearth-scripted-256-3"
ALICE, BOB = Scope(tenant="acme", user="alice"), Scope(tenant="acme", user="bob")


@pytest.fixture(name="shim")
def _shim() -> Iterator[QdrantShim]:
    with QdrantShim().running() as shim:
        yield shim


@asynccontextmanager
async def child_of(shim: QdrantShim, home: Path) -> AsyncIterator[VectorChild]:
    child = VectorChild(home / LONG_TERM, PLAIN, qdrant=QdrantServer(url=shim.url))
    await child.start()
    try:
        yield child
    finally:
        await child.close()


@asynccontextmanager
async def log_of(home: Path) -> AsyncIterator[SqliteLog]:
    log = SqliteLog(home / LOG_FILE, clock=SystemClock())
    await log.start()
    try:
        yield log
    finally:
        await log.close()


async def told(home: Path, *texts: str) -> None:
    """A log with those memories of alice, and nothing else."""
    async with log_of(home) as log:
        await log.append([memory(text, id=f"{at:032x}") for at, text in enumerate(texts)])


async def replayed(shim: QdrantShim, home: Path, database: str = "") -> Replayed:
    servers = Servers(qdrant=QdrantServer(url=shim.url), postgres_url=database)
    place = Installation(home=home, spool=home / "spool", servers=servers, embedder=PLAIN)
    return await replay(place, ["long-term"], lambda *_: None)


def standing(shim: QdrantShim) -> dict[str, set[str]]:
    """The texts in each collection."""
    names = [one.name for one in shim.client.get_collections().collections]
    held = {name: [one.payload or {} for one in shim.client.scroll(name, limit=100)[0]] for name in names}
    return {name: {json.loads(one["record"])["text"] for one in found} for name, found in held.items()}


def ghost(text: str) -> Indexed:
    """A record that no log knows."""
    times = dict.fromkeys(("occurred_at", "created_at", "updated_at"), START)
    record = Memory(id=uuid4().hex, scope=ALICE, generation=1, text=text, **times)
    return Indexed(record=record, text=text, context=text)


async def texts(child: VectorChild, words: str) -> set[str]:
    result = await child.search(SearchRequest(owners=(ALICE.owner,), text=words, deadline=30.0))
    return {one.record.text for one in result.candidates}  # type: ignore[union-attr]


def interrupt(*_: Any, **__: Any) -> None:
    raise InterruptedError


async def test_what_the_log_does_not_have_is_gone_afterwards(shim: QdrantShim, tmp_path: Path) -> None:
    """Points and counted words; all else keeps its vectors. Who searches all along finds the fresh collection
    by as many requests as before.
    """
    await told(tmp_path, "I live in Oslo", "I work at Acme")
    assert (await replayed(shim, tmp_path)).embedded == 2
    async with child_of(shim, tmp_path) as child:
        await child.upsert([ghost("Oslo has a ghost")])
        await child.flush()
        assert len(await texts(child, "Oslo")) == 3
        done = await replayed(shim, tmp_path)
        shim.requests.clear()
        assert await texts(child, "Oslo") == {"I live in Oslo", "I work at Acme"}
        assert len(shim.did("query")) == 2
        assert {one.did for one in shim.requests} <= {"query", "info"}
    assert (done.records, done.embedded) == (2, 0)
    assert standing(shim) == {numbered(ALIAS, 3): {"I live in Oslo", "I work at Acme"}}
    assert shim.aliases == {ALIAS: numbered(ALIAS, 3)}
    with closing(sqlite3.connect(tmp_path / LONG_TERM / f"{ALIAS}.terms.sqlite")) as counted:
        assert counted.execute("SELECT count(*) FROM record").fetchone() == (2,)


async def test_a_killed_replay_goes_on_where_it_was(
    shim: QdrantShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another machine too, since the place stands with the collection. What is in use stays as it is."""
    many = [f"thing {at}" for at in range(12)]
    await told(tmp_path, *many)
    await replayed(shim, tmp_path)
    monkeypatch.setattr(replaying, "TOGETHER", 4)
    monkeypatch.setattr(replaying, "KEPT_EVERY", 4)
    keep, kept = QdrantFresh.keep_place, []

    def killed(fresh: QdrantFresh, place: bytes) -> None:
        keep(fresh, place)
        kept.append(place)
        if len(kept) == 2:
            raise InterruptedError

    with monkeypatch.context() as amid:
        amid.setattr(QdrantFresh, "keep_place", killed)
        with pytest.raises(InterruptedError):
            await replayed(shim, tmp_path)
    assert shim.aliases == {ALIAS: numbered(ALIAS, 2)}
    assert [len(standing(shim)[numbered(ALIAS, at)]) for at in (2, 3)] == [12, 8]
    shim.requests.clear()
    assert (await replayed(shim, tmp_path)).records == 12
    assert sum(len(one.body["points"]) for one in shim.did("upsert")) == 4
    assert standing(shim) == {numbered(ALIAS, 3): set(many)}


@pytest.mark.parametrize(
    ("step", "number", "healed_by"),
    [
        ("hand_over", 2, "the next replay"),
        ("lead", 2, "the next replay"),
        ("_forget_words", 3, "the next replay"),
        ("_forget_words", 3, "a worker"),
        ("remove", 3, "a worker"),
        ("close", 3, "the next replay"),
    ],
)
async def test_a_kill_around_the_switch_leaves_a_whole_collection_in_use(
    shim: QdrantShim,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    number: int,
    healed_by: str,
) -> None:
    """Before it the one before, after it the fresh one; and who comes next leaves it alone there."""
    await told(tmp_path, "I live in Oslo", "I work at Acme")
    await replayed(shim, tmp_path)
    with monkeypatch.context() as killed:
        killed.setattr(QdrantFresh if hasattr(QdrantFresh, step) else qdrant_fresh, step, interrupt)
        with pytest.raises(InterruptedError):
            await replayed(shim, tmp_path)
    assert shim.aliases == {ALIAS: numbered(ALIAS, number)}
    assert standing(shim)[numbered(ALIAS, number)] == {"I live in Oslo", "I work at Acme"}
    if healed_by == "the next replay":
        await replayed(shim, tmp_path)
    else:
        await filled_by_a_worker(shim, tmp_path)
    (name,) = shim.aliases.values()
    assert standing(shim) == {name: {"I live in Oslo", "I work at Acme"}}


async def filled_by_a_worker(shim: QdrantShim, home: Path) -> None:
    async with log_of(home) as log, child_of(shim, home) as child:
        await child.count(ALICE.owner)
        assert child.needs_rebuild
        worker = Worker(
            log=log,
            consumers=log,
            mid_term=log,
            short_term=InMemoryShortTerm(),
            long_term=child,
            clock=SystemClock(),
            timing=Timing(tick=0.05),
        )
        await worker.start()
        async with asyncio.timeout(60):
            while child.needs_rebuild:  # noqa: ASYNC110 (what is waited for gives no sign)
                await asyncio.sleep(0.01)
        await worker.stop()


def test_an_erasure_waits_for_a_replay_that_is_not_given_up(
    shim: QdrantShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it filled before may hold what was erased since; once nobody goes on with it, it is removed."""
    server, embedder = QdrantServer(url=shim.url), plain()
    given = {"embedder": embedder.name, "dimension": embedder.dimension, "loader": PLAIN}
    succession = QdrantSuccession(server, tmp_path, embedder, PLAIN)
    with closing(succession.index):
        succession.reach_all()
        QdrantFresh(server, tmp_path, None, **given).close()
        assert set(standing(shim)) == {numbered(ALIAS, 1), numbered(ALIAS, 2)}
        with pytest.raises(StoreUnavailable, match=r"a replay is under way, and hearth-scripted-256-3\.2"):
            succession.reach_all()
        monkeypatch.setattr(qdrant_succession, "GIVEN_UP_SECONDS", -1.0)
        succession.reach_all()
        assert set(standing(shim)) == {numbered(ALIAS, 1)}


async def test_what_is_said_and_erased_amid_a_replay_counts_after_it(
    shim: QdrantShim, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker files into the one that is in use until the very switch. Nothing of that is lost, nobody who
    was erased comes back, and the receipt waits for the end of the replay.
    """
    servers = Servers(qdrant=QdrantServer(url=shim.url), postgres_url=database)
    opened = open_memory(tmp_path / "live", embedder=PLAIN, servers=servers, durability="process")
    async with opened as engine:
        loop = asyncio.get_running_loop()
        for scope in (ALICE, BOB):
            await engine.remember(scope, f"{scope.user} was here before")
        await engine.drain()
        made: list[str] = []

        async def amid(when: str) -> None:
            await engine.remember(ALICE, f"said {when} the switch")
            if not made:
                made.append((await engine.eraser.begin("user", BOB.tenant, BOB.user)).receipt.id)
            await engine.drain()
            await engine.worker.purge()  # type: ignore[attr-defined]
            (receipt,) = [one for _, one in await engine.log.open_erasures(limit=9)]  # type: ignore[attr-defined]
            assert receipt.pending == ("long_term",)
            assert "a replay is under way" in next(
                one.trouble for one in receipt.steps if one.place == "long_term"
            )

        lead = qdrant_fresh.lead

        def switching(*arguments: Any, **given: Any) -> None:
            asyncio.run_coroutine_threadsafe(amid("before"), loop).result(60)
            lead(*arguments, **given)
            asyncio.run_coroutine_threadsafe(engine.remember(ALICE, "said after the switch"), loop).result(60)
            asyncio.run_coroutine_threadsafe(engine.drain(), loop).result(60)

        monkeypatch.setattr(qdrant_fresh, "lead", switching)
        done = await replayed(shim, tmp_path / "replay", database)
        assert done.records == 2
        await engine.worker.purge()  # type: ignore[attr-defined]
        assert not await engine.log.open_erasures(limit=9)  # type: ignore[attr-defined]
        expected = {"alice was here before", "said before the switch", "said after the switch"}
        assert standing(shim) == {numbered(ALIAS, 2): expected}
        found = await engine.search(ALICE, "said the switch before", limit=9)
        assert {one.record.text for one in found} == expected
