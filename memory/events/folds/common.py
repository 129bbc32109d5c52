"""What the folds of all kinds share: the tables, and how values stand in them."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from hearth.memory.events.codec import micros
from hearth.memory.events.kinds import (
    Event,
    SessionForgotten,
    StepCaptured,
)

CLOCK_SKEW = timedelta(seconds=2)
"""How far ahead of the log's clock a gateway's stamp may be before it is clamped."""
NO_SEGMENT = ""
"""The segment of a page that never has one."""
VIEWS = (
    "forgotten",
    "step_keys",
    "exchanges",
    "sessions",
    "pages",
    "injections",
    "memories",
    "evidence",
    "segments",
    "documents",
    "chunks",
    "labels",
    "policies",
    "bases",
    "erasures",
    "holds",
    "spending",
    "forgettings",
    "switched",
    "summaries",
    "refusals",
)
"""The tables of views.sql."""
NOBODYS = frozenset({"step_keys", "injections", "labels", "bases", "spending"})
"""Views whose rows go with their events, or are no user's."""


def session_mark(event: Event) -> str:
    """What `forgotten` names a session by that is forgotten or that a step is in; no record is named so."""
    match event.payload:
        case SessionForgotten(session=session):
            return f"session:{session}"
        case StepCaptured():
            return f"session:{event.session}"
        case _:
            return ""


def as_json(value: object) -> str:
    """As it stands in a column: equal values give equal text."""
    return msgspec.json.encode(value, order="sorted").decode()


def micros_or_none(moment: datetime | None) -> int | None:
    """As times stand in a column."""
    return None if moment is None else micros(moment)
