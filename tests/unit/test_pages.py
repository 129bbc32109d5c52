"""Which page an exchange makes, and which branch of a session is live."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.memory.deciders import PageDecider
from hearth.memory.events.kinds import Event, PageClosed, PageMoved, Payload, StepCaptured
from hearth.memory.ports import ExchangeState
from hearth.memory.tiers.branches import Node, Tree, follow, grow, nearest_page
from hearth.memory.tiers.indexed import PAGE_CHARACTERS, as_stored, index_record, is_recallable, page_text
from hearth.memory.tiers.pages import assemble, decide_pages, decisions
from hearth.memory.types import Exchange, Page, Scope, Step, ToolUse

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def captured(
    exchange: str,
    reply: str = "",
    *,
    seq: int = 1,
    at: int | None = None,
    parent: str | None = None,
    **step: Any,
) -> Event:
    """A step.captured event; by default complete and closing. `at` is in seconds and defaults to `seq`."""
    moment = NOON + timedelta(seconds=seq if at is None else at)
    fields: dict[str, Any] = {"user_text": f"ask {exchange}", "outcome": "complete", "closes": True, **step}
    return Event(
        id=uuid5(NAMESPACE_OID, f"{exchange}/{seq}").hex,
        tenant="acme",
        user="alice",
        agent="coder",
        session="s1",
        generation=1,
        occurred_at=moment,
        parent=parent,
        seq=seq,
        payload=StepCaptured(
            step=Step(exchange=exchange, reply_text=reply, started_at=moment, finished_at=moment, **fields)
        ),
    )


def state_of(*steps: Event, page: Page | None = None, siblings: tuple[Page, ...] = ()) -> ExchangeState:
    return ExchangeState(steps=steps, page=page, siblings=siblings, ancestors=(), descendants=())


def closed_page(payloads: Sequence[Payload]) -> Page:
    (payload,) = payloads
    assert isinstance(payload, PageClosed)
    return payload.page


TOOLS = {"closes": False, "tools": (ToolUse(name="look"),)}


def test_a_reply_without_tool_calls_closes_the_exchange_into_its_page() -> None:
    """A complete reply makes the page word for word, with all that the step says of it."""
    event = captured(
        "x",
        "hello",
        parent="w",
        injected=("m1",),
        timezone="Europe/Bern",
        user_name="Ana",
        reply_name="Bot",
        user_shown="a red canoe",
        reply_shown="a map",
        isolated=True,
    )
    assert decide_pages(state_of(event), event) == [
        PageClosed(
            page=Page(
                id="x",
                scope=Scope(tenant="acme", user="alice", agent="coder", session="s1", isolated=True),
                generation=1,
                user_text="ask x",
                reply_text="hello",
                user_name="Ana",
                reply_name="Bot",
                user_shown="a red canoe",
                reply_shown="a map",
                occurred_at=event.occurred_at,
                previous="w",
                timezone="Europe/Bern",
                injected=("m1",),
            )
        )
    ]


def test_a_tool_loop_is_one_page_with_the_visible_texts_of_its_steps() -> None:
    """Steps join into one page at the closing reply: texts by blank lines, injected ids united."""
    first = captured("x", "Let me look.", seq=1, parent="w", injected=("m1", "m2"), **TOOLS)
    silent = captured("x", "", seq=2, injected=("m2", "m3"), **TOOLS)
    last = captured("x", "It is 42.", seq=3)
    steps = state_of(first, silent, last)
    assert decide_pages(steps, first) == []
    assert decide_pages(steps, silent) == []
    page = closed_page(decide_pages(steps, last))
    assert page.reply_text == "Let me look.\n\nIt is 42."
    assert (page.injected, page.occurred_at, page.previous) == (("m1", "m2", "m3"), first.occurred_at, "w")


def test_case_29_a_failed_step_never_makes_a_page() -> None:
    """An upstream error leaves no page, not even once the exchange is over."""
    event = captured("x", "Internal", outcome="failed")
    assert decide_pages(state_of(event), event, over=True) == []


def test_case_27_a_partial_reply_with_visible_text_makes_a_page() -> None:
    """What came before the connection closed is kept; a cut with nothing to see is not."""
    event = captured("x", "It is fo", outcome="partial")
    assert closed_page(decide_pages(state_of(event), event)).reply_text == "It is fo"
    mute = captured("x", "", outcome="partial")
    assert decide_pages(state_of(mute), mute, over=True) == []


def test_case_27_a_reply_of_reasoning_alone_keeps_what_the_user_said() -> None:
    """A complete reply with no visible text makes a page of the user's text."""
    event = captured("x", "")
    page = closed_page(decide_pages(state_of(event), event))
    assert (page.user_text, page.reply_text) == ("ask x", "")


