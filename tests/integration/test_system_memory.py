"""System memory over REST: proposed by counts, approved with an operator's text, recalled by all users."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hearth.memory.types import EVERYBODY
from tests.api import Api, open_api
from tests.events import ManualClock

GERMAN = "speaks=german"
TEXT = "Zorblax manuals are answered in German."
QUESTION = "In which language are Zorblax manuals answered?"


@pytest.fixture(name="api")
async def _api(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=clock) as api:
        yield api


async def say(api: Api, users: int, attribute: str = "speaks", value: str = "German", **fields: str) -> None:
    """So many users of an app state a value each, in other words."""
    async with api.client("app") as client:
        for number in range(users):
            body = {"text": f"Secret {number}: I am user {number}.", "attribute": attribute, "value": value}
            answer = await client.post("/memories", json={**body, "user": f"u{number}", **fields})
            assert answer.status_code == 201, answer.text


async def ask(api: Api, method: str, path: str, key: str = "admin", **body: Any) -> httpx.Response:
    async with api.client(key) as client:
        answer = await client.request(method, f"/system-memory{path}", json=body or None)
    await api.engine.drain()
    return answer


async def topics(api: Api, key: str = "admin") -> dict[str, int]:
    found = (await ask(api, "GET", "", key)).json()
    return {one["topic"]: one["users"] for one in found["proposals"]}


async def block(api: Api, key: str = "alice", **fields: str) -> str:
    async with api.client(key) as client:
        answer = await client.post("/recall", json={"query": QUESTION, **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["block"])


async def test_what_enough_users_share_is_proposed_as_a_count_and_nobodys_words(api: Api) -> None:
    """Below the least number, of attributes that tell of a person, and of sentences there is no proposal."""
    await say(api, 4)
    assert await topics(api) == {}
    await say(api, 6)
    await say(api, 9, "allergy", "kiwi")
    await say(api, 9, "employer", "Acme")
    await say(api, 9, "uses", "Postgres")
    await say(api, 9, "skill", "saying that I am always the first one to come")
    assert await topics(api) == {GERMAN: 6}
    shown = await ask(api, "GET", "")
    assert "Secret" not in shown.text
    assert shown.json()["proposals"][0]["suggestion"] == "Users here often speak german."
    async with api.client("app") as client:
        facts = (await client.get("/memories", params={"user": "u0", "limit": 200})).json()["items"]
        spoken = [one["id"] for one in facts if one["attribute"] == "speaks"]
        for id in spoken:
            end = {"valid_to": "2026-02-01T00:00:00Z", "valid_from": "2026-01-01T00:00:00Z"}
            assert (await client.patch(f"/memories/{id}", params={"user": "u0"}, json=end)).is_success
        assert await topics(api) == {GERMAN: 5}
        assert (await client.delete("/users/u1", params={"user": "u1"})).status_code in (200, 403)
    await api.engine.erase("acme", "u1")
    assert await topics(api) == {}


async def test_an_approved_text_is_recalled_by_all_users_and_no_other_tenant(api: Api) -> None:
    """In the operator's words, in a group of its own, until it is removed; then its topic is proposed."""
    await say(api, 5)
    made = await ask(api, "POST", "/approve", topic=GERMAN, text=TEXT)
    assert made.status_code == 201, made.text
    assert (made.json()["by"], made.json()["topic"]) == ("admin", GERMAN)
    assert await topics(api) == {}
    for key in ("alice", "bob", "hermit"):
        assert f"# System memory\n2026\nSun 1 Mar\n- {TEXT}\n" in await block(api, key)
    assert await block(api, "rival", user="alice") == ""
    assert (await ask(api, "GET", "", "rival-admin")).json()["items"] == []
    foreign = await ask(api, "DELETE", f"/{made.json()['id']}", "rival-admin")
    assert (foreign.status_code, foreign.json()["detail"][:29]) == (404, "System memory has no text of ")
    assert TEXT in (await ask(api, "GET", "")).text
    other = await ask(api, "POST", "/approve", topic=GERMAN, text=TEXT.replace("German", "Swiss German"))
    assert "Swiss German" in await block(api)
    assert len((await ask(api, "GET", "")).json()["items"]) == 1
    assert (await ask(api, "DELETE", f"/{other.json()['id']}")).json()["done"]
    assert await block(api) == ""
    assert await topics(api) == {GERMAN: 5}
    events = await api.engine.log.read(tenant="acme", user=EVERYBODY, limit=100)
    assert TEXT not in str(events)
    acts = [(event.kind, getattr(event.payload, "by", "") or event.payload.document.by) for event in events]  # type: ignore[union-attr]
    assert acts == [
        *[("knowledge.loaded", "admin")] * 2,
        ("knowledge.removed", "admin"),
    ]


async def test_a_refusal_sticks_until_the_topic_is_approved_after_all(api: Api) -> None:
    """However many more come to share it; it says who refused. What not enough share can't be decided on."""
    await say(api, 5)
    for _ in range(2):
        assert (await ask(api, "POST", "/refuse", topic=GERMAN)).json()["users"] == 5
    await say(api, 8)
    assert await topics(api) == {}
    events = await api.engine.log.read(tenant="acme", kinds=["system.refused"])
    assert [event.payload.by for event in events] == ["admin"]  # type: ignore[union-attr]
    for act in ("approve", "refuse"):
        body = {"topic": "speaks=elvish", **({"text": TEXT} if act == "approve" else {})}
        assert (await ask(api, "POST", f"/{act}", **body)).status_code == 404
    assert (await ask(api, "POST", "/approve", topic=GERMAN, text=TEXT)).status_code == 201
    assert TEXT in await block(api)


async def test_a_text_can_be_for_one_agents_users_alone(api: Api) -> None:
    """And an operator adds texts that nobody proposed; a document's list and routes know nothing of them."""
    made = (await ask(api, "POST", "", text=f"  {TEXT}\n", agent="hermit")).json()
    assert (made["text"], made["topic"], made["agent"]) == (TEXT, "", "hermit")
    assert TEXT in await block(api, "hermit")
    assert await block(api) == ""
    async with api.client("admin") as client:
        assert (await client.get("/knowledge")).json()["items"] == []
        assert (await client.get("/memories", params={"user": "alice"})).json()["items"] == []


async def test_only_an_admin_key_decides(api: Api) -> None:
    """And what is sent is checked by name."""
    for key in ("alice", "app", "reader"):
        assert (await ask(api, "GET", "", key)).status_code == 403
        assert (await ask(api, "POST", "", key, text=TEXT)).status_code == 403
    for body in ({"text": " "}, {"text": "x" * 501}, {"text": "x", "topic": "y"}):
        assert (await ask(api, "POST", "", **body)).status_code == 422
    async with api.client("alice") as client:
        answer = await client.post("/memories", json={"text": TEXT, "type": "system"})
    assert answer.status_code == 422
