"""Memories: add, read, list, change, forget and search."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from hearth.gateway.api.access import Reader, TheEngine, Writer, note_write, reached
from hearth.gateway.api.cursor import read_cursor, write_cursor
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import (
    MAX_LIMIT,
    Body,
    Identifier,
    Importance,
    Metadata,
    Moment,
    Named,
    Question,
    Tags,
    Text,
    check_past,
    given_metadata,
)
from hearth.gateway.api.shapes import (
    ForgottenOut,
    Found,
    HistoryOut,
    MemoryOut,
    MemoryPage,
    SearchOut,
    example,
)
from hearth.memory.engine import Engine
from hearth.memory.errors import BadInput, NotFound
from hearth.memory.past import past
from hearth.memory.ports import MemoryFilter
from hearth.memory.types import Memory, Scope

router = APIRouter(tags=["memories"], route_class=KeyedRoute)


Known: TypeAlias = Literal["now", "then"]
KNOWN = "With `as_of`: by what is known now, or by what memory knew at that moment, as it knew it."
OwnType: TypeAlias = Literal["fact", "persona", "episode", "knowledge"]
"""What a memory of a user's can be that is added by hand."""


class NewMemory(Body):
    """A memory to add by hand."""

    model_config = example(text="Alice is allergic to kiwi.", tags=["health"], importance=0.9)

    text: Text
    type: OwnType = "fact"
    subject: Named = Field(default="", description="Whom or what it is about; `user` where not given.")
    attribute: Named = Field(
        default="",
        description="What of the subject it says, such as `residence`. Where that has one value at a time, "
        "the value before is closed.",
    )
    value: Named = Field(default="", description="The attribute's value, such as `Lisbon`.")
    tags: Tags = Field(default=[])
    metadata: Metadata = Field(default={})
    importance: Importance = 0.5
    pinned: bool = False
    occurred_at: Moment | None = Field(default=None, description="When it was said or happened; null: now.")
    valid_from: Moment | None = Field(default=None, description="Since when it holds; null: since then.")
    valid_to: Moment | None = Field(default=None, description="Until when it holds; null: no end is known.")
    expires_at: Moment | None = None
    user: Identifier | None = Field(default=None, description="The same as the header x-hearth-user.")
    agent: Identifier | None = None
    session: Identifier | None = None


UNCHANGED: Any = None
"""The default of a field that a change may leave out; sent as a value, null is refused."""


class MemoryChange(Body):
    """Fields to change; what is left out stays."""

    model_config = example(tags=["health", "food"], pinned=True)

    text: Text = Field(default=UNCHANGED)
    value: Named = Field(default=UNCHANGED)
    type: OwnType = Field(default=UNCHANGED)
    tags: Tags = Field(default=UNCHANGED)
    metadata: Metadata = Field(default=UNCHANGED, description="Replaces the whole of it.")
    importance: Importance = Field(default=UNCHANGED)
    pinned: bool = Field(default=UNCHANGED)
    valid_from: Moment | None = None
    valid_to: Moment | None = Field(default=None, description="Ends a fact that holds no more.")
    expires_at: Moment | None = None


class SearchIn(Body):
    """What to look for, and what it must be."""

    model_config = example(query="food allergies", types=["fact"], limit=5)

    query: Question = Field(description="Found by meaning and by words.")
    words: str = Field(default="", max_length=1000, description="All of these words must occur.")
    types: list[Literal["page", "concept"] | OwnType] = Field(
        default=[], max_length=5, description="Empty: all."
    )
    tags: Tags = Field(default=[], description="All of these.")
    metadata: Metadata = Field(default={}, description="Equal values for all of these names.")
    since: Moment | None = Field(default=None, description="Said or happened at or after.")
    until: Moment | None = Field(default=None, description="Said or happened before.")
    as_of: Moment | None = Field(default=None, description="What held at that moment.")
    known: Known = Field(default="now", description=KNOWN)
    limit: int = Field(default=10, ge=1, le=MAX_LIMIT)
    agent: Identifier | None = None
    session: Identifier | None = None
    user: Identifier | None = Field(default=None, description="The same as the header x-hearth-user.")


