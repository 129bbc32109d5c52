"""What the readers of other programs' files find, in Hearth's terms, and what they are told."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import IO, Final, TypeAlias

import msgspec

from hearth.memory.portable.form import Limits
from hearth.memory.types import ImportedTurn, Metadata


class Dialogue(msgspec.Struct, frozen=True, kw_only=True):
    """Turns of one conversation, in their order."""

    turns: tuple[ImportedTurn, ...]
    left: int = 0
    """Messages beside them that nobody said: system prompts, tools, hidden ones, left branches."""


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that another program had made."""

    id: str
    """The source's own."""
    text: str
    created_at: datetime
    updated_at: datetime
    tags: tuple[str, ...] = ()
    metadata: Metadata = {}
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A record that does not come in."""

    reason: str


Found: TypeAlias = Dialogue | Remembered | Left


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A file, and what its reader is told."""

    file: IO[bytes]
    limits: Limits
    user: str
    """Which of the file's users is meant, where it has several; `*` for all."""
    at: datetime | None
    """When it was said, where the file does not say."""

    def other(self, user: str | None) -> bool:
        """True if a record names another user."""
        return bool(user) and self.user not in ("*", user)


OTHER_USER: Final = Left(reason="other user")
EMPTY: Final = Left(reason="empty")
_LATEST: Final = 4_102_444_800.0
"""The year 2100, in seconds: more is no time, or is in milliseconds."""


def moment(value: str | float | None) -> datetime | None:
    """A time as such files have it: ISO 8601, in UTC where it names no zone, or seconds or milliseconds since
    1970. None for none. Raises ValueError.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        read = datetime.fromisoformat(value.strip())
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{value} is no time")
    seconds = value / 1000 if value > _LATEST else value
    return datetime.fromtimestamp(seconds, UTC)


def visible(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list. All else is not said."""
    if isinstance(content, str):
        return content.strip()
    if not isinstance(content, list):
        return ""
    parts = [
        part if isinstance(part, str) else part.get("text")
        for part in content
        if isinstance(part, str)
        or (isinstance(part, dict) and part.get("type") in ("text", "input_text", "output_text"))
    ]
    return "\n".join(part.strip() for part in parts if isinstance(part, str) and part.strip())
