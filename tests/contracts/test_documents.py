"""What every event log knows of documents: the contract of the port `Documents`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hearth.memory.events.kinds import Event, KnowledgeLoaded, KnowledgeRemoved, SystemRefused
from hearth.memory.events.sql_log import SqlLog
from hearth.memory.knowledge.records import chunk_id, document_id, everybody
from hearth.memory.types import EVERYBODY, Chunk, Common, Document, PlacedBlock
from tests.events import START, erase, event, forget_memory, memory, step


@pytest.fixture(name="log", params=["sqlite_log", "postgres_log", "encrypted_log"])
def _log(request: pytest.FixtureRequest) -> SqlLog:
    found: SqlLog = request.getfixturevalue(request.param)
    return found


def told(name: str = "shop.md", version: int = 1, chunks: int = 2, tenant: str = "acme") -> Document:
    return Document(
        id=document_id(tenant, name),
        version=version,
        name=name,
        title="Shop",
        digest=f"d{version}",
        chunks=chunks,
        loaded_at=START,
    )


async def load(log: SqlLog, document: Document, *texts: str, before: int = 0, tenant: str = "acme") -> None:
    chunks = tuple(Chunk(text=text, path=("Shop", "Returns")) for text in texts)
    payload = KnowledgeLoaded(document=document, chunks=chunks, before=before)
    await log.append([event(payload, tenant=tenant, user=EVERYBODY)])


async def test_a_document_is_known_with_its_chunks(log: SqlLog) -> None:
    """Each chunk is a record of the tenant's own, by its position and by its id."""
    document = told()
    await load(log, document, "one", "two")
    known = await log.document("acme", document.id)
    assert known is not None
    assert (known.version, known.document) == (1, document)
    chunks = await log.chunks("acme", document.id, version=1, limit=10)
    assert [chunk.text for chunk in chunks] == ["Shop > Returns\none", "Shop > Returns\ntwo"]
    assert {chunk.scope for chunk in chunks} == {everybody("acme")}
    assert chunks[1].metadata["source"] == "shop.md"
    assert await log.chunks("acme", document.id, version=1, after=0, limit=10) == chunks[1:]
    assert await log.chunks("acme", document.id, version=1, limit=1) == chunks[:1]
    assert await log.record("acme", EVERYBODY, chunks[1].id) == chunks[1]
    for foreign in (("acme", "alice"), ("rivals", EVERYBODY)):
        assert await log.record(*foreign, chunks[1].id) is None
    for odd in ("", "x" * 32, chunks[1].id[:-6] + "0000ff", chunks[1].id[:-6] + "-00001"):
        assert await log.record("acme", EVERYBODY, odd) is None


async def test_a_shelf_has_the_versions_in_force(log: SqlLog) -> None:
    """A load and a removal change it, and its position tells that, of the very tenant alone."""
    assert (await log.shelf("acme")).versions == {}
    assert await log.shelf_changes(["acme", "rivals"]) == {}
    first, other = told(), told("b.md")
    await load(log, first, "one", "two")
    await load(log, other, "three", "four")
    shelf = await log.shelf("acme")
    assert shelf.versions == {first.id: 1, other.id: 1}
    assert await log.shelf_changes(["acme", "rivals"]) == {"acme": shelf.changed}
    await load(log, told(version=2), "five", "six", before=2)
    await log.append([event(KnowledgeRemoved(document=other.id, version=1, chunks=2), user=EVERYBODY)])
    later = await log.shelf("acme")
    assert later.versions == {first.id: 2}
    assert later.changed > shelf.changed
    assert (await log.shelf("rivals")).versions == {}
    gone = await log.document("acme", other.id)
    assert gone is not None
    assert (gone.version, gone.document) == (1, None)
    assert await log.document("acme", told("never.md").id) is None


async def test_documents_are_walked_by_name(log: SqlLog) -> None:
    """From any name on, those of the tenant alone; and no list of users has whose they are."""
    for name in ("b", "a", "c"):
        await load(log, told(name), "text", "more")
    await load(log, told("d", tenant="rivals"), "text", "more", tenant="rivals")
    assert [one.name for one in await log.documents("acme", "document", after="", limit=2)] == ["a", "b"]
    assert [one.name for one in await log.documents("acme", "document", after="b", limit=9)] == ["c"]
    assert await log.users("acme", after="", limit=9) == []


