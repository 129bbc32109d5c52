"""What every long-term memory keeps to: in memory, Qdrant Edge in this process or the child, the child over
encrypted records, and the child over a server's REST interface: a shim, and a real server where QDRANT_URL
(and QDRANT_API_KEY) name one.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
import pytest_asyncio

from hearth.memory.errors import BadInput
from hearth.memory.ports import Indexed, LongTerm, MemoryFilter, SearchRequest
from hearth.memory.stores.edge import EdgeLongTerm
from hearth.memory.stores.encrypted_child import EncryptedChild
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.stores.qdrant_calls import QdrantCalls
from hearth.memory.stores.qdrant_names import collections_of, remove
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.types import EVERYBODY, Candidate, Memory, Page, Record, Scope, Vector
from hearth.testing.embedder import plain
from tests.encrypted import keys_of_everybody
from tests.qdrant_shim import QdrantShim

PLAIN = "hearth.testing.embedder:plain"
STORES = [
    "memory",
    "edge",
    "child",
    "shim",
    "encrypted",
    *(["server"] if os.environ.get("QDRANT_URL") else []),
]
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ODD_USERS = [
    "a",
    "a-b",
    "x@y.example",
    "team/a:b",
    "a_b",
    "a b",
    "*",
    "a*",
    "a{b}",
    "a|b",
    "a:b",
    "a/b",
    "用户1",
    "u1",
    "u10",
]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(name="store", params=STORES, scope="module", loop_scope="module")
async def _store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[LongTerm]:
    tmp_path = tmp_path_factory.mktemp(request.param)
    async with AsyncExitStack() as stack:
        match request.param:
            case "memory":
                store = MemoryLongTerm(plain())
            case "edge":
                store = EdgeLongTerm(tmp_path, plain())
            case "child":
                store = VectorChild(tmp_path, PLAIN)
            case "encrypted":
                keys = await stack.enter_async_context(keys_of_everybody(tmp_path))
                store = EncryptedChild(tmp_path, PLAIN, keys=keys)
            case name:
                server = stack.enter_context(_shim() if name == "shim" else _real_server())
                store = VectorChild(tmp_path, PLAIN, qdrant=server)
        if isinstance(store, VectorChild):
            await store.start()
        yield store
        await store.close()


@contextmanager
def _shim() -> Iterator[QdrantServer]:
    with QdrantShim().running() as shim:
        yield QdrantServer(url=shim.url)


@contextmanager
def _real_server() -> Iterator[QdrantServer]:
    """A collection of this run's own, which is removed at the end."""
    url, key = os.environ["QDRANT_URL"], os.environ.get("QDRANT_API_KEY", "")
    server = QdrantServer(url=url, api_key=key, prefix=f"hearth-test-{uuid4().hex[:8]}-")
    yield server
    with closing(QdrantCalls(server)) as calls:
        for one in collections_of(calls, server, by=time.monotonic() + 30):
            remove(calls, one.name, by=time.monotonic() + 30)


class Within:
    """The tenant of the running test: one store serves all, since a child takes a second to start."""

    tenant = ""


@pytest.fixture(autouse=True)
def _own_tenant() -> None:
    Within.tenant = f"t-{uuid4().hex[:8]}"


def scope(user: str = "alice", within: str = "", **more: object) -> Scope:
    return Scope(tenant=Within.tenant + within, user=user, **more)


def fact(text: str, where: Scope | None = None, **more: object) -> Memory:
    given = {"id": uuid4().hex, "generation": 1, "occurred_at": NOW, "created_at": NOW, "updated_at": NOW}
    return Memory(text=text, scope=where or scope(), **(given | more))


def page(user_text: str, reply_text: str = "", where: Scope | None = None, **more: object) -> Page:
    given = {"id": uuid4().hex, "generation": 1, "occurred_at": NOW}
    return Page(user_text=user_text, reply_text=reply_text, scope=where or scope(), **(given | more))


