"""The running summary of a session: kept as pages leave, for clients that send their last messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from hearth.gateway.call import Call
from hearth.gateway.flow import Flow
from hearth.memory.events.kinds import PageMoved, SessionSummarised
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.tiers.overflow import ShortTermPolicy
from hearth.memory.types import Page, Scope, SummaryLine
from tests.api import Api, open_api
from tests.events import ManualClock
from tests.flow import Talker, identity

LIFE = LifePolicy(short_term=ShortTermPolicy(pages=5, session_pages=5))
ALICE = Scope(tenant="acme", user="alice")
TOLD = "We leave for Norway on the ferry with my daughter Ida."
SAID = [
    "Good morning to you all.",
    TOLD,
    *(f"The list now has point number {n} about luggage." for n in range(3, 25)),
]
ASKED = "And what about it?"


@pytest.fixture(name="api")
async def _api(tmp_path: Path) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=ManualClock(), life=LIFE) as api:
        yield api


async def talk(api: Api, *, session: str = "", sends: int = 0, said: list[str] = SAID) -> Talker:
    """A conversation of 24 exchanges over a client that sends its last messages, or all of them."""
    client = talker(api, session)
    for number, text in enumerate(said):
        await say(client, text, sends=sends)
        if number < 3:
            await api.engine.drain()
    await api.engine.drain()
    return client


def talker(api: Api, session: str = "") -> Talker:
    who = identity()
    scope = Scope(tenant="acme", user="alice", session=session)
    return Talker(Flow(api.engine), api.engine.clock, type(who)(scope=scope, policy=who.policy, key=who.key))  # type: ignore[arg-type]


async def say(client: Talker, text: str, *, sends: int) -> Call:
    if sends:
        client.messages = client.messages[1 - sends :]
    return await client.say(text, "I see.")


async def summaries(api: Api) -> dict[str, tuple[SummaryLine, ...]]:
    found = await api.engine.sessions("acme", "alice")
    return {one.id: one.summary for one in found}


async def lines(api: Api) -> list[str]:
    return [line.text for told in (await summaries(api)).values() for line in told]


@pytest.mark.parametrize("session", ["trip", ""])
async def test_what_mattered_early_is_in_the_block_of_a_client_that_sends_its_last_messages(
    api: Api, session: str
) -> None:
    """25 exchanges, three messages each: exchange 2 is told, with its day, in its user's words, once."""
    client = await talk(api, session=session, sends=3)
    call = await say(client, ASKED, sends=3)
    assert call.recall is not None
    block = call.recall.block
    assert "# Earlier conversation" in block.text
    assert block.text.count(f"- user: {TOLD}") == 1
    (told,) = [line for told in (await summaries(api)).values() for line in told if line.text == TOLD]
    assert told.page in block.items
    shown = [one for one in call.recall.scored if one.verdict == "in"]
    assert sum(one.tokens for one in shown) <= 0.25 * 0.4 * 1024
    everyday = await say(client, "Write a python function that reverses a string.", sends=3)
    assert everyday.recall is not None
    assert not everyday.recall.block.text
    stranger = talker(api, "another")
    await say(stranger, ASKED, sends=3)
    assert TOLD not in stranger.prompt()


async def test_a_client_that_sends_everything_gets_nothing_twice(api: Api) -> None:
    """The whole session stands in the request, so that nothing is added."""
    client = await talk(api)
    assert TOLD in await lines(api)
    call = await client.say(ASKED)
    assert call.recall is not None
    assert not call.recall.block.text
    assert client.prompt().count(TOLD) == 1


async def test_a_summary_is_bounded_and_one_event_stands_for_all(api: Api) -> None:
    """Whatever leaves, the setting bounds it, and older states of it are gone from the log."""
    long = [f"I wrote chapter {n} of my book about {'the sea and ' * 12}Norway." for n in range(30)]
    await talk(api, session="book", said=[TOLD, *long], sends=3)
    told = (await summaries(api))["book"]
    assert 0 < sum(len(line.text) for line in told) <= 4 * LIFE.short_term.summary_tokens
    events = await api.engine.log.read(kinds=["session.summarised"], limit=1000)
    assert [one.payload for one in events] == [
        SessionSummarised(session="book", owner="acme/alice", lines=told)
    ]


async def test_a_forgotten_exchange_takes_its_line_and_the_blocks_that_showed_it_along(api: Api) -> None:
    """At once, in the view and in the log; a fold of the log gives the same."""
    client = await talk(api, session="trip", sends=3)
    await say(client, ASKED, sends=3)
    (told,) = [line for line in (await summaries(api))["trip"] if line.text == TOLD]
    await api.engine.forget_exchange(ALICE, told.page)
    assert TOLD not in await lines(api)
    await api.engine.drain()
    assert TOLD not in str([one.payload for one in await api.engine.log.read(limit=10_000)])
    left = await summaries(api)
    assert left["trip"]
    await api.engine.log.rebuild_views()  # type: ignore[attr-defined]
    assert await summaries(api) == left


async def test_a_branch_that_was_left_and_a_fact_that_ended_are_told_no_more(api: Api) -> None:
    """And an erased session has no summary."""
    client = await talk(api, session="trip", sends=3, said=["I live in Bern.", *SAID])
    found = {line.text: line for line in (await summaries(api))["trip"]}
    assert found["I live in Bern."].important
    await say(client, "I moved to Oslo.", sends=3)
    await api.engine.drain()
    assert "I live in Bern." not in await lines(api)
    page = await api.engine.log.record("acme", "alice", found[TOLD].page)
    assert isinstance(page, Page)
    moved = PageMoved(page=page.id, state="inactive", reason="left")
    await api.engine.log.append([api.engine._event(page.scope, moved, 1)])
    await api.engine.drain()
    assert TOLD not in await lines(api)
    assert await lines(api)
    await api.engine.forget_session(ALICE, "trip")
    await api.engine.drain()
    kept = await api.engine.log.read(kinds=["session.summarised"], limit=1000)
    assert not [one for one in kept if isinstance(one.payload, SessionSummarised) and one.payload.lines]


async def test_tiers_count_sessions_that_are_summed_up(api: Api) -> None:
    """As `hearth tiers` shows them."""
    await talk(api, session="trip", sends=3)
    since = api.engine.clock.now() - timedelta(days=1)
    assert (await api.engine.mid_term.standing(ALICE, since=since)).summaries == 1
    other = Scope(tenant="acme", user="bob")
    assert (await api.engine.mid_term.standing(other, since=since)).summaries == 0
