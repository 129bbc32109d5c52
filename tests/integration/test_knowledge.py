"""Documents for all users of a tenant, over REST: loaded, recalled, replaced, removed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hearth.memory.errors import StoreUnavailable
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.types import EVERYBODY, Scope
from hearth.testing.embedder import ScriptedEmbedder
from tests.api import Api, open_api
from tests.events import ManualClock

RETURNS = "# Shop\n\n## Returns\n\nLamps of Zorblax can be returned within thirty days.\n"
CHANGED = RETURNS.replace("thirty", "ninety")
QUESTION = "Within how many days can lamps of Zorblax be returned?"
MARKDOWN = {"content-type": "text/markdown"}


@pytest.fixture(name="api")
async def _api(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=clock) as api:
        yield api


async def load(
    api: Api, text: str = RETURNS, name: str = "shop.md", key: str = "admin", **params: str
) -> dict[str, Any]:
    async with api.client(key) as client:
        answer = await client.put(f"/knowledge/{name}", content=text, headers=MARKDOWN, params=params)
    assert answer.status_code == 200, answer.text
    await api.engine.drain()
    loaded: dict[str, Any] = answer.json()
    return loaded


async def remove(api: Api, name: str = "shop.md") -> httpx.Response:
    async with api.client("admin") as client:
        answer = await client.delete(f"/knowledge/{name}")
    await api.engine.drain()
    return answer


async def recalled(api: Api, key: str = "alice", query: str = QUESTION, **fields: str) -> dict[str, Any]:
    async with api.client(key) as client:
        answer = await client.post("/recall", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def verdicts(found: dict[str, Any]) -> list[str]:
    return [item["verdict"] for item in found["items"]]


async def test_every_user_of_the_tenant_recalls_a_document_and_no_other_tenant(api: Api) -> None:
    """Beside their own memory, under its own heading and with its source; isolated agents too."""
    await load(api)
    for key in ("alice", "bob", "hermit"):
        found = await recalled(api, key)
        assert "# Knowledge" in found["block"]
        assert "Lamps of Zorblax can be returned within thirty days. (source: shop.md)" in found["block"]
        assert found["items"][0]["record"]["metadata"]["title"] == "Shop"
    other = await recalled(api, "rival", user="alice")
    assert other["block"] == ""
    assert other["items"] == []


async def test_a_users_own_memory_stands_beside_it(api: Api) -> None:
    """One search finds both, and both go into the block."""
    await load(api)
    async with api.client("alice") as alice:
        await alice.post("/memories", json={"text": "My lamps of Zorblax were bought on 3 May."})
    await api.engine.drain()
    found = await recalled(api, query="Within how many days can my lamps of Zorblax be returned?")
    assert "# Facts" in found["block"]
    assert "# Knowledge" in found["block"]
    assert "3 May" not in (await recalled(api, "bob"))["block"]


async def test_a_document_does_not_come_along_with_what_a_user_said(tmp_path: Path) -> None:
    """A question about oneself is given the nearest facts, whatever they score, and no part of a document."""
    question, fact = "What should I cook tonight?", "I am allergic to kiwi."
    part = "Shop\nReturns\nLamps of Zorblax can be returned within thirty days."
    embedder = ScriptedEmbedder({question: {fact: 0.3, part: 0.3}})
    async with open_api(tmp_path, embedder=embedder) as api:
        await load(api)
        async with api.client("alice") as alice:
            await alice.post("/memories", json={"text": fact})
        await api.engine.drain()
        found = await recalled(api, query=question)
    assert "kiwi" in found["block"]
    assert "Zorblax" not in found["block"]
    assert len(found["items"]) == 2


async def test_a_tenant_without_documents_asks_for_its_users_alone(tmp_path: Path) -> None:
    """Nothing is added to a search, nor after the last document is gone."""
    asked: list[tuple[str, ...]] = []

    class Noting(MemoryLongTerm):
        async def search(self, request):
            asked.append(request.owners)
            return await super().search(request)

    async with open_api(tmp_path, long_term=Noting(ScriptedEmbedder())) as api:
        await recalled(api)
        await load(api)
        await recalled(api)
        await remove(api)
        await recalled(api)
    assert asked == [("acme/alice",), ("acme/alice", "acme/*"), ("acme/alice",)]


async def test_a_new_version_replaces_the_old_one_whole(api: Api) -> None:
    """From the answer on nothing of the old one is recalled; the same content again changes nothing."""
    first = await load(api)
    same = await load(api)
    second = await load(api, CHANGED)
    assert (first["version"], first["changed"]) == (1, True)
    assert (same["version"], same["changed"], same["loaded_at"]) == (1, False, first["loaded_at"])
    assert (second["version"], second["changed"]) == (2, True)
    found = await recalled(api)
    assert "ninety" in found["block"]
    assert "thirty" not in str(found)
    owner = Scope(tenant="acme", user=EVERYBODY).owner
    assert await api.engine.long_term.count(owner) == second["chunks"] == 1


async def test_the_old_version_is_never_recalled_beside_the_new_one(api: Api) -> None:
    """Before the worker has come to it the old one's chunks are stale, though the index has them."""
    await load(api)
    await api.engine.worker.stop()
    async with api.client("admin") as admin:
        await admin.put("/knowledge/shop.md", content=CHANGED, headers=MARKDOWN)
    found = await recalled(api)
    assert found["block"] == ""
    assert verdicts(found) == ["stale"]
    await api.engine.worker.start()
    await api.engine.drain()
    assert "ninety" in (await recalled(api))["block"]


