"""Facts from exchange to block: what is read, replaced, withdrawn and forgotten, over a real log."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hearth.memory.events.kinds import PageMoved
from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.tiers.heat import HeatPolicy
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.tiers.limits import Limits
from hearth.memory.tiers.overflow import ShortTermPolicy
from hearth.memory.types import CandidateFact, Memory, Page, Scope
from tests.api import Api, open_api
from tests.events import ManualClock

ALICE = Scope(tenant="acme", user="alice")
SAYS = re.compile(r"I (?P<act>work|also work|left|lived) (?:at |in )?(?P<value>[A-Z]\w+)")
ACTS = {"work": "asserts", "also work": "adds", "left": "ends", "lived": "asserts"}


class EmployerExtractor:
    """Reads employers alone, so that a test is about what is done with them."""

    name = "employers"

    def extract(self, page: Page) -> list[CandidateFact]:
        return [
            CandidateFact(
                statement=f"{found[0]}.",
                quote=found[0],
                attribute="employer",
                value=found["value"],
                act=ACTS[found["act"]],
                confidence=0.9,
            )
            for found in SAYS.finditer(page.user_text)
        ]


@pytest.fixture(name="api")
async def _api(tmp_path: Path) -> AsyncIterator[Api]:
    clock = ManualClock()
    async with open_api(tmp_path, clock=clock, extractor=EmployerExtractor()) as api:
        yield api


async def say(api: Api, text: str, reply: str = "Noted.", *, scope: Scope = ALICE, **more: Any) -> str:
    """One exchange, an hour after the last; its id."""
    api.engine.clock.advance(hours=1)
    opened = await api.engine.capture(scope, text, reply, **more)
    await api.engine.drain()
    return opened.exchange


async def facts(api: Api, **where: Any) -> list[dict[str, Any]]:
    async with api.client("alice") as alice:
        answer = await alice.get("/memories", params={"types": ["fact", "persona"], **where})
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


async def block(api: Api, question: str) -> str:
    recalled = await api.engine.recall(ALICE, question)
    return recalled.block.text


async def test_case_16_a_superseded_fact_is_never_current_on_any_path(api: Api) -> None:
    """Listed, searched or recalled there is Borealis alone; the history has both, and where Acme ended."""
    first = await say(api, "I work at Acme", "Acme is a fine place.")
    await say(api, "I left Acme. I work at Borealis", "Good luck!")
    (now,) = await facts(api)
    assert (now["value"], now["attribute"], now["subject"], now["source"]) == (
        *("Borealis", "employer", "user", "extraction"),
    )
    assert [(one["role"], one["quote"]) for one in now["evidence"]] == [("user", "I work at Borealis")]
    async with api.client("alice") as alice:
        told = (await alice.get(f"/memories/{now['id']}/history")).json()["items"]
        found = (await alice.post("/memories/search", json={"query": "I work at Acme"})).json()["items"]
    assert [one["value"] for one in told] == ["Acme", "Borealis"]
    assert told[0]["valid_to"] == told[1]["occurred_at"]
    shown = [one["record"]["text"] for one in found if one["record"]["id"] == first]
    assert not any("Acme" in text for text in shown)
    assert "Borealis" in (present := await block(api, "Where do I work?"))
    assert "I work at Acme" not in present
    assert "fine place" not in present


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("I'd use recursion. I prefer Rust and I live in Bern.", [("residence", "Bern")]),
        ("Bern is a fine place to live in.", []),
    ],
)
async def test_case_11_what_is_right_for_the_user_too_is_theirs(
    tmp_path: Path, reply: str, kept: list[tuple[str, str]]
) -> None:
    """The assistant's words are no fact; what the user confirms of them rests on the user's words alone."""
    async with open_api(tmp_path, clock=ManualClock(), extractor=RuleExtractor()) as api:
        chat = msgspec.structs.replace(ALICE, session="chat")
        await say(api, "How do I reverse a list?", reply, scope=chat)
        assert await facts(api) == []
        await say(api, "Yes, Bern is right for me too.", scope=chat)
        told = await facts(api)
    assert [(one["attribute"], one["value"]) for one in told] == kept
    assert all([one["role"] for one in fact["evidence"]] == ["user"] for fact in told)


async def test_the_past_is_told_with_the_day_on_which_it_ended(api: Api) -> None:
    """A question about the past gets the old fact and its page, each with its end."""
    await say(api, "I work at Acme")
    await say(api, "I work at Borealis")
    past = await block(api, "Where did I work before?")
    assert re.search(r"I work at Acme\.? \(until \d{4}-\d\d-\d\d\)", past)


async def test_what_was_true_on_a_day_can_be_asked(api: Api) -> None:
    """`as_of` lists and searches what held at that moment, as is known now."""
    await say(api, "I work at Acme")
    between = api.engine.clock.now() + timedelta(minutes=30)
    await say(api, "I work at Borealis")
    assert [one["value"] for one in await facts(api, as_of=between.isoformat())] == ["Acme"]
    async with api.client("alice") as alice:
        body = {"query": "work", "types": ["fact", "persona"], "as_of": between.isoformat()}
        found = (await alice.post("/memories/search", json=body)).json()["items"]
    assert [one["record"]["text"] for one in found] == ["I work at Acme."]
    async with api.client("alice") as alice:
        body = {"query": "work", "types": ["page"], "as_of": between.isoformat()}
        pages = (await alice.post("/memories/search", json=body)).json()["items"]
    assert [one["record"]["text"] for one in pages] == ["I work at Acme"]
    assert await facts(api, as_of=(between - timedelta(days=1)).isoformat()) == []


async def test_the_same_said_again_adds_evidence_and_no_fact(api: Api) -> None:
    """Twenty times make one fact, and a page handled again changes nothing."""
    for _ in range(20):
        await say(api, "As you know I work at Acme")
    (fact,) = await facts(api)
    assert len(fact["evidence"]) == 20
    assert fact["confidence"] > 0.9
    before = [event.id for event in await api.engine.log.read(limit=10_000)]
    page, *_ = await api.engine.log.read(limit=10_000, kinds=["page.closed"])
    await api.engine.log.append([msgspec.structs.replace(page, id="f" * 32, seq=0, recorded_at=None)])
    await api.engine.drain()
    after = [event.kind for event in await api.engine.log.read(limit=10_000) if event.id not in before]
    assert after == ["page.closed"]


async def test_a_branch_that_is_left_takes_its_facts_along_and_brings_them_back(api: Api) -> None:
    """What it had closed holds again; when the client returns to it all is as it was."""
    await say(api, "I work at Acme")
    left = await say(api, "I work at Borealis")
    (before,) = await facts(api)
    await move(api, left, "inactive")
    (fact,) = await facts(api)
    assert (fact["value"], fact["valid_to"], fact["successor"]) == ("Acme", None, None)
    assert "I work at Acme" in await block(api, "Where do I work?")
    await move(api, left, "active")
    (again,) = await facts(api)
    assert {**again, "updated_at": ""} == {**before, "updated_at": ""}
    assert "I work at Acme" not in await block(api, "Where do I work?")


async def move(api: Api, page: str, state: Any) -> None:
    payload = PageMoved(page=page, state=state, reason="the client went elsewhere")
    await api.engine.log.append([api.engine._event(ALICE, payload, 1)])
    await api.engine.drain()


async def test_a_forgotten_exchange_takes_its_facts_along_for_good(api: Api) -> None:
    """And what it had closed holds again; the log has none of its words."""
    await say(api, "I work at Acme")
    gone = await say(api, "I work at Borealis")
    await api.engine.forget_exchange(ALICE, gone)
    await api.engine.drain()
    assert [one["value"] for one in await facts(api)] == ["Acme"]
    told = [str(event.payload) for event in await api.engine.log.read(limit=1000)]
    assert not any("Borealis" in text for text in told)


async def test_a_fact_with_other_evidence_survives_the_exchange_that_told_it_first(api: Api) -> None:
    """It is read from the next one that says so."""
    gone = await say(api, "I work at Acme")
    other = await say(api, "Yes, I work at Acme")
    await api.engine.forget_exchange(ALICE, gone)
    await api.engine.drain()
    (fact,) = await facts(api)
    assert [one["exchange"] for one in fact["evidence"]] == [other]


async def test_a_forgotten_fact_is_not_recalled_from_the_words_it_was_read_from(api: Api) -> None:
    """Neither from the user's, nor from a reply that names it; the rest of the exchange stays."""
    await say(api, "I work at Acme and my dog is Rex.", "Acme makes good anvils. Rex is a good name.")
    (fact,) = await facts(api)
    assert (await api.engine.forget(ALICE, fact["id"])).done
    assert "Acme" not in await block(api, "Where do I work?")
    await api.engine.drain()
    assert await facts(api) == []
    for question in ("Where do I work?", "Where did I work before?", "What is my dog called?"):
        assert "Acme" not in await block(api, question)
    assert "my dog is Rex" in await block(api, "What is my dog Rex called?")


