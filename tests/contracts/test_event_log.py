"""What every event log does: the contract of the port `EventLog`."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from hearth.memory.acts import write_down
from hearth.memory.errors import BadInput, StaleGeneration, UnderHold
from hearth.memory.events import finding
from hearth.memory.events.kinds import (
    ActDone,
    Event,
    ExchangeEnriched,
    HoldLifted,
    HoldPlaced,
    MemoryAdded,
    MemoryChanged,
    MemoryWithdrawn,
    PageMoved,
    PageOutdated,
    RecallJudged,
    SessionForgotten,
    StepCaptured,
    TenantErased,
)
from hearth.memory.events.sql_log import SqlLog
from hearth.memory.ports import EventFilter, EventLog, MemoryFilter
from hearth.memory.types import (
    INSTALLATION,
    OFFICE,
    Evidence,
    Memory,
    Outdated,
    Page,
    PlacedBlock,
    Scope,
    Tails,
    ToolUse,
    Usage,
)
from tests.events import START, ManualClock, erase, event, forget_memory, forget_page, memory, page, step

ALICE = Scope(tenant="acme", user="alice")
EVERYTHING = MemoryFilter()
MINUTE = timedelta(minutes=1)


@pytest.fixture(name="log", params=["sqlite_log", "postgres_log", "encrypted_log"])
def _log(request: pytest.FixtureRequest) -> EventLog:
    return request.getfixturevalue(request.param)


async def texts(log: EventLog, user: str = "alice", **where: Any) -> set[str]:
    found = await log.memories("acme", user, where=MemoryFilter(**where), after=None, limit=1000)
    return {item.text for item in found}


async def hit(
    log: EventLog, tails: Tails, scope: Scope = ALICE, after: timedelta = timedelta(minutes=1)
) -> Any:
    state = await log.open_call(scope, tails=tails, retry_key="", response_id="", now=START + after)
    return state.hit and (state.hit.session, state.hit.exchange)


async def test_an_act_of_the_installation_is_of_no_tenant(log: SqlLog, clock: ManualClock) -> None:
    """No tenant's list, search, count or erasure has it; it is verified like any event, and stays when the
    views are folded again.
    """
    await write_down(log, clock, "replay", by="root@gateway-1", about="views")
    await log.append([memory("Tea."), event(TenantErased(generation=2), user=OFFICE), erase(2)])
    await log.rebuild_views()
    (told,) = (await log.find(EventFilter(tenant=INSTALLATION))).events
    assert told.payload == ActDone(act="replay", by="root@gateway-1", about="views")
    assert "act.done" not in {one.kind for one in (await log.find(EventFilter(tenant="acme"))).events}
    assert "act.done" not in {one.kind for one in await log.count_events("acme")}
    assert await log.users(INSTALLATION, after="", limit=9) == []
    checked = await log.check(INSTALLATION, OFFICE)
    assert (checked.events, checked.damaged) == (1, ())


async def test_a_walk_lists_those_users_whom_the_tenants_list(log: SqlLog, clock: ManualClock) -> None:
    """Not one who was erased, nor who is no person."""
    await write_down(log, clock, "retry", by="root@gateway-1")
    for tenant, user in (("acme", "alice"), ("acme", "bob"), ("rivals", "alice")):
        await log.append([msgspec.structs.replace(memory("Tea.", user=user), tenant=tenant)])
    await log.append([erase(2, user="bob"), event(TenantErased(generation=2), tenant="rivals", user=OFFICE)])
    walked = [
        (user.scope.tenant, user.scope.user)
        for user in await log.walk_users(after=0, limit=99)
        if user.listed
    ]
    users = [
        (tenant, user)
        for tenant in await log.tenants()
        for user in await log.users(tenant, after="", limit=9)
    ]
    assert walked == users == [("acme", "alice")]


# -- appending and reading ----------------------------------------------------------------------------------


async def test_a_hold_and_an_erasure_at_once_come_one_after_the_other(log: EventLog) -> None:
    """Whatever was known before: once a hold is in the log nothing of its user goes, until it is lifted.

    Begun at the same moment, either the erasure is refused, or it was there first.
    """
    lost: list[str] = []
    for number in range(8):
        user = f"user {number}"
        await log.append([step(user=user)])
        erasing = log.append([erase(2, user=user)], unless_held=True)
        placing = log.append([event(HoldPlaced(user=user, reason="case 7", by="admin"), user=OFFICE)])
        both = (erasing, placing) if number % 2 else (placing, erasing)
        errors = [one for one in await asyncio.gather(*both, return_exceptions=True) if one]
        assert all(isinstance(one, UnderHold) and one.users == (user,) for one in errors)
        lost += [user] if errors else []
        assert await log.generation("acme", user) == (1 if errors else 2)
    assert lost, "of none was the hold first"
    held = lost[0]
    for gone in (erase(2, user=held), event(TenantErased(generation=3), user=OFFICE)):
        with pytest.raises(UnderHold):
            await log.append([gone], unless_held=True)
    await log.append([event(HoldLifted(user=held, reason="", by="admin"), user=OFFICE)])
    await log.append([erase(2, user=held)], unless_held=True)
    assert await log.generation("acme", held) == 2


async def test_events_come_back_whole_and_in_order(log: EventLog) -> None:
    """What was appended is read back equal, with its place and the log's own time added."""
    sent = [step(at=START + timedelta(seconds=n)) for n in range(3)]
    await log.append(sent)
    got = await log.read()
    assert [(e.id, e.payload, e.session, e.occurred_at) for e in sent] == [
        (e.id, e.payload, e.session, e.occurred_at) for e in got
    ]
    assert 0 < got[0].seq < got[1].seq < got[2].seq
    assert {START} == {e.recorded_at for e in got}


async def test_an_event_is_appended_once(log: EventLog) -> None:
    """An id that the log has is skipped, alone, within a batch and beside new events."""
    first, second = memory("one"), memory("two")
    await log.append([first, first])
    await log.append([first, second])
    assert [first.id, second.id] == [e.id for e in await log.read()]


