"""What every form of short-term memory must do."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from redis.asyncio import Redis

from hearth.memory.encryption.stores import EncryptedShortTerm
from hearth.memory.errors import StoreUnavailable
from hearth.memory.ports import ShortTerm
from hearth.memory.stores.memory_short_term import InMemoryShortTerm
from hearth.memory.stores.redis_short_term import RedisShortTerm
from hearth.memory.stores.sqlite_short_term import SqliteShortTerm
from hearth.memory.types import Embedding, Page, Scope, ShortTermView
from tests.encrypted import keys_of_everybody
from tests.short_term import ALICE, NOON, block, page

EAST = Embedding("e", [1.0, 0.0])


@pytest.fixture(params=["sqlite", "memory", "redis", "encrypted"], name="store")
async def _store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ShortTerm]:
    if request.param == "redis":
        url = request.getfixturevalue("redis_url")
        async with Redis.from_url(url) as client:
            yield RedisShortTerm(client, prefix=uuid4().hex, capacity=3, hard_cap=6)
        return
    made: SqliteShortTerm | InMemoryShortTerm
    if request.param in ("sqlite", "encrypted"):
        made = SqliteShortTerm(tmp_path / "short.db", capacity=3, hard_cap=6)
    else:
        made = InMemoryShortTerm(capacity=3, hard_cap=6)
    await made.start()
    if request.param == "encrypted":
        async with keys_of_everybody(tmp_path) as keys:
            yield EncryptedShortTerm(made, keys)
    else:
        yield made
    await made.close()


def bare(number: int, *, scope: Scope = ALICE) -> Page:
    return msgspec.structs.replace(page(number, scope=scope), user_text="", reply_text="")


async def push(store: ShortTerm, *numbers: int, scope: Scope = ALICE) -> None:
    for number in numbers:
        await store.push(page(number, scope=scope), vector=None, block=None)


async def texts(store: ShortTerm, scope: Scope = ALICE, limit: int = 20) -> list[str]:
    return [held.user_text for held in (await store.latest(scope, limit=limit)).pages]


async def test_latest_gives_the_newest_pages_oldest_first(store: ShortTerm) -> None:
    """The newest pages come back in the order they happened, whatever order they arrived in."""
    await push(store, 3, 1, 2)
    assert await texts(store) == ["t1", "t2", "t3"]
    assert await texts(store, limit=2) == ["t2", "t3"]


async def test_a_user_is_unknown_until_the_logs_pages_are_back(store: ShortTerm) -> None:
    """What is said and indexed meanwhile does not make the user known, or the rest would never come back."""
    assert await store.latest(ALICE, limit=1) == ShortTermView(known=False)
    await push(store, 1)
    await store.settle(ALICE, [page(1)])
    assert (await texts(store), (await store.latest(ALICE, limit=1)).known) == (["t1"], False)
    await store.settle(ALICE, [])
    assert (await store.latest(ALICE, limit=1)).known
    await store.clear("acme", "alice")
    await push(store, 1)
    assert (await store.latest(ALICE, limit=1)).known


async def test_who_has_said_nothing_is_known_all_the_same(store: ShortTerm) -> None:
    """A new user's log is read once, not at each call."""
    await store.settle(ALICE, [])
    assert await store.latest(ALICE, limit=1) == ShortTermView()


async def test_latest_spans_sessions(store: ShortTerm) -> None:
    """A page of one session is seen from the user's next session."""
    await push(store, 1)
    assert await texts(store, msgspec.structs.replace(ALICE, session="s2")) == ["t1"]


async def test_pages_of_one_moment_keep_their_order_of_arrival(store: ShortTerm) -> None:
    """Two pages with equal times come back in the order they were pushed."""
    for number, text in ((7, "first"), (3, "second")):
        one = page(number, text=text)
        await store.push(msgspec.structs.replace(one, occurred_at=NOON), vector=None, block=None)
    assert await texts(store) == ["first", "second"]


