"""An event on its way from one memory to another: what leaves with it, and whose it becomes. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from hearth.memory.events.kinds import (
    Event,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    PageClosed,
    PageForgotten,
    PageMoved,
    PageOutdated,
    PageRead,
    Payload,
    Reading,
    RecallDrawn,
    RecallJudged,
    SegmentChanged,
    SegmentPinned,
    SessionSummarised,
    StepCaptured,
)
from hearth.memory.types import Memory, Outdated, Page, Scope, Step, Tails, agent_in

Mask: TypeAlias = Callable[[str], str]


def packed(event: Event, *, decided: bool) -> Event:
    """The event as it leaves: without the block, which is made of memories, and without digests that another
    log has no key for. `decided`: whether the decisions that it leads to leave with it.
    """
    match event.payload:
        case StepCaptured(step=step):
            bare = replace(
                step, block=None, tails=Tails(), tails_before=Tails(), retry_key="", response_id=""
            )
            return replace(event, payload=StepCaptured(step=bare, decided=decided))
        case PageClosed() | PageMoved() | PageOutdated() | PageForgotten():
            return replace(event, payload=replace(event.payload, decided=decided))
        case RecallDrawn() | SegmentPinned() | PageRead():
            return replace(event, payload=replace(event.payload, decided=decided))
        case _:
            return event


def addressed(event: Event, scope: Scope, generation: int, mask: Mask) -> Event:
    """The event as that user's, whoever it says that it is of. `mask` is applied to every text.

    Of an isolated scope all is that agent's; else each record stays its agent's.
    """
    return replace(
        event,
        tenant=scope.tenant,
        user=scope.user,
        agent=scope.agent if scope.isolated else event.agent,
        generation=generation,
        seq=0,
        recorded_at=None,
        payload=_payload(event.payload, scope, generation, mask),
    )


def _payload(payload: Payload, scope: Scope, generation: int, mask: Mask) -> Payload:
    match payload:
        case StepCaptured(step=step):
            return replace(payload, step=_step(step, scope, mask))
        case PageClosed(page=page):
            return replace(payload, page=_page(page, scope, generation, mask))
        case MemoryAdded(memory=memory) | MemoryChanged(memory=memory):
            return replace(payload, memory=_memory(memory, scope, generation, mask))
        case PageOutdated(outdated=outdated):
            return replace(payload, outdated=_masked(outdated, mask))
        case PageRead(said=said):
            return replace(payload, said=tuple(_reading(one, mask) for one in said))
        case SegmentChanged(segment=segment):
            return replace(payload, segment=replace(segment, owner=_owner(segment.owner, scope)))
        case SessionSummarised(owner=owner, lines=lines):
            masked = (
                replace(one, text=mask(one.text), outdated=_masked(one.outdated, mask)) for one in lines
            )
            return replace(payload, owner=_owner(owner, scope), lines=tuple(masked))
        case RecallJudged(note=note):
            return replace(payload, note=mask(note))
        case MemoryForgotten() | PageForgotten() if scope.isolated:
            return replace(payload, own_agent=scope.agent)
        case _:
            return payload


def _step(step: Step, scope: Scope, mask: Mask) -> Step:
    return replace(
        step,
        isolated=step.isolated or scope.isolated,
        user_text=mask(step.user_text),
        reply_text=mask(step.reply_text),
        user_shown=mask(step.user_shown),
        reply_shown=mask(step.reply_shown),
        alternatives=tuple(mask(text) for text in step.alternatives),
        tools=tuple(
            replace(
                tool,
                arguments=None if tool.arguments is None else mask(tool.arguments),
                result=None if tool.result is None else mask(tool.result),
            )
            for tool in step.tools
        ),
        block=None,
        tails=Tails(),
        tails_before=Tails(),
        retry_key="",
        response_id="",
    )


def _page(page: Page, scope: Scope, generation: int, mask: Mask) -> Page:
    return replace(
        page,
        scope=_scope(page.scope, scope),
        generation=generation,
        user_text=mask(page.user_text),
        reply_text=mask(page.reply_text),
        user_shown=mask(page.user_shown),
        reply_shown=mask(page.reply_shown),
        outdated=_masked(page.outdated, mask),
    )


def _memory(memory: Memory, scope: Scope, generation: int, mask: Mask) -> Memory:
    return replace(
        memory,
        scope=_scope(memory.scope, scope),
        generation=generation,
        text=mask(memory.text),
        value=mask(memory.value),
        evidence=tuple(replace(one, quote=mask(one.quote)) for one in memory.evidence),
    )


def _reading(reading: Reading, mask: Mask) -> Reading:
    said = reading.said
    bare = replace(said, statement=mask(said.statement), quote=mask(said.quote), value=mask(said.value))
    return replace(reading, said=bare)


def _masked(outdated: tuple[Outdated, ...], mask: Mask) -> tuple[Outdated, ...]:
    return tuple(replace(one, quote=mask(one.quote)) for one in outdated)


def _scope(of: Scope, scope: Scope) -> Scope:
    if scope.isolated:
        return replace(scope, session=of.session)
    return replace(of, tenant=scope.tenant, user=scope.user)


def _owner(owner: str, scope: Scope) -> str:
    """The owner in the terms of `Scope.owner`, whose third part is an isolated agent's."""
    if scope.isolated:
        return scope.owner
    agent = agent_in(owner)
    return replace(scope, agent=agent, isolated=True).owner if agent else scope.person
