"""Long-term memory over a Qdrant server's REST interface that is late, broken, empty or not there."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from qdrant_client import models

from hearth.memory.errors import BadInput, StoreUnavailable
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.health import REFUSES, child_part
from hearth.memory.ports import Embedder, Indexed, MemoryFilter, SearchRequest
from hearth.memory.runner import Timing
from hearth.memory.stores import qdrant_calls, qdrant_index
from hearth.memory.stores import vector_child_wire as wire
from hearth.memory.stores.hits import decode_hits
from hearth.memory.stores.memory_short_term import InMemoryShortTerm
from hearth.memory.stores.qdrant_index import QdrantIndex
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.sqlite_terms import SqliteTerms
from hearth.memory.stores.terms import QueryTerms
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.stores.vector_child_service import Service
from hearth.memory.stores.vector_index import Embedded
from hearth.memory.types import Memory, Scope
from hearth.memory.worker import Worker
from hearth.testing.embedder import plain
from tests.events import ManualClock, forget_memory, memory
from tests.qdrant_shim import QdrantShim

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
OWNER = Scope(tenant="t", user="alice").owner
PLAIN = "hearth.testing.embedder:plain"
KEY = "a-key-that-nobody-should-see"


def item(text: str, user: str = "alice", **more: Any) -> Indexed:
    given = {"id": uuid4().hex, "generation": 1, "occurred_at": NOW, "created_at": NOW, "updated_at": NOW}
    record = Memory(text=text, scope=Scope(tenant="t", user=user), **(given | more))
    return Indexed(record=record, text=text, context=text)


def ask(text: str, *owners: str, deadline: float = 30.0, **more: Any) -> SearchRequest:
    return SearchRequest(owners=owners or (OWNER,), text=text, deadline=deadline, **more)


@asynccontextmanager
async def child_of(server: QdrantShim, folder: Path, **options: Any) -> AsyncIterator[VectorChild]:
    given = QdrantServer(url=server.url, api_key=server.api_key, **options)
    child = VectorChild(folder, PLAIN, qdrant=given)
    await child.start()
    try:
        yield child
    finally:
        await child.close()


@pytest.fixture(name="shim")
def _shim() -> Iterator[QdrantShim]:
    with QdrantShim().running() as shim:
        yield shim


@pytest.fixture(name="child")
async def _child(shim: QdrantShim, tmp_path: Path) -> AsyncIterator[VectorChild]:
    async with child_of(shim, tmp_path) as child:
        yield child


async def filled(child: VectorChild, shim: QdrantShim) -> None:
    """Make the collection whole: into another one nothing is put before it is known what is there."""
    await child.count(OWNER)
    await child.mark_rebuilt()
    shim.requests.clear()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 (what is waited for gives no sign)
            await asyncio.sleep(0.01)


async def succeeded(work: Callable[[], Awaitable[Any]]) -> Any:
    """What `work` returns once the store is there again."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await work()
            except StoreUnavailable:
                await asyncio.sleep(0.02)


def found(result: Any) -> set[str]:
    return {one.record.text for one in result.candidates}


