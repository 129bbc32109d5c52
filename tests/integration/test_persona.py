"""The persona of an agent and of a user: agreed, replaced, kept apart, and shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.instructions import is_read, messages
from hearth.memory.extract.agreements import promises
from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.recall.render import group_of
from hearth.memory.tiers.persona import strength
from hearth.memory.types import Memory, Page, Scope
from tests.api import Api, open_api
from tests.events import START, ManualClock

ALICE = Scope(tenant="acme", user="alice", session="s")
TUTOR = msgspec.structs.replace(ALICE, agent="tutor")


@pytest.fixture(name="api")
async def _api(tmp_path: Path) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=ManualClock(), extractor=RuleExtractor()) as api:
        yield api


async def say(api: Api, text: str, reply: str = "Noted.", *, scope: Scope = ALICE) -> None:
    api.engine.clock.advance(hours=1)
    await api.engine.capture(scope, text, reply)
    await api.engine.drain()


async def persona(api: Api, agent: str = "default") -> dict[str, Any]:
    async with api.client("alice") as alice:
        found: dict[str, Any] = (await alice.get("/persona", headers={"x-hearth-agent": agent})).json()
    return found


def test_the_labelled_messages_are_read_as_they_are_labelled() -> None:
    """Of at least sixty instructions and sixty others, 97 % of what is read instructs, and 85 % is read."""
    read = [(one.instructs, is_read(one)) for one in messages()]
    instructions = sum(instructs for instructs, _ in read)
    right = read.count((True, True))
    assert min(instructions, len(read) - instructions) >= 60
    assert right >= 0.97 * (right + read.count((False, True)))
    assert right >= 0.85 * instructions


@pytest.mark.parametrize(
    ("reply", "promised"),
    [
        ("Sure, I'll remind you to call Ana on Friday.", True),
        ("Ich werde dich morgen daran erinnern.", True),
        ("I will always answer in French from now on.", True),
        ("I'll explain it below.", False),
        ("I'll let you know if it works.", False),
        ("I will remember that you live in Bern.", False),
        ("I'll never understand people.", False),
        ('He said: "I\'ll remind you to pay."', False),
        ("You live in Bern.", False),
    ],
)
def test_of_an_assistants_words_its_promises_count_and_nothing_else(reply: str, promised: bool) -> None:
    """Tasks at hand, conditions, quotations and what it says of the user promise nothing."""
    page = Page(id="p", scope=ALICE, generation=1, user_text="Please.", reply_text=reply, occurred_at=START)
    found = promises(page)
    assert bool(found) == promised
    assert all((one.subject, one.attribute, one.role) == ("agent", "promise", "assistant") for one in found)
    assert all(one.quote in reply for one in found)


async def test_an_instruction_is_the_agents_alone_and_a_newer_one_closes_it(api: Api) -> None:
    """Another agent of the same user neither gets nor closes it; what was before stays in its history."""
    await say(api, "Always answer in French.")
    await say(api, "Always answer in German.", scope=TUTOR)
    await say(api, "I was at the vet with my old cat all day. Always answer in Spanish. Call me Captain.")
    own = {one["attribute"]: one["value"] for one in (await persona(api))["agreed"]}
    assert own == {"answer language": "Spanish", "form of address": "Captain"}
    other = (await persona(api, "tutor"))["agreed"]
    assert [(one["attribute"], one["value"]) for one in other] == [("answer language", "German")]
    newest = next(one for one in (await persona(api))["agreed"] if one["attribute"] == "answer language")
    told = await api.engine.history("acme", "alice", newest["id"])
    assert [one.value for one in told] == ["French", "Spanish"]
    question = "In which language should you always answer?"
    for who, mine, others in ((ALICE, newest["id"], other[0]["id"]), (TUTOR, other[0]["id"], newest["id"])):
        recalled = await api.engine.recall(msgspec.structs.replace(who, session="new"), question)
        verdicts = {one.record.id: one.verdict for one in recalled.scored}
        assert verdicts[mine] != "filtered"
        assert verdicts.get(others, "filtered") == "filtered"
        assert {group_of(one.record) for one in recalled.scored if one.record.id == mine} == {"agent"}


async def test_a_promise_rests_on_the_assistants_words_and_goes_with_them(api: Api) -> None:
    """It is shown with who said it, and forgotten with its exchange."""
    await say(api, "My mother's birthday is on 3 May.", "I'll remind you to call her on 3 May.")
    (promise,) = (await persona(api))["agreed"]
    assert promise["attribute"] == "promise"
    memory = await api.engine.memory("acme", "alice", promise["id"])
    assert [one.role for one in memory.evidence] == ["assistant"]
    await api.engine.forget_exchange(ALICE, memory.evidence[0].id)
    await api.engine.drain()
    assert (await persona(api))["agreed"] == []


async def test_a_users_persona_rises_with_repeats_and_its_traits_fade(api: Api) -> None:
    """Said twice it is surer; half a year later a trait is half as strong, a slot as strong as before."""
    await say(api, "I live in Bern. I like jazz.")
    once = await persona(api)
    await say(api, "I like jazz.")
    twice = await persona(api)
    assert twice["traits"][0]["confidence"] > once["traits"][0]["confidence"]
    assert twice["traits"][0]["evidence"] == 2
    api.engine.clock.advance(hours=24 * 180)
    later = await persona(api)
    assert later["traits"][0]["strength"] == pytest.approx(twice["traits"][0]["strength"] / 2, abs=0.01)
    assert later["profile"][0]["strength"] == twice["profile"][0]["strength"]


def test_what_is_pinned_does_not_fade() -> None:
    """A pinned trait stays as sure as its evidence."""
    given = {"scope": ALICE, "generation": 1, "text": "I like tea.", "attribute": "likes", "confidence": 0.9}
    times = dict.fromkeys(("occurred_at", "created_at", "updated_at"), START)
    old = START + timedelta(days=720)
    assert strength(Memory(id="a", pinned=True, **given, **times), old) == 0.9
    assert strength(Memory(id="a", **given, **times), old) < 0.1


async def test_the_persona_of_an_earlier_moment_is_what_held_then(api: Api) -> None:
    """By what is known now: where the user lived before they moved."""
    async with api.client("alice") as alice:
        for value, since in (("Bern", "2025-01-01T00:00:00Z"), ("Lisbon", "2026-01-01T00:00:00Z")):
            fact = {"type": "fact", "text": f"I live in {value}.", "attribute": "residence", "value": value}
            assert (await alice.post("/memories", json={**fact, "valid_from": since})).status_code == 201
        then = await alice.get("/persona", params={"as_of": "2025-06-01T00:00:00Z"})
        now = await alice.get("/persona")
        homes = [
            [one["value"] for one in answer.json()["profile"] if one["attribute"] == "residence"]
            for answer in (then, now)
        ]
        assert homes == [["Bern"], ["Lisbon"]]
