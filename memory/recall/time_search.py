"""The second search of a question that names a time: its best candidates among what was said then.

Among thousands of pages about the same things the hundred nearest are of any time, and no rank helps a page
that is not among them.
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from hearth.memory.ports import SearchRequest
from hearth.memory.recall.asked_time import asked_time
from hearth.memory.recall.time_signals import told_until
from hearth.memory.types import Query, SearchResult

_LIMIT: Final = 20
"""Candidates of each kind of score: what was said in a time is seldom much, and each costs in ranking."""


def search_in_time(request: SearchRequest, query: Query, found: SearchResult) -> SearchRequest | None:
    """`request`, answered by `found`, within the asked time; None where none is asked or nothing found."""
    asked = asked_time(query.text, query.at, query.timezone)
    meant = [interval for interval in asked.intervals if interval.weight == 1] if asked else []
    if not meant or not found.candidates:
        return None
    where = structs.replace(
        request.where,
        since=min(interval.since for interval in meant),
        until=max(told_until(interval) for interval in meant),
    )
    return structs.replace(request, vector=found.vector, where=where, limit=min(_LIMIT, request.limit))


def merged(found: SearchResult, more: SearchResult) -> SearchResult:
    """Both searches' candidates, each once."""
    known = {candidate.record.id for candidate in found.candidates}
    added = (candidate for candidate in more.candidates if candidate.record.id not in known)
    return structs.replace(found, candidates=(*found.candidates, *added))