def test_case_27_an_unanswered_tool_call_keeps_what_the_user_said() -> None:
    """A loop that the client left makes its page when the exchange is over, and not before."""
    event = captured("x", "", **TOOLS)
    assert decide_pages(state_of(event), event) == []
    assert closed_page(decide_pages(state_of(event), event, over=True)).user_text == "ask x"


def test_a_retry_after_a_cut_replaces_the_partial_reply() -> None:
    """The page of the partial reply is replaced under the same id."""
    cut = captured("x", "It is fo", seq=1, outcome="partial")
    before = closed_page(decide_pages(state_of(cut), cut))
    again = captured("x", "It is forty-two.", seq=2)
    tree = grow({}, [cut, again], upto=2)
    after = closed_page(decide_pages(state_of(cut, again, page=before), again, tree=tree))
    assert (after.id, after.reply_text) == (before.id, "It is forty-two.")


def test_a_regenerated_reply_replaces_the_page() -> None:
    """A second complete reply to the same message is the page's one reply."""
    steps = state_of(captured("x", "one", seq=1), again := captured("x", "two", seq=2))
    assert closed_page(decide_pages(steps, again)).reply_text == "two"


def test_a_cut_or_failed_regeneration_leaves_the_complete_reply() -> None:
    """A complete reply is only ever replaced by a complete one, and a failure is no news at all."""
    good, cut = captured("x", "one", seq=1), captured("x", "tw", seq=2, outcome="partial")
    before = closed_page(decide_pages(state_of(good), good))
    tree = grow({}, [good, cut], upto=2)
    assert closed_page(decide_pages(state_of(good, cut, page=before), cut, tree=tree)) == before
    failed = captured("x", "tw", seq=2, outcome="failed")
    assert decide_pages(state_of(good, failed, page=before), failed, tree=tree) == []


def test_a_regenerated_last_step_keeps_the_loop_before_it() -> None:
    """A request that repeats takes back its own reply and what followed, and nothing before it."""
    steps = (
        captured("x", "Let me look.", seq=1, retry_key="k1", **TOOLS),
        captured("x", "It is 42.", seq=2, retry_key="k2"),
        captured("x", "It is 43.", seq=3, retry_key="k2"),
    )
    assert assemble(steps).reply_text == "Let me look.\n\nIt is 43."  # type: ignore[union-attr]
    whole = (*steps, captured("x", "Just 44.", seq=4, retry_key="k1"))
    assert assemble(whole).reply_text == "Just 44."  # type: ignore[union-attr]


def test_a_step_that_arrives_late_takes_its_place_by_time() -> None:
    """A spooled step that reaches the log after its successor still comes first in the page."""
    last = captured("x", "It is 42.", seq=1, at=20)
    late = captured("x", "Let me look.", seq=2, at=10, parent="w", **TOOLS)
    page = closed_page(decide_pages(state_of(last, late), late))
    assert (page.reply_text, page.previous) == ("Let me look.\n\nIt is 42.", "w")


def test_steps_past_the_event_are_not_looked_at() -> None:
    """A decision rests on the log as it stood at its event."""
    first = captured("x", "one", seq=1)
    state = state_of(first, captured("x", "two", seq=2))
    assert closed_page(decide_pages(state, first)).reply_text == "one"


