"""What of a record long-term memory makes its vectors and terms from."""

from __future__ import annotations

from msgspec import structs

from hearth.memory.ports import Indexed
from hearth.memory.tiers.headings import heading
from hearth.memory.types import Page, Record

PAGE_CHARACTERS = 32_768
"""Of each side of a page in the stores: a recall reads some hundred pages, and must not read megabytes."""
_BETWEEN = "\n…\n"


def as_stored(page: Page) -> Page:
    """The page as the stores hold it: of a huge text the start and the end. The event log has all of it."""
    texts = {name: getattr(page, name) for name in ("user_text", "reply_text", "user_shown", "reply_shown")}
    if all(len(text) <= PAGE_CHARACTERS for text in texts.values()):
        return page
    return structs.replace(page, **{name: _ends(text) for name, text in texts.items()})


def _ends(text: str) -> str:
    if len(text) <= PAGE_CHARACTERS:
        return text
    half = (PAGE_CHARACTERS - len(_BETWEEN)) // 2
    return f"{text[:half].rstrip()}{_BETWEEN}{text[-half:].lstrip()}"


def page_text(page: Page) -> str:
    """Both sides of an exchange, a line each, with the speakers' names where they are known."""
    return "\n".join(side for side in sides_of(page) if side)


def sides_of(record: Record) -> tuple[str, ...]:
    """What the user said and what was replied, either of them empty where it was not; a memory's text and the
    words by which people ask for it.

    What was shown with a text stands below it.
    """
    if not isinstance(record, Page):
        return (record.text, heading(record))
    sides = (
        (record.user_name, record.user_text, record.user_shown),
        (record.reply_name, record.reply_text, record.reply_shown),
    )
    return tuple(_side(*side) if side[1].strip() else "" for side in sides)


def _side(name: str, text: str, shown: str) -> str:
    said = f"{name}: {text}" if name else text
    return f"{said}\n{shown}" if shown else said


def record_text(record: Record) -> str:
    """The text by which a page or memory is found."""
    return page_text(record) if isinstance(record, Page) else record.text


def index_record(record: Record, previous: Page | None) -> Indexed:
    """The record as long-term memory stores it; `previous` is the page before it, where there is one.

    Before a memory stand the words by which people ask for it.
    """
    text = record_text(record)
    before = page_text(previous) if previous is not None else ""
    if not isinstance(record, Page):
        before = heading(record)
    return Indexed(record=record, text=text, context=f"{before}\n{text}" if before else text)


def is_recallable(record: Record) -> bool:
    """False for a page long-term memory must not hold: off the live branch, evicted, a carry-over or without
    text, and for the episode of a segment whose pages it holds.
    """
    if not isinstance(record, Page):
        return not (record.type == "episode" and record.metadata.get("live") is True)
    return record.state == "active" and record.kind == "dialogue" and bool(page_text(record))