async def test_a_change_by_hand_wins_over_what_was_read(api: Api) -> None:
    """It stays when its page comes again; a later statement of the user's replaces it all the same."""
    page = await say(api, "I work at Acme")
    (fact,) = await facts(api)
    async with api.client("alice") as alice:
        change = {"text": "I work at Acme Ltd.", "value": "Acme Ltd"}
        changed = (await alice.patch(f"/memories/{fact['id']}", json=change)).json()
    assert changed["source"] == "api"
    await move(api, page, "inactive")
    await move(api, page, "active")
    assert [one["value"] for one in await facts(api)] == ["Acme Ltd"]
    await say(api, "I work at Borealis")
    assert [one["value"] for one in await facts(api)] == ["Borealis"]


async def test_a_fact_added_by_hand_closes_the_value_before(api: Api) -> None:
    """By the same rule as one that is read."""
    await say(api, "I work at Acme")
    async with api.client("alice") as alice:
        body = {"text": "Works at Borealis.", "attribute": "employer", "value": "Borealis"}
        added = (await alice.post("/memories", json=body)).json()
    await api.engine.drain()
    assert added["subject"] == "user"
    assert [one["text"] for one in await facts(api)] == ["Works at Borealis."]
    assert "I work at Acme" not in await block(api, "Where do I work?")


