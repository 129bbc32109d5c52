"""ChatGPT's data export: conversations.json, a tree of messages for each conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hearth.memory.portable.formats.found import EMPTY, Dialogue, Found, Source, moment
from hearth.memory.types import ImportedTurn, Role

KEYS = frozenset({"mapping", "current_node"})
"""What a record of the format has."""
_SPOKEN = ("text", "multimodal_text")


class _Author(msgspec.Struct):
    role: str = ""


class _Content(msgspec.Struct):
    content_type: str = ""
    parts: list[Any] | None = None


class _Message(msgspec.Struct):
    author: _Author
    content: _Content | None = None
    create_time: float | None = None
    recipient: str | None = None
    metadata: dict[str, Any] | None = None


class _Node(msgspec.Struct):
    message: _Message | None = None
    parent: str | None = None


class Conversation(msgspec.Struct):
    """One element of conversations.json."""

    mapping: dict[str, _Node]
    current_node: str | None = None
    conversation_id: str | None = None
    id: str | None = None
    create_time: float | None = None


def read(source: Source, raw: bytes) -> Iterator[Found]:
    """The branch that the person saw last. Raises msgspec.MsgspecError, ValueError."""
    conversation = msgspec.json.decode(raw, type=Conversation)
    session = conversation.conversation_id or conversation.id or ""
    at = moment(conversation.create_time) or source.at
    turns: list[ImportedTurn] = []
    for id, message in _branch(conversation):
        at = moment(message.create_time) or at
        text = _spoken(message)
        if not text or message.author.role not in ("user", "assistant"):
            continue
        if at is None:
            raise ValueError(
                f"message {id} has no time, nor has its conversation: give one for all with `at`"
            )
        role: Role = "user" if message.author.role == "user" else "assistant"
        turns.append(ImportedTurn(role=role, content=text, at=at, session=session, id=id))
    left = sum(node.message is not None for node in conversation.mapping.values()) - len(turns)
    yield Dialogue(turns=tuple(turns), left=left) if turns else EMPTY


def _branch(conversation: Conversation) -> list[tuple[str, _Message]]:
    """The messages from the root to the current node; a tree that bites its tail ends there."""
    path: list[tuple[str, _Message]] = []
    seen: set[str] = set()
    at = conversation.current_node or next(reversed(conversation.mapping), None)
    while at is not None and at not in seen and at in conversation.mapping:
        seen.add(at)
        node = conversation.mapping[at]
        if node.message is not None:
            path.append((at, node.message))
        at = node.parent
    return path[::-1]


def _spoken(message: _Message) -> str:
    """What was said to the other: no calls of tools, no hidden messages, no thoughts."""
    content, told = message.content, message.metadata or {}
    if content is None or content.content_type not in _SPOKEN:
        return ""
    if message.recipient not in (None, "all") or told.get("is_visually_hidden_from_conversation"):
        return ""
    parts = [part if isinstance(part, str) else _transcript(part) for part in content.parts or []]
    return "\n".join(part for part in parts if part.strip()).strip()


def _transcript(part: object) -> str:
    if isinstance(part, dict) and part.get("content_type") == "audio_transcription":
        text = part.get("text")
        return text if isinstance(text, str) else ""
    return ""
