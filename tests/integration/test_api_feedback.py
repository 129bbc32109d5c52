"""What people think of recalls, over REST: kept in the log, tenant by tenant, and gone with their user."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from hearth.memory.events.kinds import RecallJudged
from tests.api import Api, open_api
from tests.events import ManualClock

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


@pytest.fixture(name="api")
async def _api(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=clock) as api:
        yield api


async def recalled(api: Api, key: str = "alice", **named: str) -> dict[str, Any]:
    """A recall that shows one of two memories."""
    async with api.client(key) as client:
        for text in ("likes green tea", "plays the cello on Sundays"):
            await client.post("/memories", json={"text": text, **named})
        await api.engine.drain()
        answer = await client.post("/recall", json={"query": "Who likes green tea?", **named})
    found: dict[str, Any] = answer.json()
    return found


async def judgements(api: Api, tenant: str = "acme", user: str = "alice") -> list[RecallJudged]:
    """What the log holds of them."""
    events = await api.engine.log.read(tenant=tenant, user=user, kinds=["recall.judged"])
    return [event.payload for event in events if isinstance(event.payload, RecallJudged)]


async def test_a_judgement_is_an_event_with_the_numbers_of_its_recall(api: Api) -> None:
    """The whole and single items; signals as they were, no text but the note, and that without secrets."""
    recall = await recalled(api)
    shown, other = recall["items"]
    body = {
        "judgement": "useful",
        "items": [{"id": other["id"], "verdict": "wrong"}],
        "note": f"right, but {KEY} is in it",
    }
    async with api.client("alice") as alice:
        answer = await alice.post(f"/recalls/{recall['id']}/feedback", json=body)
    assert answer.status_code == 200
    (kept,) = await judgements(api)
    assert (kept.trace, kept.judgement, kept.items) == (recall["id"], "useful", {other["id"]: "wrong"})
    assert kept.note.startswith("right, but ")
    assert KEY not in kept.note
    assert kept.ranking is not None
    assert kept.ranking.signals == tuple(shown["signals"])
    assert [(item.id, item.shown) for item in kept.ranking.items] == [
        (item["id"], item["verdict"] == "in") for item in recall["items"]
    ]
    for item, was in zip(kept.ranking.items, recall["items"], strict=True):
        assert item.values == pytest.approx(list(was["signals"].values()), abs=6e-4)
    assert "tea" not in str(kept)


async def test_the_same_judgement_again_changes_nothing(api: Api) -> None:
    """A repeated post answers the same and adds no event; another opinion is another event."""
    recall = await recalled(api)
    path = f"/recalls/{recall['id']}/feedback"
    async with api.client("alice") as alice:
        first = await alice.post(path, json={"judgement": "useful"})
        again = await alice.post(path, json={"judgement": "useful"})
        other = await alice.post(path, json={"judgement": "useless"})
    assert first.json() == again.json()
    assert other.json()["id"] != first.json()["id"]
    assert [one.judgement for one in await judgements(api)] == ["useful", "useless"]


async def test_what_can_not_be_judged_is_named(api: Api) -> None:
    """An item that was no candidate, one that is named twice, an unknown word, and nothing said are 422."""
    recall = await recalled(api)
    item, stranger = recall["items"][0]["id"], uuid4().hex
    twice = [{"id": item, "verdict": "useful"}, {"id": item, "verdict": "wrong"}]
    refused: list[tuple[dict[str, Any], str, Any]] = [
        ({"items": [{"id": stranger, "verdict": "useful"}]}, "items", stranger),
        ({"items": twice}, "items.1.id", item),
        ({"judgement": "nice"}, "judgement", "nice"),
        ({"items": [{"id": item, "verdict": "nice"}]}, "items.0.verdict", "nice"),
        ({}, "judgement", None),
        ({"judgement": "useful", "note": "x" * 2001}, "note", None),
        ({"judgment": "useful"}, "judgment", "useful"),
    ]
    async with api.client("alice") as alice:
        for body, field, value in refused:
            answer = await alice.post(f"/recalls/{recall['id']}/feedback", json=body)
            assert answer.status_code == 422, answer.text
            error = answer.json()["errors"][0]
            assert error["field"] == field
            assert value is None or error["value"] == value
    assert await judgements(api) == []


async def test_a_foreign_recall_answers_like_an_unknown_one(api: Api) -> None:
    """Another user's, another tenant's and, to an isolated agent, another agent's recall are 404 alike."""
    recall = await recalled(api)
    said = {"judgement": "wrong"}
    async with api.client("bob") as bob:
        unknown = await bob.post(f"/recalls/{uuid4().hex}/feedback", json=said)
        foreign = await bob.post(f"/recalls/{recall['id']}/feedback", json=said)
    for key, headers in (
        ("rival", {"x-hearth-user": "alice"}),
        ("hermit", {}),
        ("app", {"x-hearth-user": "bob"}),
    ):
        async with api.client(key, **headers) as client:
            answer = await client.post(f"/recalls/{recall['id']}/feedback", json=said)
            assert (answer.status_code, answer.content) == (404, unknown.content)
    assert (foreign.status_code, foreign.content) == (404, unknown.content)
    for tenant, user in (("acme", "alice"), ("acme", "bob"), ("rivals", "alice")):
        assert await judgements(api, tenant, user) == []


async def test_an_app_judges_for_the_user_it_names(api: Api) -> None:
    """Named in the body or by header; the event is that user's."""
    recall = await recalled(api, "app", user="carol")
    async with api.client("app") as app:
        answer = await app.post(
            f"/recalls/{recall['id']}/feedback", json={"judgement": "useful", "user": "carol"}
        )
    assert answer.status_code == 200
    assert len(await judgements(api, user="carol")) == 1


async def test_a_note_goes_with_the_memory_that_it_may_speak_of(api: Api) -> None:
    """Forgetting any of the recall's items leaves the judgement and takes its words."""
    recall = await recalled(api)
    async with api.client("alice") as alice:
        await alice.post(f"/recalls/{recall['id']}/feedback", json={"judgement": "wrong", "note": "no tea!"})
        await alice.delete(f"/memories/{recall['items'][0]['id']}")
        (kept,) = await judgements(api)
        await api.engine.log.rebuild_views()  # type: ignore[attr-defined]
        assert [kept] == await judgements(api)
    assert (kept.judgement, kept.note) == ("wrong", "")


async def test_case_21_an_erasure_takes_judgements_and_refuses_new_ones(api: Api) -> None:
    """Nothing of them is left in the log, and the recall can no longer be judged, in any process."""
    recall = await recalled(api)
    path = f"/recalls/{recall['id']}/feedback"
    async with api.client("alice") as alice:
        await alice.post(path, json={"judgement": "wrong", "note": "no tea!"})
        kept = await api.engine.trace("acme", "alice", recall["id"])
        await alice.delete("/users/alice")
        api.engine.traces.add(kept)  # as the ring of another gateway still has it
        assert (await alice.post(path, json={"judgement": "wrong"})).status_code == 404
    assert await judgements(api) == []
