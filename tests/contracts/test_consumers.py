"""What every log does for the worker's parts: the contract of the port `Consumers`."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

import pytest

from hearth.memory.errors import BadInput, LeaseLost
from hearth.memory.events.kinds import Event, PageMoved
from hearth.memory.ports import Consumers, EventLog, Lease
from tests.events import START, ManualClock, erase, event, forget_page, memory, page, step

MEMORIES = ["memory.added"]


class Log(EventLog, Consumers, Protocol):
    """A log is both ports over one set of events."""


@pytest.fixture(name="log", params=["sqlite_log", "postgres_log"])
def _log(request: pytest.FixtureRequest) -> Log:
    return request.getfixturevalue(request.param)


async def leased(log: Log, consumer: str = "index", owner: str = "one", user: str = "alice") -> Lease:
    lease = await log.lease(consumer, log.partition("acme", user), owner=owner, seconds=30)
    assert lease is not None
    return lease


async def captured(log: Log, exchange: str) -> Event:
    return next(e for e in await log.read(kinds=["step.captured"]) if e.payload.step.exchange == exchange)  # type: ignore[union-attr]


async def test_a_lease_has_one_owner_until_it_ends(log: Log, clock: ManualClock) -> None:
    """Its owner renews it, others get it only after its time, and then with a higher epoch."""
    first = await leased(log)
    place = log.partition("acme", "alice")
    assert await log.lease("index", place, owner="two", seconds=30) is None
    clock.advance(seconds=20)
    renewed = await leased(log)
    clock.advance(seconds=20)
    assert await log.lease("index", place, owner="two", seconds=30) is None
    clock.advance(seconds=10)
    taken = await leased(log, owner="two")
    assert (first.epoch, first.epoch, first.epoch + 1) == (first.epoch, renewed.epoch, taken.epoch)
    assert (await leased(log, "pages", "one")).consumer == "pages"


async def test_a_lost_lease_moves_nothing(log: Log, clock: ManualClock) -> None:
    """A worker that was paused while another took over can neither move the cursor nor append decisions."""
    await log.append([memory()])
    old = await leased(log)
    clock.advance(minutes=1)
    new = await leased(log, owner="two")
    with pytest.raises(LeaseLost):
        await log.advance(old, seq=1, decisions=[memory("from a zombie")])
    assert len(await log.read()) == 1
    assert len(await log.pending(new, limit=9, kinds=MEMORIES)) == 1


async def test_a_cursor_walks_the_events_of_its_kinds(log: Log) -> None:
    """Pending events come in log order after the cursor; each consumer moves alone and keeps its place."""
    await log.append([memory(), step(), memory(), memory()])
    lease = await leased(log)
    first, _, third, fourth = [e.seq for e in await log.read()]
    assert [e.seq for e in await log.pending(lease, limit=2, kinds=MEMORIES)] == [first, third]
    lease = await log.advance(lease, seq=third)
    assert lease.seq == third
    assert [e.seq for e in await log.pending(lease, limit=9, kinds=MEMORIES)] == [fourth]
    assert (await leased(log)).seq == third
    assert (await leased(log, "pages")).seq == 0
    assert (await log.advance(lease, seq=first)).seq == third
    assert await log.handled("acme", "alice", ["index", "facts"]) == {"index": third, "facts": 0}


async def test_decisions_and_cursor_are_one_transaction(log: Log) -> None:
    """Decisions are appended with the cursor's move, once each, and those of an erased user are left out."""
    await log.append([memory(user="bob")])
    lease = await leased(log)
    decision = page("p")
    await log.append([erase(2, user="bob")])
    lease = await log.advance(lease, seq=2, decisions=[decision, page("q", user="bob")])
    await log.advance(lease, seq=3, decisions=[decision])
    assert sorted(e.kind for e in await log.read()) == ["page.closed", "user.erased"]


async def test_a_refused_decision_leaves_the_cursor(log: Log) -> None:
    """If a decision can't be appended the cursor stays where it was."""
    await log.append([memory()])
    lease = await leased(log)
    with pytest.raises(BadInput):
        await log.advance(lease, seq=1, decisions=[page("p"), page("q", generation=7)])
    assert ((await leased(log)).seq, len(await log.read())) == (0, 1)


async def test_attempts_are_counted_until_the_cursor_has_passed(log: Log) -> None:
    """Each start of an event counts, for each consumer alone; the count goes when the event is done."""
    await log.append([memory()])
    lease = await leased(log)
    (poison,) = await log.pending(lease, limit=1, kinds=MEMORIES)
    assert [await log.start_attempt(c, poison) for c in ("index", "index", "pages")] == [1, 2, 1]
    await log.advance(lease, seq=poison.seq)
    assert [await log.start_attempt(c, poison) for c in ("index", "pages")] == [1, 2]


async def test_a_parked_event_is_shown_until_it_is_parked_no_more(log: Log) -> None:
    """What is set aside is shown with its error; where that ends its attempts are forgotten."""
    await log.append([memory("poison")])
    (poison,) = await log.read()
    await log.start_attempt("index", poison)
    await log.park("index", poison, "boom")
    assert [("index", poison, "boom")] == await log.parked()
    assert not await log.unpark("pages", poison.id)
    assert await log.unpark("index", poison.id)
    assert (await log.unpark("index", poison.id), await log.parked()) == (False, [])
    assert await log.start_attempt("index", poison) == 1


async def test_a_parked_event_of_an_erased_user_is_gone(log: Log) -> None:
    """Neither the event nor its error outlives an erasure, and it can't be parked after one."""
    await log.append([memory("poison")])
    (poison,) = await log.read()
    await log.park("index", poison, "could not read 'poison'")
    await log.append([erase(2)])
    await log.park("pages", poison, "could not read 'poison'")
    assert await log.parked() == []