async def test_the_log_tells_which_events_it_has_and_whose(log: EventLog) -> None:
    """Of ids the known ones are named with their user and generation, redacted ones too."""
    first, other = memory("one"), memory("two", user="bob")
    await log.append([first, other])
    await log.append([erase(2)])
    assert await log.present([first.id, other.id, "f" * 32]) == {
        first.id: ("acme", "alice", 1),
        other.id: ("acme", "bob", 1),
    }
    assert await log.present([]) == {}


async def test_a_batch_is_appended_whole_or_not_at_all(log: EventLog) -> None:
    """An outdated event refuses its whole batch, and nothing of it is left in any view."""
    await log.append([memory("old"), erase(2)])
    with pytest.raises(StaleGeneration):
        await log.append([memory("new", generation=2), memory("late", generation=1)])
    assert set() == await texts(log)
    assert [e.kind for e in await log.read()] == ["user.erased"]


async def test_a_refused_batch_leaves_its_neighbours_alone(log: EventLog) -> None:
    """Of batches appended at the same moment only the outdated one fails."""
    await log.append([erase(2)])
    batches = [memory("a", generation=2), memory("b", generation=1), memory("c", generation=2)]
    outcome = await asyncio.gather(*(log.append([e]) for e in batches), return_exceptions=True)
    assert [type(None), StaleGeneration, type(None)] == [type(o) for o in outcome]
    assert {"a", "c"} == await texts(log)


async def test_a_stamp_from_the_future_is_clamped(log: EventLog, clock: ManualClock) -> None:
    """A gateway's clock may be two seconds ahead of the log's and no more; the past is taken as it is."""
    await log.append([memory(at=START + timedelta(days=1)), memory(at=START - timedelta(days=900))])
    assert [START + timedelta(seconds=2), START - timedelta(days=900)] == [
        e.occurred_at for e in await log.read()
    ]


async def test_reading_goes_on_after_a_position(log: EventLog) -> None:
    """`after` and `limit` walk the log without gaps or repeats; kinds, user and session narrow it."""
    await log.append([step(session="s1"), step(session="s2"), memory(), memory(user="bob")])
    places = [e.seq for e in await log.read()]
    assert places == sorted(set(places))
    assert [e.seq for e in await log.read(limit=2)] == places[:2]
    assert [e.seq for e in await log.read(after=places[1])] == places[2:]
    assert sorted(e.user for e in await log.read(kinds=["memory.added"])) == ["alice", "bob"]
    assert [e.user for e in await log.read(tenant="acme", user="bob")] == ["bob"]
    assert [e.session for e in await log.read(tenant="acme", user="alice", session="s2")] == ["s2"]
    assert await log.read(tenant="other") == []


async def test_case_23_a_lone_surrogate_becomes_the_replacement_character(log: EventLog) -> None:
    """Half an emoji is stored as U+FFFD, a pair of halves as one character, in events and views alike."""
    await log.append([memory("half \ud83d end, pair \ud83d\ude80")])
    assert {"half \ufffd end, pair \U0001f680"} == await texts(log)
    with pytest.raises(BadInput):
        await log.append([memory(user="a\ud83d")])


async def test_an_exchange_gives_its_steps_and_the_trace_of_its_recall(log: EventLog) -> None:
    """Steps come in the order of their time; the one of a tool loop that recalled names the trace."""
    later = step("e1", at=START + timedelta(seconds=5))
    first = step("e1", closes=False, trace="t1")
    await log.append([later, first, step("e2")])
    assert [one.id for one in await log.steps("acme", "alice", "e1")] == [first.id, later.id]
    assert await log.steps("acme", "bob", "e1") == []
    found = await log.exchange("acme", "alice", "e1")
    assert found is not None
    assert found.trace == "t1"


async def test_exchanges_before_a_moment_are_found_without_naming_one(log: EventLog) -> None:
    """With no id, those that began before it, newest first."""
    await log.append([step(f"e{n}", at=START + timedelta(seconds=n)) for n in range(4)])
    at = (START + timedelta(seconds=2), "")
    found = await log.exchanges("acme", "alice", session="s1", after=at, limit=8)
    assert [exchange.id for exchange in found] == ["e1", "e0"]


async def test_a_tenant_keeps_its_secret(log: EventLog) -> None:
    """A secret is 32 bytes, the same at every use, another one for each tenant."""
    first, again, other = [await log.secret(t) for t in ("acme", "acme", "umbrella")]
    assert (32, first) == (len(first), again)
    assert first != other


# -- generations and erasure --------------------------------------------------------------------------------


async def test_erasing_raises_the_generation_and_empties_every_view(log: EventLog) -> None:
    """After an erasure nothing of the user is readable, and nothing of anybody else is touched."""
    tails = Tails(last_pair="p")
    for user in ("alice", "bob"):
        await log.append([step("x", user=user, tails=tails), page("x", user=user), memory(user=user)])
    await log.append([erase(2)])
    assert (await log.generation("acme", "alice"), await log.generation("acme", "bob")) == (2, 1)
    assert [e.kind for e in await log.read(user="alice")] == ["user.erased"]
    for user, left in (("alice", 0), ("bob", 1)):
        assert left == len(await log.exchanges("acme", user, session=None, after=None, limit=9))
        assert left == len(await log.sessions("acme", user, after=None, limit=9))
        assert left == len(await log.pages("acme", user, limit=9))
        assert left == await log.count_memories("acme", user, where=EVERYTHING)
    assert await log.users("acme", after="", limit=9) == ["bob"]
    assert (
        await hit(log, tails),
        await hit(log, tails, Scope(tenant="acme", user="bob")),
    ) == (None, ("s1", "x"))


async def test_case_21_work_in_flight_cannot_bring_an_erased_user_back(log: EventLog) -> None:
    """Every kind of event of an older generation is refused; one of the new generation is taken."""
    old = [step("x"), page("x"), memory("bees"), event(PageMoved(page="x", state="active", reason="r"))]
    await log.append([step("first"), erase(2)])
    for late in old:
        with pytest.raises(StaleGeneration):
            await log.append([late])
    await log.append([memory("wasps", generation=2)])
    assert {"wasps"} == await texts(log)


async def test_an_event_that_the_log_had_stays_erased_when_it_comes_again(log: EventLog) -> None:
    """A known id is skipped even if its generation is outdated: a retry of it is no failure."""
    old = memory("bees")
    await log.append([old])
    await log.append([erase(2)])
    await log.append([old])
    assert set() == await texts(log)


