"""Whom of a memory's speakers a question names, where the source gives names."""

from __future__ import annotations

from collections.abc import Sequence

from hearth.memory.types import Page, Record


def named_speakers(records: Sequence[Record], question: str) -> frozenset[str]:
    """The speakers of those records whose names stand in the question."""
    pages = [record for record in records if isinstance(record, Page)]
    names = {name for page in pages for name in (page.user_name, page.reply_name) if name}
    folded = question.casefold()
    return frozenset(name for name in names if name.casefold() in folded)