async def test_what_is_removed_is_unreachable_at_once(api: Api) -> None:
    """It answers 200 when it is gone from the index; a second removal is a 404; a load counts on."""
    await load(api)
    await api.engine.worker.stop()
    async with api.client("admin") as admin:
        answer = await admin.delete("/knowledge/shop.md")
        assert (answer.status_code, answer.json()) == (200, {"name": "shop.md", "done": True, "pending": []})
        assert (await recalled(api))["items"] == []
        again = await admin.delete("/knowledge/shop.md")
        assert (again.status_code, "document" in again.json()["detail"]) == (404, True)
        assert (await admin.get("/knowledge/shop.md")).status_code == 404
        assert (await admin.get("/knowledge")).json() == {"items": [], "next": None}
    await api.engine.worker.start()
    again = await load(api)
    assert (again["version"], again["changed"]) == (2, True)
    assert "thirty" in (await recalled(api))["block"]


async def test_a_removal_while_the_index_is_down_is_pending(tmp_path: Path) -> None:
    """202 with the store's name; recall shows nothing of it meanwhile, and the worker completes it."""

    class Flaky(MemoryLongTerm):
        down = False

        async def delete(self, owner: str, ids: Any) -> None:
            if self.down:
                raise StoreUnavailable("long-term memory", "a test")
            await super().delete(owner, ids)

    store = Flaky(ScriptedEmbedder())
    async with open_api(tmp_path, long_term=store) as api:
        await load(api)
        store.down = True
        async with api.client("admin") as admin:
            answer = await admin.delete("/knowledge/shop.md")
        assert (answer.status_code, answer.json()["pending"]) == (202, ["long_term"])
        assert (await recalled(api))["block"] == ""
        store.down = False
        await api.engine.drain()
        assert await store.count("acme/*") == 0


async def test_forgetting_leaves_no_text_in_the_log(api: Api, tmp_path: Path) -> None:
    """Neither of a version that was replaced nor of one that was removed, blocks of any user among them."""
    await load(api)
    scope = Scope(tenant="acme", user="bob", session="s1")
    recall = await api.engine.recall(scope, QUESTION)
    assert recall.block.items
    await api.engine.capture(scope, "What of lamps?", "Ask the shop.", recall=recall)
    await api.engine.drain()
    await load(api, CHANGED)
    assert await _log_has(api, "ninety")
    assert not await _log_has(api, "thirty days")
    await remove(api)
    for text in ("thirty days", "ninety days", "Zorblax", "shop.md"):
        assert not await _log_has(api, text), text


async def _log_has(api: Api, text: str) -> bool:
    """Whether any payload or view of the log holds the text."""
    events = await api.engine.log.read(limit=10_000)
    if any(text in str(event.payload) for event in events):
        return True

    def rows(db: Any) -> str:
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return str([db.execute(f"SELECT * FROM {name}").fetchall() for (name,) in tables])

    log: Any = api.engine.log
    return text in await log.ask(rows)


