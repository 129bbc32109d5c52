"""Events: the log of the key's tenant, in order, as it was written."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from hearth.gateway.api.access import AdminKey, TheEngine
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import MAX_LIMIT, Identifier
from hearth.gateway.api.problems import invalid, unknown_value
from hearth.gateway.api.shapes import WHEN, example
from hearth.memory.events.kinds import VERSIONS, Event
from hearth.memory.types import EVERYBODY, OFFICE

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


class EventPage(BaseModel):
    """Events in log order."""

    items: list[EventOut]
    next: int = Field(description="`after` of the next page; where there is none yet, of what comes later.")


@router.get("/events")
async def list_events(
    key: AdminKey,
    engine: TheEngine,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="Events behind this position.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    kinds: Annotated[list[str], Query(description="Repeat for several; none: all.")] = [],  # noqa: B006
    user: Annotated[Identifier | None, Query(description="Of this user alone.")] = None,
    session: Annotated[Identifier | None, Query(description="Of this session alone.")] = None,
) -> EventPage:
    """Read the log of the key's tenant. What was forgotten or erased is redacted and left out."""
    unknown = [unknown_value("kinds", kind, VERSIONS, "kind") for kind in kinds if kind not in VERSIONS]
    if unknown:
        raise invalid(unknown)
    events = await engine.log.read(
        after=after, limit=limit, kinds=kinds, tenant=key.tenant, user=user, session=session
    )
    return EventPage(items=[EventOut.of(event) for event in events], next=events[-1].seq if events else after)
