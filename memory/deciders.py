"""Deciders: consumers that turn events into further events, their verdicts, and touch no store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hearth.memory import metrics
from hearth.memory.events.kinds import (
    Event,
    PageClosed,
    Payload,
    RecallDrawn,
    StepCaptured,
    is_decided,
)
from hearth.memory.ports import Consumers, EventLog, ExchangeState
from hearth.memory.recall.drawn import USED, drawn_shares
from hearth.memory.runner import all_different
from hearth.memory.tiers.branches import KINDS, Tree, apply, grow
from hearth.memory.tiers.indexed import as_stored, record_text
from hearth.memory.tiers.pages import decide_pages, decisions, needs_tree, parent_of, step_of
from hearth.memory.types import DrawnItem, Page

READ_ROWS = 500
"""Events read at once where a whole session is needed."""
ITEM_CHARACTERS = 2_000
"""Of an item, which a block does not show longer."""


class PageDecider:
    """Closes exchanges into pages and keeps one branch of each session live.

    Every decision rests on the log as it stood at the event that it follows, so it does not matter how many
    events are handled at once or how far the log has run ahead.
    """

    name = "pages"
    kinds = ("step.captured",)

    def __init__(self, *, log: EventLog, consumers: Consumers) -> None:
        self._log = log
        self._consumers = consumers

    def together(self, events: Sequence[Event]) -> int:
        """How many of the head may be handled at once: at most one event of each session."""
        return all_different((event.tenant, event.user, event.session) for event in events)

    async def probe(self, event: Event) -> None:
        """There is no store to be down."""

    async def handle(self, events: Sequence[Event]) -> list[Event]:
        """Decide for each step, its own exchange and the one that it follows and thereby ends."""
        return [
            decision
            for event in events
            if not is_decided(event.payload)
            for decision in await self._follow(event)
        ]

    async def idle(self, event: Event) -> list[Event]:
        """Close the exchange whose last step is `event`, as nothing followed it for long enough."""
        state = await self._consumers.exchange_state(event)
        upto = max((step.seq for step in state.steps), default=event.seq)
        payloads = await self._decide(state, event, upto=upto, over=True)
        return decisions(event, payloads, cause=f"idle after {len(state.steps)}")

    async def _follow(self, event: Event) -> list[Event]:
        state = await self._consumers.exchange_state(event)
        closed = await self._end_parent(event, parent_of(state.steps))
        own = await self._decide(state, event, upto=event.seq, decided=closed)
        return decisions(event, [*closed, *own])

    async def _end_parent(self, event: Event, parent: str | None) -> list[Payload]:
        """Close the exchange before, if it is still open: its tool loop was left for the next message."""
        if parent is None or await self._state_in_log(event, parent) != "open":
            return []
        steps = [
            step for step in await self._session(event) if _is_step_of(step, parent) and step.seq <= event.seq
        ]
        if not steps:
            return []
        last = max(steps, key=lambda step: (step.occurred_at, step.seq))
        state = await self._consumers.exchange_state(last)
        return [] if state.page else await self._decide(state, last, upto=event.seq, over=True)

    async def _decide(
        self,
        state: ExchangeState,
        event: Event,
        *,
        upto: int,
        over: bool = False,
        decided: Sequence[Payload] = (),
    ) -> list[Payload]:
        payloads = decide_pages(state, event, upto=upto, over=over)
        if not payloads:
            return []
        parent = parent_of(state.steps)
        parent_state = None if parent is None else await self._state_in_log(event, parent)
        if not needs_tree(state, parent_state):
            return payloads
        tree: Tree = grow({}, await self._session(event), upto=upto)
        for payload in decided:
            apply(tree, payload)
        return decide_pages(state, event, tree=tree, upto=upto, over=over)

    async def _state_in_log(self, event: Event, exchange: str) -> str | None:
        found = await self._log.exchange(event.tenant, event.user, exchange)
        return None if found is None else found.state

    async def _session(self, event: Event) -> list[Event]:
        events: list[Event] = []
        after = 0
        while True:
            batch = await self._log.read(
                after=after,
                limit=READ_ROWS,
                kinds=KINDS,
                tenant=event.tenant,
                user=event.user,
                session=event.session,
            )
            events += batch
            if len(batch) < READ_ROWS:
                return events
            after = batch[-1].seq


class DrawnDecider:
    """Sees what each reply drew on, of what was recalled for it, once the exchange is a page."""

    name = "drawn"
    kinds = ("page.closed",)

    def __init__(self, *, log: EventLog) -> None:
        self._log = log

    def together(self, events: Sequence[Event]) -> int:
        """How many of the head may be handled at once: none depends on another."""
        return len(events)

    async def probe(self, event: Event) -> None:
        """There is no store to be down."""

    async def handle(self, events: Sequence[Event]) -> list[Event]:
        """Decide for each page that was answered from memory."""
        return [
            decision
            for event in events
            if isinstance(event.payload, PageClosed) and not event.payload.decided
            for decision in decisions(event, await self._decide(as_stored(event.payload.page)))
        ]

    async def _decide(self, page: Page) -> list[Payload]:
        if not (page.injected and page.reply_text):
            return []
        tenant, user = page.scope.tenant, page.scope.user
        steps = [step_of(event) for event in await self._log.steps(tenant, user, page.id)]
        step = next((step for step in reversed(steps) if step.ranking is not None and step.injected), None)
        if step is None or step.ranking is None:
            return []
        records = list((await self._log.records_named(tenant, user, step.injected)).values())
        if not records:
            return []
        texts = [record_text(record)[:ITEM_CHARACTERS] for record in records]
        shares = await asyncio.to_thread(drawn_shares, texts, page.user_text, page.reply_text)
        items = tuple(
            DrawnItem(id=record.id, share=share, used=share >= USED)
            for record, share in zip(records, shares, strict=True)
        )
        metrics.INJECTED_ITEMS.inc(len(items))
        metrics.DRAWN_ITEMS.inc(sum(item.used for item in items))
        return [RecallDrawn(trace=step.trace, exchange=page.id, items=items, ranking=step.ranking)]


def _is_step_of(event: Event, exchange: str) -> bool:
    return isinstance(event.payload, StepCaptured) and event.payload.step.exchange == exchange