def indexed(record: Record, *, context: str = "") -> Indexed:
    text = record.text if isinstance(record, Memory) else f"{record.user_text}\n{record.reply_text}".strip()
    return Indexed(record=record, text=text, context=context or text)


async def put(store: LongTerm, *records: Record) -> None:
    await store.upsert([indexed(record) for record in records])
    await store.flush()


async def found(store: LongTerm, text: str, *owners: str, **more: object) -> dict[str, Candidate]:
    """Candidates by record id; a deadline so long that it never decides anything."""
    request = SearchRequest(owners=owners or (scope().owner,), text=text, deadline=30.0, **more)
    return {one.record.id: one for one in (await store.search(request)).candidates}


async def test_a_search_gives_each_score_of_its_own(store: LongTerm):
    """Text, context and words are scored apart; coverage is how much of the question the record holds."""
    home, other = fact("I live in Oslo"), fact("my dog barks at night")
    await store.upsert([indexed(home, context="where do you live?\nI live in Oslo"), indexed(other)])
    hits = await found(store, "I live in Oslo")
    assert hits[home.id].text_score == pytest.approx(1.0, abs=1e-3)
    assert abs(hits[home.id].context_score or 1.0) < 0.4
    assert hits[home.id].coverage == pytest.approx(1.0, abs=1e-3)
    assert (hits[home.id].lexical_score or 0.0) > 1.0
    assert hits[other.id].lexical_score == 0.0
    assert hits[other.id].coverage == 0.0
    assert abs(hits[other.id].text_score or 1.0) < 0.4


async def test_a_record_comes_back_as_it_was(store: LongTerm):
    """Every field of a page and of a memory survives the store."""
    said = page(
        "Ça va? 用户 🚀",
        "Yes",
        scope(session="s1", agent="coder"),
        previous=uuid4().hex,
        injected=(uuid4().hex,),
        timezone="Europe/Oslo",
        user_name="Ana",
    )
    known = fact("likes tea", tags=("a", "b"), metadata={"n": 1.5, "x": None}, valid_to=NOW, pinned=True)
    await put(store, said, known)
    assert await store.get(scope().owner, [said.id, known.id]) == [said, known]
    hits = await found(store, "tea")
    assert (hits[said.id].record, hits[known.id].record) == (said, known)


async def test_the_query_vector_is_returned_and_may_be_given(store: LongTerm):
    """A search returns the query's embedding; given back, it finds the same."""
    await put(store, fact("I live in Oslo"))
    request = SearchRequest(owners=(scope().owner,), text="I live in Oslo", deadline=30.0)
    first = await store.search(request)
    again = await store.search(
        SearchRequest(owners=(scope().owner,), text="something else", vector=first.vector, deadline=30.0)
    )
    assert first.missing == again.missing == ()
    assert first.vector is not None
    assert again.vector == first.vector
    assert again.candidates[0].text_score == pytest.approx(1.0, abs=1e-3)


async def test_words_of_their_own_may_be_searched(store: LongTerm):
    """`lexical` replaces the text for the search by words, and for that alone."""
    record = fact("customer number 12345")
    await put(store, record)
    hit = (await found(store, "unrelated question", lexical="12345"))[record.id]
    assert hit.coverage == pytest.approx(1.0, abs=1e-3)
    assert abs(hit.text_score or 1.0) < 0.4


async def test_rarer_words_weigh_more(store: LongTerm):
    """What few of the user's records hold covers more of a question than what most of them hold."""
    rare, common = fact("the zither"), fact("the chair")
    await put(store, rare, common, fact("the table"), fact("the lamp"), fact("the chair again"))
    hits = await found(store, "the zither chair")
    assert hits[rare.id].coverage > hits[common.id].coverage
    assert (hits[rare.id].lexical_score or 0.0) > (hits[common.id].lexical_score or 0.0)