async def test_lag_counts_what_a_consumer_has_yet_to_handle(log: Log, clock: ManualClock) -> None:
    """Events of kinds that a consumer does not ask for are no lag, so an idle consumer has none."""
    await log.append([memory(), step(), memory()])
    index, pages = await leased(log), await leased(log, "pages")
    kinds = {"index": MEMORIES, "pages": ["step.captured"], "never seen": MEMORIES}

    async def lag() -> dict[str, int]:
        return {name: one.events for name, one in (await log.lag(kinds)).items()}

    clock.advance(seconds=7)
    assert await lag() == {"index": 2, "pages": 1, "never seen": 2}
    assert {7.0} == {one.seconds for one in (await log.lag(kinds)).values()}
    assert (
        [index.partition] == await log.behind("index", MEMORIES) == await log.behind("never seen", MEMORIES)
    )
    _, second, third = [e.seq for e in await log.read()]
    await log.advance(pages, seq=second, decisions=[page("p")])
    await log.advance(index, seq=third)
    assert await lag() == {"index": 0, "pages": 0, "never seen": 2}
    assert (await log.lag(kinds))["index"].seconds == 0
    assert await log.behind("index", MEMORIES) == await log.behind("pages", ["step.captured"]) == []


async def test_what_was_redacted_is_waited_for_by_nobody(log: Log) -> None:
    """An event whose content is gone is neither pending nor counted, and its partition is not behind."""
    await log.append([memory()])
    await log.append([erase(2)])
    assert await log.behind("index", MEMORIES) == []
    assert (await log.lag({"index": MEMORIES}))["index"].events == 0


async def test_an_exchange_knows_its_place_in_the_tree(log: Log) -> None:
    """An edited turn: the sibling's page, what hangs below that, and the way up, nearest first."""
    tree = [("root", None), ("a", "root"), ("b", "a"), ("c", "b"), ("d", "c"), ("edited", "a")]
    for n, (name, parent) in enumerate(tree):
        await log.append([step(name, parent=parent, at=START - timedelta(minutes=9 - n))])
        if name != "edited":
            await log.append([page(name, previous=parent, at=START - timedelta(minutes=9 - n))])
    state = await log.exchange_state(await captured(log, "edited"))
    assert (
        [p.id for p in state.siblings],
        state.descendants,
        state.ancestors,
    ) == (["b"], ("c", "d"), ("a", "root"))
    assert (state.page, len(state.steps)) == (None, 1)
    below = await log.exchange_state(await captured(log, "d"))
    assert (below.siblings, below.descendants, below.ancestors) == ((), (), ("c", "b", "a", "root"))
    assert (below.page and below.page.id) == "d"


async def test_first_exchanges_of_a_session_are_no_siblings(log: Log) -> None:
    """A client that sends each turn alone under one session name has not edited anything."""
    await log.append([step("x"), page("x"), step("y")])
    assert (await log.exchange_state(await captured(log, "y"))).siblings == ()


async def test_a_forgotten_exchange_keeps_its_place_in_the_tree(log: Log) -> None:
    """What was said after it still descends from what was said before it."""
    for name, parent in (("a", None), ("b", "a"), ("c", "b")):
        await log.append([step(name, parent=parent), page(name)])
    await log.append([forget_page("b")])
    assert (await log.exchange_state(await captured(log, "c"))).ancestors == ("b", "a")


async def test_steps_are_ordered_by_when_they_happened(log: Log) -> None:
    """A step that came late through the spool stands in its place, and the page has its present state."""
    await log.append([step("x", at=START, reply_text="two"), page("x")])
    await log.append([step("x", at=START - timedelta(seconds=5), reply_text="one", closes=False)])
    await log.append([event(PageMoved(page="x", state="inactive", reason="edited"))])
    state = await log.exchange_state(await captured(log, "x"))
    assert [e.payload.step.reply_text for e in state.steps] == ["one", "two"]  # type: ignore[union-attr]
    assert (state.page and state.page.state) == "inactive"


async def test_idle_exchanges_are_open_ones_that_went_quiet(log: Log) -> None:
    """Closed, failed, forgotten and recent exchanges are not idle; a loop that went on after its page is."""
    then = START - timedelta(minutes=20)
    loop = {"closes": False, "at": then}
    await log.append([step("idle", **loop), step("closed", **loop), step("forgotten", **loop)])  # type: ignore[arg-type]
    await log.append([step("failed", at=then, outcome="failed"), step("recent", closes=False)])
    await log.append([step("empty", at=then, outcome="partial", reply_text="")])
    await log.append([page("closed"), forget_page("forgotten", at=then + timedelta(seconds=1))])
    later = step("idle", at=then + timedelta(minutes=1), closes=False)
    await log.append([later])
    before = START - timedelta(minutes=10)
    assert [later.id] == [e.id for e in await log.idle_exchanges(before=before, limit=9)]
    again = step("closed", at=then + timedelta(minutes=2), closes=False)
    await log.append([again])
    assert [later.id, again.id] == [e.id for e in await log.idle_exchanges(before=before, limit=9)]
    assert [later.id] == [e.id for e in await log.idle_exchanges(before=before, limit=1)]
    assert await log.idle_exchanges(before=then, limit=9) == []


async def test_there_is_no_other_partition(log: Log) -> None:
    """A partition that the log does not have is an input error."""
    with pytest.raises(BadInput):
        await log.lease("index", log.partitions, owner="one", seconds=1)