async def test_a_page_comes_back_equal_with_its_vector(store: ShortTerm) -> None:
    """The whole page survives, and its vector to the precision of 32-bit floats."""
    full = msgspec.structs.replace(
        page(1, text="smile 🙂 用户"),
        previous="0" * 32,
        injected=("a", "b"),
        timezone="Europe/Bern",
        kind="carry-over",
    )
    await store.push(full, vector=Embedding("e", [0.6, -0.8, 0.0]), block=None)
    view = await store.latest(ALICE, limit=5)
    assert view.pages == (full,)
    held = view.vectors[full.id]
    assert (held.by, held.numbers) == ("e", pytest.approx([0.6, -0.8, 0.0]))


async def test_a_second_push_replaces_the_page_and_keeps_its_vector(store: ShortTerm) -> None:
    """A regenerated reply replaces the page's text; the user's text is the same, and so is its vector."""
    await store.push(page(1), vector=EAST, block=None)
    await store.push(msgspec.structs.replace(page(1), reply_text="better"), vector=None, block=None)
    view = await store.latest(ALICE, limit=5)
    assert [held.reply_text for held in view.pages] == ["better"]
    assert view.vectors == {page(1).id: EAST}


async def test_an_unsettled_page_stays_beyond_capacity(store: ShortTerm) -> None:
    """While long-term memory does not have a page, capacity does not push it out."""
    await push(store, 1, 2, 3, 4, 5)
    assert await texts(store) == ["t1", "t2", "t3", "t4", "t5"]
    assert not (await store.latest(ALICE, limit=5)).lagging


async def test_case_46_a_settled_page_leaves_beyond_capacity(store: ShortTerm) -> None:
    """With a capacity of three and ten settled turns the last three stay, in order."""
    for number in range(1, 11):
        await push(store, number)
        await store.settle(ALICE, [page(number)])
    assert await texts(store) == ["t8", "t9", "t10"]


async def test_a_settled_page_stays_within_capacity(store: ShortTerm) -> None:
    """Being settled alone removes nothing."""
    await push(store, 1, 2)
    await store.settle(ALICE, [page(1), page(2)])
    assert await texts(store) == ["t1", "t2"]


async def test_settling_counts_even_before_the_push(store: ShortTerm) -> None:
    """A worker quicker than the push does not leave the page unsettled for ever."""
    await store.settle(ALICE, [page(1)])
    await push(store, 1, 2, 3, 4)
    assert await texts(store) == ["t2", "t3", "t4"]


async def test_a_replaced_page_waits_for_its_new_text_to_settle(store: ShortTerm) -> None:
    """A page that was settled and then replaced is unsettled again."""
    await push(store, 1)
    await store.settle(ALICE, [page(1)])
    await store.push(page(1, text="other"), vector=None, block=None)
    await push(store, 2, 3, 4)
    assert await texts(store) == ["other", "t2", "t3", "t4"]


async def test_a_push_that_comes_after_its_settling_stays_settled(store: ShortTerm) -> None:
    """A repeated push of what long-term memory has already does not keep the page for ever."""
    await push(store, 1)
    await store.settle(ALICE, [page(1)])
    await push(store, 1, 2, 3, 4)
    assert await texts(store) == ["t2", "t3", "t4"]


async def test_settling_brings_what_is_held_to_the_text_that_was_indexed(store: ShortTerm) -> None:
    """A cut reply that was pushed over a complete one gives way to the page as the log has it."""
    await store.push(msgspec.structs.replace(page(1), reply_text="ha"), vector=EAST, block=None)
    await store.settle(ALICE, [page(1)])
    view = await store.latest(ALICE, limit=5)
    assert ([held.reply_text for held in view.pages], view.vectors) == (
        ["r1"],
        {page(1).id: EAST},
    )


async def test_the_hard_cap_drops_the_oldest_and_says_so(store: ShortTerm) -> None:
    """Past the hard cap the oldest unsettled pages leave, and the view says that the index lags."""
    await push(store, *range(1, 9))
    view = await store.latest(ALICE, limit=20)
    assert [held.user_text for held in view.pages] == ["t3", "t4", "t5", "t6", "t7", "t8"]
    assert view.lagging


async def test_lagging_ends_when_the_dropped_pages_are_settled(store: ShortTerm) -> None:
    """Once long-term memory has what was dropped, the view no longer says that it lags."""
    await push(store, *range(1, 9))
    await store.settle(ALICE, [page(1)])
    assert (await store.latest(ALICE, limit=1)).lagging
    await store.settle(ALICE, [page(2)])
    assert not (await store.latest(ALICE, limit=1)).lagging