async def test_facts_of_an_isolated_agent_stay_its_own(api: Api) -> None:
    """They neither close the user's other facts nor are closed by them."""
    hermit = Scope(tenant="acme", user="alice", agent="hermit", isolated=True)
    await say(api, "I work at Acme")
    await say(api, "I work at Borealis", scope=hermit)
    await say(api, "I left Acme")
    found = await api.engine.memories("acme", "alice")
    assert [(one.value, one.scope.agent) for one in found] == [("Borealis", "hermit")]


async def test_a_reply_that_was_given_the_fact_is_outdated_with_it(api: Api) -> None:
    """The assistant's `As you work at Acme` is no more true than the user's own words."""
    await say(api, "I work at Acme")
    recalled = await api.engine.recall(ALICE, "Where do I work?")
    assert recalled.block.items
    await say(api, "Which train should I take?", "As you work at Acme, the S3. It is quick.", recall=recalled)
    await say(api, "I work at Borealis")
    assert "As you work at Acme" not in (shown := await block(api, "Which train should I take to work?"))
    assert "It is quick" in shown


async def test_the_log_alone_gives_the_same_facts(api: Api) -> None:
    """Folded again from the events the views are what they were."""
    await say(api, "I work at Acme")
    await say(api, "I left Acme. I work at Borealis")
    before = await everything(api)
    await api.engine.log.rebuild_views()
    assert await everything(api) == before


async def everything(api: Api) -> tuple[list[Memory], list[Page], list[Memory]]:
    log = api.engine.log
    memories = await log.facts_about("acme", "alice", [("user", "employer")])
    pages = await log.pages("acme", "alice", limit=10)
    return memories, pages, await log.facts_of("acme", "alice", pages[-1].id)


