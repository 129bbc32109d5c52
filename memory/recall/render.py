"""Turns pieces into the block's lines: groups, days and items, each escaped and cut to a length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Final, Literal, TypeAlias, assert_never

from hearth.memory.extract.attributes import AGENT
from hearth.memory.ports import TokenCounter
from hearth.memory.recall.abridge import ELLIPSIS, SENTENCE_END, abridged
from hearth.memory.recall.dates import local_day
from hearth.memory.recall.escape import escape_lines
from hearth.memory.recall.pieces import Piece
from hearth.memory.types import Memory, MemoryType, Page, Record

Group: TypeAlias = Literal["profile", "agent", "facts", "conversation", "concepts", "knowledge", "system"]
TITLES: Final[dict[Group, str]] = {
    "profile": "# Profile",
    "agent": "# Agreed with the assistant",
    "facts": "# Facts",
    "conversation": "# Earlier conversation",
    "concepts": "# Concepts",
    "knowledge": "# Knowledge",
    "system": "# System memory",
}
"""In the order in which the block shows them."""

_SPEAKERS: Final = ("user", "assistant")
_REPLY_SHARE: Final = 0.4
"""Of a record's tokens that its reply may take in any case."""
MOST_OF_WHOLE: Final = 400
"""Tokens of a part of a document, and of a concept: a table or a list is of little use without its end."""
_WHOLE: Final = ("knowledge", "concept")
"""Types of which nothing is left out before that."""
PER_TOKEN: Final = 4
"""Characters a token, about, in English."""
_CHARACTERS: Final = 16
"""Characters for each token of the limit that are looked at; more to a token has only white space."""
_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a piece is rendered."""

    timezone: str
    limit: int
    """Tokens of one record's text at most, nearly."""
    counter: TokenCounter
    model: str
    short: bool
    """True to leave out sentences that say little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One piece as it would stand in the block."""

    id: str
    """Of its record."""
    side: int
    group: Group
    day: date
    text: str
    """Its lines, the first with a dash, each ended by a line break."""
    tokens: int


def item(piece: Piece, form: Form) -> Item:
    """The piece as `form` has it."""
    record = piece.record
    text = _memory(record, form) if isinstance(record, Memory) else _side(piece, form)
    return Item(
        id=record.id,
        side=piece.side,
        group=group_of(record),
        day=local_day(record.occurred_at, form.timezone),
        text=text,
        tokens=form.counter.count(text, form.model),
    )


def group_of(record: Record) -> Group:
    """Where the block shows it."""
    if isinstance(record, Page):
        return "conversation"
    if record.subject == AGENT:
        return "agent"
    return _memory_group(record.type)


def body(items: Sequence[Item]) -> str:
    """The block's inner lines: groups in fixed order, in them years, days and items as given."""
    lines: list[str] = []
    for group, title in TITLES.items():
        mine = [one for one in items if one.group == group]
        if mine:
            lines.append(f"{title}\n")
        before: date | None = None
        for one in mine:
            if before is None or before.year != one.day.year:
                lines.append(year_line(one.day))
            if before != one.day:
                lines.append(day_line(one.day))
            before = one.day
            lines.append(one.text)
    return "".join(lines)


def year_line(day: date) -> str:
    """The line above a year's days."""
    return f"{day.year}\n"


def day_line(day: date) -> str:
    """The line above a day's items: English, whatever the process's locale, and five tokens."""
    return f"{_WEEKDAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]}\n"


def shorten(text: str, limit: int, counter: TokenCounter, model: str = "") -> str:
    """`text`, or its start up to a sentence's end within about `limit` tokens, with an ellipsis."""
    if _surely_fits(text, limit) or (total := counter.count(text, model)) <= limit:
        return text
    room = max(int(len(text) * limit / total), 1)
    ends = [found.end() for found in SENTENCE_END.finditer(text, 0, room)]
    if ends and ends[-1] >= room // 2:
        return f"{text[: ends[-1]].rstrip()} {ELLIPSIS}"
    space = text.rfind(" ", room // 2, room)
    return f"{text[: space if space > 0 else room].rstrip()}{ELLIPSIS}"


def _side(piece: Piece, form: Form) -> str:
    lines = escape_lines(_cut(piece.text, _limit(piece, form.limit), form))
    if not lines:
        return ""
    lines[0] = f"{_name(piece.speaker or _SPEAKERS[piece.side])}: {lines[0]}"
    return _indented(lines)


def _limit(piece: Piece, limit: int) -> int:
    """Tokens of the side: what the other one leaves, as far as its length tells, and its share at least."""
    if not isinstance(piece.record, Page):
        return limit
    other = piece.record.user_text if piece.side else piece.record.reply_text
    share = _REPLY_SHARE if piece.side else 1 - _REPLY_SHARE
    return max(limit - len(other) // PER_TOKEN, int(limit * share))


def _cut(text: str, limit: int, form: Form) -> str:
    head = _head(text, limit)
    return shorten(abridged(head) if form.short else head, limit, form.counter, form.model)


def _head(text: str, limit: int) -> str:
    """What can be of use of a text: to count the tokens of megabytes would hold up every call."""
    return text[: limit * _CHARACTERS]


def _surely_fits(text: str, limit: int) -> bool:
    """True without counting where even a token a byte would fit."""
    return len(text) * 4 <= limit or len(text.encode("utf-8", "surrogatepass")) <= limit


@lru_cache(maxsize=1024)
def _name(name: str) -> str:
    return " ".join(escape_lines(name)).replace(":", "")[:60] or "user"


def _memory(memory: Memory, form: Form) -> str:
    limit = max(form.limit, MOST_OF_WHOLE) if memory.type in _WHOLE else form.limit
    form = replace(form, short=form.short and memory.type != "concept")
    lines = escape_lines(_cut(memory.text, limit, form))
    notes = []
    if memory.valid_to is not None:
        notes.append(f"until {local_day(memory.valid_to, form.timezone).isoformat()}")
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
        case "fact":
            return "facts"
        case "episode":
            return "conversation"
        case "concept":
            return "concepts"
        case "knowledge":
            return "knowledge"
        case "system":
            return "system"
        case _:
            assert_never(kind)
