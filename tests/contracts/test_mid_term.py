"""What every log does for the segment decider: the contract of the port `MidTerm`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeAlias

import pytest

from hearth.memory.events.kinds import (
    DrawnItem,
    Event,
    PageMoved,
    PageSegmented,
    Payload,
    Ranking,
    RecallDrawn,
    SegmentChanged,
    SegmentEvicted,
    SegmentVisited,
)
from hearth.memory.tiers.crowding import Crowd
from hearth.memory.tiers.heat import Heat, HeatPolicy, order
from hearth.memory.types import Evidence, Scope, Segment
from tests.events import START, event, forget_page, memory, page, step

HOUR = timedelta(hours=1)
OWNER = Scope(tenant="acme", user="alice").owner
USER = ("acme", "alice")
WARM = Heat(level=3.5, touched=START, fade_hours=24.0)


Log: TypeAlias = Any
"""A log, which is an `EventLog` too."""


@pytest.fixture(name="log", params=["sqlite_log", "postgres_log", "encrypted_log"])
def _log(request: pytest.FixtureRequest) -> Log:
    return request.getfixturevalue(request.param)


def segment(id: str = "s1", **more: Any) -> Segment:
    fields = {"pages": 1, "size": 7, "centroid": b"\x01\x7f", "keywords": {"soup": 2}, "opened_at": START}
    return Segment(id=id, owner=OWNER, **{**fields, "last_at": START, **more})


def state(id: str = "s1", **more: Any) -> Event:
    return event(SegmentChanged(segment=segment(id, **more), heat=WARM))


def moved(name: str, into: str | None) -> Event:
    return event(PageSegmented(page=name, segment=into, reason="pages"))


def pages(*names: str, **more: Any) -> list[Event]:
    return [page(name, at=START + n * HOUR, **more) for n, name in enumerate(names)]


async def ids(log: Log) -> list[str]:
    return [one.id for one in await log.waiting_pages(*USER, OWNER, limit=10)]


async def test_pages_wait_until_a_segment_has_them(log: Log) -> None:
    """Oldest first; neither those off the branch, nor carry-overs, nor another user's."""
    await log.append([*pages("p2", "p3"), page("p1", at=START - HOUR), page("c", kind="carry-over")])
    await log.append(
        [page("x", user="bob"), page("off"), event(PageMoved(page="off", state="inactive", reason="r"))]
    )
    assert await ids(log) == ["p1", "p2", "p3"]
    await log.append([state(), moved("p1", "s1")])
    assert await ids(log) == ["p2", "p3"]
    assert await log.segments_of(*USER, ["p1", "p2", "x"]) == {"p1": "s1"}
    assert [one.id for one in await log.pages_in(*USER, "s1")] == ["p1"]
    await log.append([moved("p1", None)])
    assert await ids(log) == ["p1", "p2", "p3"]
    assert [one.id for one in await log.waiting_pages(*USER, OWNER, limit=1)] == ["p1"]


async def test_a_waiting_page_tells_what_its_leaving_depends_on(log: Log) -> None:
    """Its session, size and visits, and whether memories rest on it."""
    await log.append([*pages("p1", session="s7", user_text="Hi", reply_text="Hello")])
    fact = memory("I ski.", evidence=(Evidence(id="p1", role="user", quote="I ski", at=START),))
    items = (DrawnItem(id="p1", share=0.9, used=True), DrawnItem(id="m1", share=0.0, used=False))
    payload: Payload = RecallDrawn(
        trace="t", exchange="p9", items=items, ranking=Ranking(signals=(), items=())
    )
    await log.append([fact, event(payload, at=START - 2 * HOUR), event(payload, at=START - HOUR)])
    (found,) = await log.waiting_pages(*USER, OWNER, limit=10)
    assert (found.session, found.size, found.facts) == ("s7", 7, 1)
    assert (found.drawn, found.seen, found.visited) == (2, 0, START - HOUR)


async def test_segments_are_read_as_they_changed(log: Log) -> None:
    """Whole, with their heat; after a position only what changed since, another owner's never."""
    await log.append([state("s1"), state("s2", pages=3)])
    first, second = await log.segments(*USER, OWNER)
    assert (first.segment, first.heat, first.state) == (segment("s1"), WARM, "live")
    assert await log.segments(*USER, OWNER, after=second.changed) == []
    hot = Heat(level=9.25, touched=START + HOUR, fade_hours=24.0)
    await log.append([event(SegmentVisited(segment="s1", exchange="x", weight=1.0, heat=hot))])
    (visited,) = await log.segments(*USER, OWNER, after=second.changed)
    assert (visited.id, visited.heat, visited.segment) == ("s1", hot, segment("s1"))
    assert await log.segments(*USER, f"{OWNER}/agent") == []