async def test_of_two_erasures_at_once_the_second_is_told(log: EventLog) -> None:
    """An erasure that does not raise the generation is outdated, so its caller asks again."""
    await log.append([erase(2)])
    with pytest.raises(StaleGeneration):
        await log.append([erase(2)])


async def test_a_tenants_erasure_closes_its_users_until_their_own_comes(log: SqlLog) -> None:
    """Nothing of them is read or taken; one who was never there begins with the tenant's least generation."""
    await log.append([step("x"), memory("bees"), memory("cats", user="bob")])
    base = await log.next_base("acme")
    await log.append([event(TenantErased(generation=base), user=OFFICE)])
    assert (await texts(log), await log.users("acme", after="", limit=9)) == (set(), [])
    for late in (memory("late"), memory("late", generation=base), memory("late", user="carol")):
        with pytest.raises(StaleGeneration):
            await log.append([late])
    assert [one.user for one in await log.closed_users("acme", limit=9)] == ["alice", "bob"]
    assert await log.generation("acme", "carol") == base
    await log.append([erase(base), memory("wasps", generation=base), memory(user="carol", generation=base)])
    assert (await texts(log), await texts(log, "bob")) == ({"wasps"}, set())
    assert [one.user for one in await log.closed_users("acme", limit=9)] == ["bob"]
    assert (await log.content_left("acme", "alice"), await log.content_left("acme", "bob")) == (0, 0)
    assert (await log.inventory("acme", "alice")).sorts == {"events": 1, "memories": 1}
    assert await log.unhandled("index", "acme", None, ("user.erased",)) == 1


async def test_a_forgotten_session_refuses_what_was_begun_in_it_before(log: SqlLog) -> None:
    """A step that is on its way is not kept; one that begins later is, and other sessions are untouched."""
    await log.append([event(SessionForgotten(session="s1"), at=START)])
    await log.append(
        [step("old", at=START - MINUTE), step("new", at=START + MINUTE), step("x", session="s2")]
    )
    found = await log.exchanges("acme", "alice", session=None, after=None, limit=9)
    assert {one.id for one in found} == {"new", "x"}


async def test_a_generation_that_the_user_never_had_is_refused(log: EventLog) -> None:
    """An event from a generation to come is an input error, not a silent memory that nobody can recall."""
    with pytest.raises(BadInput):
        await log.append([memory(generation=2)])


@pytest.mark.parametrize("other", ["a:b", "a*", "a-b", "a/b", "A", "a ", "a%", "a_", "用户1", "a\nb", "a\0b"])
async def test_case_06_ids_with_special_characters_never_meet(log: EventLog, other: str) -> None:
    """Each user sees only their own records, and erasing one leaves the other's."""
    await log.append([memory("mine", user="a"), memory("theirs", user=other)])
    assert ({"mine"}, {"theirs"}) == (await texts(log, "a"), await texts(log, other))
    await log.append([erase(2, user="a")])
    assert (set(), {"theirs"}) == (await texts(log, "a"), await texts(log, other))


# -- which session a request belongs to ---------------------------------------------------------------------


async def test_the_last_pair_finds_the_session(log: EventLog) -> None:
    """A transcript that ends in a captured pair belongs to that pair's session, for seven days."""
    await log.append([step("x", tails=Tails(last_pair="p"))])
    assert await hit(log, Tails(last_pair="p")) == ("s1", "x")
    assert await hit(log, Tails(last_pair="p"), after=timedelta(days=7)) == ("s1", "x")
    assert await hit(log, Tails(last_pair="p"), after=timedelta(days=7, seconds=2)) is None
    assert await hit(log, Tails(last_pair="q")) is None
    assert await hit(log, Tails()) is None


async def test_tails_never_reach_outside_the_scope(log: EventLog) -> None:
    """Neither another tenant, nor another user, nor an isolated agent is found, and a given session binds."""
    await log.append([step("x", tails=Tails(last_pair="p"))])
    await log.append([step("y", session="s2", agent="nurse", isolated=True, tails=Tails(last_pair="q"))])
    for scope in (Scope(tenant="acme", user="bob"), Scope(tenant="umbrella", user="alice")):
        assert await hit(log, Tails(last_pair="p"), scope) is None
    nurse = Scope(tenant="acme", user="alice", agent="nurse", isolated=True)
    assert (await hit(log, Tails(last_pair="p"), nurse), await hit(log, Tails(last_pair="q"))) == (None, None)
    assert await hit(log, Tails(last_pair="q"), nurse) == ("s2", "y")
    elsewhere = Scope(tenant="acme", user="alice", session="s9")
    assert await hit(log, Tails(last_pair="p"), elsewhere) is None


async def test_two_pairs_decide_where_one_is_ambiguous(log: EventLog) -> None:
    """The same last pair in two sessions is told apart by the pair before it, however old."""
    await log.append([step("x", session="s1", tails=Tails(last_pair="p", last_two_pairs="ap"))])
    await log.append([step("y", session="s2", tails=Tails(last_pair="p", last_two_pairs="bp"))])
    for two, expected in (("ap", ("s1", "x")), ("bp", ("s2", "y"))):
        tails = Tails(last_pair="p", last_two_pairs=two)
        assert expected == await hit(log, tails, after=timedelta(days=2))


async def test_user_texts_find_the_session_of_rewritten_replies(log: EventLog) -> None:
    """Where the client changed the assistant's words the user's own still tell."""
    await log.append([step("x", tails=Tails(last_pair="p", user_texts="u"))])
    assert await hit(log, Tails(last_pair="rewritten", user_texts="u")) == ("s1", "x")


async def test_case_05_an_ambiguous_tail_is_the_newest_session_of_half_an_hour(log: EventLog) -> None:
    """The same greeting in two chats: the newer one if it is fresh, else none."""
    greeting = Tails(last_pair="hi", chain="hi")
    await log.append([step("x", session="s1", tails=greeting)])
    assert await hit(log, greeting) == ("s1", "x")
    later = START + timedelta(seconds=2)
    await log.append([step("y", session="s2", finished_at=later, tails=greeting)])
    assert await hit(log, greeting, after=timedelta(minutes=5)) == ("s2", "y")
    assert await hit(log, greeting, after=timedelta(minutes=31)) is None