async def test_a_version_that_is_gone_leaves_no_text(log: SqlLog) -> None:
    """Neither its event nor the blocks of any user that showed it; what is counted of it stays."""
    document = told()
    await load(log, document, "one", "two")
    shown = chunk_id(document.id, 1, 1)
    block = PlacedBlock(exchange="x1", text="two", tokens=1, items=(shown,), at=START)
    other = PlacedBlock(exchange="x2", text="else", tokens=1, items=("f" * 32,), at=START)
    await log.append([step("x1", injected=(shown,), block=block), step("x2", user="bob", block=other)])
    assert await log.shown_to("acme", document.id, version=1) == ["alice"]
    assert await log.shown_to("rivals", document.id, version=1) == []
    await load(log, told(version=2), "three", "four", before=2)
    for _ in range(2):
        events = await log.read(kinds=["knowledge.loaded", "step.captured"])
        old, alices, bobs, new = (one.payload for one in events)
        assert isinstance(old, KnowledgeLoaded)
        assert old.chunks == ()
        assert (old.document.name, old.document.version, old.document.chunks) == ("", 1, 2)
        assert alices.step.block is None  # type: ignore[union-attr]
        assert bobs.step.block == other  # type: ignore[union-attr]
        assert isinstance(new, KnowledgeLoaded)
        assert len(new.chunks) == 2
        assert await log.shown_to("acme", document.id, version=1) == ["alice"]
        assert await log.chunks("acme", document.id, version=1, limit=9) == []
        assert len(await log.chunks("acme", document.id, version=2, limit=9)) == 2
        assert (await log.shelf("acme")).versions == {document.id: 2}
        await log.rebuild_views()


async def test_a_removed_document_counts_its_versions_on(log: SqlLog) -> None:
    """Also where the views were folded again: a later version must not have an earlier one's ids."""
    await load(log, told(), "one", "two")
    await load(log, told(version=2), "three", "four", before=2)
    removed = KnowledgeRemoved(document=told().id, version=2, chunks=2)
    await log.append([event(removed, user=EVERYBODY, id="e" * 32)])
    for _ in range(2):
        known = await log.document("acme", told().id)
        assert known is not None
        assert (known.version, known.last, known.document) == (2, "e" * 32, None)
        await log.rebuild_views()


async def test_erasing_a_user_leaves_documents(log: SqlLog) -> None:
    """They are nobody's; only who is erased loses the blocks."""
    await load(log, told(), "one", "two")
    await log.append([step("x1"), erase(2)])
    assert (await log.shelf("acme")).versions == {told().id: 1}


async def test_what_users_of_a_tenant_share_is_counted(log: SqlLog) -> None:
    """Each user once, whatever they wrote; what is over, forgotten or erased, and other tenants', is not."""

    async def shared(least: int = 2) -> dict[str, int]:
        found = await log.common("acme", attributes=("speaks", "learns"), least=least, limit=10)
        assert all(isinstance(one, Common) for one in found)
        return {f"{one.attribute}={one.value}": one.users for one in found}

    def says(user: str, value: str, attribute: str = "speaks", **fields: Any) -> Event:
        about = {"subject": "user", "attribute": attribute, "value": value}
        return memory(f"{user} {value}", user=user, **{**about, **fields})

    ended = {"valid_from": START, "valid_to": START}
    await log.append(
        [
            *(says(user, "German", id=f"m{user}") for user in "abc"),
            *(says("a", "the german"), says("d", "German", **ended), says("e", "German", subject="Ana")),
            *(says(user, "Dutch", "learns") for user in "ab"),
            *(says(user, "kiwi", "allergy") for user in "abc"),
            *(msgspec.structs.replace(says(user, "German"), tenant="rivals") for user in "fg"),
        ]
    )
    assert await shared() == {"speaks=german": 3, "learns=dutch": 2}
    assert await shared(least=3) == {"speaks=german": 3}
    await log.append([forget_memory("mb", user="b")])
    assert await shared() == {"speaks=german": 2, "learns=dutch": 2}
    await log.append([erase(2, user="a")])
    assert await shared() == {}
    assert await log.common("acme", attributes=(), least=1, limit=10) == []


async def test_a_refused_topic_stays_refused(log: SqlLog) -> None:
    """Of the tenant alone, and after the views are folded again."""
    for topic in ("speaks=german", "learns=dutch", "speaks=german"):
        await log.append([event(SystemRefused(topic=topic, by="admin"), user=EVERYBODY)])
    await log.rebuild_views()
    assert await log.refusals("acme") == ["learns=dutch", "speaks=german"]
    assert await log.refusals("rivals") == []