def test_an_equal_page_is_closed_again() -> None:
    """A repeated reply changes nothing, but what the new step made open and unsettled is closed again."""
    first, again = captured("x", "one", seq=1), captured("x", "one", seq=2)
    page = closed_page(decide_pages(state_of(first), first))
    tree = grow({}, [first, again], upto=2)
    assert closed_page(decide_pages(state_of(first, again, page=page), again, tree=tree)) == page


def test_a_carry_over_stays_one_and_is_never_recalled() -> None:
    """The kind of a compaction summary reaches its page, and the index does not take it."""
    event = captured("x", "ok", kind="carry-over")
    page = closed_page(decide_pages(state_of(event), event))
    assert (page.kind, is_recallable(page)) == ("carry-over", False)


def test_decision_ids_follow_from_the_source() -> None:
    """The same decisions of one source get the same ids, those of another source or cause others."""
    event = captured("x", "one")
    payloads = decide_pages(state_of(event), event)
    once, twice = decisions(event, payloads), decisions(event, payloads)
    assert once == twice
    other = [decisions(captured("x", "one", seq=2), payloads), decisions(event, payloads, cause="idle")]
    assert len({found[0].id for found in [once, *other]}) == 3
    assert (once[0].generation, once[0].occurred_at, once[0].parent) == (1, event.occurred_at, event.id)


def nodes(**states: str) -> Tree:
    """A tree from `child='parent state minute'`; a missing parent is `-`, a missing page `-`."""
    made: Tree = {}
    for name, words in states.items():
        parent, page, minute = words.split()
        made[name] = Node(
            parent=None if parent == "-" else parent,
            page=None if page == "-" else page,  # type: ignore[arg-type]
            at=NOON + timedelta(minutes=int(minute)),
        )
    return made


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


def moved(payloads: Sequence[PageMoved]) -> dict[str, str]:
    return {payload.page: payload.state for payload in payloads}


def test_an_edited_message_leaves_its_sibling_and_what_hangs_below() -> None:
    """The branch that the client left goes out of recall, down to its leaves."""
    tree = nodes(a="- active 1", b="a active 2", c="b active 3", b2="a - 4")
    state, moves = follow(tree, "b2", "a", at=minute(4))
    assert (state, moved(moves)) == ("active", {"b": "inactive", "c": "inactive"})


def test_going_on_with_a_branch_that_was_left_brings_it_back() -> None:
    """A child of an inactive page brings back its ancestors and puts the other branch out."""
    tree = nodes(a="- active 1", b="a inactive 2", c="b inactive 3", b2="a active 4", d="c - 5")
    state, moves = follow(tree, "d", "c", at=minute(5))
    assert (state, moved(moves)) == ("active", {"b": "active", "c": "active", "b2": "inactive"})


def test_a_late_sibling_is_inactive_and_moves_nothing() -> None:
    """An exchange that is closed after the client has gone elsewhere starts out inactive."""
    tree = nodes(a="- active 1", b="a active 5", b2="a - 2")
    assert follow(tree, "b2", "a", at=minute(2)) == ("inactive", [])


def test_late_news_of_the_live_path_stays_live() -> None:
    """An exchange whose child came first is live, as the child shows that the client follows it."""
    tree = nodes(a="- active 1", b="a - 2", c="b active 5")
    assert follow(tree, "b", "a", at=minute(2)) == ("active", [])


def test_exchanges_without_a_parent_are_no_siblings() -> None:
    """A client that sends no history does not lose its earlier exchanges."""
    tree = nodes(a="- active 1", b="- active 2", c="- - 3")
    assert follow(tree, "c", None, at=minute(3)) == ("active", [])


def test_the_page_before_skips_a_failed_exchange() -> None:
    """The previous page is the nearest one upwards; an unknown parent is taken at its word."""
    tree = nodes(a="- active 1", b="a - 2", c="b - 3")
    assert nearest_page(tree, "b") == "a"
    assert nearest_page(nodes(c="lost - 3"), "lost") == "lost"
    assert nearest_page(nodes(a="- - 1"), "a") is None