async def test_branches_of_one_session_are_told_apart(log: EventLog) -> None:
    """Where a pair comes twice in one session, the longer tail names the exchange that the client means."""
    await log.append([step("x", tails=Tails(last_pair="ok", last_two_pairs="1", chain="c1"))])
    await log.append([step("y", tails=Tails(last_pair="ok", last_two_pairs="2", chain="c2"))])
    assert await hit(log, Tails(last_pair="ok", last_two_pairs="1")) == ("s1", "x")
    assert await hit(log, Tails(last_pair="ok")) == ("s1", "y")
    assert await hit(log, Tails(last_pair="ok", chain="c1")) == ("s1", "x")


async def test_a_response_id_comes_before_the_tail(log: EventLog) -> None:
    """`previous_response_id` names its session, whatever the transcript ends in; an unknown one does not."""
    await log.append(
        [step("x", session="s1", response_id="resp_1"), step("y", session="s2", tails=Tails(last_pair="p"))]
    )
    for response_id, expected in (("resp_1", "x"), ("resp_9", "y")):
        state = await log.open_call(
            ALICE, tails=Tails(last_pair="p"), retry_key="", response_id=response_id, now=START
        )
        assert state.hit is not None
        assert expected == state.hit.exchange


async def test_a_step_on_its_way_into_the_log_is_found_like_one_it_has(log: EventLog) -> None:
    """By tail, response id and retry key, of a user that the log never saw too; the newest comes first."""
    keys: dict[str, Any] = {"tails": Tails(last_pair="p"), "retry_key": "k"}
    waiting = [
        step("x", outcome="partial", response_id="resp_1", **keys),
        step("y", session="s2", finished_at=START + timedelta(seconds=2), **keys),
    ]
    for response_id, expected in (("resp_1", "x"), ("", "y")):
        state = await log.open_call(ALICE, **keys, response_id=response_id, now=START, unwritten=waiting)
        assert state.hit is not None
        assert state.retry is not None
        assert (state.hit.exchange, state.retry.exchange, state.generation) == (expected, "y", 1)
    await log.append(waiting[1:])
    later = START + timedelta(minutes=11)
    state = await log.open_call(ALICE, **keys, response_id="", now=later, unwritten=waiting)
    assert (state.hit and state.hit.session, state.retry) == ("s2", None)


async def test_steps_on_their_way_never_reach_outside_their_scope(log: EventLog) -> None:
    """Nor is one found whose user was erased meanwhile."""
    tails = Tails(last_pair="p")
    shared = step("x", tails=tails)
    isolated = step("y", agent="nurse", isolated=True, tails=tails)

    async def found(*waiting: Event, **fields: Any) -> str | None:
        scope = msgspec.structs.replace(ALICE, **fields)
        state = await log.open_call(
            scope, tails=tails, retry_key="", response_id="", now=START, unwritten=waiting
        )
        return state.hit and state.hit.exchange

    assert [await found(shared, session=session) for session in ("", "s1", "s9")] == ["x", "x", None]
    assert await found(shared, agent="nurse") == "x"
    for other in ({"user": "bob"}, {"tenant": "umbrella"}, {"agent": "nurse", "isolated": True}):
        assert await found(shared, **other) is None
    assert await found(isolated, agent="nurse", isolated=True) == "y"
    for other in ({"agent": "cook", "isolated": True}, {"agent": "nurse"}):
        assert await found(isolated, **other) is None
    await log.append([erase(2)])
    assert await found(shared) is None


async def test_a_retry_is_the_same_request_within_ten_minutes(log: EventLog) -> None:
    """The newest capture of the same canonical request is named, with its outcome, while it is fresh."""
    await log.append([step("x", outcome="failed", retry_key="k")])
    await log.append([step("y", outcome="partial", retry_key="k", finished_at=START + timedelta(seconds=2))])
    fresh, old = [
        await log.open_call(
            ALICE, tails=Tails(), retry_key="k", response_id="", now=START + timedelta(seconds=s)
        )
        for s in (600, 603)
    ]
    assert fresh.retry is not None
    assert (fresh.retry.exchange, fresh.retry.outcome, fresh.retry.session) == ("y", "partial", "s1")
    assert old.retry is None


# -- memories -----------------------------------------------------------------------------------------------


async def test_memories_are_listed_by_every_condition(log: EventLog) -> None:
    """All conditions of a filter hold together; each one alone selects what it names."""
    day = timedelta(days=1)
    await log.append([
        memory("Green Tea at Straße 5", type="fact", tags=("drink", "hot"), metadata={"n": 1, "b": True}),
        memory("100% coffee_black", type="persona", tags=("drink",), at=START - day, metadata={"n": "1"}),
        memory("a dog", agent="nurse", session="s7", at=START - 2 * day, metadata={"b": 1, 'k"\\': None}),
    ])  # fmt: skip
    green, coffee, dog = "Green Tea at Straße 5", "100% coffee_black", "a dog"
    expected: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {green, coffee, dog}),
        ({"types": ("fact", "persona")}, {green, coffee, dog}),
        ({"types": ("persona",)}, {coffee}),
        ({"tags": ("drink",)}, {green, coffee}),
        ({"tags": ("drink", "hot")}, {green}),
        ({"words": "tea GREEN"}, {green}),
        ({"words": "STRASSE"}, {green}),
        ({"words": "%"}, {coffee}),
        ({"words": "_"}, {coffee}),
        ({"words": "tea dog"}, set()),
        ({"metadata": {"n": 1}}, {green}),
        ({"metadata": {"n": 1.0}}, {green}),
        ({"metadata": {"n": "1"}}, {coffee}),
        ({"metadata": {"b": True}}, {green}),
        ({"metadata": {"b": 1}}, {dog}),
        ({"metadata": {'k"\\': None}}, {dog}),
        ({"metadata": {"missing": None}}, set()),
        ({"metadata": {"n": 10**30}}, set()),
        ({"agent": "nurse"}, {dog}),
        ({"session": "s7"}, {dog}),
        ({"since": START - day}, {green, coffee}),
        ({"until": START - day}, {dog}),
    ]
    for where, right in expected:
        assert right == await texts(log, **where), where
        assert len(right) == await log.count_memories("acme", "alice", where=MemoryFilter(**where)), where


