"""What every log tells of tiers as a whole, and of single records: the rest of the contract of `MidTerm`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from hearth.memory.events.kinds import (
    Event,
    MemoryAdded,
    PageSegmented,
    SegmentChanged,
    SegmentEvicted,
    SegmentVisited,
)
from hearth.memory.events.sql_log import SqlLog
from hearth.memory.tiers.heat import Heat, HeatPolicy, touch
from hearth.memory.types import Memory, Scope, Segment
from tests.events import START, erase, event, forget_page, memory, page

ALICE = Scope(tenant="acme", user="alice")
HERMIT = Scope(tenant="acme", user="alice", agent="hermit", isolated=True)
HOUR = timedelta(hours=1)
WARM = touch(Heat(), 1.0, START, HeatPolicy())


@pytest.fixture(name="log", params=["sqlite_log", "postgres_log"])
def _log(request: pytest.FixtureRequest) -> SqlLog:
    return request.getfixturevalue(request.param)


def segment(id: str, *, at: datetime = START, heat: Heat = WARM, scope: Scope = ALICE, **more: Any) -> Event:
    given = {"pages": 1, "size": 7, "centroid": b"\x7f", "keywords": {"soup": 1}} | more
    made = Segment(id=id, owner=scope.owner, opened_at=at, last_at=at, **given)
    return event(SegmentChanged(segment=made, heat=heat), at=at, agent=scope.agent)


def moved(id: str, into: str | None, *, at: datetime = START) -> Event:
    return event(PageSegmented(page=id, segment=into, reason="pages", affinity=0.7), at=at)


async def test_events_are_read_by_what_they_are_about(log: SqlLog) -> None:
    """By one or several subjects of a user, in the order of the log, within the other conditions."""
    await log.append(
        [page("p1"), memory(id="m1"), moved("p1", "s1"), page("p2"), segment("s1"), page("p1", user="bob")]
    )
    about = {"tenant": "acme", "user": "alice"}
    told = await log.read(subjects=["p1"], **about)
    assert [one.kind for one in told] == ["page.closed", "page.segmented"]
    told = await log.read(subjects=["s1", "p1", "m1"], **about)
    assert [one.kind for one in told] == [
        *("page.closed", "memory.added", "page.segmented", "segment.changed"),
    ]
    assert told == sorted(told, key=lambda one: one.seq)
    assert [one.kind for one in await log.read(subjects=["p1"], kinds=["page.segmented"], **about)] == [
        "page.segmented"
    ]
    assert len(await log.read(subjects=["p1"], limit=1, **about)) == 1
    assert len(await log.read(subjects=["p1"], after=told[0].seq, **about)) == 1
    assert await log.read(subjects=["m1"], tenant="acme", user="bob") == []


async def test_segments_are_found_by_name_with_their_owner(log: SqlLog) -> None:
    """The user's own, of any agent, live and evicted ones; no names give none."""
    gone = event(SegmentEvicted(segment="s2", reason="age", warmth=0.1))
    await log.append([segment("s1"), segment("s2"), segment("s3", scope=HERMIT), gone])
    found = {one.id: one for one in await log.segments_named("acme", "alice", ["s1", "s2", "s3", "none"])}
    assert {id: one.state for id, one in found.items()} == {"s1": "live", "s2": "evicted", "s3": "live"}
    assert [found[id].owner for id in ("s1", "s3")] == [ALICE.owner, HERMIT.owner]
    assert found["s1"].heat == WARM
    assert await log.segments_named("acme", "bob", ["s1"]) == []
    assert await log.segments_named("acme", "alice", []) == []


async def test_the_latest_pages_of_segments_are_read_together(log: SqlLog) -> None:
    """So many of each, oldest first, with what each page was visited before it moved."""
    pages = [page(f"p{n}", at=START + n * HOUR, user_text=f"t{n}") for n in range(5)]
    places = [moved(f"p{n}", "s1" if n < 3 else "s2") for n in range(5)]
    await log.append([*pages, *places, segment("s1"), segment("s2")])
    found = await log.latest_in("acme", "alice", ["s1", "s2", "s9"], each=2)
    assert {id: [one.user_text for one in texts] for id, texts in found.items()} == {
        "s1": ["t1", "t2"],
        "s2": ["t3", "t4"],
    }
    assert await log.latest_in("acme", "alice", [], each=2) == {}
    assert [(one.id, one.at) for one in await log.members("acme", "alice", "s1")] == [
        (f"p{n}", START + n * HOUR) for n in range(3)
    ]


async def test_what_stands_where_is_counted(log: SqlLog) -> None:
    """Pages that wait and that moved, segments live and gone, memories that hold and those that do not."""
    pages = [page(f"p{n}", at=START + n * HOUR, session=f"s{n % 2}") for n in range(5)]
    visit = SegmentVisited(segment="s1", exchange="p4", weight=1.0, heat=WARM)
    closed = memory("tea", id="old", successor="new")
    await log.append([*pages, closed, memory("coffee", id="new"), memory("calm", type="persona")])
    await log.append([moved("p0", "s1"), moved("p1", "s2"), segment("s1"), segment("s2"), event(visit)])
    await log.append([event(SegmentEvicted(segment="s2", reason="age", warmth=0.1))])
    found = await log.standing(ALICE, since=START - HOUR)
    assert (found.waiting, found.waiting_bytes, found.sessions, found.oldest) == (
        *(3, 21, 2),
        START + 2 * HOUR,
    )
    assert (found.pages, found.pages_bytes, found.moved, found.evicted) == (1, 7, 2, 1)
    assert found.heats == {"s1": WARM}
    assert found.memories == {"fact": (1, 1), "persona": (1, 0)}
    assert found.lately == {
        "memory.added": 3,
        "page.segmented": 2,
        "segment.visited": 1,
        "segment.evicted": 1,
    }
    assert (await log.standing(ALICE, since=START + HOUR)).lately == {}


async def test_an_isolated_agents_tiers_are_its_own(log: SqlLog) -> None:
    """Neither the shared segments and memories count for it, nor its segments for the others."""
    own = Memory(
        id="m2", scope=HERMIT, generation=1, text="x", occurred_at=START, created_at=START, updated_at=START
    )
    await log.append([segment("s1"), segment("s3", scope=HERMIT), memory(id="m1")])
    await log.append([event(MemoryAdded(memory=own), agent="hermit")])
    found = await log.standing(HERMIT, since=START - HOUR)
    assert list(found.heats) == ["s3"]
    assert (found.memories, found.lately) == ({"fact": (1, 0)}, {"memory.added": 1})
    assert list((await log.standing(ALICE, since=START - HOUR)).heats) == ["s1"]


async def test_nothing_is_counted_of_an_erased_or_unknown_user(log: SqlLog) -> None:
    """Not what had happened before either; a forgotten page counts no more."""
    await log.append([page("p1"), page("p2"), forget_page("p2"), memory(), segment("s1")])
    assert (await log.standing(ALICE, since=START - HOUR)).waiting == 1
    await log.append([erase(2)])
    nobody = await log.standing(Scope(tenant="acme", user="nobody"), since=START - HOUR)
    assert await log.standing(ALICE, since=START - HOUR) == nobody
    assert (nobody.waiting, nobody.oldest, nobody.heats, nobody.memories, nobody.lately) == (
        *(0, None, {}, {}, {}),
    )
