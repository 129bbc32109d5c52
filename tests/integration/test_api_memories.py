"""Memories over REST: adding, reading, listing, changing, forgetting and searching."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from hearth.memory.errors import StoreUnavailable
from hearth.memory.ports import Indexed, SearchRequest
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.types import Record, Scope, SearchResult, Vector
from hearth.testing.embedder import ScriptedEmbedder
from tests.api import Api, open_api
from tests.events import ManualClock


@pytest.fixture(name="api")
async def _api(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=clock) as api:
        yield api


async def _add(client: httpx.AsyncClient, text: str, **fields: object) -> dict[str, object]:
    answer = await client.post("/memories", json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    added: dict[str, object] = answer.json()
    return added


async def test_a_memory_reads_back_as_it_was_written(api: Api) -> None:
    """What POST answers is what GET answers, and the location header names it."""
    async with api.client("alice") as alice:
        answer = await alice.post(
            "/memories",
            json={
                "text": "  allergic to kiwi ",
                "type": "fact",
                "tags": ["health", "health"],
                "metadata": {"form": 7, "sure": True, "note": None},
                "importance": 0.9,
                "pinned": True,
                "occurred_at": "2026-01-01T00:30:00+09:00",
            },
        )
        added = answer.json()
        read = await alice.get(answer.headers["location"].removeprefix("/memory/v1"))
    assert read.json() == added
    assert added["text"] == "allergic to kiwi"
    assert added["tags"] == ["health"]
    assert added["metadata"] == {"form": 7, "sure": True, "note": None}
    assert added["occurred_at"] == "2025-12-31T15:30:00Z"
    assert (added["user"], added["importance"], added["pinned"]) == ("alice", 0.9, True)


async def test_patch_changes_only_what_it_names(api: Api, clock: ManualClock) -> None:
    """Fields that a change leaves out stay; the time of the change is kept; null clears an expiry."""
    async with api.client("alice") as alice:
        old = await _add(alice, "likes tea", tags=["drink"], expires_at="2027-01-01T00:00:00Z")
        clock.advance(hours=1)
        new = (await alice.patch(f"/memories/{old['id']}", json={"pinned": True, "expires_at": None})).json()
        assert (await alice.get(f"/memories/{old['id']}")).json() == new
    assert {name for name in new if new[name] != old[name]} == {"pinned", "expires_at", "updated_at"}
    assert new["expires_at"] is None


async def test_a_change_to_null_is_refused(api: Api) -> None:
    """A field that can't be empty can't be changed to null."""
    async with api.client("alice") as alice:
        old = await _add(alice, "likes tea")
        for field in ("text", "type", "tags", "metadata", "importance", "pinned"):
            answer = await alice.patch(f"/memories/{old['id']}", json={field: None})
            assert answer.status_code == 422, field
            assert answer.json()["errors"][0]["field"] == field
        assert (await alice.get(f"/memories/{old['id']}")).json() == old


@pytest.mark.parametrize("text", ["", "  ", "\n\t", None, 7, ["a"], "x" * 40_000])
async def test_case_13_text_that_is_no_text_is_refused_and_nothing_stored(api: Api, text: object) -> None:
    """A direct write of blank, missing or over-long text is a 422 and leaves no memory."""
    async with api.client("alice") as alice:
        answer = await alice.post("/memories", json={"text": text})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "text"
        assert (await alice.get("/memories")).json()["total"] == 0


async def test_case_04_a_foreign_id_answers_like_an_unknown_one(api: Api) -> None:
    """GET, PATCH and DELETE of another user's memory answer as a random id does, 404, for every key."""
    async with api.client("alice") as alice:
        memory = await _add(alice, "wears blue shoes")
        path, nowhere = f"/memories/{memory['id']}", f"/memories/{uuid4().hex}"
        for key in ("bob", "rival-admin", "hermit"):
            async with api.client(key) as other:
                for call in (
                    ("GET", None),
                    ("PATCH", {"text": "mine now"}),
                    ("DELETE", None),
                ):
                    foreign, unknown = [
                        await other.request(call[0], url, json=call[1]) for url in (path, nowhere)
                    ]
                    assert foreign.status_code == 404, (key, call)
                    assert foreign.content == unknown.content
        assert (await alice.get(path)).json() == memory
    assert not [e for e in await api.engine.log.read(tenant="acme") if e.user == "bob"]


async def test_case_61_a_walk_through_the_pages_gives_everything_once(api: Api) -> None:
    """257 memories of one user come over the pages, none twice, none of another's, though one is added."""
    async with api.client("alice") as alice, api.client("bob") as bob:
        ids = {(await _add(alice, f"fact {n}"))["id"] for n in range(257)}
        for n in range(5):
            await _add(bob, f"bob's {n}")
        first = (await alice.get("/memories")).json()
        assert (len(first["items"]), first["total"]) == (50, 257)
        seen = [memory["id"] for memory in first["items"]]
        late, page = None, first
        while page["next"]:
            page = (await alice.get("/memories", params={"cursor": page["next"], "limit": 60})).json()
            assert page["total"] == 257 + bool(late)
            seen += [memory["id"] for memory in page["items"]]
            late = late or (await _add(alice, "added in between"))["id"]
    assert len(seen) == len(set(seen))
    assert set(seen) - {late} == ids