def listed(
    types: Annotated[
        list[OwnType | Literal["concept"]], Query(description="Repeat for several; none: all but concepts.")
    ] = [],  # noqa: B006
    tags: Annotated[list[str], Query(description="Repeat for several; all must be there.")] = [],  # noqa: B006
    metadata: Annotated[
        str | None, Query(description='A JSON object, such as {"lang": "de"}: equal values for its names.')
    ] = None,
    since: Annotated[Moment | None, Query(description="Said or happened at or after.")] = None,
    until: Annotated[Moment | None, Query(description="Said or happened before.")] = None,
    words: Annotated[str, Query(max_length=1000, description="All of these words must occur.")] = "",
    agent: Annotated[Identifier | None, Query()] = None,
    session: Annotated[Identifier | None, Query()] = None,
    include_superseded: Annotated[bool, Query(description="Also what a newer fact has closed.")] = False,
    as_of: Annotated[Moment | None, Query(description="What held at that moment.")] = None,
) -> MemoryFilter:
    """Which memories a list means, by its parameters. Raises BadInput."""
    return MemoryFilter(
        types=tuple(types),
        tags=tuple(tags),
        metadata=given_metadata(metadata),
        since=since,
        until=until,
        words=words,
        agent=agent,
        session=session,
        include_superseded=include_superseded,
        as_of=as_of,
    )


@router.post("/memories", status_code=201)
async def add_memory(caller: Writer, engine: TheEngine, body: NewMemory, response: Response) -> MemoryOut:
    """Add a memory. It is durable when this answers, and recallable within a second."""
    scope = caller.scope(body.user, agent=body.agent, session=body.session)
    await note_write(engine, caller, scope, "add a memory")
    memory = await engine.remember(
        scope,
        body.text,
        type=body.type,
        subject=body.subject,
        attribute=body.attribute,
        value=body.value,
        tags=body.tags,
        metadata=body.metadata,
        importance=body.importance,
        pinned=body.pinned,
        occurred_at=body.occurred_at,
        valid_from=body.valid_from,
        valid_to=body.valid_to,
        expires_at=body.expires_at,
        key=caller.key.name,
    )
    response.headers["location"] = f"/memory/v1/memories/{memory.id}"
    return MemoryOut.of(memory)


@router.get("/memories")
async def list_memories(
    caller: Reader,
    engine: TheEngine,
    where: Annotated[MemoryFilter, Depends(listed)],
    known: Annotated[Known, Query(description=KNOWN)] = "now",
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
) -> MemoryPage:
    """List a user's memories, newest first. What is added meanwhile disturbs no walk through the pages."""
    scope = caller.scope()
    where = _within(scope, where)
    position = read_cursor("memories", cursor)
    if known == "then":
        at = _moment_of(engine, where.as_of)
        (memory,) = await past(engine.log, scope.tenant, scope.user, at)
        return _page(memory.held(where), position, limit)
    found = await engine.memories(scope.tenant, scope.user, where=where, after=position, limit=limit + 1)
    page = found[:limit]
    more = len(found) > limit
    return MemoryPage(
        items=[MemoryOut.of(memory) for memory in page],
        total=await engine.count_memories(scope.tenant, scope.user, where=where),
        next=write_cursor("memories", page[-1].id, page[-1].created_at) if more else None,
    )


def _moment_of(engine: Engine, as_of: datetime | None) -> datetime:
    """The moment at which something was known. Raises BadInput without one, and for one that is to come."""
    if as_of is None:
        raise BadInput("known", "then", "`as_of` with it: the moment")
    check_past("as_of", as_of, engine.clock.now())
    return as_of