async def test_other_peoples_texts_do_not_change_a_score(store: LongTerm):
    """A word's worth comes from the owner's own records, however often others use it."""
    record = fact("the zither is loud")
    await put(store, record, fact("the chair"))
    before = (await found(store, "loud zither"))[record.id]
    await put(store, *(fact("loud zither loud zither", scope("bob")) for _ in range(20)))
    after = (await found(store, "loud zither"))[record.id]
    assert (after.lexical_score, after.coverage) == (before.lexical_score, before.coverage)
    assert after.text_score == pytest.approx(before.text_score, abs=1e-6)


async def test_an_upsert_replaces_by_id(store: LongTerm):
    """The same record written again stands there once, in its new form, and old words no longer find it."""
    old = fact("I live in Oslo")
    new = fact("I live in Lima", id=old.id)
    await put(store, old)
    await put(store, new)
    assert await store.count(scope().owner) == 1
    assert await store.get(scope().owner, [old.id]) == [new]
    hit = (await found(store, "Oslo"))[old.id]
    assert (hit.record, hit.coverage, hit.lexical_score) == (new, 0.0, 0.0)


async def test_kinds_restrict_a_search(store: LongTerm):
    """Only records of the kinds asked for are found."""
    said, known, trait = page("tea"), fact("tea"), fact("tea", type="persona")
    await put(store, said, known, trait)
    assert set(await found(store, "tea", where=MemoryFilter(types=("page",)))) == {said.id}
    assert set(await found(store, "tea", where=MemoryFilter(types=("fact", "persona")))) == {
        known.id,
        trait.id,
    }


async def test_a_limit_bounds_the_candidates(store: LongTerm):
    """No more than three times `limit` candidates come back, and the best is among them."""
    records = [fact(f"note number {number}") for number in range(40)]
    await put(store, *records)
    hits = await found(store, "note number 17", limit=5)
    assert records[17].id in hits
    assert 5 <= len(hits) <= 15


async def test_inactive_and_expired_records_are_included(store: LongTerm):
    """The store leaves it to recall to drop what is inactive or expired."""
    left, gone = page("tea", state="inactive"), fact("tea", expires_at=NOW)
    await put(store, left, gone)
    assert set(await found(store, "tea")) == {left.id, gone.id}


CONDITIONS = {
    "types": MemoryFilter(types=("persona",)),
    "tags": MemoryFilter(tags=("b", "a")),
    "metadata": MemoryFilter(metadata={"n": 1, "who": 'a "b"', "ok": True}),
    "since": MemoryFilter(since=NOW + timedelta(microseconds=1)),
    "until": MemoryFilter(since=NOW, until=NOW + timedelta(hours=2)),
    "agent": MemoryFilter(agent="coder"),
    "session": MemoryFilter(session="s9"),
    "words": MemoryFilter(words="ÉCOLE lun,"),
}


@pytest.mark.parametrize("name", CONDITIONS)
async def test_a_condition_holds_before_the_best_are_taken(store: LongTerm, name: str):
    """One record that meets the condition is found behind any number of nearer ones that don't."""
    meant = fact(
        "À l'école lun, mar: thé",
        scope(agent="coder", session="s9"),
        type="persona",
        tags=("a", "b", "c"),
        metadata={"n": 1.0, "who": 'a "b"', "ok": True, "more": None},
        occurred_at=NOW + timedelta(hours=1),
    )
    near = [
        fact(
            "we drink tea",
            tags=("a",),
            metadata={"n": True, "who": "a", "ok": 1},
            occurred_at=NOW - timedelta(1),
        )
        for _ in range(30)
    ]
    late = [fact("we drink tea", occurred_at=NOW + timedelta(2))] if name == "until" else []
    await put(store, meant, *near, *late)
    assert set(await found(store, "we drink tea", limit=2, where=CONDITIONS[name])) == {meant.id}


