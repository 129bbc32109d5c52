"""Steps captured while the log could not be asked: what they belong to is found when they arrive."""

from __future__ import annotations

import msgspec

from hearth.memory.events.kinds import UNKNOWN, Event, StepCaptured, scope_of
from hearth.memory.ports import EventLog


async def placed(event: Event, log: EventLog) -> Event:
    """The event in the session that its transcript continues, or where its exchange already is.

    An event whose generation is known is as it should be. The generation stays unknown: the append knows
    whether the user was erased since. Raises LogUnavailable.
    """
    if event.generation != UNKNOWN or not isinstance(event.payload, StepCaptured):
        return event
    step = event.payload.step
    known = await log.exchange(event.tenant, event.user, step.exchange)
    if known is not None:
        return msgspec.structs.replace(event, session=known.scope.session)
    state = await log.open_call(
        msgspec.structs.replace(scope_of(event, step), session=""),
        tails=step.tails_before,
        retry_key="",
        response_id="",
        now=step.started_at,
    )
    if state.hit is None:
        return event
    return msgspec.structs.replace(event, session=state.hit.session, parent=state.hit.exchange)
