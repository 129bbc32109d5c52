"""The life of pages over a real log: short-term memory, segments, heat, promotion, eviction, and back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.embed.use import UseEmbedder
from hearth.memory.events.kinds import (
    DrawnItem,
    PageMoved,
    PageSegmented,
    Ranking,
    RecallDrawn,
    SegmentEvicted,
    SegmentPromoted,
)
from hearth.memory.ports import KnownSegment
from hearth.memory.tiers.heat import Heat, HeatPolicy, touch, warmth, with_page
from hearth.memory.tiers.life import LifePolicy, RetentionPolicy
from hearth.memory.tiers.limits import Limits
from hearth.memory.tiers.overflow import ShortTermPolicy
from hearth.memory.types import Page, Scope
from tests.api import Api, open_api
from tests.events import ManualClock

ALICE = Scope(tenant="acme", user="alice")
SMALL = LifePolicy(short_term=ShortTermPolicy(pages=3))
SOUP = (
    "I cook leek soup with potatoes.",
    "The leek soup needs more salt.",
    "My soup recipe is from Grandma.",
)
CARS = (
    "My car engine makes a noise.",
    "The car needs new engine oil.",
    "The mechanic looked at the car engine.",
)
IDLE = ("Fine weather.", "So it is.", "All right then.")


@pytest.fixture(name="embedder", scope="module")
def _embedder() -> UseEmbedder:
    return UseEmbedder()


@pytest.fixture(name="life")
def _life() -> LifePolicy:
    return SMALL


@pytest.fixture(name="api")
async def _api(tmp_path: Path, embedder: UseEmbedder, life: LifePolicy) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=ManualClock(), embedder=embedder, life=life) as api:
        yield api


async def say(
    api: Api, *texts: str, session: str = "s1", minutes: float = 5, user: str = "alice"
) -> list[str]:
    """One exchange each, some minutes after the last; their ids."""
    said = []
    for text in texts:
        api.engine.clock.advance(minutes=minutes)
        scope = Scope(tenant="acme", user=user, session=session)
        said.append((await api.engine.capture(scope, text, "I see.")).exchange)
        await api.engine.drain()
    return said


async def segments(api: Api, user: str = "alice") -> list[KnownSegment]:
    return await api.engine.log.segments("acme", user, Scope(tenant="acme", user=user).owner)


async def members(api: Api) -> list[list[str]]:
    """What was said in each segment's pages, the segments in the order of their first page."""
    found = [await api.engine.log.pages_in("acme", "alice", one.id) for one in await segments(api)]
    ordered = sorted(filter(None, found), key=lambda pages: pages[0].occurred_at)
    return [[page.user_text for page in pages] for pages in ordered]


async def waiting(api: Api) -> list[str]:
    found = await api.engine.log.waiting_pages("acme", "alice", ALICE.owner, limit=100)
    return [page.id for page in found]


async def told(api: Api, kind: str) -> list[Any]:
    return [event.payload for event in await api.engine.log.read(limit=10_000, kinds=[kind])]


async def test_case_46_what_short_term_memory_has_no_room_for_moves_on_once(api: Api) -> None:
    """Ten turns with room for three: each is in one place, and the last three are in short-term memory."""
    ten = await say(api, *(f"Turn t{n} of ten." for n in range(1, 11)))
    assert await waiting(api) == ten[-3:]
    moved = [one.page for one in await told(api, "page.segmented")]
    assert moved == ten[:-3]
    assert sorted(text for one in await members(api) for text in one) == [
        f"Turn t{n} of ten." for n in range(1, 8)
    ]


async def test_pages_on_one_topic_are_one_segment(api: Api) -> None:
    """Another topic opens another; a return, in another session, goes back to the first."""
    await say(api, *SOUP)
    await say(api, *CARS, session="s2")
    await say(api, "Again I cook my leek soup.", session="s3")
    await say(api, *IDLE, session="s4")
    assert await members(api) == [[*SOUP, "Again I cook my leek soup."], [*CARS]]


