"""Who speaks in a memory, where the source gives names, and whom of them a question names."""

from __future__ import annotations

from collections.abc import Iterable

from hearth.memory.types import Page, Record


def speakers_of(records: Iterable[Record]) -> frozenset[str]:
    """The names of those who speak in the records."""
    pages = (record for record in records if isinstance(record, Page))
    return frozenset(name for page in pages for name in (page.user_name, page.reply_name) if name)


def named_among(speakers: Iterable[str], question: str) -> frozenset[str]:
    """Those of the speakers whose names stand in the question."""
    folded = question.casefold()
    return frozenset(name for name in speakers if name.casefold() in folded)