async def test_blocks_that_show_a_removed_document_leave_the_log_and_short_term_memory(api: Api) -> None:
    """Of all users: an earlier block must not go back into a prompt."""
    from hearth.memory.engine import Opened
    from hearth.memory.types import PlacedBlock, Step

    await load(api)
    scope = Scope(tenant="acme", user="bob", session="s1")
    recall = await api.engine.recall(scope, QUESTION)
    now = api.engine.clock.now()
    block = PlacedBlock(exchange="a" * 32, text=recall.block.text, tokens=9, items=recall.block.items, at=now)
    step = Step(
        exchange="a" * 32,
        user_text="What of lamps?",
        reply_text="Ask the shop.",
        outcome="complete",
        closes=True,
        injected=block.items,
        block=block,
        started_at=now,
        finished_at=now,
    )
    opened = Opened(scope=scope, exchange="a" * 32, parent=None, generation=1)
    await api.engine.capture_step(opened, step, event_id="b" * 32, page_reply="Ask the shop.")
    await api.engine.drain()
    assert (await api.engine.short_term.latest(scope, limit=5)).blocks
    assert await _log_has(api, "Zorblax")
    await remove(api)
    assert (await api.engine.short_term.latest(scope, limit=5)).blocks == ()
    assert not await _log_has(api, "Zorblax")


async def test_a_document_survives_the_views_and_the_index(api: Api) -> None:
    """Both are made anew from the log: the same is recalled, and what was replaced or removed stays away."""
    await load(api)
    await load(api, CHANGED)
    await load(api, "# Old\n\nZorblax sold candles.", name="old.md")
    await remove(api, "old.md")
    before = await recalled(api)
    log: Any = api.engine.log
    await log.rebuild_views()
    await api.engine.long_term.clear("acme", EVERYBODY)
    assert (await recalled(api))["block"] == ""
    worker: Any = api.engine.worker
    await worker.replay()
    after = await recalled(api)
    assert "ninety" in after["block"]
    assert [item["id"] for item in after["items"]] == [item["id"] for item in before["items"]]
    assert (await load(api, CHANGED))["changed"] is False
    assert (await load(api))["version"] == 3


async def test_two_loads_at_once_end_in_one_version(api: Api) -> None:
    """One of them follows the other, and only the later one is recalled."""
    texts = [RETURNS.replace("thirty", f"number{n}") for n in range(6)]
    await asyncio.gather(
        *(api.engine.knowledge.load("acme", "shop.md", text.encode(), "text/markdown") for text in texts)
    )
    await api.engine.drain()
    document = await api.engine.knowledge.document("acme", "shop.md")
    assert document.version >= len(texts)  # one that was followed at once can't tell, and is loaded again
    found = await recalled(api)
    assert sum(f"number{n}" in found["block"] for n in range(6)) == 1
    assert await api.engine.long_term.count("acme/*") == 1


async def test_documents_are_nobodys_memory(api: Api) -> None:
    """No list of users or memories shows them; an id of a chunk is no memory's; a recall is explained."""
    await load(api)
    found = await recalled(api)
    async with api.client("alice") as alice, api.client("admin") as admin:
        assert (await alice.get(f"/memories/{found['items'][0]['id']}")).status_code == 404
        assert (await alice.get("/memories")).json()["total"] == 0
        assert (await admin.get("/users")).json()["items"] == []
        explained = (await alice.get(f"/recalls/{found['id']}")).json()
        assert explained["items"][0]["record"]["text"] == found["items"][0]["record"]["text"]
        judged = await alice.post(f"/recalls/{found['id']}/feedback", json={"judgement": "useful"})
        assert judged.status_code == 200
        events = (await admin.get("/events", params={"kinds": "knowledge.loaded"})).json()["items"]
        assert [event["user"] for event in events] == [""]
        assert (await admin.delete("/users/alice")).status_code == 200
    assert "thirty" in (await recalled(api))["block"]


async def test_a_reply_that_used_a_document_disturbs_no_decider(api: Api) -> None:
    """What it drew on, pages and segments are decided as ever."""
    await load(api)
    scope = Scope(tenant="acme", user="bob", session="s1")
    recall = await api.engine.recall(scope, QUESTION)
    await api.engine.capture(scope, QUESTION, "Within thirty days.", recall=recall)
    await api.engine.drain()
    assert (await api.engine.worker.health()).parked == 0


