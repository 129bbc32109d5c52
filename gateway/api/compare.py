"""Compare: what concepts save for a question, and which evidence they keep."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, Field

from hearth.config.settings import known_timezone
from hearth.gateway.api.access import Reader, TheEngine, TheGateway
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import Body, Identifier, Question
from hearth.gateway.api.shapes import MEMORY_ID, example
from hearth.gateway.budgets import asked_budget
from hearth.memory.tiers.indexed import record_text
from hearth.memory.types import Block, Page, Query

router = APIRouter(tags=["recall"], route_class=KeyedRoute)


class CompareIn(Body):
    """What a prompt is about, and how much room there is."""

    model_config = example(query="What do you know about my dog?", budget=512)

    query: Question = Field(description="The new user content.")
    budget: int | None = Field(
        default=None, ge=0, description="Tokens of each block; null: the key's setting."
    )
    model: str = Field(default="", max_length=256, description="Whose tokens are counted.")
    timezone: Annotated[str, AfterValidator(known_timezone)] | None = Field(
        default=None, description="IANA name of the user's zone; null: the key's."
    )
    user: Identifier | None = Field(default=None, description="The same as the header x-hearth-user.")
    agent: Identifier | None = None


class BlockOut(BaseModel):
    """A block."""

    tokens: int
    items: int = Field(description="Records that it shows, a concept as one.")
    block: str

    @classmethod
    def of(cls, block: Block) -> BlockOut:
        """The block as the API shows it."""
        return cls(tokens=block.tokens, items=len(block.items), block=block.text)


class KeptOut(BaseModel):
    """A record that stands in one of the two blocks."""

    id: str
    type: str
    text: str
    raw: bool = Field(description="Whether the raw block shows it.")
    compacted: bool = Field(description="Whether the compacted one shows it, itself or in a concept.")
    concept: str | None = Field(description="The concept that has its words; null where it has none.")


class ComparedOut(BaseModel):
    """Two blocks for one question from one search."""

    model_config = example(
        raw={"tokens": 118, "items": 5, "block": "…"},
        compacted={"tokens": 101, "items": 1, "block": "…"},
        saved=17,
        kept=5,
        lost=0,
        evidence=[
            {
                "id": MEMORY_ID,
                "type": "fact",
                "text": "My dog is called Bilbo.",
                "raw": True,
                "compacted": True,
                "concept": "018f…",
            }
        ],
    )

    raw: BlockOut = Field(description="Without concepts.")
    compacted: BlockOut = Field(description="As a call gets it.")
    saved: int = Field(description="Tokens that the compacted block is shorter by; less than 0: longer.")
    kept: int = Field(description="Records of the raw block that stand in the compacted one too.")
    lost: int = Field(description="Those that don't.")
    evidence: list[KeptOut] = Field(description="Best first.")


@router.post("/compare")
async def compare(caller: Reader, engine: TheEngine, gateway: TheGateway, body: CompareIn) -> ComparedOut:
    """Recall for a question with and without concepts; neither is kept as a recall."""
    scope = caller.scope(body.user, agent=body.agent)
    budget, _ = asked_budget(gateway, caller.key, scope.agent, body.model, body.budget)
    zone = body.timezone or caller.key.timezone
    query = Query(text=body.query, at=engine.clock.now(), timezone=zone)
    found = await engine.compare(scope, query, budget=budget, model=body.model)
    raw = [one for one in found.evidence if one.raw]
    kept = sum(one.compacted for one in raw)
    return ComparedOut(
        raw=BlockOut.of(found.raw),
        compacted=BlockOut.of(found.compacted),
        saved=found.raw.tokens - found.compacted.tokens,
        kept=kept,
        lost=len(raw) - kept,
        evidence=[
            KeptOut(
                id=one.record.id,
                type="page" if isinstance(one.record, Page) else one.record.type,
                text=record_text(one.record),
                raw=one.raw,
                compacted=one.compacted,
                concept=one.concept or None,
            )
            for one in found.evidence
        ],
    )
