"""What became of a user's memory between two moments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from hearth.gateway.api.access import Reader, TheEngine, reached
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import Moment, check_past
from hearth.gateway.api.shapes import MEMORY, WHEN, MemoryOut, example
from hearth.memory.errors import BadInput
from hearth.memory.past import difference, past, tombstones, whose
from hearth.memory.types import Memory, Scope

router = APIRouter(tags=["memories"], route_class=KeyedRoute)


class ChangeOut(BaseModel):
    """A memory as it was and as it became."""

    before: MemoryOut
    after: MemoryOut


class DiffOut(BaseModel):
    """What is other at the second moment, by what memory knew at each. Of what is forgotten it has the number
    alone.
    """

    model_config = example(
        since=WHEN,
        until=WHEN,
        learned=[MEMORY],
        changed=[],
        ended=[],
        withdrawn=[],
        exchanges=12,
        forgotten_memories=1,
        forgotten_exchanges=0,
    )

    since: datetime
    until: datetime
    learned: list[MemoryOut] = Field(description="Known at the second moment and not at the first.")
    changed: list[ChangeOut] = Field(description="Known at both, with another text, value or property.")
    ended: list[MemoryOut] = Field(
        description="Held at the first moment, or from a later one on, and no more at the second."
    )
    withdrawn: list[MemoryOut] = Field(
        description="Taken back, since what said them left the conversation's branch."
    )
    exchanges: int = Field(description="Exchanges that were filed.")
    forgotten_memories: int
    forgotten_exchanges: int


@router.get("/diff")
async def diff(
    caller: Reader,
    engine: TheEngine,
    since: Annotated[Moment, Query(description="The first moment.")],
    until: Annotated[Moment | None, Query(description="The second moment; none: now.")] = None,
) -> DiffOut:
    """Tell what a user's memory learned, changed, ended and forgot between two moments."""
    scope, now = caller.scope(), engine.clock.now()
    second = until or now
    check_past("until", second, now)
    if since > second:
        raise BadInput("since", since.isoformat(), "a moment that is not after `until`")
    before, after = await past(engine.log, scope.tenant, scope.user, since, second)
    gone = await tombstones(engine.log, scope.tenant, scope.user)
    mine = [event for event in gone if not scope.isolated or whose(event) == scope.agent]
    found = difference(before, after, mine)
    changed = [(old, new) for old, new in found.changed if reached(scope, new.scope)]
    return DiffOut(
        since=since,
        until=second,
        learned=_out(scope, found.learned),
        changed=[ChangeOut(before=MemoryOut.of(old), after=MemoryOut.of(new)) for old, new in changed],
        ended=_out(scope, found.ended),
        withdrawn=_out(scope, found.withdrawn),
        exchanges=sum(reached(scope, page.scope) for page in found.filed),
        forgotten_memories=found.forgotten_memories,
        forgotten_exchanges=found.forgotten_exchanges,
    )


def _out(scope: Scope, memories: Sequence[Memory]) -> list[MemoryOut]:
    return [MemoryOut.of(one) for one in memories if reached(scope, one.scope)]
