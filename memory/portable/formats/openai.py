"""Message logs in OpenAI's format: a list of messages a record, as for fine-tuning, also with time and id."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from hearth.memory.portable.formats.found import EMPTY, Dialogue, Found, Source, moment, visible
from hearth.memory.types import ImportedTurn

KEYS = frozenset({"messages"})
"""What a record of the format has."""


class _Message(msgspec.Struct):
    role: str
    content: Any = None
    name: str | None = None
    id: str | None = None
    created_at: str | float | None = None
    timestamp: str | float | None = None


class Log(msgspec.Struct):
    """One conversation."""

    messages: list[_Message]
    id: str | None = None
    session_id: str | None = None
    conversation_id: str | None = None
    created: str | float | None = None
    created_at: str | float | None = None
    timestamp: str | float | None = None


def read(source: Source, raw: bytes) -> Iterator[Found]:
    """What user and assistant said. Raises msgspec.MsgspecError, ValueError where no time is known."""
    log = msgspec.json.decode(raw, type=Log)
    digest = hashlib.sha256(raw).hexdigest()[:32]
    session = log.session_id or log.conversation_id or log.id or digest
    at = moment(log.created) or moment(log.created_at) or moment(log.timestamp) or source.at
    turns: list[ImportedTurn] = []
    for place, message in enumerate(log.messages):
        at = moment(message.created_at) or moment(message.timestamp) or at
        text = visible(message.content)
        if not text or message.role not in ("user", "assistant"):
            continue
        if at is None:
            raise ValueError("no time: neither the record nor its messages have one; give one with `at`")
        turns.append(
            ImportedTurn(
                role="user" if message.role == "user" else "assistant",
                content=text,
                at=at,
                session=session,
                name=message.name or "",
                id=message.id or f"{digest} {place}",
            )
        )
    yield Dialogue(turns=tuple(turns), left=len(log.messages) - len(turns)) if turns else EMPTY