async def test_a_page_has_neither_tags_nor_metadata(store: LongTerm):
    """A condition on either leaves pages out; one on type `page` lets only them in."""
    said, known = page("we drink tea"), fact("we drink tea", tags=("a",), metadata={"n": 1})
    await put(store, said, known)
    assert set(await found(store, "tea", where=MemoryFilter(tags=("a",)))) == {known.id}
    assert set(await found(store, "tea", where=MemoryFilter(metadata={"n": 1}))) == {known.id}
    assert set(await found(store, "tea", where=MemoryFilter(types=("page",)))) == {said.id}


async def test_a_search_without_owners_is_refused(store: LongTerm):
    """case_01: no owner means an error, never everybody."""
    await put(store, fact("I live in Oslo"))
    with pytest.raises(BadInput, match="owner"):
        await store.search(SearchRequest(owners=(), text="Oslo"))


async def test_case_01_users_with_a_common_prefix_are_apart(store: LongTerm):
    """case_01: u1 sees Oslo only, u10 Lima only, u and u2 nothing."""
    first, tenth = fact("lives in Oslo", scope("u1")), fact("lives in Lima", scope("u10"))
    await put(store, first, tenth)
    question = "Where do I live? lives"
    assert set(await found(store, question, scope("u1").owner)) == {first.id}
    assert set(await found(store, question, scope("u10").owner)) == {tenth.id}
    assert await found(store, question, scope("u").owner, scope("u2").owner) == {}


async def test_case_06_special_characters_in_ids(store: LongTerm):
    """case_06: each odd id finds exactly its own record, and clearing `a` removes nothing else."""
    records = {user: fact("likes tea", scope(user)) for user in ODD_USERS}
    await put(store, *records.values())
    for user, record in records.items():
        assert set(await found(store, "tea", scope(user).owner)) == {record.id}
    await store.clear(Within.tenant, "a")
    await store.flush()
    counts = {user: await store.count(scope(user).owner) for user in ODD_USERS}
    assert counts == {user: int(user != "a") for user in ODD_USERS}


async def test_case_06_tenants_are_apart(store: LongTerm):
    """case_06: the same user name in two tenants is two people, and `t/a` + `b` is not `t` + `a/b`."""
    mine, theirs = fact("tea", scope("a/b")), fact("tea", scope("b", "/a"))
    await put(store, mine, theirs)
    assert set(await found(store, "tea", scope("a/b").owner)) == {mine.id}
    await store.clear(Within.tenant + "/a", "b")
    assert await store.count(scope("a/b").owner) == 1
    assert await store.count(scope("b", "/a").owner) == 0


async def test_case_04_reading_and_deleting_by_id_need_the_owner(store: LongTerm):
    """case_04: another owner's id reads and deletes nothing."""
    record = fact("I live in Oslo")
    await put(store, record)
    assert await store.get(scope("bob").owner, [record.id]) == []
    await store.delete(scope("bob").owner, [record.id, uuid4().hex])
    assert await store.get(scope().owner, [record.id, uuid4().hex]) == [record]


async def test_case_04_an_owner_s_records_are_walked(store: LongTerm):
    """case_04: each of the owner's records comes once over the pages, and nobody else's."""
    mine = [fact(f"fact {n}") for n in range(5)]
    await put(store, *mine, fact("bob's", scope("bob")))
    seen, after, pages = [], "", 0
    while after or not pages:
        found, after = await store.walk(scope().owner, after=after, limit=2)
        seen, pages = [*seen, *found], pages + 1
    assert sorted(one.id for one in seen) == sorted(one.id for one in mine)
    assert pages == 3
    assert await store.walk(scope("nobody").owner, limit=2) == ([], "")


async def test_the_same_id_under_two_owners_is_two_records(store: LongTerm):
    """An id that two owners use is written and deleted for each alone."""
    mine = fact("tea")
    theirs = fact("coffee", scope("bob"), id=mine.id)
    await put(store, mine, theirs)
    await store.delete(scope("bob").owner, [mine.id])
    assert await store.get(scope().owner, [mine.id]) == [mine]
    assert await store.get(scope("bob").owner, [mine.id]) == []