async def test_case_61_a_limit_over_the_maximum_is_refused(api: Api) -> None:
    """A limit of 1000 is a 422 that names the most, and never a shorter list."""
    async with api.client("alice") as alice:
        answer = await alice.get("/memories", params={"limit": 1000})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "limit", "value": "1000", "expected": "at most 200"}]


async def test_a_list_filters_by_every_condition(api: Api) -> None:
    """Types, tags, metadata, time, words, agent and session each narrow list and total."""
    async with api.client("alice") as alice:
        want = await _add(
            alice,
            "Ana likes green tea",
            type="persona",
            tags=["drink", "green"],
            metadata={"n": 1, "lang": "en"},
            occurred_at="2026-02-01T00:00:00Z",
            agent="coach",
            session="s9",
        )
        await _add(alice, "Ana likes coffee", tags=["drink"], metadata={"n": 2})
        for params in (
            {"types": "persona"},
            {"tags": ["drink", "green"]},
            {"metadata": '{"n": 1}'},
            {"until": "2026-02-02T00:00:00Z"},
            {"words": "TEA ana"},
            {"agent": "coach"},
            {"session": "s9"},
        ):
            page = (await alice.get("/memories", params=params)).json()
            assert ([m["id"] for m in page["items"]], page["total"]) == ([want["id"]], 1), params
        both = (await alice.get("/memories", params={"types": ["persona", "fact"]})).json()
        since = (await alice.get("/memories", params={"since": "2026-02-02T00:00:00Z"})).json()
    assert (both["total"], since["total"]) == (2, 1)


async def test_case_01_a_misspelt_filter_is_refused_by_name(api: Api) -> None:
    """A filter that no route knows is a 422 naming it, its value and the nearest right name."""
    async with api.client("alice") as alice:
        await _add(alice, "lives in Oslo")
        as_parameter = await alice.get("/memories", params={"usr_id": "u1"})
        as_field = await alice.post("/memories/search", json={"query": "where", "usr": "u1"})
        inside = await alice.post("/memories/search", json={"query": "where", "filters": {"user_id": "u1"}})
        typo = await alice.post("/memories/search", json={"query": "where", "tag": ["x"]})
    for answer, field in ((as_parameter, "usr_id"), (as_field, "usr"), (inside, "filters"), (typo, "tag")):
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["field"] == field
    assert "did you mean `user`?" in as_field.json()["errors"][0]["expected"]
    assert "did you mean `tags`?" in typo.json()["detail"]


async def test_case_01_search_finds_the_named_user_alone(api: Api) -> None:
    """Search never matches another user, also where one id is the other's prefix."""
    async with api.client("app") as app:
        for user, city in (("u1", "Oslo"), ("u10", "Lima")):
            await _add(app, f"lives in {city}", user=user)
        await api.engine.drain()
        found = {}
        for user in ("u1", "u10", "u", "u2"):
            body = {"query": "lives in", "user": user}
            items = (await app.post("/memories/search", json=body)).json()["items"]
            found[user] = [item["record"]["text"] for item in items]
    assert found == {"u1": ["lives in Oslo"], "u10": ["lives in Lima"], "u": [], "u2": []}


async def test_search_combines_meaning_with_conditions(api: Api) -> None:
    """Search ranks by meaning and words, within type, tags, metadata and time."""
    async with api.client("alice") as alice:
        tea = await _add(alice, "green tea in the morning", tags=["drink"], metadata={"n": 1})
        await _add(alice, "green tea ceremony", tags=["art"])
        await api.engine.drain()
        body = {"query": "green tea", "tags": ["drink"], "metadata": {"n": 1}, "types": ["fact"]}
        items = (await alice.post("/memories/search", json=body)).json()["items"]
    assert [item["record"]["id"] for item in items] == [tea["id"]]
    assert items[0]["coverage"] > 0.9


async def test_a_search_reaches_what_meets_its_conditions_behind_all_others(api: Api) -> None:
    """The only memory with a tag is found, though a hundred and fifty others are nearer to the question."""
    async with api.client("alice") as alice:
        for number in range(150):
            await _add(alice, f"green tea in the morning, cup {number}")
        meant = await _add(alice, "a bicycle with a red bell", tags=["rare"])
        await api.engine.drain()
        body = {"query": "green tea in the morning", "tags": ["rare"]}
        items = (await alice.post("/memories/search", json=body)).json()["items"]
    assert [item["record"]["id"] for item in items] == [meant["id"]]