async def test_a_page_too_big_for_the_hard_bound_still_is_recallable(store: ShortTerm) -> None:
    """The newest page stays even if it alone exceeds the bytes allowed."""
    await push(store, 1)
    await store.push(page(2, text="x" * 9_000_000), vector=None, block=None)
    assert [len(text) for text in await texts(store)] == [9_000_000]


async def test_drop_removes_a_page_and_its_block(store: ShortTerm) -> None:
    """A forgotten exchange leaves neither its texts nor its block."""
    await store.push(page(1), vector=None, block=block(1))
    await push(store, 2)
    await store.drop(ALICE, [page(1).id, "f" * 32])
    view = await store.latest(ALICE, limit=5)
    assert ([held.user_text for held in view.pages], view.blocks) == (["t2"], ())


async def test_drop_removes_the_blocks_that_show_a_record(store: ShortTerm) -> None:
    """A memory that was forgotten or changed does not go back into a prompt with an earlier block."""
    shown, other = "a" * 32, "b" * 32
    await store.push(page(1), vector=None, block=msgspec.structs.replace(block(1), items=(other, shown)))
    await store.push(page(2), vector=None, block=msgspec.structs.replace(block(2), items=(other,)))
    await store.drop(ALICE, [shown])
    view = await store.latest(ALICE, limit=5)
    assert [held.exchange for held in view.blocks] == [block(2).exchange]
    assert len(view.pages) == 2


async def test_drop_reaches_an_isolated_agents_page_from_any_scope_of_the_user(store: ShortTerm) -> None:
    """Dropping goes by user and page id, because a tombstone does not say whether an agent was isolated."""
    isolated = Scope(tenant="acme", user="alice", agent="nurse", isolated=True)
    await push(store, 1, scope=isolated)
    await store.drop(ALICE, [page(1).id])
    assert await texts(store, isolated) == []


async def test_isolated_agents_see_their_own_pages_only(store: ShortTerm) -> None:
    """An isolated agent and the shared ones never see one another's pages."""
    nurse = Scope(tenant="acme", user="alice", agent="nurse", isolated=True)
    clerk = Scope(tenant="acme", user="alice", agent="clerk", isolated=True)
    await push(store, 1)
    await push(store, 2, scope=nurse)
    assert await texts(store, Scope(tenant="acme", user="alice", agent="coder")) == ["t1"]
    assert await texts(store, nurse) == ["t2"]
    assert await texts(store, clerk) == []


async def test_isolated_agents_have_blocks_of_their_own(store: ShortTerm) -> None:
    """Two agents that happen to use one session name do not share blocks."""
    nurse = msgspec.structs.replace(ALICE, agent="nurse", isolated=True)
    await store.push(bare(1, scope=nurse), vector=None, block=block(1))
    assert (await store.latest(ALICE, limit=5)).blocks == ()
    assert [one.text for one in (await store.latest(nurse, limit=5)).blocks] == ["block 1"]


USERS = [
    "a",
    "a-b",
    "x@y.example",
    "team/a:b",
    "a:b",
    "a_b",
    "a b",
    "*",
    "a*",
    "a%",
    "a{b}",
    "a|b",
    "用户1",
    "a\nb",
    "A",
]


async def test_case_06_user_ids_never_collide(store: ShortTerm) -> None:
    """Ids with separators and wildcards each see their own page, and clearing one leaves the others."""
    scopes = [Scope(tenant="t", user=user, session="s") for user in USERS]
    for number, scope in enumerate(scopes):
        await push(store, number, scope=scope)
    await store.clear("t", "a")
    assert [await texts(store, scope) for scope in scopes] == [[]] + [[f"t{n}"] for n in range(1, len(USERS))]


async def test_case_06_tenant_user_and_session_boundaries_hold(store: ShortTerm) -> None:
    """Moving a separator from one id to its neighbour gives another address."""
    left = Scope(tenant="a/b", user="c", session="b:c")
    right = Scope(tenant="a", user="b/c", session="c")
    await store.push(page(1, scope=left), vector=None, block=block(1))
    assert await texts(store, right) == []
    assert (await store.latest(right, limit=5)).blocks == ()


