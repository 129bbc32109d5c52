"""Turns records into the block's lines: groups, days and items, each escaped and cut to a length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final, Literal, TypeAlias, assert_never

from hearth.memory.ports import TokenCounter
from hearth.memory.recall.dates import local_day
from hearth.memory.recall.escape import escape_lines
from hearth.memory.types import Memory, MemoryType, Page, Record

Group: TypeAlias = Literal["profile", "facts", "conversation", "knowledge"]
TITLES: Final[dict[Group, str]] = {
    "profile": "# Profile",
    "facts": "# Facts",
    "conversation": "# Earlier conversation",
    "knowledge": "# Knowledge",
}
"""In the order in which the block shows them."""

_ELLIPSIS: Final = "…"
_SENTENCE_END: Final = re.compile(r"[.!?…][\"'»”’)\]]*(?=\s)|[。！？]|\n")
_REPLY_SHARE: Final = 0.4
_CHARACTERS: Final = 16
"""Characters for each token of the limit that are looked at; more to a token has only white space."""
"""Of a page's tokens that its reply may take where the whole is too long: what the user said comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One record as it would stand in the block."""

    id: str
    group: Group
    day: date
    text: str
    """Its lines, the first with a dash, each ended by a line break."""
    tokens: int


def item(record: Record, timezone: str, limit: int, counter: TokenCounter, model: str) -> Item:
    """`record` rendered for a user in `timezone`, in about `limit` tokens at most."""
    count = counter.count
    text = (
        _page(record, limit, counter, model)
        if isinstance(record, Page)
        else _memory(record, timezone, limit, counter, model)
    )
    return Item(
        id=record.id,
        group=group_of(record),
        day=local_day(record.occurred_at, timezone),
        text=text,
        tokens=count(text, model),
    )


def group_of(record: Record) -> Group:
    """Where the block shows it."""
    if isinstance(record, Page):
        return "conversation"
    return _memory_group(record.type)


def body(items: Sequence[Item]) -> str:
    """The block's inner lines: groups in fixed order, within them days and items in order of time given."""
    lines: list[str] = []
    for group, title in TITLES.items():
        mine = [one for one in items if one.group == group]
        if mine:
            lines.append(f"{title}\n")
        day = None
        for one in mine:
            if one.day != day:
                day = one.day
                lines.append(day_line(day))
            lines.append(one.text)
    return "".join(lines)


def day_line(day: date) -> str:
    """The line above a day's items: ISO date and English weekday, whatever the process's locale."""
    return f"{day.isoformat()} {('Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun')[day.weekday()]}\n"


def shorten(text: str, limit: int, counter: TokenCounter, model: str = "") -> str:
    """`text`, or its start up to a sentence's end within about `limit` tokens, with an ellipsis."""
    if _surely_fits(text, limit) or (total := counter.count(text, model)) <= limit:
        return text
    room = max(int(len(text) * limit / total), 1)
    ends = [found.end() for found in _SENTENCE_END.finditer(text, 0, room)]
    if ends and ends[-1] >= room // 2:
        return f"{text[: ends[-1]].rstrip()} {_ELLIPSIS}"
    space = text.rfind(" ", room // 2, room)
    return f"{text[: space if space > 0 else room].rstrip()}{_ELLIPSIS}"


def _page(page: Page, limit: int, counter: TokenCounter, model: str) -> str:
    said, replied = _head(page.user_text, limit), _head(page.reply_text, limit)
    if not _surely_fits(said + replied, limit) and (
        counter.count(said, model) + counter.count(replied, model) > limit
    ):
        said_limit = max(limit - counter.count(replied, model), int(limit * (1 - _REPLY_SHARE)))
        said = shorten(said, said_limit, counter, model)
        replied = shorten(replied, max(limit - counter.count(said, model), 1), counter, model)
    sides = ((page.user_name or "user", said), (page.reply_name or "assistant", replied))
    lines = [line for name, text in sides for line in _spoken(name, text)]
    return _indented(lines)


def _head(text: str, limit: int) -> str:
    """What can be of use of a text: to count the tokens of megabytes would hold up every call."""
    return text[: limit * _CHARACTERS]


def _surely_fits(text: str, limit: int) -> bool:
    """True without counting where even a token a byte would fit."""
    return len(text) * 4 <= limit or len(text.encode("utf-8", "surrogatepass")) <= limit


def _spoken(name: str, text: str) -> list[str]:
    lines = escape_lines(text)
    return [f"{_name(name)}: {lines[0]}", *lines[1:]] if lines else []


@lru_cache(maxsize=1024)
def _name(name: str) -> str:
    return " ".join(escape_lines(name)).replace(":", "")[:60] or "user"


def _memory(memory: Memory, timezone: str, limit: int, counter: TokenCounter, model: str) -> str:
    lines = escape_lines(shorten(_head(memory.text, limit), limit, counter, model))
    notes = []
    if memory.valid_to is not None:
        notes.append(f"until {local_day(memory.valid_to, timezone).isoformat()}")
    source = memory.metadata.get("source")
    if memory.type == "knowledge" and isinstance(source, str):
        notes.append(f"source: {' '.join(escape_lines(source))[:120]}")
    if notes and lines:
        lines[-1] = f"{lines[-1]} ({'; '.join(notes)})"
    return _indented(lines)


def _indented(lines: Sequence[str]) -> str:
    return "".join(f"{'- ' if i == 0 else '  '}{line}\n" for i, line in enumerate(lines))


def _memory_group(kind: MemoryType) -> Group:
    match kind:
        case "persona":
            return "profile"
        case "fact" | "episode":
            return "facts"
        case "knowledge":
            return "knowledge"
        case _:
            assert_never(kind)