async def test_a_changed_memory_is_listed_in_its_new_state(log: EventLog) -> None:
    """A change replaces the whole memory, in reading and in every condition."""
    added = memory("works at Acme", id="m", tags=("job",))
    assert isinstance(added.payload, MemoryAdded)
    await log.append([added])
    new = msgspec.structs.replace(added.payload.memory, text="at Borealis")
    await log.append([event(MemoryChanged(memory=new, changed=("text",)))])
    assert new == await log.memory("acme", "alice", "m")
    assert (set(), {"at Borealis"}) == (await texts(log, words="acme"), await texts(log, words="borealis"))


async def test_superseded_and_expired_memories_are_not_current(log: EventLog, clock: ManualClock) -> None:
    """A superseded memory is listed only where asked for; an expired one is gone from everywhere."""
    await log.append([memory("old", id="o", successor="n", valid_to=START), memory("new", id="n")])
    await log.append([memory("brief", id="b", expires_at=START + timedelta(hours=1))])
    assert {"new", "brief"} == await texts(log)
    assert {"old", "new", "brief"} == await texts(log, include_superseded=True)
    clock.advance(hours=1)
    assert {"new"} == await texts(log)
    assert (await log.memory("acme", "alice", "b"), await log.record("acme", "alice", "b")) == (None, None)
    assert await log.memory("acme", "alice", "o") is not None


