"""What a user asks to forget in a conversation: out of recall at once, and undone or gone after a day."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.events.kinds import ForgetAsked
from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.types import Page, Scope
from tests.api import Api, open_api
from tests.events import ManualClock

ALICE = Scope(tenant="acme", user="alice", session="s")


@pytest.fixture(name="api")
async def _api(tmp_path: Path) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=ManualClock(), extractor=RuleExtractor()) as api:
        yield api


async def say(api: Api, text: str, reply: str = "Noted.", *, scope: Scope = ALICE) -> str:
    """One exchange of the session, an hour after the last; its id."""
    api.engine.clock.advance(hours=1)
    opened = await api.engine.capture(scope, text, reply)
    await api.engine.drain()
    return opened.exchange


async def facts(api: Api) -> list[str]:
    """What is known, oldest first."""
    found = await api.engine.memories("acme", "alice")
    return [one.text for one in reversed(found)]


async def block(api: Api, question: str) -> str:
    recalled = await api.engine.recall(Scope(tenant="acme", user="alice", session="new"), question)
    return recalled.block.text


async def asked(api: Api, exchange: str) -> dict[str, Any]:
    """What the API says that an exchange asked to forget."""
    async with api.client("alice") as alice:
        answer = await alice.get(f"/exchanges/{exchange}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["forgetting"]
    return found


async def undo(api: Api, exchange: str, key: str = "alice") -> Any:
    async with api.client(key) as client:
        answer = await client.post(f"/forgettings/{exchange}/undo")
    await api.engine.drain()
    return answer


async def texts_in_log(api: Api) -> str:
    """All that the log still holds of the user, as text."""
    return "\n".join(str(event.payload) for event in await api.engine.log.read(tenant="acme", user="alice"))


async def test_a_statement_is_out_of_recall_at_once_and_comes_back_when_undone(api: Api) -> None:
    """The fact, its words and the request are recalled no more; the rest is, and all of it after `undo`."""
    await say(api, "I live in Bern. My dog is called Zebedee.", "Bern is lovely.")
    request = await say(api, "Please forget that I live in Bern.", "I have forgotten that you live in Bern.")
    found = await asked(api, request)
    assert (found["understood"], found["outcome"], found["about"], found["state"]) == (
        *("statement", "forgotten", ["residence"], "waiting"),
    )
    assert not any("Bern" in fact for fact in await facts(api))
    seen = await block(api, "Where do I live, and what is my dog called?")
    assert "Zebedee" in seen
    assert "Bern" not in seen
    assert (await undo(api, request)).json()["state"] == "undone"
    assert any("Bern" in fact for fact in await facts(api))
    assert "Bern" in await block(api, "Where do I live?")
    again = await undo(api, request)
    assert again.status_code == 422
    assert "undone" in again.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Please forget that I live in Bern.", ""),
        ("My cat is called Mimi. Please forget that I live in Bern.", "Mimi"),
        ("Don't remember this: I live in Bern.", "I live in Bern"),
    ],
)
async def test_a_request_that_was_undone_is_not_recalled_itself(api: Api, text: str, told: str) -> None:
    """But what else its message says is, and all of a message that was itself what it was about."""
    await say(api, "I live in Bern.", "Bern is lovely.")
    request = await say(api, text, "Fine.")
    assert (await undo(api, request)).json()["state"] == "undone"
    seen = await block(api, "Where do I live, and what is my cat called?")
    assert "Bern" in seen
    assert told in seen
    assert "forget" not in seen


async def test_after_a_day_it_is_gone_from_the_log_too(api: Api) -> None:
    """What the request named is forgotten for good, as by a deletion, and can't be undone any more."""
    await say(api, "My sister Ana lives in Turin.", "Nice.")
    await say(api, "I work at Acme.", "Good.")
    request = await say(api, "Forget that.", "Done.")
    assert not any("Acme" in fact for fact in await facts(api))
    assert await api.engine.worker.sweep() == 0  # type: ignore[attr-defined]
    api.engine.clock.advance(hours=25)
    late = await undo(api, request)
    assert late.status_code == 422
    assert "done" in late.text
    assert await api.engine.worker.sweep() == 3  # type: ignore[attr-defined]
    await api.engine.drain()
    left = await texts_in_log(api)
    assert "Acme" not in left
    assert "Turin" in left
    assert await api.engine.worker.sweep() == 0  # type: ignore[attr-defined]