async def test_blocks_come_back_for_their_session_oldest_first(store: ShortTerm) -> None:
    """A view holds the blocks of the session asked for, in the order they were placed."""
    for number in (2, 1, 3):
        await store.push(page(number), vector=None, block=block(number, at=NOON + timedelta(minutes=number)))
    other = msgspec.structs.replace(ALICE, session="s2")
    await store.push(page(9, scope=other), vector=None, block=block(9))
    assert [one.text for one in (await store.latest(ALICE, limit=1)).blocks] == [
        "block 1",
        "block 2",
        "block 3",
    ]
    assert [one.text for one in (await store.latest(other, limit=1)).blocks] == ["block 9"]


async def test_a_page_without_texts_brings_its_block_alone(store: ShortTerm) -> None:
    """An open exchange's block can be read back, and its page is no page yet."""
    await store.push(bare(1), vector=Embedding("e", [1.0]), block=block(1))
    view = await store.latest(ALICE, limit=5)
    assert (view.pages, view.vectors, [one.text for one in view.blocks]) == ((), {}, ["block 1"])


async def test_blocks_are_bounded_by_count(store: ShortTerm) -> None:
    """Of one session's blocks the newest fifty stay."""
    for number in range(55):
        await store.push(bare(number), vector=None, block=block(number, at=NOON + timedelta(seconds=number)))
    blocks = (await store.latest(ALICE, limit=1)).blocks
    assert [one.text for one in blocks] == [f"block {number}" for number in range(5, 55)]


async def test_blocks_of_yesterday_leave_with_a_new_one(store: ShortTerm) -> None:
    """A block older than a day behind the user's newest is gone, whatever its session."""
    await store.push(bare(1), vector=None, block=block(1, at=NOON))
    other = msgspec.structs.replace(ALICE, session="s2")
    await store.push(bare(2, scope=other), vector=None, block=block(2, at=NOON + timedelta(hours=25)))
    assert (await store.latest(ALICE, limit=1)).blocks == ()


async def test_clear_removes_all_agents_of_the_user_alone(store: ShortTerm) -> None:
    """Clearing a user reaches isolated agents and sessions, and nobody else."""
    nurse = Scope(tenant="acme", user="alice", agent="nurse", isolated=True)
    bob = Scope(tenant="acme", user="bob")
    for number, scope in enumerate((ALICE, nurse, bob)):
        await store.push(page(number, scope=scope), vector=None, block=block(number))
    await store.clear("acme", "alice")
    assert [await texts(store, scope) for scope in (ALICE, nurse, bob)] == [[], [], ["t2"]]
    assert (await store.latest(ALICE, limit=1)).blocks == ()


async def test_case_21_a_push_in_flight_does_not_survive_an_erasure(store: ShortTerm) -> None:
    """A page of an erased generation that arrives late is refused, a new one is taken."""
    await push(store, 1)
    await store.clear("acme", "alice", before=2)
    await store.push(page(2), vector=None, block=block(2))
    assert await texts(store) == []
    await store.push(page(3, generation=2), vector=None, block=None)
    assert await texts(store) == ["t3"]
    assert (await store.latest(ALICE, limit=1)).blocks == ()


async def test_a_late_clear_spares_the_new_generation(store: ShortTerm) -> None:
    """An erasure applied a second time leaves what the user has said since."""
    await push(store, 1)
    await store.clear("acme", "alice", before=2)
    await store.push(page(2, generation=2), vector=None, block=None)
    await store.clear("acme", "alice", before=2)
    assert await texts(store) == ["t2"]


async def test_what_was_dropped_leaves_the_files(tmp_path: Path) -> None:
    """A dropped page and a block with a dropped record stand in no file while the store is still open."""
    made = SqliteShortTerm(tmp_path / "short.db")
    await made.start()
    await made.push(page(1, text="the zebra"), vector=None, block=None)
    shown = msgspec.structs.replace(block(2), text="the quagga", items=("a" * 32,))
    await made.push(page(2), vector=None, block=shown)
    await made.drop(ALICE, [page(1).id, "a" * 32])
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir())  # noqa: ASYNC240 (a test waits anyway)
    await made.close()
    assert b"zebra" not in left
    assert b"quagga" not in left
    assert b"t2" in left


