"""Stories: what became of a memory, an exchange or a segment, and how warm a segment was."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from hearth.gateway.api.access import Reader, TheEngine
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.shapes import EXCHANGE_ID, MEMORY_ID, WHEN, example
from hearth.gateway.api.tiers import SEGMENT_ID
from hearth.memory import look, timeline
from hearth.memory import story as told
from hearth.memory.story import Subject

router = APIRouter(tags=["tiers"], route_class=KeyedRoute)

CHAPTER: dict[str, Any] = {
    "at": WHEN,
    "what": "said",
    "text": "said by the user",
    "of": EXCHANGE_ID,
    "quote": "I'm allergic to kiwi",
    "event": "9b1c0a7d4f2e4b6f8d3a5c7e9f1b2d4a",
}
POINTS: list[dict[str, Any]] = [
    {"at": WHEN, "heat": 2.0, "what": "page", "of": EXCHANGE_ID},
    {"at": "2026-11-28T11:00:00Z", "heat": 2.94, "what": "visit", "of": EXCHANGE_ID},
]


class ChapterOut(BaseModel):
    """One thing that happened."""

    model_config = example(**CHAPTER)

    at: datetime
    what: told.What
    text: str = Field(description="In one sentence.")
    of: str = Field(description="The other record in it: an exchange, a memory or a segment; or empty.")
    quote: str = Field(description="Words that were said, or that the other memory has; or empty.")
    event: str = Field(description="Id of the event that tells it; of several the last one.")


class StoryOut(BaseModel):
    """What became of one record, oldest first."""

    model_config = example(id=MEMORY_ID, subject="memory", shown=3, drawn=2, chapters=[CHAPTER])

    id: str
    subject: Subject
    shown: int = Field(description="Prompts in which it stood, of the latest thousand.")
    drawn: int = Field(description="Of these, the ones whose replies drew on it.")
    chapters: list[ChapterOut]


class HeatPointOut(BaseModel):
    """How warm a segment was right after something happened to it."""

    model_config = example(**POINTS[0])

    at: datetime
    heat: float
    what: timeline.What
    of: str = Field(description="The page that joined, or the exchange whose recall warmed it; or empty.")


class HeatOut(BaseModel):
    """The heat of a segment over time. Between two points it fades by exp(-hours / fade_hours)."""

    model_config = example(
        id=SEGMENT_ID,
        words=["soup", "leek"],
        live=True,
        promotion=5.0,
        fade_hours=24.0,
        whole=True,
        points=POINTS,
    )

    id: str
    words: list[str] = Field(description="Its leading keywords; none once it has left.")
    live: bool = Field(description="False once it was evicted.")
    promotion: float = Field(description="Heat from which a segment is summed up.")
    fade_hours: float = Field(description="Hours in which all fades to 37 %.")
    whole: bool = Field(description="False where more has happened than is read: the latest points lack.")
    points: list[HeatPointOut]


@router.get("/stories/{id}")
async def get_story(id: str, caller: Reader, engine: TheEngine) -> StoryOut:
    """Tell what became of a memory, an exchange or a segment, from what was said to now.

    Of what was forgotten it tells when, and nothing else.
    """
    found = await look.story(engine.log, engine.mid_term, caller.scope(), id)
    return StoryOut(
        id=found.id,
        subject=found.subject,
        shown=found.shown,
        drawn=found.drawn,
        chapters=[
            ChapterOut(at=one.at, what=one.what, text=one.text, of=one.of, quote=one.quote, event=one.event)
            for one in found.chapters
        ],
    )


@router.get("/segments/{id}/heat")
async def get_heat(id: str, caller: Reader, engine: TheEngine) -> HeatOut:
    """Say how warm a segment was after each page and recall, and how warm it is now."""
    scope = caller.scope()
    policy = engine.policies.of(scope.tenant).heat
    now = engine.clock.now()
    found = await look.heat(engine.log, engine.mid_term, scope, id, policy, now)
    return HeatOut(
        id=id,
        words=list(found.words),
        live=found.live,
        promotion=policy.promotion,
        fade_hours=policy.fade_hours,
        whole=found.whole,
        points=[HeatPointOut(at=one.at, heat=one.heat, what=one.what, of=one.of) for one in found.points],
    )
