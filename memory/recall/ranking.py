"""What the log keeps of a recall's ranking: numbers of what it showed and of the best that it did not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from hearth.memory.recall.traces import TracedItem
from hearth.memory.types import Ranked, Ranking, Scored

_REST: Final = 4
"""Candidates kept that were not shown: enough to tell what might have been shown instead."""
_RANKED_OUT: Final = frozenset({"below floor", "over budget"})
"""Verdicts of the ranking; all others are of the record or the request, which no weight can change."""
_DIGITS: Final = 3
"""Of a signal, which is of the size of 1: a third of what the whole numbers take, compressed."""


def ranking_of(items: Sequence[Scored | TracedItem], *, also: Collection[str] = ()) -> Ranking | None:
    """The ranking of a recall's candidates, best first; `also` names others to keep. None without any."""
    if not items:
        return None
    ranked_out = [_id(one) for one in items if one.verdict in _RANKED_OUT]
    kept = {*ranked_out[:_REST], *also}
    return Ranking(
        signals=tuple(items[0].signals),
        items=tuple(
            Ranked(
                id=_id(one),
                shown=one.verdict == "in",
                values=tuple(round(value, _DIGITS) for value in one.signals.values()),
            )
            for one in items
            if one.verdict == "in" or _id(one) in kept
        ),
    )


def _id(item: Scored | TracedItem) -> str:
    return item.record.id if isinstance(item, Scored) else item.id