async def test_facts_outlive_the_pages_that_they_were_read_from(tmp_path: Path) -> None:
    """A page that was evicted still states what it stated, whatever is read anew beside it."""
    life = LifePolicy(short_term=ShortTermPolicy(pages=1), limits=Limits(segments=1))
    async with open_api(tmp_path, clock=ManualClock(), extractor=EmployerExtractor(), life=life) as api:
        await say(api, "I work at Acme")
        for text in ("Some weather today.", "A tax form came.", "My shoes are wet."):
            await say(api, text)
        left = await say(api, "I work at Borealis")
        assert await api.engine.log.read(kinds=["segment.evicted"])
        await move(api, left, "inactive")
        assert [one["value"] for one in await facts(api)] == ["Acme"]


@pytest.mark.parametrize("limits", [Limits(segments=1), Limits()], ids=["evicted", "live"])
async def test_an_episode_does_not_tell_what_ended_after_it_was_made(tmp_path: Path, limits: Limits) -> None:
    """It is made anew by what its pages say now; what holds stays in it."""
    life = LifePolicy(
        short_term=ShortTermPolicy(pages=1), limits=limits, heat=HeatPolicy(promotion=0.1), facts="rules"
    )

    async def episodes(api: Api) -> str:
        found = await api.engine.memories("acme", "alice")
        return " ".join(one.text for one in found if one.type == "episode")

    async with open_api(tmp_path, clock=ManualClock(), extractor=EmployerExtractor(), life=life) as api:
        await say(api, "I work at Acme. My desk is green.")
        for text in ("Some weather today.", "A tax form came.", "My shoes are wet."):
            await say(api, text)
        before = await episodes(api)
        assert "I work at Acme." in before
        await say(api, "I work at Borealis")
        await api.engine.drain()
        after = await episodes(api)
        assert "Acme" not in after
        assert ("My desk is green" in before) == ("My desk is green" in after)
        assert any(one.type == "episode" for one in await api.engine.memories("acme", "alice"))


@pytest.fixture(name="plain")
async def _plain(tmp_path: Path) -> AsyncIterator[Api]:
    """With the rules."""
    async with open_api(tmp_path, clock=ManualClock(), extractor=RuleExtractor()) as api:
        yield api


async def current(api: Api) -> set[tuple[str, str]]:
    return {(one["attribute"], one["value"]) for one in await facts(api)}


async def test_what_is_left_may_be_of_another_kind_than_it_was_read_as(plain: Api) -> None:
    """`J'ai quitté Lyon` is of the town, of the firm or of somebody, whichever is known by that name; once
    the words are forgotten it holds again.
    """
    await say(plain, "J'habite à Lyon.")
    await say(plain, "Je travaille chez Renault.")
    left = await say(plain, "J'ai quitté Lyon.")
    assert await current(plain) == {("employer", "Renault")}
    await say(plain, "J'ai quitté Renault.")
    assert await current(plain) == set()
    await plain.engine.forget_exchange(ALICE, left)
    await plain.engine.drain()
    assert await current(plain) == {("residence", "Lyon")}


async def test_who_retires_leaves_the_employer_until_that_is_taken_back(plain: Api) -> None:
    """Both hold again once the words are forgotten."""
    await say(plain, "I work as a nurse at Acme.")
    retired = await say(plain, "I'm retired now.")
    assert await current(plain) == {("occupation", "retired")}
    await plain.engine.forget_exchange(ALICE, retired)
    await plain.engine.drain()
    assert await current(plain) == {("occupation", "nurse"), ("employer", "Acme")}


async def test_the_same_in_another_language_is_more_evidence(plain: Api) -> None:
    """One fact, by the words in which it was said first."""
    for text in (
        "I'm allergic to peanuts.",
        "Ich bin gegen Erdnüsse allergisch.",
        "soy alergico a los cacahuetes",
    ):
        await say(plain, text)
    (fact,) = await facts(plain)
    assert (fact["value"], len(fact["evidence"])) == ("peanuts", 3)


async def test_of_what_is_counted_the_latest_number_holds(plain: Api) -> None:
    """Two dogs, and then one."""
    await say(plain, "We have two dogs.")
    await say(plain, "We only have one dog now.")
    assert await current(plain) == {("pet", "one dog")}
