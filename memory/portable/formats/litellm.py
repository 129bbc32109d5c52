"""LiteLLM's spend logs, where the proxy keeps prompts: a row for each call, with history and reply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hearth.memory.portable.formats.found import OTHER_USER, Dialogue, Found, Left, Source, moment, visible
from hearth.memory.types import ImportedTurn

KEYS = frozenset({"request_id", "startTime"})
"""What a record of the format has."""
_NO_TEXT = Left(reason="no text kept")
_FAILED = Left(reason="failed call")
_NOBODY = "default_user_id"
"""LiteLLM's own name for a key without a user."""


class _Row(msgspec.Struct):
    request_id: str
    startTime: str | float | None = None  # noqa: N815 - LiteLLM's name
    endTime: str | float | None = None  # noqa: N815 - LiteLLM's name
    messages: Any = None
    response: Any = None
    proxy_server_request: Any = None
    end_user: str | None = None
    user: str | None = None
    session_id: str | None = None
    status: str | None = None


class Listed(msgspec.Struct):
    """A page of rows, as the proxy's API gives it."""

    data: list[_Row] = []


def read(source: Source, raw: bytes) -> Iterator[Found]:
    """What was new in each call, and its reply. Raises msgspec.MsgspecError, ValueError."""
    rows = msgspec.json.decode(raw, type=Listed).data
    for row in rows or [msgspec.json.decode(raw, type=_Row)]:
        yield _found(source, row)


def _found(source: Source, row: _Row) -> Found:
    if source.other(row.end_user or (row.user if row.user != _NOBODY else None)):
        return OTHER_USER
    if row.status == "failure":
        return _FAILED
    said, reply = _new(_messages(row)), _reply(_parsed(row.response))
    started = moment(row.startTime) or source.at
    if not said:
        return _NO_TEXT
    if started is None:
        raise ValueError(f"row {row.request_id} has no startTime: give a time for all with `at`")
    session = row.session_id or row.request_id
    turns = [ImportedTurn(role="user", content=said, at=started, session=session, id=row.request_id)]
    if reply:
        ended = max(moment(row.endTime) or started, started)
        turns.append(
            ImportedTurn(
                role="assistant", content=reply, at=ended, session=session, id=f"{row.request_id} reply"
            )
        )
    return Dialogue(turns=tuple(turns))


def _parsed(value: Any) -> Any:
    """The column's JSON, which some ways of exporting a table give as text."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        return msgspec.json.decode(value)
    return value


def _messages(row: _Row) -> list[Any]:
    messages = _parsed(row.messages)
    if not messages:
        request = _parsed(row.proxy_server_request)
        body = request.get("body", request) if isinstance(request, dict) else {}
        messages = body.get("messages") or body.get("input") if isinstance(body, dict) else None
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return messages if isinstance(messages, list) else []


def _new(messages: list[Any]) -> str:
    """What the user said after the last reply: all before it was in an earlier call."""
    new: list[str] = []
    for message in reversed(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant":
            break
        if role == "user" and (text := visible(message.get("content"))):
            new.append(text)
    return "\n".join(reversed(new))


def _reply(response: Any) -> str:
    """The visible text of a reply in any of the proxy's formats."""
    if not isinstance(response, dict):
        return response.strip() if isinstance(response, str) else ""
    for choice in response.get("choices") or ():
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict):
            return visible(message.get("content"))
    if isinstance(response.get("output"), list):
        items = [item for item in response["output"] if isinstance(item, dict)]
        return "\n".join(filter(None, (visible(item.get("content")) for item in items)))
    return visible(response.get("content"))
