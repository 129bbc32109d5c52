"""Positions in lists, as opaque text: a cursor holds the last record's keyset position and nothing else."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Literal

import msgspec

from hearth.memory.errors import BadInput
from hearth.memory.types import utc

List = Literal["memories", "exchanges", "sessions", "users", "knowledge"]


class Position(msgspec.Struct, frozen=True, array_like=True):
    """Where a page of a list ended."""

    list: List
    at: datetime | None
    id: str


def write_cursor(of: List, id: str, at: datetime | None = None) -> str:
    """The cursor of the record after which the next page starts."""
    return urlsafe_b64encode(msgspec.json.encode(Position(of, at, id))).decode().rstrip("=")


def read_cursor(of: List, cursor: str | None) -> tuple[datetime, str] | None:
    """The position in a list that is ordered by time; None for no cursor. Raises BadInput for a foreign one.

    A cursor needs no signature: it only says where to go on in the list that the key may read anyway.
    """
    position = _read(of, cursor)
    if position is None:
        return None
    if position.at is None:
        raise _unusable(cursor)
    return position.at, position.id


def read_name_cursor(of: List, cursor: str | None) -> str:
    """The position in a list that is ordered by name; empty for no cursor. Raises BadInput."""
    position = _read(of, cursor)
    return position.id if position is not None else ""


def _read(of: List, cursor: str | None) -> Position | None:
    if not cursor:
        return None
    try:
        raw = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        position = msgspec.json.decode(raw, type=Position)
        if position.at is not None:
            utc(position.at)
    except (ValueError, msgspec.MsgspecError, OverflowError) as error:
        raise _unusable(cursor) from error
    if position.list != of:
        raise _unusable(cursor)
    return position


def _unusable(cursor: str | None) -> BadInput:
    return BadInput("cursor", cursor, "the `next` of an earlier page of this list, or no cursor")