async def vectors_of(store: LongTerm, owner: str, *ids: str) -> dict[str, Vector]:
    """The store's `text` vectors by id, each of which has the length 1."""
    found = await store.vectors(owner, ids)
    assert {one.by for one in found.values()} <= {plain().name}
    vectors = {id: one.numbers for id, one in found.items()}
    assert [math.hypot(*vector) for vector in vectors.values()] == pytest.approx(
        [1.0] * len(vectors), abs=1e-5
    )
    return vectors


def same(*texts: str) -> Any:
    """The embedder's vectors of those texts, as near as a store keeps them."""
    return [pytest.approx(vector, abs=1e-5) for vector in plain().embed_documents(texts)]


async def test_vectors_are_those_of_the_texts(store: LongTerm):
    """A record's vector is what the embedder makes of its own text, whatever its context is."""
    said, known, silent = page("Where is Oslo?", "In Norway."), fact("I live in Oslo"), page("?!")
    await store.upsert([indexed(said, context="a page before"), indexed(known), indexed(silent)])
    ids = [silent.id, said.id, known.id]
    vectors = await vectors_of(store, scope().owner, *ids)
    assert [vectors[one] for one in ids] == same("?!", "Where is Oslo?\nIn Norway.", "I live in Oslo")
    assert len(vectors) == len(ids)


async def test_case_04_vectors_need_the_owner(store: LongTerm):
    """case_04: another owner's id and one that nobody has are absent; one that two have is each one's own."""
    record, foreign = fact("I live in Oslo"), fact("I live in Lima", scope("bob"))
    theirs = fact("I live in Rome", scope("bob"), id=record.id)
    await put(store, record, foreign, theirs)
    mine = await vectors_of(store, scope().owner, foreign.id, uuid4().hex, record.id)
    assert (list(mine), list(mine.values())) == ([record.id], same("I live in Oslo"))
    assert list((await vectors_of(store, scope("bob").owner, record.id)).values()) == same("I live in Rome")
    assert await store.vectors(scope("carol").owner, [record.id, foreign.id]) == {}


async def test_vectors_follow_what_is_written(store: LongTerm):
    """A record written anew has its new text's vector, one that was deleted or cleared has none."""
    old, gone = fact("I live in Oslo"), fact("I like tea")
    await put(store, old, gone)
    await put(store, fact("I live in Lima", id=old.id))
    await store.delete(scope().owner, [gone.id])
    vectors = await vectors_of(store, scope().owner, old.id, gone.id)
    assert (list(vectors), list(vectors.values())) == ([old.id], same("I live in Lima"))
    await store.clear(Within.tenant, "alice")
    assert await store.vectors(scope().owner, [old.id]) == {}


async def test_many_vectors_come_at_once(store: LongTerm):
    """A thousand ids give each record's own vector, once, also where an id is asked for twice."""
    records = [fact(f"note number {number}") for number in range(1_000)]
    await put(store, *records)
    vectors = await store.vectors(scope().owner, [one.id for one in [*records, records[0]]])
    assert set(vectors) == {one.id for one in records}
    found = np.array([vectors[one.id].numbers for one in records])
    assert np.allclose(found, plain().embed_documents([one.text for one in records]), rtol=0.0, atol=1e-5)
    await store.clear(Within.tenant, "alice")


async def test_several_owners_are_searched_together(store: LongTerm):
    """A search over two owners finds the records of both and of nobody else."""
    mine, shared, foreign = fact("tea"), fact("tea", scope("team")), fact("tea", scope("bob"))
    await put(store, mine, shared, foreign)
    assert set(await found(store, "tea", scope().owner, scope("team").owner)) == {mine.id, shared.id}