async def test_case_61_walking_the_pages_gives_each_memory_once(log: EventLog) -> None:
    """257 memories, many of one moment, come once each over the pages, though one is added meanwhile."""
    await log.append([memory(str(n), at=START - timedelta(seconds=n // 10)) for n in range(257)])
    await log.append([memory("other's", user="bob") for _ in range(5)])
    assert await log.count_memories("acme", "alice", where=EVERYTHING) == 257
    seen: list[str] = []
    position = None
    while found := await log.memories("acme", "alice", where=EVERYTHING, after=position, limit=50):
        seen += [m.text for m in found]
        position = (found[-1].created_at, found[-1].id)
        await log.append([memory("newer", at=START + timedelta(seconds=1))])
    assert [str(n) for n in range(257)] == sorted(seen, key=int)


async def test_case_04_a_memory_is_found_by_its_owner_alone(log: EventLog) -> None:
    """Another user or tenant asking by id gets what an unknown id gets."""
    await log.append([memory(id="m")])
    assert await log.memory("acme", "alice", "m") is not None
    for tenant, user in (("acme", "bob"), ("umbrella", "alice"), ("acme", "alic")):
        assert await log.memory(tenant, user, "m") is None
        assert await log.record(tenant, user, "m") is None
        assert await log.records_named(tenant, user, ["m"]) == {}


async def test_records_are_read_at_one_go_as_they_are_one_by_one(log: EventLog) -> None:
    """In the order of the ids, each once; what is not there is left out."""
    await log.append([memory(id="m"), memory(id="n"), memory(id="o")])
    found = await log.records_named("acme", "alice", iter(["o", "unknown", "m", "o"]))
    assert found == {id: await log.record("acme", "alice", id) for id in ("o", "m")}
    assert list(found) == ["o", "m"]
    assert await log.records_named("acme", "alice", []) == {}


# -- exchanges, sessions, pages, users ----------------------------------------------------------------------


async def test_an_exchange_is_read_from_its_steps(log: EventLog) -> None:
    """A tool loop is one exchange: its visible texts, its usage and what was recalled into any step."""
    tool = (ToolUse(name="search"),)
    later = START + timedelta(seconds=9)
    await log.append([
        step("x", reply_text="Looking.", closes=False, tools=tool, injected=("m1",), usage=Usage(input=5)),
        step("x", at=later, reply_text="Found.", injected=("m1", "m2"), usage=Usage(input=7, output=2)),
        event(ExchangeEnriched(exchange="x", model="small-2026")),
    ])  # fmt: skip
    found = await log.exchange("acme", "alice", "x")
    assert found is not None
    assert (found.reply_text, found.state, found.steps) == ("Looking.\n\nFound.", "open", 2)
    assert (("m1", "m2"), Usage(input=12, output=2), "small-2026") == (
        found.injected,
        found.usage,
        found.model,
    )
    assert found.started_at == START
    await log.append([page("x", reply_text="Looking.\n\nFound.")])
    closed = await log.exchange("acme", "alice", "x")
    assert closed is not None
    assert closed.state == "closed"


async def test_a_retry_replaces_the_failed_answer_of_its_exchange(log: EventLog) -> None:
    """Of a request that was sent again the last answer counts, and failures leave no text."""
    await log.append([step("x", outcome="failed", reply_text="", retry_key="k")])
    failed = await log.exchange("acme", "alice", "x")
    assert failed is not None
    assert failed.state == "failed"
    await log.append([
        step("x", at=START + timedelta(seconds=1), outcome="partial", reply_text="Hel", retry_key="k"),
        step("x", at=START + timedelta(seconds=2), reply_text="Hello", retry_key="k"),
    ])  # fmt: skip
    found = await log.exchange("acme", "alice", "x")
    assert found is not None
    assert (found.reply_text, found.outcome, found.state) == ("Hello", "complete", "open")


async def test_usage_of_the_log_event_fills_in_where_a_reply_had_none(log: EventLog) -> None:
    """Usage that LiteLLM adds is taken where no step brought its own, and never added to it."""
    await log.append([step("x"), step("y", usage=Usage(input=3))])
    await log.append([event(ExchangeEnriched(exchange=e, usage=Usage(input=11))) for e in ("x", "y")])
    found = [await log.exchange("acme", "alice", e) for e in ("x", "y")]
    assert [Usage(input=11), Usage(input=3)] == [e and e.usage for e in found]


async def test_exchanges_and_sessions_are_walked_newest_first(log: EventLog) -> None:
    """Pages of a list join without gap or repeat; a session counts its exchanges."""
    for n in range(6):
        await log.append([step(f"x{n}", session=f"s{n % 2}", at=START - timedelta(minutes=n))])
    first = await log.exchanges("acme", "alice", session=None, after=None, limit=4)
    rest = await log.exchanges(
        "acme", "alice", session=None, after=(first[-1].started_at, first[-1].id), limit=4
    )
    assert [f"x{n}" for n in range(6)] == [x.id for x in first + rest]
    one = await log.exchanges("acme", "alice", session="s1", after=None, limit=9)
    assert [x.id for x in one] == ["x1", "x3", "x5"]
    newest = await log.sessions("acme", "alice", after=None, limit=1)
    older = await log.sessions("acme", "alice", after=(newest[0].last_at, newest[0].id), limit=9)
    assert [(s.id, s.exchanges) for s in newest + older] == [("s0", 3), ("s1", 3)]
    assert START - timedelta(minutes=5) == older[0].started_at


ORDER = ["c", "a", "d", "b"]
"""Ids in the order in which they came, all in the same moment."""


@pytest.mark.parametrize("forgotten", [False, True])
async def test_what_has_the_same_moment_comes_in_the_order_of_the_log(
    log: EventLog, *, forgotten: bool
) -> None:
    """Exchanges, sessions and memories, newest first, also where what a page ended with is forgotten."""
    steps = [step(name, session=f"in {name}") for name in ORDER]
    added = [memory(name, id=f"m{name}") for name in ORDER]
    await log.append([*steps, *added])
    again = MemoryChanged(memory=added[0].payload.memory, changed=("text",))  # type: ignore[union-attr]
    await log.append([event(again), step(ORDER[0], session=f"in {ORDER[0]}")])
    walked: dict[str, list[str]] = {"exchanges": [], "sessions": [], "memories": []}
    ends: dict[str, Any] = dict.fromkeys(walked)
    for _ in ORDER:
        (exchange,) = await log.exchanges("acme", "alice", session=None, after=ends["exchanges"], limit=1)
        (session,) = await log.sessions("acme", "alice", after=ends["sessions"], limit=1)
        (found,) = await log.memories("acme", "alice", where=EVERYTHING, after=ends["memories"], limit=1)
        ends = {
            "exchanges": (exchange.started_at, exchange.id),
            "sessions": (session.last_at, session.id),
            "memories": (found.created_at, found.id),
        }
        for of, (_, id) in ends.items():
            walked[of].append(id)
        if forgotten:
            await log.append([forget_page(exchange.id), forget_memory(found.id)])
    assert walked["exchanges"] == ORDER[::-1]
    assert walked["sessions"] == [f"in {name}" for name in ORDER[::-1]]
    assert walked["memories"] == [f"m{name}" for name in ORDER[::-1]]


async def test_users_are_walked_by_name(log: EventLog) -> None:
    """Each user of the tenant comes once, in order of name."""
    await log.append([memory(user=name) for name in ("c", "a", "b", "a")])
    assert await log.users("acme", after="", limit=2) == ["a", "b"]
    assert await log.users("acme", after="b", limit=2) == ["c"]
    assert await log.users("umbrella", after="", limit=2) == []


async def test_pages_are_the_latest_active_ones_oldest_first(log: EventLog) -> None:
    """A page that left the branch is not among them, one that came back is, and a second closing replaces."""
    await log.append([page(f"p{n}", at=START - timedelta(minutes=9 - n)) for n in range(4)])
    await log.append([event(PageMoved(page="p2", state="inactive", reason="edited"))])
    assert [p.id for p in await log.pages("acme", "alice", limit=2)] == ["p1", "p3"]
    moved = await log.record("acme", "alice", "p2")
    assert moved is not None
    assert getattr(moved, "state", "") == "inactive"
    await log.append(
        [event(PageMoved(page="p2", state="active", reason="continued")), page("p3", reply_text="new")]
    )
    latest = await log.pages("acme", "alice", limit=9)
    assert sorted((p.id, p.reply_text) for p in latest) == [
        ("p0", "Hello"),
        ("p1", "Hello"),
        ("p2", "Hello"),
        ("p3", "new"),
    ]


async def test_a_page_knows_the_one_before(log: EventLog) -> None:
    """The previous page is read by its name while it lives."""
    await log.append([page("a"), page("b", previous="a")])
    before, after = [await log.record("acme", "alice", name) for name in ("a", "b")]
    assert isinstance(before, Page)
    assert isinstance(after, Page)
    assert before == await log.previous_page(after)
    assert await log.previous_page(before) is None
    await log.append([forget_page("a")])
    assert await log.previous_page(after) is None


# -- forgetting ---------------------------------------------------------------------------------------------


async def test_case_19_a_forgotten_memory_is_nowhere(log: EventLog) -> None:
    """Its earlier events are redacted, the blocks that showed it too, and later changes are not stored."""
    block = PlacedBlock(exchange="x", text="the secret garden", tokens=3, items=("m",), at=START)
    added = memory("the secret garden", id="m")
    await log.append([added, memory("other"), step("x", injected=("m",), block=block)])
    await log.append([forget_memory("m", at=START)])
    assert {"other"} == await texts(log)
    assert await log.memory("acme", "alice", "m") is None
    assert "secret garden" not in repr(await log.read())
    assert isinstance(added.payload, MemoryAdded)
    await log.append([event(MemoryChanged(memory=added.payload.memory, changed=("tags",)))])
    await log.append([memory("the secret garden", id="m")])
    assert {"other"} == await texts(log)
    assert "secret garden" not in repr(await log.read())
    captured = next(e.payload for e in await log.read() if isinstance(e.payload, StepCaptured))
    assert (captured.step.user_text, captured.step.block, captured.step.injected) == ("Hi", None, ("m",))


async def test_a_forgotten_exchange_is_nowhere(log: EventLog) -> None:
    """Steps, page, tails and the session's count go; a decision made meanwhile does not bring it back."""
    tails = Tails(last_pair="p")
    await log.append([step("x", user_text="divorce", tails=tails), page("x", user_text="divorce"), step("y")])
    await log.append([forget_page("x", at=START)])
    await log.append([page("x", user_text="divorce"), event(ExchangeEnriched(exchange="x", model="divorce"))])
    assert "divorce" not in repr(await log.read())
    assert await log.exchange("acme", "alice", "x") is None
    assert await log.pages("acme", "alice", limit=9) == []
    assert await hit(log, tails) is None
    assert [x.id for x in await log.exchanges("acme", "alice", session=None, after=None, limit=9)] == ["y"]
    assert [s.exchanges for s in await log.sessions("acme", "alice", after=None, limit=9)] == [1]


async def test_a_step_in_flight_while_its_exchange_is_forgotten_stays_out(log: EventLog) -> None:
    """A request that began before the forgetting is dropped; one that began after it is a new exchange."""
    await log.append([step("x", at=START - timedelta(minutes=2))])
    await log.append([forget_page("x", at=START - timedelta(minutes=1))])
    await log.append([step("x", at=START - timedelta(minutes=1, seconds=30))])
    assert await log.exchange("acme", "alice", "x") is None
    await log.append([step("x", at=START, reply_text="again")])
    found = await log.exchange("acme", "alice", "x")
    assert found is not None
    assert (found.reply_text, found.steps) == ("again", 1)


# -- facts --------------------------------------------------------------------------------------------------


def fact(id: str, value: str, *pages: str, **more: Any) -> Event:
    told = tuple(Evidence(id=page, role="user", quote="I work", at=START) for page in pages)
    about = {"subject": "user", "attribute": "employer", "value": value, "evidence": told}
    return memory(value, id=id, **{**about, **more})


def values(facts: list[Memory]) -> list[str]:
    return [fact.value for fact in facts]


async def test_facts_are_found_by_what_they_are_about_and_by_their_pages(log: EventLog) -> None:
    """Closed ones too; by any form of the subject; what a page ended is found by it as well."""
    acme = fact("m1", "Acme", "x1", valid_to=START + MINUTE, ended_by="x2", successor="m2")
    borealis = fact("m2", "Borealis", "x2", "x3")
    await log.append([acme, borealis, memory("Rex", subject="user", attribute="pet", value="Rex")])
    assert values(await log.facts_about("acme", "alice", [("User", "employer")])) == ["Borealis", "Acme"]
    assert await log.facts_about("acme", "bob", [("user", "employer")]) == []
    assert values(await log.facts_of("acme", "alice", "x2")) == ["Acme", "Borealis"]
    assert values(await log.facts_of("acme", "alice", "x3")) == ["Borealis"]
    less = fact("m2", "Borealis", "x2").payload.memory
    await log.append([event(MemoryChanged(memory=less, changed=("evidence",)))])
    assert await log.facts_of("acme", "alice", "x3") == []


async def test_what_held_at_a_moment_is_listed(log: EventLog) -> None:
    """From its beginning, which may lie before it was said, up to its end."""
    first = fact("m1", "Acme", valid_from=START - MINUTE, valid_to=START + MINUTE, successor="m2")
    second = fact("m2", "Borealis", valid_from=START + MINUTE)
    await log.append([first, second])
    moments = (START - 2 * MINUTE, START - MINUTE, START, START + MINUTE)
    assert [await texts(log, as_of=at) for at in moments] == [set(), {"Acme"}, {"Acme"}, {"Borealis"}]


async def test_a_withdrawn_memory_comes_back_as_it_was(log: EventLog) -> None:
    """Unlike a forgotten one, whose content is refused for ever."""
    told = fact("m1", "Acme", "x1")
    await log.append([told, event(MemoryWithdrawn(memory="m1"))])
    assert await texts(log) == set()
    assert await log.facts_of("acme", "alice", "x1") == []
    await log.append([event(told.payload)])
    assert await texts(log) == {"Acme"}
    await log.append([forget_memory("m1"), event(told.payload)])
    assert await texts(log) == set()


async def test_a_page_carries_its_marks_until_they_are_replaced(log: EventLog) -> None:
    """They are the page's own content: they go with it."""
    mark = Outdated(role="user", quote="I work", fact="m1", until=START)
    await log.append([step("x1"), page("x1"), event(PageOutdated(page="x1", outdated=(mark,)))])
    found = await log.record("acme", "alice", "x1")
    assert isinstance(found, Page)
    assert found.outdated == (mark,)
    await log.append([event(PageOutdated(page="x1", outdated=()))])
    (found,) = await log.pages("acme", "alice", limit=1)
    assert found.outdated == ()
    await log.append([forget_page("x1")])
    assert not any(isinstance(one.payload, PageOutdated) for one in await log.read())


async def test_exchanges_that_were_shown_a_record_are_found(log: EventLog) -> None:
    """The latest first, whether by a block or by ids alone; never another user's."""
    block = PlacedBlock(exchange="x2", text="…", tokens=1, items=("m1",), at=START)
    await log.append(
        [
            step("x1", injected=("m1", "m2")),
            step("x2", block=block),
            step("x3", injected=("m2",)),
            step("x4", injected=("m1",), user="bob"),
        ]
    )
    assert await log.shown_in("acme", "alice", ["m1"], limit=10) == ["x2", "x1"]
    assert await log.shown_in("acme", "alice", ["m1", "m2"], limit=1) == ["x3"]
    assert await log.shown_in("acme", "alice", [], limit=10) == []


OLD = {"dialogue": START - MINUTE}


async def test_what_has_outlived_its_time_is_found_by_tenant(log: EventLog) -> None:
    """Expired memories and old exchanges, with what is needed to forget them; each until it is forgotten."""
    await log.append([step("x1", at=START - 2 * MINUTE), step("x2"), memory("a", id="m1", expires_at=START)])
    await log.append([memory("b", id="m2", expires_at=START + MINUTE), memory("c", id="m3")])
    assert await log.tenants() == ["acme"]
    due = await log.outlived("acme", now=START, before=OLD, limit=10)
    assert [(one.user, one.generation, one.id, one.kind) for one in due] == [
        *(("alice", 1, "m1", "fact"), ("alice", 1, "x1", "dialogue")),
    ]
    assert [one.id for one in await log.outlived("acme", now=START, before={}, limit=10)] == ["m1"]
    assert len(await log.outlived("acme", now=START, before=OLD, limit=1)) == 1
    facts = await log.outlived("acme", now=START, before={"fact": START + MINUTE, "persona": START}, limit=10)
    assert [(one.id, one.expired) for one in facts] == [("m1", True), ("m2", False), ("m3", False)]
    assert await log.outlived("rivals", now=START, before={"dialogue": START}, limit=10) == []
    await log.append([forget_memory("m1"), forget_page("x1")])
    assert await log.outlived("acme", now=START, before=OLD, limit=10) == []


async def test_a_concept_is_out_once_what_it_sums_up_changed(log: EventLog) -> None:
    """With its text, and the blocks that show it where a member is forgotten; a weight changes nothing."""
    rests = (Evidence(id="f1", role="user", quote="tea", at=START),)
    concept = memory("tea and more", id="c1", type="concept", evidence=rests)
    block = PlacedBlock(exchange="x1", text="tea and more", tokens=3, items=("c1",), at=START)
    await log.append([memory("tea", id="f1"), memory("more", id="f2"), concept, step("x1", block=block)])
    assert await log.concepts_on("acme", "alice", ["f1"]) == ["c1"]
    assert await log.concepts_on("acme", "alice", ["f2", "c1"]) == []
    assert await log.concepts_on("acme", "bob", ["f1"]) == []
    fact = await log.memory("acme", "alice", "f1")
    assert fact is not None
    heavier = MemoryChanged(memory=msgspec.structs.replace(fact, importance=0.9), changed=("importance",))
    await log.append([event(heavier)])
    assert await log.memory("acme", "alice", "c1") is not None
    await log.append([forget_memory("f1")])
    assert await log.memory("acme", "alice", "c1") is None
    assert await log.concepts_on("acme", "alice", ["f1"]) == ["c1"]
    assert "tea" not in str(await log.read(tenant="acme", user="alice"))
    await log.append([forget_memory("c1")])
    assert await log.concepts_on("acme", "alice", ["f1"]) == []


# -- walks --------------------------------------------------------------------------------------------------


async def test_a_walk_comes_to_every_standing_record_once(log: EventLog) -> None:
    """Active pages with the page before, then live memories, in parts of any size; none that is forgotten."""
    first, second, gone = (f"{n:032x}" for n in range(3))
    steps = [step(first), step(second, parent=first), step(gone)]
    pages = [page(first, user_text="one"), page(second, user_text="two", previous=first), page(gone)]
    kept = [memory("tea"), memory("coffee", user="bob"), memory("old", expires_at=START)]
    await log.append([*steps, *pages, *kept, forget_page(gone)])
    walk, walked = await log.begin_walk(), []
    while walk.part != "done":
        some, walk = await log.walk(walk, limit=1)
        walked += some
    found = {getattr(one.record, "user_text", "") or one.record.text: one.previous for one in walked}
    assert [name for name in found if name in ("one", "two")] == ["one", "two"]
    assert set(found) == {"one", "two", "tea", "coffee"}
    assert (found["two"] and found["two"].id, found["one"]) == (first, None)
    assert await log.following_pages("acme", "alice", first) == [second]
    assert await log.unindexed("acme", "alice") == [first, second]
    assert [one.scope.user for one in await log.walk_users(after=0, limit=9)] == ["alice", "bob"]


# -- finding events ------------------------------------------------------------------------------------------


async def found(log: EventLog, **where: Any) -> list[str]:
    """Ids of the events that `find` gives over all its pages, in log order."""
    ids: list[str] = []
    after, ended = 0, False
    while not ended:
        page = await log.find(EventFilter(**{"tenant": "acme"} | where), after=after, limit=2)
        ids += [e.id for e in page.events]
        after, ended = page.next, page.ended
    return ids


async def test_events_are_found_by_what_they_are_about(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each condition narrows, all hold together, and pages of bounded work leave none out."""
    monkeypatch.setattr(finding, "LOOKED_AT", 3)
    monkeypatch.setattr(finding, "READ", 3)
    tea = memory("Likes TEA", tags=("food",), metadata={"n": 1}, at=START - MINUTE)
    coffee = memory("likes coffee", tags=("food", "drink"), metadata={"n": True}, user="bob")
    said = step("e1", trace="t1", tags=("billing",), user_text="Where is my tea?", session="s9")
    judged = event(RecallJudged(trace="t1", note="good tea"))
    sent = [tea, coffee, *(step(f"x{n}") for n in range(6)), said, judged]
    await log.append(sent)
    await log.append([msgspec.structs.replace(memory("tea elsewhere"), tenant="other")])
    assert await found(log) == [e.id for e in sent]
    assert await found(log, kinds=("memory.added",)) == [tea.id, coffee.id]
    assert await found(log, words="tea LIKES") == [tea.id]
    assert await found(log, words="tea") == [tea.id, said.id, judged.id]
    assert await found(log, trace="t1") == [said.id, judged.id]
    assert await found(log, tags=("food",)) == [tea.id, coffee.id]
    assert await found(log, tags=("food", "drink")) == [coffee.id]
    assert await found(log, tags=("billing",), session="s9") == [said.id]
    assert await found(log, metadata={"n": 1}) == [tea.id]
    assert await found(log, until=START) == [tea.id]
    assert await found(log, since=START, user="bob") == [coffee.id]
    assert await found(log, tenant="other", words="tea", tags=("food",)) == []


async def test_events_are_read_backwards(log: EventLog) -> None:
    """In front of a position, the latest first; what is behind a page's end follows in the next one."""
    sent = [memory(str(n)) for n in range(5)]
    await log.append(sent)
    page = await log.find(EventFilter(tenant="acme"), before=2**53, limit=3)
    assert [e.id for e in page.events] == [e.id for e in sent[:1:-1]]
    rest = await log.find(EventFilter(tenant="acme"), before=page.next, limit=3)
    assert ([e.id for e in rest.events], rest.ended) == ([sent[1].id, sent[0].id], True)


async def test_events_are_counted_by_month_and_kind(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redacted ones count and take no room; another tenant's don't."""
    monkeypatch.setattr(finding, "COUNTED", 2)
    gone = memory("gone", id="m1")
    earlier = memory("earlier", at=START - 31 * 1440 * MINUTE)
    await log.append([gone, earlier, memory("kept"), forget_memory("m1")])
    await log.append([msgspec.structs.replace(memory("else"), tenant="other")])
    counts = await log.count_events("acme")
    assert [(one.month, one.kind, one.events, one.redacted) for one in counts] == [
        ("2026-01", "memory.added", 1, 0),
        ("2026-03", "memory.added", 2, 1),
        ("2026-03", "memory.forgotten", 1, 0),
    ]
    assert all(one.bytes > 0 and one.archived == 0 for one in counts)