async def test_documents_are_listed_and_shown_with_their_parts(api: Api) -> None:
    """By name, page by page, and so are the parts of one, with their headings and sources."""
    for name in ("b.md", "guides/a.md", "c.md"):
        await load(api, name=name)
    sections = "\n".join(f"## Part {n}\n\n{f'word{n} ' * 60}\n" for n in range(5))
    await load(api, f"# Long\n\n{sections}", name="long.md", title="A long one")
    async with api.client("admin") as admin:
        page = (await admin.get("/knowledge", params={"limit": 3})).json()
        rest = (await admin.get("/knowledge", params={"limit": 3, "cursor": page["next"]})).json()
        assert [one["name"] for one in (*page["items"], *rest["items"])] == [
            *("b.md", "c.md", "guides/a.md", "long.md")
        ]
        assert (await admin.get("/knowledge/guides/a.md")).json()["chunks"] == 1
        shown = (await admin.get("/knowledge/long.md", params={"limit": 2})).json()
        more = (await admin.get("/knowledge/long.md", params={"after": shown["next"]})).json()
    assert shown["title"] == "A long one"
    assert [one["position"] for one in (*shown["items"], *more["items"])] == list(range(shown["chunks"]))
    assert more["next"] is None
    assert more["items"][0]["path"] == "Long"
    assert more["items"][0]["text"].startswith("A long one > Long\nPart ")


async def test_only_an_admin_key_loads_for_its_own_tenant(api: Api) -> None:
    """Others are refused; the same name in two tenants is two documents."""
    async with api.client("alice") as alice:
        for call in (
            alice.put("/knowledge/x", content="x", headers=MARKDOWN),
            alice.get("/knowledge"),
            alice.get("/knowledge/x"),
            alice.delete("/knowledge/x"),
        ):
            assert (await call).status_code == 403
    await load(api)
    await load(api, CHANGED, key="rival-admin")
    assert "thirty" in (await recalled(api))["block"]
    assert "ninety" in (await recalled(api, "rival", user="alice"))["block"]


@pytest.mark.parametrize(
    ("name", "kind", "body", "status", "said"),
    [
        ("x", "application/json", b"{}", 415, "text/markdown"),
        ("x", "", b"text", 415, "text/markdown"),
        ("x", "text/plain", b"", 422, "a document with text in it"),
        ("x", "application/pdf", b"text", 422, "a PDF that can be read"),
        ("x" * 129, "text/plain", b"text", 422, "1 to 128 printable characters"),
        ("a%07b", "text/plain", b"text", 422, "1 to 128 printable characters"),
        ("x", "text/plain", b"x" * 32_000_001, 413, "32 MB"),
    ],
)
async def test_what_can_not_be_loaded_is_refused_with_the_reason(
    api: Api, name: str, kind: str, body: bytes, status: int, said: str
) -> None:
    """The media type, the text, the name and the size are checked, and the answer says what would do."""
    async with api.client("admin") as admin:
        answer = await admin.put(f"/knowledge/{name}", content=body, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    assert said in answer.text


async def test_a_secret_in_a_document_is_masked(api: Api) -> None:
    """In what is found and shown, and in the log."""
    key = "sk-proj-" + "a1B2" * 12
    await load(api, f"# Access\n\nThe key of Zorblax is {key}.")
    assert "[secret:" in (await recalled(api, query="What is the key of Zorblax?"))["block"]
    assert not await _log_has(api, key)


async def test_other_processes_see_a_change_at_their_next_look(api: Api) -> None:
    """A library over the same log, as another gateway has it, follows by one look-up for all tenants."""
    from hearth.memory.knowledge.library import Library

    engine = api.engine
    other = Library(log=engine.log, long_term=engine.long_term, clock=engine.clock, appended=lambda: None)
    assert (await other.look("acme")).versions == {}
    loaded = await load(api)
    await other.refresh()
    shelf = other.shelf("acme")
    assert shelf is not None
    assert list(shelf.versions.values()) == [loaded["version"]]
    await remove(api)
    await other.refresh()
    shelf = other.shelf("acme")
    assert shelf is not None
    assert shelf.versions == {}