async def test_case_19_a_forgotten_memory_is_gone_everywhere_at_once(api: Api) -> None:
    """After DELETE neither reading, listing nor search has the memory, and a second DELETE is a 404."""
    async with api.client("alice") as alice:
        memory = await _add(alice, "keeps bees")
        await api.engine.drain()
        body = {"query": "keeps bees"}
        assert len((await alice.post("/memories/search", json=body)).json()["items"]) == 1
        answer = await alice.delete(f"/memories/{memory['id']}")
        assert (answer.status_code, answer.json()) == (
            200,
            {"id": memory["id"], "done": True, "pending": [], "receipt": answer.json()["receipt"]},
        )
        assert (await alice.post("/memories/search", json=body)).json()["items"] == []
        assert (await alice.get("/memories")).json()["total"] == 0
        assert (await alice.get(f"/memories/{memory['id']}")).status_code == 404
        assert (await alice.delete(f"/memories/{memory['id']}")).status_code == 404
        await api.engine.drain()
        assert (await alice.post("/memories/search", json=body)).json()["items"] == []


class Outage(MemoryLongTerm):
    """The store in this process, which can be taken away and given back."""

    down = False

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailable("long_term", "stopped")

    async def search(self, request: SearchRequest) -> SearchResult:
        self._check()
        return await super().search(request)

    async def upsert(self, records: Sequence[Indexed]) -> None:
        self._check()
        await super().upsert(records)

    async def flush(self) -> None:
        self._check()
        await super().flush()

    async def get(self, owner: str, ids: Sequence[str]) -> list[Record]:
        self._check()
        return await super().get(owner, ids)

    async def vectors(self, owner: str, ids: Sequence[str]) -> dict[str, Vector]:
        self._check()
        return await super().vectors(owner, ids)

    async def delete(self, owner: str, ids: Sequence[str]) -> None:
        self._check()
        await super().delete(owner, ids)

    async def clear(self, tenant: str, user: str) -> None:
        self._check()
        await super().clear(tenant, user)


@pytest.mark.parametrize("erase", [False, True], ids=["one memory", "the user"])
async def test_case_19_a_deletion_is_pending_while_the_store_is_down_and_then_completes(
    tmp_path: Path, erase: bool
) -> None:
    """202 names the store, the memory is unreachable at once, and out of the store when that is back."""
    store = Outage(ScriptedEmbedder())
    owner = Scope(tenant="acme", user="alice").owner
    async with open_api(tmp_path, long_term=store) as api, api.client("alice") as alice:
        memory = await _add(alice, "keeps bees")
        await api.engine.drain()
        assert await store.count(owner) == 1
        store.down = True
        answer = await alice.delete("/users/alice" if erase else f"/memories/{memory['id']}")
        assert (answer.status_code, answer.json()["done"]) == (202, False)
        assert answer.json()["pending"] == ["long_term"]
        assert (await alice.get(f"/memories/{memory['id']}")).status_code == 404
        assert (await alice.post("/memories/search", json={"query": "bees"})).status_code == 503
        assert (await alice.post("/recall", json={"query": "keeps bees"})).json()["block"] == ""
        assert await store.count(owner) == 1
        store.down = False
        await api.engine.drain()
        assert await store.count(owner) == 0
        found = (await alice.post("/memories/search", json={"query": "keeps bees"})).json()
        assert found["items"] == []


async def test_case_19_without_its_log_the_api_answers_503_and_deletes_nothing(api: Api) -> None:
    """Where the log is down, writing, reading and deleting are 503 with a hint when to try again."""
    async with api.client("alice") as alice:
        memory = await _add(alice, "keeps bees")
        await api.engine.drain()
        await api.engine.worker.stop()
        await api.engine.log.close()  # type: ignore[attr-defined]
        for call in (
            alice.delete(f"/memories/{memory['id']}"),
            alice.get("/memories"),
            alice.post("/memories", json={"text": "more"}),
        ):
            answer = await call
            assert answer.status_code == 503, answer.text
            assert answer.json()["type"] == "urn:hearth:problem:unavailable"
            assert answer.headers["retry-after"]


async def test_case_23_a_lone_surrogate_becomes_a_replacement_character(api: Api) -> None:
    """JSON escapes of a whole pair are one character; a lone half is U+FFFD in what is stored."""
    raw = b'{"text": "go \\ud83d\\ude80 and \\ud83d stop", "metadata": {"k\\ud83d": "v\\udc00"}}'
    async with api.client("alice", **{"content-type": "application/json"}) as alice:
        added = await alice.post("/memories", content=raw)
        assert added.status_code == 201
        read = (await alice.get(f"/memories/{added.json()['id']}")).json()
    assert read["text"] == "go \U0001f680 and \ufffd stop"
    assert read["metadata"] == {"k\ufffd": "v\ufffd"}


async def test_a_secret_is_masked_before_it_is_stored(api: Api) -> None:
    """A key in a memory's text is replaced by a marker in the answer and in the log."""
    async with api.client("alice") as alice:
        added = await _add(alice, "My key is sk-test-FAKE0123456789abcdef and I use Postgres")
    events = await api.engine.log.read(tenant="acme")
    assert "FAKE0123456789abcdef" not in str(added) + str(events)
    assert "Postgres" in str(added["text"])
