"""Events: the log of the key's tenant, or of its user, in order, as it was written."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from hearth.gateway.api.access import Caller, Reader, TheEngine
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import MAX_LIMIT, Identifier, Moment, given_metadata
from hearth.gateway.api.problems import Problem, invalid, unknown_value
from hearth.gateway.api.shapes import WHEN, example
from hearth.memory.events.kinds import VERSIONS, Event
from hearth.memory.ports import EventCount, EventFilter, EventsFound, Unreadable
from hearth.memory.types import EVERYBODY, OFFICE, Scope

router = APIRouter(tags=["operations"], route_class=KeyedRoute)


class EventOut(BaseModel):
    """One line of the log."""

    model_config = example(
        seq=41,
        id="9b1c…",
        kind="memory.forgotten",
        user="alice",
        agent="default",
        session="",
        generation=1,
        occurred_at=WHEN,
        recorded_at=WHEN,
        parent=None,
        payload={"memory": "018f…", "reason": "requested"},
    )

    seq: int = Field(description="Position in the log: what `after` goes on from.")
    id: str
    kind: str
    user: str = Field(description="Empty for what is for all users of the tenant, or done by an operator.")
    agent: str
    session: str
    generation: int
    occurred_at: datetime
    recorded_at: datetime | None
    parent: str | None = Field(description="The exchange or event that caused it.")
    payload: dict[str, Any] = Field(description="By kind.")

    @classmethod
    def of(cls, event: Event) -> EventOut:
        """The event as the API shows it."""
        payload: dict[str, Any] = msgspec.to_builtins(event.payload, str_keys=True)
        payload.pop("kind", None)
        return cls(
            seq=event.seq,
            id=event.id,
            kind=event.kind,
            user=event.user if event.user not in (EVERYBODY, OFFICE) else "",
            agent=event.agent,
            session=event.session,
            generation=event.generation,
            occurred_at=event.occurred_at,
            recorded_at=event.recorded_at,
            parent=event.parent,
            payload=payload,
        )


class UnreadableOut(BaseModel):
    """An event whose payload can't be read."""

    seq: int
    id: str
    kind: str
    reason: str = Field(description="Damaged, or of a newer Hearth.")

    @classmethod
    def of(cls, event: Unreadable) -> UnreadableOut:
        """The event as the API shows it."""
        return cls(seq=event.seq, id=event.id, kind=event.kind, reason=event.reason)


class EventPage(BaseModel):
    """Events in log order; with `before` the latest first."""

    items: list[EventOut]
    unreadable: list[UnreadableOut] = Field(description="Those in between that can't be read.")
    next: int = Field(
        description="`after` or `before` of the next page; at the end the `after` of what comes later."
    )
    ended: bool = Field(
        description="False while there may be more, even where the page is empty: a call looks at so many."
    )

    @classmethod
    def of(cls, found: EventsFound) -> EventPage:
        """What was found as the API shows it."""
        return cls(
            items=[EventOut.of(event) for event in found.events],
            unreadable=[UnreadableOut.of(event) for event in found.unreadable],
            next=found.next,
            ended=found.ended,
        )


class EventCountOut(BaseModel):
    """Events of a kind that occurred in a month."""

    model_config = example(
        month="2026-11", kind="page.closed", events=812, redacted=3, archived=0, bytes=90210
    )

    month: str = Field(description="In UTC.")
    kind: str
    events: int
    redacted: int = Field(description="Of them, those whose content is gone.")
    archived: int = Field(description="Of them, those whose content is in an archive.")
    bytes: int = Field(description="Of the payloads in the log itself, as stored.")

    @classmethod
    def of(cls, count: EventCount) -> EventCountOut:
        """The count as the API shows it."""
        return cls(**{name: getattr(count, name) for name in count.__struct_fields__})


class EventCounts(BaseModel):
    """The log in numbers."""

    items: list[EventCountOut]


_FAR = 2**63 - 1


@router.get("/events")
async def list_events(
    caller: Reader,
    engine: TheEngine,
    after: Annotated[int, Query(ge=0, le=_FAR, description="Events behind this position.")] = 0,
    before: Annotated[
        int | None,
        Query(ge=0, le=_FAR, description="Events in front of this position, the latest first."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    kinds: Annotated[list[str], Query(description="Repeat for several; none: all.")] = [],  # noqa: B006
    agent: Annotated[Identifier | None, Query(description="Of this agent alone.")] = None,
    session: Annotated[Identifier | None, Query(description="Of this session alone.")] = None,
    tags: Annotated[list[Identifier], Query(description="Repeat for several: all of them.")] = [],  # noqa: B006
    metadata: Annotated[
        str | None, Query(max_length=4096, description='Equal values, as JSON: `{"source": "crm"}`.')
    ] = None,
    trace: Annotated[Identifier | None, Query(description="Of this recall, by `x-hearth-trace`.")] = None,
    words: Annotated[str, Query(max_length=1000, description="All of these words occur in its texts.")] = "",
    since: Annotated[Moment | None, Query(description="Occurred at or after.")] = None,
    until: Annotated[Moment | None, Query(description="Occurred before.")] = None,
) -> EventPage:
    """Read the log of the key's user; with an admin key, of the user that is named or of the whole tenant.

    What was forgotten or erased is redacted and left out.
    """
    unknown = [unknown_value("kinds", kind, VERSIONS, "kind") for kind in kinds if kind not in VERSIONS]
    if unknown:
        raise invalid(unknown)
    user, own = _whose(caller)
    where = EventFilter(
        tenant=caller.key.tenant,
        user=user,
        agent=own.agent if own is not None else agent,
        owner=own.owner if own is not None else None,
        session=session,
        kinds=tuple(kinds),
        tags=tuple(tags),
        metadata=given_metadata(metadata),
        trace=trace or "",
        words=words,
        since=since,
        until=until,
    )
    return EventPage.of(await engine.log.find(where, after=after, before=before, limit=limit))


@router.get("/events/counts")
async def count_events(caller: Reader, engine: TheEngine) -> EventCounts:
    """Count the events that `GET /events` would read, redacted ones too, by month and kind."""
    user, own = _whose(caller)
    if own is not None:
        raise Problem(
            403, "forbidden", "An agent that is isolated from others can't count the user's events."
        )
    counted = await engine.log.count_events(caller.key.tenant, user)
    return EventCounts(items=[EventCountOut.of(one) for one in counted])


def _whose(caller: Caller) -> tuple[str | None, Scope | None]:
    """The user whose events are read, None for all of the tenant, and the scope of an isolated agent."""
    if caller.admin and not caller.named:
        return None, None
    scope = caller.scope()
    return scope.user, scope if scope.isolated and not caller.admin else None
