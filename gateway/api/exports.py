"""Export: all of a user as one file, streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from hearth.gateway.api.access import Reader, TheEngine
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.problems import Problem

router = APIRouter(tags=["import"], route_class=KeyedRoute)

MEDIA_TYPES = {"jsonl": "application/x-ndjson", "markdown": "text/markdown; charset=utf-8"}
ENDINGS = {"jsonl": "jsonl", "markdown": "md"}


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/x-ndjson": {}, "text/markdown": {}}}},
)
async def export_user(
    caller: Reader,
    engine: TheEngine,
    format: Annotated[
        Literal["jsonl", "markdown"],
        Query(description="`jsonl` can be imported; `markdown` is for people to read."),
    ] = "jsonl",
) -> StreamingResponse:
    """Export everything of a user. A file without its last line, the footer, was cut off."""
    scope = caller.scope()
    if scope.isolated and not caller.admin:
        raise Problem(403, "forbidden", "An agent that is isolated from others can't export all of a user.")
    await engine.note(scope.tenant, "export", by=caller.key.name, user=scope.user, about=format)
    parts = engine.porter.export(scope) if format == "jsonl" else engine.porter.markdown(scope)
    first = await anext(parts)  # while an error can still be answered
    name = quote(f"{scope.user}.{ENDINGS[format]}", safe="")
    return StreamingResponse(
        _after(first, parts),
        media_type=MEDIA_TYPES[format],
        headers={"content-disposition": f"attachment; filename*=UTF-8''{name}"},
    )


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in rest:
        yield part