def test_a_page_is_indexed_as_both_sides_and_with_the_page_before() -> None:
    """The text has a line for each side that spoke, named where known; context adds the page before."""
    page = Page(
        id="x",
        scope=Scope(tenant="t", user="u"),
        generation=1,
        user_text="hi",
        reply_text="",
        occurred_at=NOON,
    )
    named = msgspec.structs.replace(page, reply_text="hello", user_name="Ana", reply_name="Bo")
    assert (page_text(page), page_text(named)) == ("hi", "Ana: hi\nBo: hello")
    indexed = index_record(named, page)
    assert (indexed.text, indexed.context) == ("Ana: hi\nBo: hello", "hi\nAna: hi\nBo: hello")
    assert index_record(named, None).context == page_text(named)
    shown = msgspec.structs.replace(named, user_shown="a red canoe")
    assert page_text(shown) == "Ana: hi\na red canoe\nBo: hello"
    assert page_text(msgspec.structs.replace(shown, user_text=" ")) == "Bo: hello"


def exchange_of(event: Event) -> str | None:
    return event.payload.step.exchange if isinstance(event.payload, StepCaptured) else None


def ancestors(parents: dict[str, str | None], name: str) -> list[str]:
    line: list[str] = []
    while (above := parents.get(name)) is not None:
        line.append(name := above)
    return line