@pytest.mark.parametrize("life", [LifePolicy(short_term=ShortTermPolicy(pages=1))])
async def test_a_recall_warms_the_segment_that_it_came_from(api: Api) -> None:
    """Once an exchange and segment; by a fifth of that where the reply did not draw on it."""
    soup, car, *_ = await say(api, "I cook leek soup.", "My car engine is loud.", "So it is.")
    before = {one.id: warmth(one.heat, api.engine.clock.now(), HeatPolicy()) for one in await segments(api)}
    of = await api.engine.log.segments_of("acme", "alice", [soup, car])
    (asked,) = await say(api, "And so on.")
    await drawn(api, asked, {soup: True, car: False})
    after = {one.id: warmth(one.heat, api.engine.clock.now(), HeatPolicy()) for one in await segments(api)}
    assert after[of[soup]] - before[of[soup]] > after[of[car]] - before[of[car]]
    visits = {one.segment: one.weight for one in await told(api, "segment.visited")}
    assert visits == {of[soup]: 1.0, of[car]: 0.2}


async def drawn(api: Api, exchange: str, items: dict[str, bool]) -> None:
    payload = RecallDrawn(
        trace="t",
        exchange=exchange,
        items=tuple(DrawnItem(id=id, share=0.9 if used else 0.0, used=used) for id, used in items.items()),
        ranking=Ranking(signals=(), items=()),
    )
    await api.engine.log.append([api.engine._event(ALICE, payload, 1)])
    await api.engine.drain()


async def test_every_hot_segment_is_promoted_once_for_what_it_has_gained(api: Api) -> None:
    """Not the hottest alone; a cold one is not; its episode is listed, but not recalled beside its pages."""
    soup = await say(api, *SOUP, "I put cream on my leek soup.")
    cars = await say(api, *CARS, "My car engine runs again.", session="s2")
    await say(api, "A letter from the tax office came.", session="s3")
    await say(api, *IDLE, session="s4")
    exchange = (await say(api, "Well."))[0]
    for _ in range(3):
        await drawn(api, exchange, {soup[0]: True, cars[0]: True})
    promoted = await told(api, "segment.promoted")
    of = await api.engine.log.segments_of("acme", "alice", [soup[0], cars[0]])
    assert sorted(one.segment for one in promoted) == sorted(of.values())
    episodes = [one for one in await api.engine.memories("acme", "alice") if one.type == "episode"]
    assert len(episodes) == 2
    assert any("soup" in one.text for one in episodes)
    assert await api.engine.long_term.get(ALICE.owner, [one.id for one in episodes]) == []
    await drawn(api, exchange, {soup[0]: True})
    assert len(await told(api, "segment.promoted")) == 2


@pytest.mark.parametrize(
    "life", [LifePolicy(short_term=ShortTermPolicy(pages=1), heat=HeatPolicy(promotion=0.5))]
)
async def test_one_exchange_can_make_facts_and_an_episode(api: Api) -> None:
    """What is read from it and what is summed up because of it are both kept."""
    await say(api, SOUP[0])
    await say(api, "I live in Chur. I work at Acme. I am a nurse. I am allergic to kiwi. My name is Ann.")
    found = await api.engine.memories("acme", "alice")
    assert len([one for one in found if one.type == "episode"]) == 1
    assert {one.value for one in found} >= {"Chur", "Acme", "nurse", "kiwi", "Ann"}


@pytest.mark.parametrize("life", [LifePolicy(short_term=ShortTermPolicy(pages=1), limits=Limits(segments=1))])
async def test_the_coldest_segment_leaves_its_episode(api: Api) -> None:
    """With the reason; its pages are recalled no more, its episode is; the log has its words."""
    soup = await say(api, *SOUP)
    await say(api, *CARS, "So it is.", session="s2", minutes=3000)
    (gone,) = await told(api, "segment.evicted")
    of = await api.engine.log.segments_of("acme", "alice", soup)
    assert (gone.segment, gone.reason) == (of[soup[0]], "segments")
    assert await api.engine.long_term.get(ALICE.owner, soup) == []
    (episode,) = [one for one in await api.engine.memories("acme", "alice") if one.type == "episode"]
    assert episode.text.startswith("2026-") or episode.text[:2] == "20"
    assert "leek soup" in episode.text
    assert [one.id for one in await api.engine.long_term.get(ALICE.owner, [episode.id])] == [episode.id]
    assert (await api.engine.exchange("acme", "alice", soup[0])).user_text == SOUP[0]


