"""Import: an export of Hearth's, what other programs export, and dated turns held elsewhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from tempfile import TemporaryFile
from typing import IO, Annotated, Any, ClassVar

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field, ValidationError

from hearth.config.settings import HearthSettings, ImportSettings
from hearth.gateway.api.access import Caller, TheGateway, Writer
from hearth.gateway.api.door import MEGABYTE, KeyedRoute, loads, too_large
from hearth.gateway.api.fields import MOMENT, Body, Identifier, Moment, Text
from hearth.gateway.api.problems import FieldError, Problem, field_errors, invalid, shown
from hearth.gateway.api.shapes import example
from hearth.memory.errors import BadInput
from hearth.memory.portable.foreign import Brought
from hearth.memory.portable.form import Limits, Reading
from hearth.memory.portable.formats.found import Source
from hearth.memory.portable.formats.pick import Format, format_of
from hearth.memory.types import ImportedTurn, Role, Scope


class FileRoute(KeyedRoute):
    """A keyed route that takes files; how large they may be is a setting."""

    body_limit: ClassVar[int] = 1_000_000 * MEGABYTE


router = APIRouter(tags=["import"], route_class=FileRoute)

LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
JSON = ("application/json",)
FILES = ("application/zip", "application/x-zip-compressed", "application/octet-stream")
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

    model_config = example(
        user="alice",
        format="turns",
        read=25,
        turns=25,
        exchanges=12,
        memories=0,
        added=11,
        skipped={"known": 1},
    )

    user: str
    format: Format = Field(description="As it was named, or found.")
    read: int = Field(description="Records of the file: events, messages, memories.")
    turns: int = Field(description="Of dialogues.")
    exchanges: int = Field(
        description="Exchanges that the turns make; those known before are kept as they are."
    )
    memories: int = Field(description="That another program had made.")
    added: int = Field(
        description="Events that came in: those of an export, else one for each exchange or memory."
    )
    skipped: dict[str, int] = Field(
        description="What did not, by reason: `known`, `forgotten`, `erased` (from before the user's "
        "erasure), `older` (a memory was changed here since), `not said`, `other user`, `empty`, …"
    )


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
            "application/octet-stream": {
                "schema": {"type": "string", "format": "binary"},
                "example": "the bytes of conversations.zip, or of an export",
            },
        },
    }
}


@router.post("/import", openapi_extra=BODY)
async def import_file(
    request: Request,
    caller: Writer,
    gateway: TheGateway,
    format: Annotated[
        Format | None, Query(alias="from", description="The file's format; found by itself where not named.")
    ] = None,
    source_user: Annotated[
        str, Query(max_length=1_000, description="Which user of the file, where it has several; `*`: all.")
    ] = "",
    at: Annotated[
        Moment | None, Query(description="When things were said, where the file does not tell.")
    ] = None,
    anew: Annotated[
        bool, Query(description="Of an export, also what is from before the user's erasure here.")
    ] = False,
) -> ImportOut:
    """Import a file: all of it or, where something can't be used, none. A second import changes nothing.

    An operator who names nobody imports an export as the user that it is of.
    """
    limits = limits_of(gateway.settings.hearth.imports)
    media_type = _media_type(request.headers.get("content-type", ""))
    with TemporaryFile() as file:
        await _spool(request, file, limits.file_bytes)
        source = Source(file=file, limits=limits, user="", at=None)
        format = format or await asyncio.to_thread(_format, source, media_type)
        scope = await asyncio.to_thread(_scope, caller, source, format, gateway.settings.hearth)
        engine = gateway.flow.engine
        await engine.note(scope.tenant, "import", by=caller.key.name, user=scope.user, about=format)
        porter, key = engine.porter, caller.key.name
        if format == "hearth":
            taken = await porter.take(scope, file, limits=limits, anew=anew, key=key)
            return _out(scope, format, Brought(taken=taken))
        if format == "turns":
            turns = await asyncio.to_thread(_turns, file, limits, media_type, engine.clock.now())
            return _out(scope, format, await porter.turns(scope, turns, key=key))
        brought = await porter.bring(
            scope, file, format, limits=limits, source_user=source_user, at=at, key=key
        )
        return _out(scope, format, brought)


def limits_of(settings: ImportSettings) -> Limits:
    """The settings as the import takes them."""
    return Limits(
        file_bytes=settings.max_mb * MEGABYTE,
        unpacked_bytes=settings.max_unpacked_mb * MEGABYTE,
        ratio=settings.max_ratio,
        record_bytes=settings.max_record_mb * MEGABYTE,
        records=settings.max_records,
    )


def _out(scope: Scope, format: Format, brought: Brought) -> ImportOut:
    return ImportOut(
        user=scope.user,
        format=format,
        read=brought.taken.read,
        turns=brought.turns,
        exchanges=brought.exchanges,
        memories=brought.memories,
        added=brought.taken.added,
        skipped=brought.taken.skipped,
    )


def _media_type(header: str) -> str:
    kind = header.split(";")[0].strip().lower()
    if kind not in (*LINES, *JSON, *FILES):
        accepted = "application/octet-stream, application/x-ndjson, application/json or application/zip"
        error = FieldError(field="content-type", value=shown(header), expected=accepted)
        raise invalid([error], status=415, kind="media-type")
    return kind


async def _spool(request: Request, file: IO[bytes], limit: int) -> None:
    """Write the body to the file, so that of a large one little is in memory."""
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise too_large(limit)
        await asyncio.to_thread(file.write, part)
    file.flush()


def _format(source: Source, media_type: str) -> Format:
    """Of JSON in no known format the errors are those of turns, which say what is missing."""
    try:
        return format_of(source)
    except BadInput:
        if media_type in FILES:
            raise
        return "turns"


def _scope(caller: Caller, source: Source, format: Format, settings: HearthSettings) -> Scope:
    """Whose memory the file goes to."""
    if format == "hearth" and caller.admin and not caller.named and not settings.keyless:
        return caller.scope(Reading(source.file, source.limits, datetime.now(UTC)).header.user)
    return caller.scope()


def _turns(file: IO[bytes], limits: Limits, media_type: str, now: datetime) -> list[ImportedTurn]:
    file.seek(0)
    raw = file.read(limits.record_bytes + 1)
    if len(raw) > limits.record_bytes:
        raise too_large(limits.record_bytes)
    document = media_type in JSON or (media_type in FILES and raw.lstrip().startswith(b'{"turns"'))
    return read_document(raw, now) if document else read_lines(raw, now)


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