class ModelLog:
    """A log in a list, as far as the page decider asks it, its views folded anew at each question."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, events: Sequence[Event]) -> None:
        known = {event.id for event in self.events}
        for event in events:
            if event.id not in known:
                self.events.append(msgspec.structs.replace(event, seq=len(self.events) + 1))

    def steps(self, exchange: str) -> tuple[Event, ...]:
        return tuple(event for event in self.events if exchange_of(event) == exchange)

    def pages(self) -> dict[str, Page]:
        pages: dict[str, Page] = {}
        for event in self.events:
            if isinstance(event.payload, PageClosed):
                pages[event.payload.page.id] = event.payload.page
            elif isinstance(event.payload, PageMoved):
                page = pages[event.payload.page]
                pages[page.id] = msgspec.structs.replace(page, state=event.payload.state)
        return pages

    def parent(self, exchange: str) -> str | None:
        return next((event.parent for event in self.steps(exchange) if event.parent), None)

    async def exchange_state(self, event: Event) -> ExchangeState:
        assert isinstance(event.payload, StepCaptured)
        name = event.payload.step.exchange
        pages, names = self.pages(), {exchange_of(one) for one in self.events} - {None}
        parents = {one: self.parent(one) for one in names if one}
        beside = {
            one for one, parent in parents.items() if parent and parent == parents[name] and one != name
        }
        below = {one for one in parents if any(upper in beside for upper in ancestors(parents, one))}
        return ExchangeState(
            steps=self.steps(name),
            page=pages.get(name),
            siblings=tuple(pages[one] for one in sorted(beside) if one in pages),
            ancestors=tuple(ancestors(parents, name)),
            descendants=tuple(sorted(below & pages.keys())),
        )

    async def exchange(self, tenant: str, user: str, exchange_id: str) -> Exchange | None:
        steps = self.steps(exchange_id)
        if not steps:
            return None
        state = "failed"
        for event in self.events:
            if event in steps and event.payload.step.outcome != "failed":  # type: ignore[union-attr]
                state = "open"
            elif isinstance(event.payload, PageClosed) and event.payload.page.id == exchange_id:
                state = "closed" if event.payload.page.state == "active" else "inactive"
            elif (
                isinstance(event.payload, PageMoved) and event.payload.page == exchange_id and state != "open"
            ):
                state = "closed" if event.payload.state == "active" else "inactive"
        return Exchange(
            id=exchange_id,
            scope=Scope(tenant=tenant, user=user),
            user_text="",
            reply_text="",
            outcome="complete",
            state=state,  # type: ignore[arg-type]
            started_at=NOON,
            finished_at=NOON,
        )

    async def read(self, *, after: int = 0, limit: int = 500, **_: object) -> list[Event]:
        return [event for event in self.events if event.seq > after][:limit]


async def decide_all(sources: Sequence[Event], cuts: Sequence[int]) -> ModelLog:
    """Append the steps in portions of those sizes and let the decider catch up after each."""
    log, cursor, at = ModelLog(), 0, 0
    decider = PageDecider(log=log, consumers=log)  # type: ignore[arg-type]
    for cut in [*cuts, len(sources)]:
        log.append(sources[at : at + cut])
        at += cut
        while todo := [e for e in log.events if isinstance(e.payload, StepCaptured) and e.seq > cursor]:
            log.append(await decider.handle(todo[:1]))
            cursor = todo[0].seq
    return log


@st.composite
def dialogues(draw: st.DrawFn) -> list[Event]:
    """Steps of one session: new exchanges on any earlier one, tool loops, retries, cuts and failures."""
    events: list[Event] = []
    exchanges: list[str] = []
    for number in range(draw(st.integers(1, 10))):
        outcome = draw(st.sampled_from(["complete", "complete", "complete", "partial", "failed"]))
        shape: dict[str, Any] = {"outcome": outcome, **(TOOLS if draw(st.booleans()) else {})}
        reply = draw(st.sampled_from(["", "some text", f"reply {number}"]))
        if exchanges and draw(st.integers(0, 2)) == 0:
            name, parent = draw(st.sampled_from(exchanges)), None
        else:
            name = f"x{len(exchanges)}"
            parent = draw(st.sampled_from(exchanges)) if exchanges and draw(st.integers(0, 5)) else None
            exchanges.append(name)
        at = 10 * number + draw(st.sampled_from([0, 0, 0, -25]))
        events.append(captured(name, reply, seq=number + 1, at=at, parent=parent, **shape))
    return events


@settings(max_examples=150)
@given(dialogues(), st.lists(st.integers(1, 4), max_size=8))
def test_pages_do_not_depend_on_how_batches_are_cut(sources: list[Event], cuts: list[int]) -> None:
    """Handled one by one, in portions or all at once, the same steps make the same pages."""
    one_by_one = asyncio.run(decide_all(sources, [1] * len(sources)))
    assert asyncio.run(decide_all(sources, cuts)).pages() == one_by_one.pages()


@settings(max_examples=150)
@given(dialogues())
def test_active_pages_under_one_root_form_one_chain(sources: list[Event]) -> None:
    """Of two active pages that grew from one start, one is an ancestor of the other."""
    log = asyncio.run(decide_all(sources, []))
    tree = grow({}, log.events, upto=len(log.events))
    lines = {name: line_up(tree, name) for name, page in log.pages().items() if page.state == "active"}
    for one, line in lines.items():
        for other, upper in lines.items():
            assert line[-1] != upper[-1] or one in upper or other in line


def line_up(tree: Tree, name: str | None) -> list[str]:
    line: list[str] = []
    while name is not None:
        line.append(name)
        name = tree[name].parent if name in tree else None
    return line


@settings(max_examples=100)
@given(dialogues())
def test_each_exchange_that_said_something_has_one_page_and_no_failed_one_has(sources: list[Event]) -> None:
    """Every exchange with a complete closing reply has exactly its page; one that only failed has none."""
    log = asyncio.run(decide_all(sources, []))
    pages = log.pages()
    for name in {event.payload.step.exchange for event in sources}:  # type: ignore[union-attr]
        steps = [event.payload.step for event in log.steps(name)]  # type: ignore[union-attr]
        if any(step.outcome == "complete" and step.closes for step in steps):
            assert name in pages
        if all(step.outcome == "failed" for step in steps):
            assert name not in pages


def test_the_stores_hold_the_start_and_the_end_of_a_huge_text() -> None:
    """A text of megabytes leaves its beginning and the question at its end; a long one stays as it is."""
    huge = "start " + "filler " * 1_000_000 + "what do you think?"
    made = Page(
        id="p",
        scope=Scope(tenant="t", user="u"),
        generation=1,
        user_text=huge,
        reply_text="x" * PAGE_CHARACTERS,
        occurred_at=NOON,
    )
    stored = as_stored(made)
    assert stored.user_text.startswith("start filler")
    assert stored.user_text.endswith("filler what do you think?")
    assert len(stored.user_text) <= PAGE_CHARACTERS
    assert stored.reply_text == made.reply_text
    assert as_stored(stored) == stored