@pytest.mark.parametrize("life", [LifePolicy(short_term=ShortTermPolicy(pages=1), limits=Limits(segments=1))])
async def test_a_forgotten_exchange_leaves_no_word_in_what_summed_it_up(api: Api) -> None:
    """Neither in a live segment's state nor in the episode of one that was evicted."""
    soup = await say(api, *SOUP, "My leek soup recipe is with cardamom.")
    cars = await say(
        api, *CARS, "The car engine has the number 12345.", "So it is.", session="s2", minutes=3000
    )
    for page in (soup[3], cars[3], soup[2]):
        await api.engine.forget_exchange(ALICE, page)
        await api.engine.drain()
    log = " ".join(str(event.payload) for event in await api.engine.log.read(limit=10_000))
    assert "cardamom" not in log
    assert "12345" not in log
    assert "Grandma" not in log
    assert sorted(text for one in await members(api) for text in one) == sorted([*SOUP[:2], *CARS])
    episodes = [one for one in await api.engine.memories("acme", "alice") if one.type == "episode"]
    assert any("leek soup" in one.text for one in episodes)


ONE = Limits(segments=1, episodes=1)


@pytest.mark.parametrize("life", [LifePolicy(short_term=ShortTermPolicy(pages=1), limits=ONE)])
async def test_episodes_have_room_too(api: Api) -> None:
    """Of segments that have left: the coldest goes, for good, and never one that is pinned."""
    await say(api, *SOUP)
    await say(api, *CARS, "So it is.", session="s2", minutes=3000)
    (soup,) = [one for one in await api.engine.memories("acme", "alice") if one.type == "episode"]
    await api.engine.amend("acme", "alice", soup.id, pinned=True)
    await say(api, "My tax form has page 12.", "The tax office wants the form.", session="s3", minutes=3000)
    await say(api, "Fine weather.", session="s3", minutes=3000)
    left = [one for one in await api.engine.memories("acme", "alice") if one.metadata.get("live") is False]
    assert [one.id for one in left] == [soup.id]
    assert "no room: episodes" in {one.reason for one in await told(api, "memory.forgotten")}


@pytest.mark.parametrize("life", [LifePolicy(short_term=ShortTermPolicy(pages=1), limits=Limits(segments=1))])
async def test_a_pinned_segment_is_not_evicted_until_that_is_lifted(api: Api) -> None:
    """Over REST, by who may write; what would go is told before, with the reason."""
    await say(api, *SOUP)
    (soup,) = await segments(api)
    async with api.client("alice") as client:
        assert (await client.put(f"/segments/{soup.id}/pin")).json() == {"id": soup.id, "pinned": True}
        await api.engine.drain()
        await say(api, *CARS, "So it is.", session="s2", minutes=3000)
        gone = [one.segment for one in await told(api, "segment.evicted")]
        assert soup.id not in gone
        assert (await client.get("/tiers")).json()["mid_term"]["items"][-1]["pinned"]
        assert (await client.delete(f"/segments/{soup.id}/pin")).status_code == 200
        await api.engine.drain()
        tried = (await client.get("/evictions", params={"days": 1})).json()["items"]
        assert (tried[0]["id"], tried[0]["reason"]) in [(soup.id, "age"), (soup.id, "segments")]
        assert (await client.put("/segments/5e2f/pin")).status_code == 404
        assert (await client.put(f"/segments/{gone[0]}/pin")).status_code == 404
    async with api.client("reader") as client:
        assert (await client.put(f"/segments/{soup.id}/pin")).status_code == 403
    async with api.client("bob") as client:
        assert (await client.put(f"/segments/{soup.id}/pin")).status_code == 404


async def test_a_page_that_leaves_its_branch_leaves_its_segment_and_can_come_back(api: Api) -> None:
    """It waits again, and moves on with the next that leaves."""
    soup = await say(api, *SOUP)
    await say(api, *IDLE, session="s2")
    assert await members(api) == [[*SOUP]]
    await move(api, soup[1], "inactive")
    assert await members(api) == [[SOUP[0], SOUP[2]]]
    await move(api, soup[1], "active")
    await say(api, "Well then.", session="s2")
    assert (await members(api))[0] == [*SOUP]


