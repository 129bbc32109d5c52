"""Exchanges and sessions: what was said, word for word, and in which conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, TypeAlias, TypeVar

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from hearth.gateway.api.access import Reader, TheEngine, Writer, note_write, reached
from hearth.gateway.api.cursor import List, read_cursor, write_cursor
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import MAX_LIMIT, Body, Identifier
from hearth.gateway.api.shapes import (
    ExchangeOut,
    ExchangePage,
    ForgottenOut,
    SessionOut,
    SessionPage,
    example,
)
from hearth.memory.engine import Engine
from hearth.memory.errors import NotFound
from hearth.memory.types import Exchange, Scope, SessionInfo, SessionMode

router = APIRouter(route_class=KeyedRoute)

R = TypeVar("R", Exchange, SessionInfo)
Position: TypeAlias = tuple[datetime, str]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
SessionId: TypeAlias = Annotated[Identifier, Path(description="As calls name it, or x-hearth-session.")]
Cursor: TypeAlias = Annotated[str | None, Query(description="`next` of the page before.")]


@router.get("/exchanges", tags=["exchanges"])
async def list_exchanges(
    caller: Reader,
    engine: TheEngine,
    session: Annotated[Identifier | None, Query(description="Of this session alone.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ExchangePage:
    """List a user's exchanges, newest first."""
    scope = caller.scope()

    async def read(after: Position | None) -> list[Exchange]:
        return await engine.exchanges(scope.tenant, scope.user, session=session, after=after, limit=limit + 1)

    page, end = await _walk(scope, read, _started, cursor=read_cursor("exchanges", cursor), limit=limit)
    return ExchangePage(items=[ExchangeOut.of(exchange) for exchange in page], next=_next("exchanges", end))


@router.get("/exchanges/{id}", tags=["exchanges"])
async def get_exchange(id: str, caller: Reader, engine: TheEngine) -> ExchangeOut:
    """Read one exchange."""
    scope = caller.scope()
    exchange = await _reachable(engine, scope, id)
    return ExchangeOut.of(exchange, await engine.forgetting(scope.tenant, scope.user, id))


@router.delete(
    "/exchanges/{id}",
    tags=["exchanges"],
    responses={202: {"model": ForgottenOut, "description": "Pending in a store"}},
)
async def forget_exchange(id: str, caller: Writer, engine: TheEngine, response: Response) -> ForgottenOut:
    """Forget one exchange everywhere; 202 where a store is down and is cleared when it is back."""
    scope = caller.scope()
    await _reachable(engine, scope, id)
    forgotten = await engine.forget_exchange(scope, id, by=caller.key.name)
    response.status_code = 200 if forgotten.done else 202
    return ForgottenOut.of(id, forgotten)


@router.get("/sessions", tags=["exchanges"])
async def list_sessions(
    caller: Reader, engine: TheEngine, limit: Limit = 50, cursor: Cursor = None
) -> SessionPage:
    """List a user's sessions, the latest first."""
    scope = caller.scope()

    async def read(after: Position | None) -> list[SessionInfo]:
        return await engine.sessions(scope.tenant, scope.user, after=after, limit=limit + 1)

    page, end = await _walk(scope, read, _last, cursor=read_cursor("sessions", cursor), limit=limit)
    return SessionPage(items=[SessionOut.of(session) for session in page], next=_next("sessions", end))


class SessionMemory(Body):
    """What memory does in a session."""

    model_config = example(memory="read")

    memory: SessionMode = Field(
        description="`on`; `read`: recalls, captures nothing; `off`: neither. It holds from now on: what was "
        "captured before stays, what is said while it is private is never captured."
    )


@router.get("/sessions/{id}/memory", tags=["exchanges"])
async def get_session_memory(id: SessionId, caller: Reader, engine: TheEngine) -> SessionMemory:
    """Say what memory does in a session; `on` in one that was never switched."""
    return SessionMemory(memory=await engine.session_mode(caller.scope(session=id)))


@router.put("/sessions/{id}/memory", tags=["exchanges"])
async def switch_session(
    id: SessionId, caller: Writer, engine: TheEngine, body: SessionMemory
) -> SessionMemory:
    """Switch a session, known or not yet, to private mode or back, at once in every gateway."""
    scope = caller.scope(session=id)
    await note_write(engine, caller, scope, f"switch the session {id} {body.memory}")
    return SessionMemory(memory=await engine.switch_session(scope, body.memory))


async def _walk(
    scope: Scope,
    read: Callable[[Position | None], Awaitable[list[R]]],
    position: Callable[[R], Position],
    *,
    cursor: Position | None,
    limit: int,
) -> tuple[list[R], Position | None]:
    """A page of the records that the scope's agent may see, and where the next one starts; None at the end.

    `read` gives up to `limit + 1` records after a position; it is asked again while the page isn't full.
    """
    page: list[R] = []
    while True:
        found = await read(cursor)
        page += [record for record in found if reached(scope, record.scope)]
        if len(page) > limit:
            return page[:limit], position(page[limit - 1])
        if len(found) <= limit:
            return page, None
        cursor = position(found[-1])


def _started(exchange: Exchange) -> Position:
    return exchange.started_at, exchange.id


def _last(session: SessionInfo) -> Position:
    return session.last_at, session.id


def _next(of: List, end: Position | None) -> str | None:
    return write_cursor(of, end[1], end[0]) if end is not None else None


async def _reachable(engine: Engine, scope: Scope, id: str) -> Exchange:
    exchange = await engine.exchange(scope.tenant, scope.user, id)
    if not reached(scope, exchange.scope):
        raise NotFound
    return exchange
