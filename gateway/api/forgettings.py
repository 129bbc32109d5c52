"""What users asked to forget in their conversations: what it was taken to mean, and its undoing for a day."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from hearth.gateway.api.access import Reader, TheEngine, Writer, note_write, reached
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import MAX_LIMIT
from hearth.gateway.api.shapes import FORGETTING, ForgettingOut, example
from hearth.memory.errors import NotFound

router = APIRouter(tags=["exchanges"], route_class=KeyedRoute)


class ForgettingsOut(BaseModel):
    """Requests to forget, newest first."""

    model_config = example(items=[FORGETTING])

    items: list[ForgettingOut]


@router.get("/forgettings")
async def list_forgettings(
    caller: Reader, engine: TheEngine, limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50
) -> ForgettingsOut:
    """List what a user asked to forget in conversations, newest first."""
    scope = caller.scope()
    found = await engine.forgettings(scope.tenant, scope.user, limit=limit)
    return ForgettingsOut(items=[ForgettingOut.of(one) for one in found if reached(scope, one.scope)])


@router.post("/forgettings/{id}/undo")
async def undo_forgetting(id: str, caller: Writer, engine: TheEngine) -> ForgettingOut:
    """Bring back what the exchange of that id asked to forget, within a day of it."""
    scope = caller.scope()
    asked = await engine.forgetting(scope.tenant, scope.user, id)
    if asked is None or not reached(scope, asked.scope):
        raise NotFound
    await note_write(engine, caller, scope, f"undo the forgetting {id}")
    return ForgettingOut.of(await engine.undo(scope.tenant, scope.user, id))