async def move(api: Api, page: str, state: Any) -> None:
    payload = PageMoved(page=page, state=state, reason="the client went elsewhere")
    await api.engine.log.append([api.engine._event(ALICE, payload, 1)])
    await api.engine.drain()


async def test_the_log_alone_gives_the_same_segments(api: Api) -> None:
    """Folded again from the events, heat to the last bit."""
    soup = await say(api, *SOUP, *CARS, *IDLE)
    await drawn(api, soup[-1], {soup[0]: True})
    before = await segments(api), await waiting(api), await members(api)
    await api.engine.log.rebuild_views()
    assert (await segments(api), await waiting(api), await members(api)) == before


async def test_nothing_is_lost_and_nothing_is_twice(api: Api) -> None:
    """Every page is in short-term memory or in one segment; what moved is told once."""
    said = await say(api, *SOUP, *CARS, *IDLE, *(f"{text} Really." for text in SOUP + CARS))
    moved = [one for one in await told(api, "page.segmented") if isinstance(one, PageSegmented)]
    assert sorted([*(one.page for one in moved), *await waiting(api)]) == sorted(said)
    assert sum(len(one) for one in await members(api)) == len(moved)
    assert not [one for one in await told(api, "segment.evicted") if isinstance(one, SegmentEvicted)]
    assert all(isinstance(one, SegmentPromoted) for one in await told(api, "segment.promoted"))
    pages = [await api.engine.log.record("acme", "alice", id) for id in said]
    assert all(isinstance(page, Page) and page.state == "active" for page in pages)


BY_KIND = LifePolicy(
    short_term=ShortTermPolicy(pages=1),
    limits=Limits(segments=1),
    retention=RetentionPolicy(fact_days=10, episode_days=20, knowledge_days=30),
)


async def test_heat_is_counted_anew_where_other_weights_hold(api: Api) -> None:
    """Of all pages and visits, before anything is decided by it; with the old ones it is what it was."""
    soup = await say(api, *SOUP, *IDLE)
    await drawn(api, soup[-1], {soup[0]: True})
    await drawn(api, soup[-2], {soup[1]: False})
    (one,) = await segments(api)
    before = one.heat

    async def by(**values: Any) -> Heat:
        named = {f"heat.{name}": value for name, value in values.items()}
        await api.engine.policies.change("acme", named, level="tenant", by="ops")
        await say(api, "Well then.", session="s9", minutes=1)
        return next(found.heat for found in await segments(api) if found.id == one.id)

    other = await by(visit=4.0, fade_hours=48.0)
    policy = api.engine.policies.of("acme").heat
    pages = await api.engine.log.members("acme", "alice", one.id)
    told = Heat()
    for page in pages:
        told = with_page(told, page.at, drawn=page.drawn, seen=page.seen, visited=page.visited, policy=policy)
    visits = await api.engine.log.read(kinds=("segment.visited",))
    assert [event.payload.used for event in visits] == [True, False]
    for event in visits:
        told = touch(told, policy.worth(used=event.payload.used), event.occurred_at, policy)
    assert other.counted_by == policy.counts != before.counted_by
    assert (other.level, other.touched) == (pytest.approx(told.level, rel=1e-12), told.touched)
    again = await by(visit=None, fade_hours=None)
    assert (again.counted_by, again.touched) == (before.counted_by, before.touched)
    assert again.level == pytest.approx(before.level, rel=1e-12)


@pytest.mark.parametrize("life", [BY_KIND])
async def test_each_kind_has_its_own_time(api: Api) -> None:
    """A fact goes with the words that it was read from, a summary and a document by themselves."""
    await say(api, *SOUP)
    await say(api, *CARS, session="s2", minutes=3000)
    fact = await api.engine.remember(ALICE, "I ski.")
    await api.engine.knowledge.load("acme", "shop.md", b"# Shop\n\nLamps can be returned.\n", "text/markdown")

    async def after(days: int) -> tuple[int, set[str], int]:
        api.engine.clock.advance(minutes=days * 24 * 60)
        swept = await api.engine.worker.sweep()
        await api.engine.drain()
        kinds = {one.type for one in await api.engine.memories("acme", "alice")}
        return swept, kinds, len(await api.engine.knowledge.documents("acme"))

    assert await after(9) == (0, {"fact", "episode"}, 1)
    swept, kinds, documents = await after(2)
    assert (swept, "fact" in kinds, documents) == (1, False, 1)
    assert await api.engine.long_term.get(ALICE.owner, [fact.id]) == []
    assert (await after(10))[1:] == (set(), 1)
    assert await after(10) == (1, set(), 0)
    assert await after(1) == (0, set(), 0)
    assert len(await api.engine.exchanges("acme", "alice")) == 6


