"""The persona of a user, and of an agent as that user has it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from hearth.gateway.api.access import Reader, TheEngine
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import Moment
from hearth.gateway.api.shapes import MEMORY_ID, WHEN, example
from hearth.memory.tiers.persona import Entry

router = APIRouter(tags=["memories"], route_class=KeyedRoute)

ENTRY = {
    "id": MEMORY_ID,
    "attribute": "residence",
    "value": "Bern",
    "text": "I live in Bern.",
    "confidence": 0.95,
    "strength": 0.95,
    "evidence": 2,
    "since": WHEN,
    "last": WHEN,
}
AGREED = {**ENTRY, "attribute": "answer language", "value": "French", "text": "Always answer in French."}


class EntryOut(BaseModel):
    """One slot or trait, and how surely it is so."""

    model_config = example(**ENTRY)

    id: str = Field(description="Of the memory, whose history and evidence are under GET /memories/{id}.")
    attribute: str
    value: str
    text: str
    confidence: float = Field(description="How surely its evidence says it; more where more says it.")
    strength: float = Field(
        description="How surely it is so now: of a trait that nobody says again it halves in 180 days."
    )
    evidence: int = Field(description="Exchanges that say it; 0 for one that was added by hand.")
    since: datetime
    last: datetime = Field(description="When it was said last.")

    @classmethod
    def of(cls, entry: Entry) -> EntryOut:
        """The entry as the API shows it."""
        memory = entry.memory
        return cls(
            id=memory.id,
            attribute=memory.attribute,
            value=memory.value,
            text=memory.text,
            confidence=memory.confidence,
            strength=entry.strength,
            evidence=entry.evidence,
            since=memory.valid_from or memory.occurred_at,
            last=entry.last,
        )


class PersonaOut(BaseModel):
    """What is known of a user, and what an agent has agreed on with them."""

    model_config = example(user="alice", agent="default", profile=[ENTRY], traits=[], agreed=[AGREED])

    user: str
    agent: str
    profile: list[EntryOut] = Field(description="The user's slots: name, residence, occupation.")
    traits: list[EntryOut] = Field(description="What the user likes, can and does, the strongest first.")
    agreed: list[EntryOut] = Field(
        description="The agent's standing instructions from this user and its promises to them, newest first."
    )


@router.get("/persona")
async def get_persona(
    caller: Reader,
    engine: TheEngine,
    as_of: Annotated[
        Moment | None, Query(description="What held at that moment, by what is known now.")
    ] = None,
) -> PersonaOut:
    """Read what is known of a user, and what the agent (`x-hearth-agent`) has agreed on with them."""
    scope = caller.scope()
    found = await engine.persona(scope, as_of=as_of)
    return PersonaOut(
        user=scope.user,
        agent=scope.agent,
        profile=[EntryOut.of(one) for one in found.profile],
        traits=[EntryOut.of(one) for one in found.traits],
        agreed=[EntryOut.of(one) for one in found.agent],
    )
