"""Which page an exchange makes, and which pages its branch brings in or leaves: pure decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import NAMESPACE_URL, uuid5

import msgspec

from hearth.memory.events.kinds import Event, PageClosed, PageMoved, Payload, StepCaptured, scope_of
from hearth.memory.ports import ExchangeState
from hearth.memory.tiers.branches import Tree, follow, is_dead, nearest_page
from hearth.memory.types import Page, Step

_NAMESPACE = uuid5(NAMESPACE_URL, "hearth:decision")


def decide_pages(
    state: ExchangeState,
    event: Event,
    *,
    tree: Tree | None = None,
    upto: int | None = None,
    over: bool = False,
) -> list[Payload]:
    """Decide what the exchange of `event` becomes, with the log as it stood at `upto`.

    `event` is the exchange's newest step. `upto` is the `seq` past which steps are not looked at (default:
    the event's own), so that a decision never depends on how far the log has run ahead. `over` says that
    no step will follow. `tree` is needed where `needs_tree` says so; without it the exchange simply follows
    its parent. Returns nothing while the exchange has no page, or for a step that adds nothing. A page
    that stays as it is is closed again all the same: its step made the exchange open, and its page
    unsettled.
    """
    steps = _steps(state, event.seq if upto is None else upto)
    # An exchange that has its page already was over once: the page then follows every further step.
    page = assemble(steps, over=over or state.page is not None)
    if page is None or (not over and is_dead(step_of(event))):
        return []
    parent = parent_of(steps)
    moves: list[PageMoved] = []
    if tree is None:
        page = msgspec.structs.replace(page, previous=parent)
    else:
        at = max(step.occurred_at for step in steps if not is_dead(step_of(step)))
        page_state, moves = follow(tree, page.id, parent, at=at)
        page = msgspec.structs.replace(page, previous=nearest_page(tree, parent), state=page_state)
    return [PageClosed(page=page), *moves]


def needs_tree(state: ExchangeState, parent_state: str | None) -> bool:
    """True if the exchange may turn a branch: it has a page or others beside it, or a parent off the path.

    `parent_state` is that of the parent's exchange in the log, None where it has none there.
    """
    beside = bool(state.siblings or state.descendants)
    return beside or state.page is not None or parent_state not in (None, "closed")


def assemble(steps: Sequence[Event], *, over: bool = False) -> Page | None:
    """The page that an exchange's steps make, in order of `occurred_at`; None while there is none.

    The last complete reply is the page's; failing one, a partial reply with visible text; and once the
    exchange is `over` what an unanswered tool loop has said so far. A failed step adds nothing, nor does one
    that was cut off before anything came.
    """
    live = [event for event in steps if not is_dead(step_of(event))]
    kept = _kept(live, over=over)
    if not kept:
        return None
    texts = [step_of(event).reply_text for event in kept if step_of(event).reply_text.strip()]
    user = next((event for event in kept if step_of(event).user_text.strip()), None)
    event = user or kept[0]
    step = step_of(event)
    return Page(
        id=step.exchange,
        scope=scope_of(event, step),
        generation=event.generation,
        user_text=step.user_text,
        reply_text="\n\n".join(texts),
        user_name=step.user_name,
        reply_name=step.reply_name,
        by_other=step.by_other,
        user_shown=step.user_shown,
        reply_shown=step.reply_shown,
        occurred_at=live[0].occurred_at,
        kind="carry-over" if any(step_of(event).kind == "carry-over" for event in kept) else "dialogue",
        timezone=step.timezone,
        key=step.key,
        injected=tuple(dict.fromkeys(item for event in kept for item in step_of(event).injected)),
    )


def parent_of(steps: Iterable[Event]) -> str | None:
    """The exchange before this one: later steps of a tool loop do not repeat it."""
    return next((event.parent for event in steps if event.parent is not None), None)


def step_of(event: Event) -> Step:
    """The step of a `step.captured` event. Raises TypeError for another kind."""
    if not isinstance(event.payload, StepCaptured):
        raise TypeError(f"{event.kind} is no step.captured")
    return event.payload.step


def decisions(source: Event, payloads: Sequence[Payload], *, cause: str = "") -> list[Event]:
    """Events for what was decided because of `source`, with ids that a second run repeats.

    `cause` tells apart the occasions on which one source event leads to decisions.
    """
    return [
        Event(
            id=uuid5(_NAMESPACE, f"{source.id}/{cause}/{payload.__struct_config__.tag}/{ordinal}").hex,
            tenant=source.tenant,
            user=source.user,
            agent=source.agent,
            session=source.session,
            generation=source.generation,
            occurred_at=source.occurred_at,
            parent=source.id,
            payload=payload,
        )
        for ordinal, payload in enumerate(payloads)
    ]


def _steps(state: ExchangeState, upto: int) -> list[Event]:
    seen = [event for event in state.steps if event.seq <= upto]
    return sorted(seen, key=lambda event: (event.occurred_at, event.seq))


def _kept(live: Sequence[Event], *, over: bool) -> list[Event]:
    run: list[Event] = []
    whole: list[Event] = []
    for event in live:
        run = [*_before(run, event), event]
        if _answered(event):
            whole = run
    if whole or over or not run:
        return whole or run
    last = step_of(run[-1])
    visible = any(step_of(event).reply_text.strip() for event in run)
    return run if last.outcome == "partial" and last.closes and visible else []


def _before(run: list[Event], event: Event) -> list[Event]:
    """What of the reply so far still stands when this step comes: a repeated request takes back its reply."""
    key = step_of(event).retry_key
    again = next((at for at, earlier in enumerate(run) if key and step_of(earlier).retry_key == key), None)
    if again is not None:
        return run[:again]
    if run and _answered(run[-1]):
        return []
    return run[:-1] if run and step_of(run[-1]).outcome == "partial" else run


def _answered(event: Event) -> bool:
    step = step_of(event)
    return step.outcome == "complete" and step.closes
