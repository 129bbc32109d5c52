"""What of a record long-term memory makes its vectors and terms from."""

from __future__ import annotations

from hearth.memory.ports import Indexed
from hearth.memory.types import Page, Record


def page_text(page: Page) -> str:
    """Both sides of an exchange, a line each, with the speakers' names where they are known."""
    lines = [(page.user_name, page.user_text), (page.reply_name, page.reply_text)]
    return "\n".join(f"{name}: {text}" if name else text for name, text in lines if text.strip())


def record_text(record: Record) -> str:
    """The text by which a page or memory is found."""
    return page_text(record) if isinstance(record, Page) else record.text


def index_record(record: Record, previous: Page | None) -> Indexed:
    """The record as long-term memory stores it; `previous` is the page before it, where there is one."""
    text = record_text(record)
    context = f"{page_text(previous)}\n{text}" if previous is not None else text
    return Indexed(record=record, text=text, context=context)


def is_recallable(record: Record) -> bool:
    """False for a page long-term memory must not hold: off the live branch, a carry-over, or textless."""
    if not isinstance(record, Page):
        return True
    return record.state == "active" and record.kind == "dialogue" and bool(page_text(record))