async def test_only_the_newest_state_of_a_segment_is_kept(log: Log) -> None:
    """An older one may tell of a page that was forgotten since."""
    await log.append([state(keywords={"secret": 1}), state(keywords={"soup": 1})])
    told = [one.payload for one in await log.read(kinds=["segment.changed"])]
    assert [one.segment.keywords for one in told] == [{"soup": 1}]


async def test_a_forgotten_page_spoils_what_summed_it_up(log: Log) -> None:
    """A live segment's state goes at once, and an evicted one's; both say that they have to be made anew."""
    await log.append([step("p1"), step("p2"), *pages("p1", "p2"), state("s1"), state("s2", episode="e2")])
    await log.append([moved("p1", "s1"), moved("p2", "s2")])
    await log.append([event(SegmentEvicted(segment="s2", reason="age", warmth=0.1))])
    await log.append([forget_page("p1"), forget_page("p2")])
    found = {one.id: one for one in await log.segments(*USER, OWNER)}
    assert {id: one.state for id, one in found.items()} == {"s1": "spoiled", "s2": "lost"}
    assert all(one.segment is None for one in found.values())
    assert found["s2"].episode == "e2"
    assert await log.read(kinds=["segment.changed"]) == []
    await log.append([state("s1", pages=0)])
    assert {one.id: one.state for one in await log.segments(*USER, OWNER)}["s1"] == "live"


async def test_an_evicted_segment_takes_its_pages_along(log: Log) -> None:
    """They are evicted, and still its own."""
    await log.append([*pages("p1", "p2"), state(), moved("p1", "s1")])
    await log.append([event(SegmentEvicted(segment="s1", reason="segments", warmth=0.0))])
    (gone,) = await log.segments(*USER, OWNER)
    assert (gone.state, gone.segment) == ("evicted", None)
    assert [(one.id, one.state) for one in await log.pages_in(*USER, "s1")] == [("p1", "evicted")]
    assert [one.id for one in await log.pages(*USER, limit=10)] == ["p2"]


HEATS = [
    Heat(level=level, touched=START + hours * HOUR, fade_hours=fade)
    for level, hours, fade in (
        *((492_000.0 / 24, 0, 24.0), (492_003.0 / 24, 2, 24.0), (492_500.0 / 48, 30, 48.0)),
        *((492_001.0 / 24, 90, 24.0), (-5.0, 400, 24.0), (492_100.0 / 24, 1, 24.0)),
    )
]
"""Of levels near their touches', so that both parts count; one was counted by another fading."""


@pytest.mark.parametrize("policy", [HeatPolicy(), HeatPolicy(recency=0.0), HeatPolicy(recency=20.0)])
async def test_the_coldest_of_a_tenant_come_in_the_order_of_heat(log: Log, policy: HeatPolicy) -> None:
    """Over all users, however many are asked for; no other tenant's, and none that has left."""
    for n, heat in enumerate(HEATS):
        user = ("alice", "bob")[n % 2]
        await log.append([event(SegmentChanged(segment=segment(f"s{n}"), heat=heat), user=user)])
    await log.append(
        [event(SegmentChanged(segment=segment("x"), heat=Heat()), tenant="other"), state("gone")]
    )
    await log.append([event(SegmentEvicted(segment="gone", reason="age", warmth=0.0))])
    right = sorted(range(len(HEATS)), key=lambda n: order(HEATS[n], policy))
    for limit in (1, 3, len(HEATS), 50):
        found = await log.coldest("acme", policy, limit=limit)
        assert [one.segment.id for one in found] == [f"s{n}" for n in right[:limit]]
        assert [one.user for one in found] == [("alice", "bob")[n % 2] for n in right[:limit]]
    assert [one.heat for one in found] == [HEATS[n] for n in right]
    rested = await log.untouched("acme", START + 2 * HOUR, limit=10)
    assert [one.segment.id for one in rested] == ["s0", "s5"]


async def test_a_tenant_s_mid_term_memory_is_counted_over_its_users(log: Log) -> None:
    """Live segments and what active pages in them take; not what waits, has left, or is another tenant's."""
    for user in ("alice", "bob"):
        more = {"user": user, "user_text": "Hi", "reply_text": "Hello"}
        await log.append([*pages("p1", "p2", "p3", **more)])
        for name in ("s1", "s2"):
            await log.append([event(SegmentChanged(segment=segment(name), heat=WARM), user=user)])
        for name, into in (("p1", "s1"), ("p2", "s2")):
            await log.append([event(PageSegmented(page=name, segment=into, reason="pages"), user=user)])
    assert await log.crowd("acme") == Crowd(segments=4, pages=4, bytes=28)
    await log.append([event(SegmentEvicted(segment="s2", reason="age", warmth=0.0), user="bob")])
    assert await log.crowd("acme") == Crowd(segments=3, pages=3, bytes=21)
    assert await log.crowd("other") == Crowd()
