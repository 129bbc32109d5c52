"""What a tenant's memory itself asks of models, beside the clients' own calls: tokens and cost by day."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from hearth.gateway.api.access import ReadKey, TheEngine
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.shapes import example

router = APIRouter(tags=["operations"], route_class=KeyedRoute)


class SpentOut(BaseModel):
    """What one model took in one day."""

    model_config = example(
        day="2026-11-28",
        purpose="memory",
        model="gpt-4o-mini",
        calls=31,
        input=40210,
        output=3120,
        cost=0.0079,
    )

    day: date = Field(description="In UTC.")
    purpose: Literal["memory"] = Field(
        default="memory", description="Asked by memory, to read facts; no part of any client's usage."
    )
    model: str
    calls: int = Field(description="Answers that came, those that could not be used among them.")
    input: int
    output: int = Field(description="Tokens.")
    cost: float = Field(description="US dollars, of the calls whose cost is known.")


class SpendingOut(BaseModel):
    """What the tenant's memory has spent on models, and what is left of today."""

    model_config = example(
        tenant="research",
        daily_tokens=1000000,
        left_today=956670,
        items=[SpentOut.model_config["json_schema_extra"]["examples"][0]],  # type: ignore[index, call-overload]
    )

    tenant: str
    daily_tokens: int = Field(description="Beyond them facts are read by rules.")
    left_today: int
    items: list[SpentOut] = Field(description="By day and model, the oldest day first.")


@router.get("/spending")
async def get_spending(
    key: ReadKey,
    engine: TheEngine,
    days: Annotated[int, Query(ge=1, le=366, description="Days to show, today included.")] = 30,
) -> SpendingOut:
    """Say what the memory of the key's tenant asked of models by itself, in tokens and dollars."""
    today = engine.clock.now().date()
    found = await engine.log.spending(key.tenant, since=today - timedelta(days=days - 1))
    most = engine.policies.of(key.tenant).extraction.daily_tokens
    spent = sum(one.tokens for one in found if one.day == today)
    items = [
        SpentOut(
            day=one.day, model=one.model, calls=one.calls, input=one.input, output=one.output, cost=one.cost
        )
        for one in found
    ]
    return SpendingOut(tenant=key.tenant, daily_tokens=most, left_today=max(most - spent, 0), items=items)
