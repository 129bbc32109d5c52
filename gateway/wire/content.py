"""Message content, a string or a list of parts: reading its words, placing and stripping a block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hearth.gateway.wire.types import Body
from hearth.gateway.wire.values import mapping, sequence, string
from hearth.memory.extract import clean
from hearth.memory.recall.block import attach, contains_block, detach
from hearth.memory.types import ToolUse, Turn

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
_VISIBLE_PARTS = TEXT_PARTS | {"refusal"}
_MEDIA_PARTS = frozenset(
    {"image", "image_url", "input_image", "input_audio", "audio", "file", "input_file", "document", "video"}
    | {"video_url", "search_result"}
)


def part_text(part: object) -> str:
    """The words of a part; empty for one of another kind."""
    fields = mapping(part)
    kind = string(fields.get("type"))
    return string(fields.get("refusal" if kind == "refusal" else "text")) if kind in _VISIBLE_PARTS else ""


def words(content: object) -> str:
    """The raw text of a content, its parts joined by line breaks."""
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, map(part_text, sequence(content))))


def user_words(content: object) -> tuple[str, bool]:
    """What the user typed, and whether there was text but a client had written all of it."""
    if isinstance(content, str):
        text = clean.user_text(content)
        return text, not text and not content.isspace() and content != ""
    parts = sequence(content)
    raw = [text for text in map(part_text, parts) if text and not text.isspace()]
    text = "\n".join(filter(None, map(clean.user_text, raw)))
    media = any(string(mapping(part).get("type")) in _MEDIA_PARTS for part in parts)
    return text, bool(raw) and not text and not media


def assistant_words(content: object) -> str:
    """The visible words of an assistant's content.

    Neighbouring text parts are one text (citations split sentences); what stands between others parts them.
    """
    return clean.assistant_text(content if isinstance(content, str) else spoken(sequence(content)))


def spoken(parts: Iterable[object]) -> str:
    """The text parts of an assistant's message as one raw text."""
    said, parted = "", False
    for part in parts:
        text = part_text(part)
        if text:
            said += ("\n\n" if parted and said else "") + text
        parted = string(mapping(part).get("type")) not in _VISIBLE_PARTS
    return said


def user_turn(content: object, index: int, results: tuple[ToolUse, ...] = ()) -> Turn:
    """The turn of a message of role user; `tool` where it holds tool results and no words."""
    text, scaffolding = user_words(content)
    return Turn(
        role="tool" if results and not text else "user",
        text=text,
        index=index,
        tools=results,
        scaffolding=scaffolding,
    )


def system_turn(content: object) -> Turn:
    """The turn of a system text; it has no place among the messages that a block can go to."""
    return Turn(role="system", text=clean.well_formed(words(content)))


def place(body: Body, key: str, blocks: Mapping[int, str], part_type: str) -> Body:
    """A copy of `body` whose user messages in the list under `key` end with their block."""
    messages = sequence(body.get(key))
    placed = {
        index: {**messages[index], "content": _with_block(messages[index]["content"], block, part_type)}
        for index, block in blocks.items()
        if block and 0 <= index < len(messages) and _takes_block(messages[index])
    }
    return _replaced(body, key, placed)


def strip(body: Body, key: str) -> Body:
    """`body` without the blocks in the user messages under `key`; a copy where there were any."""
    stripped = {
        index: {**message, "content": _without_blocks(message["content"])}
        for index, message in enumerate(sequence(body.get(key)))
        if string(mapping(message).get("role")) == "user" and _holds_block(message.get("content"))
    }
    return _replaced(body, key, stripped)


def has_user_words(turns: Iterable[Turn]) -> bool:
    """Whether any turn is a user's own words, so that a block has a place."""
    return any(turn.role == "user" and turn.text and not turn.scaffolding for turn in turns)


def _replaced(body: Body, key: str, changed: Mapping[int, Any]) -> Body:
    if not changed:
        return body
    return {**body, key: [changed.get(index, message) for index, message in enumerate(body[key])]}


def _takes_block(message: object) -> bool:
    fields = mapping(message)
    return string(fields.get("role")) == "user" and any(
        _texts(fields.get("content"), lambda text: not text.isspace())
    )


def _holds_block(content: object) -> bool:
    return any(_texts(content, contains_block))


def _texts(content: object, test: Callable[[str], bool]) -> Iterable[bool]:
    if isinstance(content, str):
        return [content != "" and test(content)]
    return (test(text) for text in map(part_text, sequence(content)) if text)


def _with_block(content: Any, block: str, part_type: str) -> Any:
    if isinstance(content, str):
        return attach(content, block)
    return [*content, {"type": part_type, "text": block}]


def _without_blocks(content: Any) -> Any:
    if isinstance(content, str):
        return detach(content)
    parts = ((part, part_text(part)) for part in content)
    return [kept for part, text in parts if (kept := _without_block(part, text)) is not None]


def _without_block(part: Any, text: str) -> Any:
    """The part without a block; None where it was nothing else."""
    if not contains_block(text):
        return part
    rest = detach(text)
    return {**part, "text": rest} if rest else None