async def test_restored_pages_stand_in_place_of_the_settled_ones(store: ShortTerm) -> None:
    """Replay's are held instead of what was settled; what waits for the index stays, and so do blocks."""
    await push(store, 1, 2, 9)
    await store.push(bare(9), vector=None, block=block(9))
    await store.settle(ALICE, [page(1), page(2)])
    await store.restore(ALICE, 1, [page(n) for n in (2, 3, 4, 5, 9)], waiting={page(9).id})
    assert await texts(store) == ["t4", "t5", "t9"]
    view = await store.latest(ALICE, limit=5)
    assert (view.known, [one.text for one in view.blocks]) == (True, ["block 9"])
    await push(store, 10, 11, 12)
    assert await texts(store) == ["t9", "t10", "t11", "t12"]


async def test_whoever_reads_amid_a_restoring_finds_those_from_before_or_after(store: ShortTerm) -> None:
    """Never some of each, and never none: so nothing has to stand beside what is in use."""
    before, after = [page(n) for n in (1, 2)], [page(n) for n in (3, 4)]
    await store.restore(ALICE, 1, before, waiting=set())
    seen: set[tuple[str, ...]] = set()
    ended = asyncio.Event()

    async def read() -> None:
        while not ended.is_set():
            seen.add(tuple(await texts(store)))
            await asyncio.sleep(0)

    reading = asyncio.create_task(read())
    for _ in range(20):
        await store.restore(ALICE, 1, after, waiting=set())
        await store.restore(ALICE, 1, before, waiting=set())
        await asyncio.sleep(0)
    ended.set()
    await reading
    assert {("t1", "t2")} <= seen <= {("t1", "t2"), ("t3", "t4")}


async def test_everybody_of_whom_something_is_known_is_named(store: ShortTerm) -> None:
    """Whatever signs are in their names."""
    odd = [Scope(tenant="acme/x", user=user) for user in ("a:b", "a{b}*", "用户 1")]
    for scope in odd:
        await push(store, 1, scope=scope)
    await store.settle(ALICE, [])
    assert {(one.tenant, one.user) async for one in store.people()} == {
        ("acme", "alice"),
        *((one.tenant, one.user) for one in odd),
    }


async def test_pages_of_an_erased_generation_are_not_restored(store: ShortTerm) -> None:
    """A replay that read before an erasure brings nothing back."""
    await store.clear("acme", "alice", before=2)
    await store.restore(ALICE, 1, [page(1)], waiting=set())
    assert not await texts(store)


async def test_a_newer_programs_file_is_refused(tmp_path: Path) -> None:
    """It stays as it is, and the message says what to do."""
    path = tmp_path / "short.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    made = SqliteShortTerm(path)
    with pytest.raises(StoreUnavailable, match=r"newer Hearth \(version 99, .*: upgrade Hearth, or move"):
        await made.start()
    await made.close()
    assert path.read_bytes() == before


async def test_a_file_of_an_older_version_is_not_kept(tmp_path: Path) -> None:
    """The store starts empty and says so; the log has all of it, and an erasure would not reach the file."""
    path = tmp_path / "short.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 1")
    made = SqliteShortTerm(path)
    await made.start()
    assert await made.latest(ALICE, limit=1) == ShortTermView(known=False)
    await made.close()
    assert not (tmp_path / "short.db.broken").exists()


async def test_a_file_that_is_no_database_is_set_aside(tmp_path: Path) -> None:
    """A broken file does not keep the gateway from starting: short-term memory comes back from the log."""
    path = tmp_path / "short.db"
    path.write_bytes(b"not a database" * 1000)
    made = SqliteShortTerm(path)
    await made.start()
    await push(made, 1)
    assert await texts(made) == ["t1"]
    await made.close()
    again = SqliteShortTerm(path)
    await again.start()
    assert await texts(again) == ["t1"]
    await again.close()


async def test_a_closed_store_is_unavailable(tmp_path: Path) -> None:
    """Calls before the start and after the end say which part is missing."""
    made = SqliteShortTerm(tmp_path / "short.db")
    with pytest.raises(StoreUnavailable, match="short-term memory"):
        await made.latest(ALICE, limit=1)
    await made.start()
    await made.close()
    with pytest.raises(StoreUnavailable, match="short-term memory"):
        await push(made, 1)