KEPT = LifePolicy(retention=RetentionPolicy(dialogue_days=30))


@pytest.mark.parametrize("life", [KEPT])
async def test_what_has_outlived_its_time_is_forgotten_for_good(api: Api) -> None:
    """Exchanges older than the policy keeps them, and memories past their own end; nothing else."""
    old = await say(api, "My old secret is cardamom.")
    at = api.engine.clock.now()
    short = await api.engine.remember(ALICE, "The code is 12345.", expires_at=at + timedelta(days=1))
    kept = await api.engine.remember(ALICE, "I ski.")
    new = await say(api, "Fine weather.", minutes=60 * 24 * 31)
    assert await api.engine.worker.sweep() == 2
    await api.engine.drain()
    log = " ".join(str(event.payload) for event in await api.engine.log.read(limit=1000))
    assert "cardamom" not in log
    assert "12345" not in log
    assert await api.engine.long_term.get(ALICE.owner, [*old, short.id]) == []
    assert [one.id for one in await api.engine.exchanges("acme", "alice")] == new
    assert [one.id for one in await api.engine.memories("acme", "alice")] == [kept.id]
    assert await api.engine.worker.sweep() == 0


async def test_without_a_retention_nothing_is_ever_old(api: Api) -> None:
    """The default."""
    await say(api, "I ski.")
    await say(api, "Fine weather.", minutes=60 * 24 * 5000)
    assert await api.engine.worker.sweep() == 0


CROWDED = LifePolicy(short_term=ShortTermPolicy(pages=1), limits=Limits(tenant_segments=1, days=100))


@pytest.mark.parametrize("life", [CROWDED])
async def test_the_coldest_of_all_users_leave_where_a_tenant_has_no_room(api: Api) -> None:
    """Though their users say nothing more; a pinned one stays, and each goes once."""
    await say(api, *SOUP)
    await say(api, *CARS, "So it is.", user="bob", minutes=3000)
    before = await segments(api)
    async with api.client("admin") as client:
        (due,) = (await client.get("/tenant/evictions")).json()["items"]
        assert (due["user"], due["id"], due["reason"]) == ("alice", before[0].id, "tenant segments")
        assert (await client.get("/tenant/evictions", params={"segments": 9})).json()["items"] == []
    async with api.client("alice") as client:
        assert (await client.get("/tenant/evictions")).status_code == 403
    for _ in range(2):
        await api.engine.worker.sweep()
        await api.engine.drain()
    (gone,) = await told(api, "segment.evicted")
    assert (gone.segment, gone.reason) == (before[0].id, "tenant segments")
    assert any("leek soup" in one.text for one in await api.engine.memories("acme", "alice"))
    await api.engine.pin_segment(
        Scope(tenant="acme", user="bob"), (await segments(api, "bob"))[0].id, pinned=True
    )
    api.engine.clock.advance(minutes=60 * 24 * 101)
    await api.engine.worker.sweep()
    await api.engine.drain()
    assert [one.segment for one in await told(api, "segment.evicted")] == [before[0].id]


@pytest.mark.parametrize("life", [CROWDED])
async def test_what_nothing_touched_for_long_leaves_though_nobody_speaks(api: Api) -> None:
    """By age, unless it was touched between the look and the decision."""
    await say(api, *SOUP)
    (soup,) = await segments(api)
    api.engine.clock.advance(minutes=60 * 24 * 101)
    await api.engine.worker.sweep()
    await api.engine.drain()
    (gone,) = await told(api, "segment.evicted")
    assert (gone.segment, gone.reason) == (soup.id, "age")
