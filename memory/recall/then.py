"""A recall or search as it would have been at an earlier moment: over what memory knew then.

The index holds what is known now. So its candidates count as far as they were known then, as they were then;
what it holds no more, as pages that have left since, is found by its words alone. Documents of the tenant are
left out: the log has no text of versions that were replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import structs

from hearth.memory.filters import meets
from hearth.memory.past import Past
from hearth.memory.ports import MemoryFilter
from hearth.memory.recall.pool import gather
from hearth.memory.tiers.indexed import as_stored, is_recallable, record_text
from hearth.memory.types import Candidate, Memory, Page, Record, Scope, SearchResult, ShortTermView

MOST_PAGES = 2_000
"""Pages looked through by their words: the latest."""


def then(found: SearchResult, known: Past, scope: Scope) -> tuple[SearchResult, ShortTermView]:
    """What the index found and what it no longer has, of what was known then."""
    records = {one.id: one for one in known.recallable(scope) if is_recallable(one)}
    candidates = list(_known(found, records))
    among = {candidate.record.id for candidate in candidates}
    rest = [one for id, one in records.items() if id not in among]
    candidates += [Candidate(record=one) for one in rest if isinstance(one, Memory)]
    pages = [as_stored(one) for one in rest if isinstance(one, Page)]
    pages.sort(key=lambda page: page.occurred_at)
    return (
        structs.replace(found, candidates=tuple(candidates)),
        ShortTermView(pages=tuple(pages[-MOST_PAGES:])),
    )


def _known(found: SearchResult, records: dict[str, Record]) -> Iterator[Candidate]:
    """The candidates as they were; one whose text was another has no scores."""
    for candidate in found.candidates:
        record = records.get(candidate.record.id)
        if record is None:
            continue
        if record_text(record) == record_text(candidate.record):
            yield structs.replace(candidate, record=record)
        else:
            yield Candidate(record=record)


def ranked(
    found: SearchResult, view: ShortTermView, text: str, where: MemoryFilter, *, limit: int
) -> list[Candidate]:
    """The best of both that meet the conditions, by meaning and words, best first."""
    pool = gather(found, view, text)
    meaning = np.nan_to_num(pool.text)
    made = [
        Candidate(
            record=record,
            text_score=float(meaning[at]) or None,
            lexical_score=float(pool.lexical[at]) or None,
            coverage=float(pool.coverage[at]),
        )
        for at, record in enumerate(pool.records)
        if meets(record, where) and (meaning[at] > 0 or pool.coverage[at] > 0)
    ]
    made.sort(key=lambda one: (-(one.text_score or 0.0) - one.coverage, one.record.id))
    return made[:limit]
