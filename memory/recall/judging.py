"""What somebody thinks of a recall, made into an event of the log."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import NAMESPACE_URL, uuid5

import msgspec

from hearth.memory.errors import BadInput
from hearth.memory.events.kinds import RecallJudged
from hearth.memory.extract.personal import Mask
from hearth.memory.recall.ranking import ranking_of
from hearth.memory.recall.traces import Trace
from hearth.memory.types import Judgement

_NAMESPACE = uuid5(NAMESPACE_URL, "hearth:judgement")


def judged(
    trace: Trace, judgement: Judgement | None, items: Mapping[str, Judgement], note: str, mask: Mask
) -> RecallJudged:
    """The payload; `mask` is applied to the note.

    Raises BadInput where nothing is said, and for an item that was no candidate of the recall.
    """
    if judgement is None and not items:
        raise BadInput("judgement", judgement, "useful, useless or wrong, or items that are judged so")
    candidates = trace.items
    known = {candidate.id for candidate in candidates}
    for item in items:
        if item not in known:
            raise BadInput("items", item, "the id of a candidate of this recall")
    return RecallJudged(
        trace=trace.id,
        judgement=judgement,
        items=dict(sorted(items.items())),
        ranking=ranking_of(candidates, also=items),
        note=mask(note.strip()),
    )


def event_id(trace: Trace, payload: RecallJudged) -> str:
    """The same for the same words on the same recall, so that saying them again changes nothing."""
    owner = f"{trace.scope.person} {trace.generation}"
    return uuid5(_NAMESPACE, f"{owner} {msgspec.json.encode(payload).decode()}").hex