async def test_a_users_records_and_the_tenants_are_searched_together(store: LongTerm):
    """Conditions hold for both owners; a user named `*` is neither; what is everybody's outlives a user."""
    all_ = scope(EVERYBODY)
    mine, shared = fact("tea at noon"), fact("tea at five", all_, type="knowledge")
    star, other = fact("tea", scope("*")), fact("tea", scope(EVERYBODY, "-other"), type="knowledge")
    await put(store, mine, shared, star, other)
    owners = (scope().owner, all_.owner)
    assert set(await found(store, "tea", *owners)) == {mine.id, shared.id}
    only = MemoryFilter(types=("knowledge",))
    assert set(await found(store, "tea", *owners, where=only)) == {shared.id}
    await store.clear(Within.tenant, "alice")
    await store.clear(Within.tenant, "*")
    assert set(await found(store, "tea", *owners)) == {shared.id}
    await store.clear(Within.tenant, EVERYBODY)
    assert set(await found(store, "tea", *owners)) == set()
    assert await store.count(other.scope.owner) == 1


async def test_a_deleted_record_is_found_by_nothing(store: LongTerm):
    """case_16: after a delete neither meaning, words, id nor count know the record."""
    record, kept = fact("I live in Oslo"), fact("I like tea")
    await put(store, record, kept)
    await store.delete(scope().owner, [record.id])
    await store.flush()
    assert set(await found(store, "I live in Oslo")) == {kept.id}
    assert await store.get(scope().owner, [record.id]) == []
    assert await store.count(scope().owner) == 1


async def test_clearing_a_user_reaches_isolated_agents(store: LongTerm):
    """Clear removes what isolated agents know of the user too, and nobody else's."""
    shared, own = fact("tea"), fact("tea", scope(agent="coder", isolated=True))
    other = fact("tea", scope("alice2"))
    await put(store, shared, own, other)
    assert set(await found(store, "tea")) == {shared.id}
    await store.clear(Within.tenant, "alice")
    assert await store.count(own.scope.owner) == 0
    assert await store.count(shared.scope.owner) == 0
    assert await store.count(other.scope.owner) == 1


@pytest.mark.parametrize("text", ["", "   ", "?!", "\0", "\n", "😀" * 10_000, "word " * 20_000])
async def test_case_23_odd_queries_are_answered(store: LongTerm, text: str):
    """case_23: blank, huge and wordless queries find by meaning alone and break nothing."""
    record = fact("I live in Oslo")
    await put(store, record)
    assert set(await found(store, text)) == {record.id}


async def test_case_23_a_lone_surrogate_in_a_query_is_replaced(store: LongTerm):
    """case_23: half a character in the question is no error."""
    record = fact("I live in Oslo")
    await put(store, record)
    hits = await found(store, "Oslo \ud83d", lexical="Oslo \ud83d")
    assert hits[record.id].coverage > 0.0


async def test_wordless_and_long_records_are_stored(store: LongTerm):
    """case_13: a record without a single word, and one of 100 kB, are found by their ids and by meaning."""
    silent, long = page("?!"), page("needle " + "hay " * 25_000)
    await put(store, silent, long)
    assert set(await found(store, "needle")) == {silent.id, long.id}
    assert await store.get(scope().owner, [silent.id, long.id]) == [silent, long]


async def test_an_empty_store_answers_nothing(store: LongTerm):
    """A user without records gets no candidates, a count of 0 and the query's vector."""
    result = await store.search(SearchRequest(owners=(scope().owner,), text="tea", deadline=30.0))
    assert result.candidates == ()
    assert result.vector is not None
    assert await store.count(scope().owner) == 0
    assert await store.get(scope().owner, []) == []
    assert await store.vectors(scope().owner, []) == await store.vectors(scope().owner, [uuid4().hex]) == {}
    await store.upsert([])
    await store.delete(scope().owner, [])
    await store.clear(Within.tenant, "alice")