@pytest.mark.parametrize("records", [3, 200])
async def test_round_trips_are_few_and_do_not_grow(shim: QdrantShim, child: VectorChild, records: int):
    """A search is two requests and a batch of records one, however many there are."""
    for start in range(0, records, 50):
        await child.upsert([item(f"note {number}") for number in range(start, min(start + 50, records))])
    await child.flush()
    assert len(shim.did("upsert")) == -(-records // 50)
    result = await child.search(ask("note 2"))
    assert (len(result.candidates), result.missing) == (min(records, 100), ())
    assert len(shim.did("query")) == 2
    assert [len(one.body["searches"]) for one in shim.did("query")] == [3, 2]
    first, second = (one.body["searches"] for one in shim.did("query"))
    assert not any(one.get("with_payload") for one in (*first, *second[1:]))


async def test_vectors_are_one_request(shim: QdrantShim, child: VectorChild):
    """However many records' vectors are asked for, one request brings those of the texts and nothing else; no
    ids make none. A server that is down is said.
    """
    await filled(child, shim)
    notes = [item(f"note {number}") for number in range(200)]
    await child.upsert(notes)
    ids = [one.record.id for one in notes]
    assert set(await child.vectors(OWNER, ids)) == set(ids)
    (request,) = shim.did("scroll")
    asked = request.body
    assert (asked["with_vector"], asked["with_payload"], asked["limit"]) == (["text"], False, 200)
    before = len(shim.requests)
    assert await child.vectors(OWNER, []) == {}
    assert len(shim.requests) == before
    shim.down()
    with pytest.raises(StoreUnavailable, match=shim.url):
        await child.vectors(OWNER, ids)


async def test_every_read_names_its_owners(shim: QdrantShim, child: VectorChild):
    """case_04: no request that reads goes out without the owners asked for, none at all without owners."""
    await filled(child, shim)
    known = item("I live in Oslo", tags=("a",))
    await child.upsert([known])
    await child.search(ask("Oslo", OWNER, "t/bob", where=MemoryFilter(tags=("a",), words="oslo")))
    await child.get(OWNER, [known.record.id])
    await child.vectors(OWNER, [known.record.id])
    await child.count(OWNER)
    with pytest.raises(BadInput, match="owner"):
        await child.search(SearchRequest(owners=(), text="Oslo"))
    searches = [one for request in shim.did("query") for one in request.body["searches"]]
    filters = [one["filter"] for one in [*searches, *(r.body for r in shim.did("scroll", "count"))]]
    assert len(filters) == 8
    for only in filters:
        (owners,) = [one["match"]["any"] for one in only["must"] if one.get("key") == "owner"]
        assert set(owners) <= {OWNER, "t/bob"}


async def test_the_collection_is_made_for_many_owners(shim: QdrantShim, tmp_path: Path):
    """A graph an owner, the owner as tenant, words not weighed by other people's texts; options as given."""
    options = {"shards": 2, "replicas": 3, "write_consistency": 2, "quantization": "scalar", "prefix": "x."}
    async with child_of(shim, tmp_path, **options) as child:
        await child.upsert([item("I live in Oslo")])
        await child.search(ask("Oslo"))
    (made,) = shim.created
    assert (made.shard_number, made.replication_factor, made.write_consistency_factor) == (2, 3, 2)
    assert (made.hnsw_config.m, made.hnsw_config.payload_m) == (0, 16)
    assert made.sparse_vectors["lexical"].modifier is None
    assert made.quantization_config.scalar.always_ram
    assert all(made.vectors[name].on_disk for name in ("text", "context"))
    (indexes,) = shim.indexes.values()
    assert list(shim.indexes) == ["x.scripted-256-3.1"]
    assert shim.aliases == {"x.scripted-256-3": "x.scripted-256-3.1"}
    assert {name: bool(index.params.is_tenant) for name, index in indexes.items()} == {
        "owner": True,
        "person": False,
        "kind": False,
    }
    first, second = (one.body["searches"] for one in shim.did("query"))
    assert first[0]["params"]["quantization"] == {"rescore": True, "oversampling": 2.0}
    assert second[0]["params"] == {"exact": True, "quantization": {"ignore": True}}


async def test_several_searches_are_under_way_at_once(shim: QdrantShim, child: VectorChild):
    """A search does not wait for the answer to another one's."""
    await child.upsert([item("I live in Oslo")])
    shim.gate.clear()
    searches = [asyncio.create_task(child.search(ask(f"Oslo {number}"))) for number in range(4)]
    await until(lambda: len(shim.did("query")) == 4)
    shim.gate.set()
    assert [found(one) for one in await asyncio.gather(*searches)] == [{"I live in Oslo"}] * 4


async def test_case_44_a_server_that_is_down_at_the_start_is_found_later(tmp_path: Path):
    """case_44: the start does not fail, calls say that the server is down, and the first one after it came up
    goes through, on a collection that has to be filled.
    """
    server = QdrantShim()
    server.up()
    server.down()
    async with child_of(server, tmp_path) as child:
        with pytest.raises(StoreUnavailable, match=server.url):
            await child.search(ask("Oslo"))
        with pytest.raises(StoreUnavailable):
            await child.upsert([item("I live in Oslo")])
        state = (await child.health(seconds=30)).state
        assert state is not None
        assert "Connect" in state.problem
        with server.running():
            await succeeded(lambda: child.upsert([item("I live in Oslo")]))
            assert found(await child.search(ask("Oslo"))) == {"I live in Oslo"}
            assert child.needs_rebuild
            state = (await child.health(seconds=30)).state
            assert state is not None
            assert state.problem == ""


async def test_case_44_a_server_that_never_answers_is_taken_for_down(shim: QdrantShim, child: VectorChild):
    """case_44: a search's request ends before its deadline, so that it fails instead of being late, and what
    needs no server goes on meanwhile.
    """
    await child.upsert([item("I live in Oslo")])
    shim.gate.clear()
    with pytest.raises(StoreUnavailable, match="no answer in time"):
        await child.search(ask("Oslo", deadline=3.0))
    assert (await child.health(seconds=30)).failed == 1
    assert len(await child.embed_queries(["Oslo"])) == 1
    shim.gate.set()
    assert found(await succeeded(lambda: child.search(ask("Oslo")))) == {"I live in Oslo"}


async def test_a_slow_server_is_waited_for(shim: QdrantShim, child: VectorChild):
    """What comes within the deadline counts."""
    await child.upsert([item("I live in Oslo")])
    shim.delay = 0.2
    result = await child.search(ask("Oslo"))
    assert (found(result), result.missing) == ({"I live in Oslo"}, ())


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_fault_is_not_noticed(shim: QdrantShim, child: VectorChild, status: int):
    """A call that fails once is made again."""
    shim.failing = [status]
    await child.upsert([item("I live in Oslo")])
    shim.failing = [status]
    assert found(await child.search(ask("Oslo"))) == {"I live in Oslo"}


async def test_a_lasting_fault_is_given_up(shim: QdrantShim, child: VectorChild):
    """A call that keeps failing is made a few times and then raises."""
    await filled(child, shim)
    shim.always = 500
    before = len(shim.did("upsert"))
    with pytest.raises(StoreUnavailable, match="500"):
        await child.upsert([item("I live in Oslo")])
    assert len(shim.did("upsert")) - before == qdrant_calls.ATTEMPTS


async def test_a_closed_connection_is_opened_again(shim: QdrantShim, child: VectorChild):
    """A server that was restarted is found at the next call, without an error."""
    await child.upsert([item("I live in Oslo")])
    shim.down()
    shim.up()
    assert found(await child.search(ask("Oslo"))) == {"I live in Oslo"}


async def test_the_key_stays_secret(tmp_path: Path):
    """The server gets the key, but neither arguments, messages nor health have it; a wrong one is
    named as such and not tried again.
    """
    with QdrantShim(api_key=KEY).running() as server:
        async with child_of(server, tmp_path) as child:
            await filled(child, server)
            await child.upsert([item("I live in Oslo")])
            state = (await child.health(seconds=30)).state
            assert state is not None
            shown = [Path(f"/proc/{state.pid}") / name for name in ("cmdline", "environ")]
            assert not [path for path in shown if KEY.encode() in path.read_bytes()]
            server.api_key = "another"
            before = len(server.requests)
            with pytest.raises(StoreUnavailable, match="refuses the API key") as caught:
                await child.upsert([item("I live in Lima")])
            assert len(server.did("upsert")) == 2
            assert len(server.requests) - before == 1
            health = await child.health(seconds=30)
    assert child_part(health).reasons == (f"its server {REFUSES}",)
    assert KEY not in f"{caught.value} {health}"
    assert KEY not in repr(QdrantServer(url="http://a", api_key=KEY))


@pytest.mark.parametrize("loss", ["restarted empty", "collection deleted"])
@pytest.mark.parametrize("noticed_by", ["search", "upsert"])
async def test_case_46_a_lost_collection_is_made_again_and_asks_to_be_filled(
    shim: QdrantShim, child: VectorChild, loss: str, noticed_by: str
):
    """case_46: whichever call finds it missing makes it anew and goes on, and it wants to be filled."""
    await child.upsert([item("I live in Oslo")])
    await child.mark_rebuilt()
    assert not child.needs_rebuild
    if loss == "restarted empty":
        shim.forget()
    else:
        shim.client.delete_collection("hearth-scripted-256-3.1")
        shim.indexes.clear()
    if noticed_by == "search":
        assert found(await child.search(ask("Oslo"))) == set()
    else:
        await child.upsert([item("I live in Lima")])
        assert found(await child.search(ask("live"))) == {"I live in Lima"}
    assert child.needs_rebuild
    assert set(shim.indexes["hearth-scripted-256-3.1"]) == {"owner", "person", "kind"}
    await child.mark_rebuilt()
    assert not child.needs_rebuild


async def test_a_collection_that_is_lost_while_it_is_filled_is_filled_again(
    shim: QdrantShim, child: VectorChild
):
    """A filling that began for one collection does not count for the one that took its place."""
    assert child.needs_rebuild
    await child.upsert([item("I live in Oslo")])
    shim.forget()
    await child.upsert([item("I live in Lima")])
    await child.mark_rebuilt()
    assert child.needs_rebuild
    await child.mark_rebuilt()
    assert not child.needs_rebuild


async def test_a_filled_collection_is_known_after_a_restart(shim: QdrantShim, tmp_path: Path):
    """Another life of the process asks for no rebuild; one that has lost the statistics does."""
    async with child_of(shim, tmp_path) as child:
        await child.upsert([item("the zither"), item("the chair")])
        await child.mark_rebuilt()
        before = await child.search(ask("zither"))
    async with child_of(shim, tmp_path) as child:
        assert not child.needs_rebuild
        after = await child.search(ask("zither"))
        assert [one.lexical_score for one in after.candidates] == [
            one.lexical_score for one in before.candidates
        ]
    async with child_of(shim, tmp_path / "elsewhere") as child:
        assert child.needs_rebuild


async def test_two_processes_may_make_the_collection_at_once(shim: QdrantShim, tmp_path: Path):
    """Who comes second finds the collection of the first, and both work on it."""
    shim.gate.clear()
    shim.failing = [404, 404]
    one, two = (
        VectorChild(tmp_path / name, PLAIN, qdrant=QdrantServer(url=shim.url)) for name in ("one", "two")
    )
    starts = asyncio.gather(one.start(), two.start())
    await until(lambda: len(shim.did("info")) >= 2)
    shim.gate.set()
    await starts
    try:
        await one.upsert([item("I live in Oslo")])
        assert found(await two.search(ask("Oslo"))) == {"I live in Oslo"}
        assert len(shim.created) == 1
        assert len(shim.did("create")) == 2
    finally:
        await asyncio.gather(one.close(), two.close())


async def test_writing_again_changes_nothing(shim: QdrantShim, child: VectorChild):
    """The same records written twice, as by a retry, stand there once and score the same."""
    records = [item("the zither"), item("the chair"), item("the table")]
    await child.upsert(records)
    before = await child.search(ask("the zither"))
    await child.upsert([*records, records[0]])
    after = await child.search(ask("the zither"))
    assert await child.count(OWNER) == 3
    scores = [{one.record.id: one.lexical_score for one in result.candidates} for result in (before, after)]
    assert scores[0] == scores[1]


async def test_a_write_that_the_server_only_promises_is_none(shim: QdrantShim, child: VectorChild):
    """A write that is not applied when it is answered raises, so that the worker makes it again."""
    shim.status = models.UpdateStatus.WAIT_TIMEOUT
    with pytest.raises(StoreUnavailable, match="wait_timeout"):
        await child.upsert([item("I live in Oslo")])


async def test_an_address_that_is_no_qdrant_is_said(tmp_path: Path):
    """What can't be an address is the caller's error; a path that leads nowhere is the server's."""
    for url in ("qdrant:6333", "http://", "http://user:word@host", "http://host?key=1"):
        with pytest.raises(BadInput) as caught:
            QdrantServer(url=url)
        assert "word" not in str(caught.value)
    with QdrantShim().running() as server:
        wrong = QdrantServer(url=f"{server.url}/elsewhere")
        child = VectorChild(tmp_path, PLAIN, qdrant=wrong)
        await child.start()
        try:
            with pytest.raises(StoreUnavailable, match="elsewhere"):
                await child.search(ask("Oslo"))
        finally:
            await child.close()


async def test_case_46_the_worker_fills_a_server_that_came_back_empty(
    shim: QdrantShim, child: VectorChild, sqlite_log: SqliteLog, clock: ManualClock
):
    """case_46: what the log holds, and nothing that was removed, stands there again without a restart."""
    parts = {
        "log": sqlite_log,
        "consumers": sqlite_log,
        "mid_term": sqlite_log,
        "short_term": InMemoryShortTerm(),
        "clock": clock,
    }
    worker = Worker(**parts, long_term=child, timing=Timing(tick=0.05))
    await sqlite_log.append(
        [memory("I live in Oslo", id="m1"), memory("I live in Lima"), forget_memory("m1")]
    )
    await worker.start()
    try:
        await worker.drain()
        await until(lambda: not child.needs_rebuild)
        shim.forget()
        owner = Scope(tenant="acme", user="alice").owner
        assert found(await child.search(ask("live", owner))) == set()
        assert child.needs_rebuild
        await until(lambda: not child.needs_rebuild)
        assert found(await child.search(ask("live", owner))) == {"I live in Lima"}
    finally:
        await worker.stop()


@pytest.fixture(name="index")
def _index(shim: QdrantShim) -> Iterator[QdrantIndex]:
    server = QdrantServer(url=shim.url, connections=2)
    index = QdrantIndex(server, _Terms(), embedder="scripted", dimension=256)
    yield index
    index.close()


class _Terms(SqliteTerms):
    """Statistics in another place, which may be down or never answer."""

    fault = ""

    def weigh(self, owners: Sequence[str], terms: Any) -> QueryTerms:
        if self.fault == "down":
            raise StoreUnavailable("statistics", "down")
        while self.fault == "hung":
            time.sleep(0.01)
        return super().weigh(owners, terms)


def embedded(text: str) -> Embedded:
    (vector,) = plain().embed_documents([text])
    return Embedded(item=item(text), text=vector, context=vector)


class _Alone(NamedTuple):
    """A collection that no other came before."""

    embedder: Embedder
    index: QdrantIndex

    def before(self) -> None:
        """There is none."""

    def retire(self) -> None:
        """There is nothing to remove."""

    def reach_all(self) -> None:
        """There is no other."""


@pytest.mark.parametrize("fault", ["down", "hung"])
def test_without_statistics_words_count_alike(
    index: QdrantIndex, monkeypatch: pytest.MonkeyPatch, fault: str
):
    """Where the statistics are late or down a search goes on, finds by words all the same, and says so."""
    index.put([embedded("the zither"), embedded("the chair")])
    monkeypatch.setattr(_Terms, "fault", fault)
    replies: queue.Queue[wire.Reply] = queue.Queue()
    service = Service(_Alone(plain(), index), replies.put, clean_after=600)
    service.start()
    now = time.monotonic()
    times = {"embed_by": now + 2.0, "deadline": now + 30.0}
    service.accept(wire.Search(id=1, owners=(OWNER,), text="the zither", limit=9, **times))
    reply = replies.get(timeout=30)
    monkeypatch.setattr(_Terms, "fault", "")
    assert (reply.fault, reply.missing) == ("", ("lexical weights",))
    coverage = {one.record.text: one.coverage for one in decode_hits(reply.body)}
    assert coverage == pytest.approx({"the zither": 1.0, "the chair": 0.5})


def test_huge_records_go_in_several_requests(
    shim: QdrantShim, index: QdrantIndex, monkeypatch: pytest.MonkeyPatch
):
    """No request exceeds what a server takes, and one record is never split."""
    monkeypatch.setattr(qdrant_index, "REQUEST_CHARACTERS", 2_500)
    index.put([embedded(f"{number} " + "x" * 600) for number in range(5)] + [embedded("y" * 5_000)])
    assert [len(one.body["points"]) for one in shim.did("upsert")] == [2, 2, 1, 1]
    assert index.count(OWNER) == 6
