"""Claude's data export: conversations.json, a list of messages for each conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hearth.memory.portable.formats.found import EMPTY, Dialogue, Found, Source, moment, visible
from hearth.memory.types import ImportedTurn

KEYS = frozenset({"chat_messages"})
"""What a record of the format has."""


class _File(msgspec.Struct):
    file_name: str | None = None
    extracted_content: str | None = None


class _Message(msgspec.Struct):
    sender: str
    uuid: str = ""
    text: str | None = None
    content: list[Any] | None = None
    created_at: str | None = None
    attachments: list[_File] | None = None
    parent_message_uuid: str | None = None


class Conversation(msgspec.Struct):
    """One element of conversations.json."""

    chat_messages: list[_Message]
    uuid: str = ""
    created_at: str | None = None


def read(source: Source, raw: bytes) -> Iterator[Found]:
    """The branch that ends in the latest message. Raises msgspec.MsgspecError, ValueError."""
    conversation = msgspec.json.decode(raw, type=Conversation)
    at = moment(conversation.created_at) or source.at
    turns: list[ImportedTurn] = []
    for message in _branch(conversation.chat_messages):
        at = moment(message.created_at) or at
        text = visible(message.content) or (message.text or "").strip()
        if not text or message.sender not in ("human", "assistant"):
            continue
        if at is None:
            raise ValueError(f"message {message.uuid} has no time: give one for all with `at`")
        turns.append(
            ImportedTurn(
                role="user" if message.sender == "human" else "assistant",
                content=text,
                at=at,
                session=conversation.uuid,
                shown=_shown(message.attachments or ()),
                id=message.uuid,
            )
        )
    left = len(conversation.chat_messages) - len(turns)
    yield Dialogue(turns=tuple(turns), left=left) if turns else EMPTY


def _branch(messages: Sequence[_Message]) -> list[_Message]:
    """All of them where they name no parents; else the path to the latest one."""
    by_id = {message.uuid: message for message in messages}
    if not any(message.parent_message_uuid in by_id for message in messages):
        return list(messages)
    at: _Message | None = max(messages, key=lambda one: one.created_at or "")
    path: list[_Message] = []
    while at is not None and at not in path:
        path.append(at)
        at = by_id.get(at.parent_message_uuid or "")
    return path[::-1]


def _shown(files: Sequence[_File]) -> str:
    """Names of what was sent along: found by, but not the person's words."""
    return "\n".join(file.file_name for file in files if file.file_name)
