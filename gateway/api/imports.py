"""Import: dated turns of dialogues that were held elsewhere, as JSON lines or as one document."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, ValidationError

from hearth.gateway.api.access import TheEngine, Writer
from hearth.gateway.api.door import BulkRoute, loads
from hearth.gateway.api.fields import MOMENT, Body, Identifier, Moment, Text
from hearth.gateway.api.problems import FieldError, Problem, field_errors, invalid, shown
from hearth.gateway.api.shapes import example
from hearth.memory.types import ImportedTurn, Role

router = APIRouter(tags=["import"], route_class=BulkRoute)

LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
MOST_ERRORS = 20
"""Errors that one answer names; the first ones show what is wrong."""


class TurnIn(Body):
    """One message of a dialogue."""

    model_config = example(
        role="user", content="I moved to Paris last week.", at="2025-05-24T10:00:00Z", session="s1"
    )

    role: Role
    content: Text
    at: Moment = Field(description=f"When it was said: {MOMENT}.")
    session: Identifier | None = Field(default=None, description="Which conversation; none: `import`.")
    name: Identifier | None = Field(default=None, description="The speaker's name.")
    shown: Text | None = Field(
        default=None, description="What a picture or a file that came with it shows: found by, not repeated."
    )
    id: Identifier | None = Field(default=None, description="The source's own id of the turn.")


class Turns(Body):
    """A whole dialogue as one document."""

    turns: list[TurnIn]


class ImportOut(BaseModel):
    """What came in."""

    model_config = example(user="alice", exchanges=12, turns=25)

    user: str
    exchanges: int = Field(
        description="Exchanges that the turns make; those known before are kept as they are."
    )
    turns: int


BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-ndjson": {
                "schema": {"type": "string"},
                "example": '{"role": "user", "content": "I moved to Paris.", "at": "2025-05-24T10:00:00Z"}\n'
                '{"role": "assistant", "content": "How is it?", "at": "2025-05-24T10:00:05Z"}\n',
            },
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["turns"],
                    "additionalProperties": False,
                    "properties": {"turns": {"type": "array", "items": TurnIn.model_json_schema()}},
                }
            },
        },
    }
}


@router.post("/import", openapi_extra=BODY)
async def import_turns(request: Request, caller: Writer, engine: TheEngine) -> ImportOut:
    """Import dated turns: all of them or, where one can't be used, none. A second import changes nothing."""
    scope = caller.scope()
    read = _reader(request.headers.get("content-type", ""))
    raw = await request.body()
    turns = await asyncio.to_thread(read, raw, engine.clock.now())
    exchanges, count = await engine.import_turns(scope, turns)
    return ImportOut(user=scope.user, exchanges=exchanges, turns=count)


def _reader(content_type: str) -> Callable[[bytes, datetime], list[ImportedTurn]]:
    kind = content_type.split(";")[0].strip().lower()
    if kind in LINES:
        return read_lines
    if kind == "application/json":
        return read_document
    accepted = "application/x-ndjson or application/json"
    error = FieldError(field="content-type", value=shown(content_type), expected=accepted)
    raise invalid([error], status=415, kind="media-type")


def read_lines(raw: bytes, now: datetime) -> list[ImportedTurn]:
    """The turns of JSON lines; blank lines are passed over. Raises Problem 422 naming lines and fields."""
    return _checked(_parsed_lines(raw), "line", now)


def read_document(raw: bytes, now: datetime) -> list[ImportedTurn]:
    """The turns of one JSON document. Raises Problem 400 for bad JSON, 422 naming turns and fields."""
    try:
        document = loads(raw)
    except json.JSONDecodeError as error:
        detail = f"The body is no valid JSON: {error.msg} at character {error.pos}."
        raise Problem(400, "bad-request", detail) from error
    if (
        not isinstance(document, dict)
        or set(document) != {"turns"}
        or not isinstance(document["turns"], list)
    ):
        raise invalid(
            [FieldError(field="body", value=shown(document), expected='an object {"turns": [...]}')]
        )
    return _checked(enumerate(document["turns"], 1), "turn", now)


def _parsed_lines(raw: bytes) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.strip():
            try:
                yield number, loads(line)
            except json.JSONDecodeError as error:
                yield number, error


def _checked(entries: Iterator[tuple[int, Any]], unit: str, now: datetime) -> list[ImportedTurn]:
    turns: list[ImportedTurn] = []
    errors: list[FieldError] = []
    for number, value in entries:
        try:
            turns.append(_turn(value, f"{unit} {number}", now))
        except Problem as problem:
            errors += problem.errors
            if len(errors) >= MOST_ERRORS:
                break
    if errors:
        raise invalid(errors[:MOST_ERRORS])
    if not turns:
        raise invalid([FieldError(field="body", expected=f"at least one {unit}")])
    return turns


def _turn(value: Any, where: str, now: datetime) -> ImportedTurn:
    if isinstance(value, json.JSONDecodeError):
        expected = f"one JSON object ({value.msg} at character {value.pos})"
        raise invalid([FieldError(field=where, value=shown(value.doc), expected=expected)])
    try:
        turn = TurnIn.model_validate(value)
    except ValidationError as error:
        raise invalid(field_errors(error.errors(include_url=False), where)) from error
    if turn.at > now:
        expected = "a time that is not in the future"
        raise invalid([FieldError(field=f"{where}: at", value=turn.at.isoformat(), expected=expected)])
    return ImportedTurn(
        role=turn.role,
        content=turn.content,
        at=turn.at,
        session=turn.session or "",
        name=turn.name or "",
        shown=turn.shown or "",
        id=turn.id or "",
    )
