"""Another embedder over a memory that is there: what was said is found all along, and no copy is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from hearth.memory.ports import Indexed, SearchRequest
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.types import Memory, Scope, SearchResult
from hearth.testing.embedder import changed, plain
from tests.qdrant_shim import QdrantShim

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ALICE = Scope(tenant="t", user="alice")
OLD, NEW = "hearth.testing.embedder:plain", "hearth.testing.embedder:changed"


class Place:
    """Where collections are: in a folder, or in a server that others use too."""

    def __init__(self, folder: Path, shim: QdrantShim | None) -> None:
        self.folder, self._shim = folder, shim

    async def opened(self, embedder: str) -> VectorChild:
        """A child with that embedder; close it."""
        server = None if self._shim is None else QdrantServer(url=self._shim.url)
        child = VectorChild(self.folder, embedder, qdrant=server)
        await child.start()
        return child

    def collections(self) -> set[str]:
        """Names of the embedders that have one."""
        if self._shim is None:
            found = (json.loads(path.read_text()) for path in self.folder.glob("*/collection.json"))
            return {one["embedder"] for one in found}
        names = [one.name for one in self._shim.client.get_collections().collections]
        return {name.removeprefix("hearth-").rpartition("-")[0].rpartition("-")[0] for name in names}


@pytest.fixture(name="place", params=["files", "server"])
def _place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "files":
        yield Place(tmp_path, None)
        return
    with QdrantShim().running() as shim:
        yield Place(tmp_path, shim)


def item(text: str, id: str = "") -> Indexed:
    record = Memory(
        id=id or uuid4().hex,
        scope=ALICE,
        generation=1,
        text=text,
        occurred_at=NOW,
        created_at=NOW,
        updated_at=NOW,
    )
    return Indexed(record=record, text=text, context=text)


async def ask(child: VectorChild, text: str) -> SearchResult:
    return await child.search(SearchRequest(owners=(ALICE.owner,), text=text, deadline=30.0))


def texts(result: SearchResult) -> set[str]:
    return {one.record.text for one in result.candidates}  # type: ignore[union-attr]


async def before(place: Place, *records: Indexed) -> None:
    """A collection of the old embedder that holds the records and is filled."""
    child = await place.opened(OLD)
    await child.upsert(records)
    await child.flush()
    await child.mark_rebuilt()
    await child.close()


async def test_case_43_the_old_collection_answers_until_the_new_one_is_filled(place: Place):
    """case_43: nothing is missing meanwhile, what is new goes to both, and then the new one alone is left."""
    oslo, gone, late = item("I live in Oslo"), item("I keep bees"), item("I work at Acme")
    await before(place, oslo, gone)
    child = await place.opened(NEW)
    assert child.needs_rebuild
    assert (child.embedder, child.dimension) == (changed().name, 96)
    await child.upsert([late])
    await child.delete(ALICE.owner, [gone.record.id])
    await child.flush()
    meanwhile = await ask(child, "Oslo")
    assert texts(meanwhile) == {"I live in Oslo", "I work at Acme"}
    assert meanwhile.vector is not None
    assert (meanwhile.vector.by, meanwhile.missing) == (plain().name, ())
    assert set(await child.vectors(ALICE.owner, [oslo.record.id, late.record.id])) == {late.record.id}
    assert await child.count(ALICE.owner) == 2

    await child.upsert([oslo])  # as the worker does, from the log
    await child.mark_rebuilt()
    after = await ask(child, "Oslo")
    assert after.vector is not None
    assert (after.vector.by, len(after.vector.numbers)) == (changed().name, 96)
    assert texts(after) == {"I live in Oslo", "I work at Acme"}
    assert place.collections() == {changed().name}
    await child.close()


async def test_a_filling_that_was_interrupted_goes_on(tmp_path: Path):
    """What the new collection has already stays, and what changed meanwhile is replaced."""
    place = Place(tmp_path, None)
    oslo, acme = item("I live in Oslo"), item("I work at Acme")
    await before(place, oslo, acme)
    child = await place.opened(NEW)
    await child.upsert([oslo, acme])
    await child.close()
    child = await place.opened(NEW)
    assert child.needs_rebuild
    moved = item("I live in Lima", oslo.record.id)
    await child.upsert([moved, acme])
    assert texts(await ask(child, "live")) == {"I live in Lima", "I work at Acme"}
    await child.mark_rebuilt()
    assert texts(await ask(child, "live")) == {"I live in Lima", "I work at Acme"}
    await child.close()


async def test_who_changes_back_goes_on_with_the_old_collection(tmp_path: Path):
    """It was kept up to date, so that nothing has to be filled again."""
    place = Place(tmp_path, None)
    await before(place, item("I live in Oslo"))
    child = await place.opened(NEW)
    await child.upsert([item("I work at Acme")])
    await child.flush()
    await child.close()
    child = await place.opened(OLD)
    assert not child.needs_rebuild
    assert texts(await ask(child, "Acme")) == {"I live in Oslo", "I work at Acme"}
    await child.close()


async def test_an_erasure_reaches_both_collections(place: Place):
    """Whichever answers afterwards, nothing of the user is there."""
    await before(place, item("I live in Oslo"))
    child = await place.opened(NEW)
    await child.clear("t", "alice")
    await child.flush()
    assert await child.count(ALICE.owner) == 0
    await child.close()
    child = await place.opened(OLD)
    assert await child.count(ALICE.owner) == 0
    await child.close()


async def test_case_43_without_the_old_embedder_its_words_are_found(tmp_path: Path):
    """case_43: where it can't be loaded any more the old collection is asked by words, and says so."""
    await before(Place(tmp_path, None), item("I live in Oslo"))
    (path,) = tmp_path.glob("*/collection.json")  # noqa: ASYNC240 (a test waits anyway)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"loader": "no.such:embedder"}))
    child = await Place(tmp_path, None).opened(NEW)
    await child.upsert([item("Oslo is cold")])
    result = await ask(child, "Oslo")
    assert (texts(result), result.missing, result.vector) == (
        {"I live in Oslo", "Oslo is cold"},
        ("dense",),
        None,
    )
    await child.close()
