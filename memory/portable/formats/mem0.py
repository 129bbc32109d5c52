"""Mem0's memories, as its `get_all` and its exports give them: a list, or an object that holds one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from hearth.memory.portable.formats.found import EMPTY, OTHER_USER, Found, Left, Remembered, Source, moment
from hearth.memory.types import Metadata

KEYS = frozenset({"memory"})
"""What a record of the format has."""
_OF_ASSISTANT = Left(reason="assistant's words")


class _Memory(msgspec.Struct):
    memory: str
    id: str = ""
    user_id: str | None = None
    role: str | None = None
    metadata: dict[str, Any] | None = None
    categories: list[str] | None = None
    created_at: str | None = None
    updated_at: str | None = None
    expiration_date: str | None = None


class Listed(msgspec.Struct):
    """A list of memories with something around it."""

    results: list[_Memory] = []
    memories: list[_Memory] = []


def read(source: Source, raw: bytes) -> Iterator[Found]:
    """The memories of a record, which is one of them or a list. Raises msgspec.MsgspecError, ValueError."""
    listed = msgspec.json.decode(raw, type=Listed)
    several = [*listed.results, *listed.memories]
    for memory in several or [msgspec.json.decode(raw, type=_Memory)]:
        yield _found(source, memory)


def _found(source: Source, memory: _Memory) -> Found:
    if source.other(memory.user_id):
        return OTHER_USER
    told = memory.metadata or {}
    if (memory.role or told.get("role")) == "assistant":
        return _OF_ASSISTANT
    if not memory.memory.strip():
        return EMPTY
    created = moment(memory.created_at) or source.at
    if created is None:
        raise ValueError(f"memory {memory.id} has no created_at: give a time for all with `at`")
    return Remembered(
        id=memory.id or memory.memory,
        text=memory.memory.strip(),
        created_at=created,
        updated_at=moment(memory.updated_at) or created,
        tags=tuple(dict.fromkeys(memory.categories or ())),
        metadata=_scalars(told),
        expires_at=_end(memory.expiration_date),
    )


def _scalars(told: dict[str, Any]) -> Metadata:
    return {name: value for name, value in told.items() if isinstance(value, str | int | float | bool)}


def _end(date: str | None) -> datetime | None:
    """A day alone is over at its end."""
    read = moment(date)
    if read is not None and date is not None and len(date.strip()) == 10:
        return read.replace(hour=23, minute=59, second=59, tzinfo=UTC)
    return read