def _page(found: Sequence[Memory], position: tuple[datetime, str] | None, limit: int) -> MemoryPage:
    """The part of the list, newest first, behind a position."""
    start = 0
    if position is not None:
        at = next((n for n, one in enumerate(found) if one.id == position[1]), None)
        older = (n for n, one in enumerate(found) if one.created_at < position[0])
        start = next(older, len(found)) if at is None else at + 1
    page = found[start : start + limit]
    more = len(found) > start + limit
    return MemoryPage(
        items=[MemoryOut.of(memory) for memory in page],
        total=len(found),
        next=write_cursor("memories", page[-1].id, page[-1].created_at) if more else None,
    )


@router.post("/memories/search")
async def search_memories(caller: Reader, engine: TheEngine, body: SearchIn) -> SearchOut:
    """Search memories and exchanges by meaning and words, among those that meet every condition."""
    scope = caller.scope(body.user, agent=body.agent, session=body.session)
    where = MemoryFilter(
        types=tuple(body.types),
        tags=tuple(body.tags),
        metadata=body.metadata,
        since=body.since,
        until=body.until,
        as_of=body.as_of,
        words=body.words,
        agent=body.agent,
        session=body.session,
    )
    if body.known == "then":
        at = _moment_of(engine, body.as_of)
        found = await engine.search_then(scope, body.query, at, where=where, limit=body.limit)
    else:
        found = await engine.search(scope, body.query, where=where, limit=body.limit)
    return SearchOut(items=[Found.of(candidate) for candidate in found])


@router.get("/memories/{id}")
async def get_memory(id: str, caller: Reader, engine: TheEngine) -> MemoryOut:
    """Read one memory."""
    return MemoryOut.of(await _reachable(engine, caller.scope(), id))


@router.get("/memories/{id}/history")
async def memory_history(id: str, caller: Reader, engine: TheEngine) -> HistoryOut:
    """What was said of the same, oldest first: the values that it had, until when, and what replaced them."""
    scope = caller.scope()
    await _reachable(engine, scope, id)
    found = await engine.history(scope.tenant, scope.user, id)
    return HistoryOut(items=[MemoryOut.of(memory) for memory in found])


@router.patch("/memories/{id}")
async def change_memory(id: str, caller: Writer, engine: TheEngine, body: MemoryChange) -> MemoryOut:
    """Change fields of a memory."""
    scope = caller.scope()
    await _reachable(engine, scope, id)
    await note_write(engine, caller, scope, f"change the memory {id}")
    changes: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    if "tags" in changes:
        changes["tags"] = tuple(dict.fromkeys(changes["tags"]))
    return MemoryOut.of(await engine.amend(scope.tenant, scope.user, id, key=caller.key.name, **changes))


@router.delete(
    "/memories/{id}", responses={202: {"model": ForgottenOut, "description": "Pending in a store"}}
)
async def forget_memory(id: str, caller: Writer, engine: TheEngine, response: Response) -> ForgottenOut:
    """Forget one memory everywhere; 202 where a store is down and is cleared when it is back."""
    scope = caller.scope()
    await _reachable(engine, scope, id)
    forgotten = await engine.forget(scope, id, by=caller.key.name)
    response.status_code = 200 if forgotten.done else 202
    return ForgottenOut.of(id, forgotten)


async def _reachable(engine: Engine, scope: Scope, id: str) -> Memory:
    memory = await engine.memory(scope.tenant, scope.user, id)
    if not reached(scope, memory.scope):
        raise NotFound
    return memory


def _within(scope: Scope, where: MemoryFilter) -> MemoryFilter:
    """The filter, for an isolated agent narrowed to its own."""
    if not scope.isolated:
        return where
    if where.agent not in (None, scope.agent):
        raise BadInput("agent", where.agent, f"this isolated agent's own name {scope.agent!r}, or none")
    return msgspec.structs.replace(where, own_agent=scope.own_agent)