async def test_what_is_said_of_a_topic_is_meant_by_its_attributes_and_by_its_words(api: Api) -> None:
    """Facts of the topic and sentences that name it go, in what was said and in replies; others stay."""
    await say(api, "I work at Acme. I have a cat.", "A cat!")
    first = await say(api, "My job is tiring me out. Rome was fine.", "Your job is hard.")
    request = await say(api, "forget what I told you about my job. I live in Chur.", "Sure.")
    found = await asked(api, request)
    assert found["outcome"] == "forgotten"
    assert set(found["about"]) == {"employer"}
    assert first in found["marked"]
    assert request in found["marked"]
    assert not found["exchanges"]
    page = await api.engine.log.record("acme", "alice", first)
    assert isinstance(page, Page)
    assert [mark.quote for mark in page.outdated] == [
        *("My job is tiring me out.", "Your job is hard."),
    ]
    known = await facts(api)
    assert any("Chur" in fact for fact in known)
    assert any("cat" in fact for fact in known)
    assert not any("Acme" in fact for fact in known)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Forget everything you know about me.", "too much"),
        ("Forget that I live in Oslo.", "nothing found"),
        ("Forget what I said about Tuesdays.", "ambiguous"),
    ],
)
async def test_what_can_not_be_told_for_sure_forgets_nothing(api: Api, text: str, outcome: str) -> None:
    """Nothing goes, and the exchange says why."""
    await say(api, "I live in Bern.")
    if outcome == "ambiguous":
        for number in range(13):
            await say(api, f"On Tuesdays I do thing {number}.")
    before = await facts(api)
    found = await asked(api, await say(api, text, "Hm."))
    assert (found["outcome"], found["state"], found["until"]) == (outcome, "nothing", None)
    assert await facts(api) == before


async def test_a_message_that_is_not_to_be_remembered_leaves_nothing(api: Api) -> None:
    """Neither its facts nor its words are recalled; what was said before it stays."""
    await say(api, "I live in Bern.")
    secretive = await say(api, "Don't remember this: I work at Acme.", "My lips are sealed about Acme.")
    assert (await asked(api, secretive))["exchanges"] == [secretive]
    assert await facts(api) == ["I live in Bern."]
    assert "Acme" not in await block(api, "Where do I work?")


async def test_only_the_users_own_memories_are_forgotten(api: Api) -> None:
    """Another user's same fact stays, and nobody else can undo the request or learn of it."""
    bob = Scope(tenant="acme", user="bob", session="s")
    await say(api, "I live in Bern.", scope=bob)
    await say(api, "I live in Bern.")
    request = await say(api, "Forget that I live in Bern.")
    assert await facts(api) == []
    assert [one.text for one in await api.engine.memories("acme", "bob")] == ["I live in Bern."]
    assert (await undo(api, request, key="bob")).status_code == 404
    async with api.client("bob") as client:
        assert (await client.get("/forgettings")).json() == {"items": []}
    async with api.client("alice") as client:
        assert [one["exchange"] for one in (await client.get("/forgettings")).json()["items"]] == [request]


async def test_said_again_later_it_is_known_again(api: Api) -> None:
    """A request is about what was said until then; and reading the log again decides nothing twice."""
    await say(api, "I live in Bern.")
    await say(api, "Forget that I live in Bern.")
    await say(api, "I live in Bern, you may know that now.")
    assert [fact for fact in await facts(api) if "Bern" in fact]
    kinds = [event.payload for event in await api.engine.log.read(kinds=("forget.asked",))]
    assert len(kinds) == 1
    assert isinstance(kinds[0], ForgetAsked)
