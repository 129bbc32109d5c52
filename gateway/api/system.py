"""System memory: what holds for all users of a tenant, proposed by counts and approved by an operator."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from hearth.gateway.api.access import AdminKey, TheEngine
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import Body, Identifier, Text
from hearth.gateway.api.shapes import WHEN, example
from hearth.gateway.keys import Key
from hearth.memory.engine import Engine
from hearth.memory.knowledge.system import MAX_TEXT, Proposal, SystemText
from hearth.memory.tiers.life import SystemMemoryPolicy

router = APIRouter(tags=["system memory"], route_class=KeyedRoute)

TOPIC = "speaks=german"
PROPOSAL: dict[str, Any] = {
    "topic": TOPIC,
    "attribute": "speaks",
    "value": "german",
    "users": 12,
    "suggestion": "Users here often speak german.",
}
TEXT: dict[str, Any] = {
    "id": "018f…",
    "topic": TOPIC,
    "text": "Most of us speak German: answer in it where asked in it.",
    "agent": "",
    "by": "operator",
    "at": WHEN,
}


class ProposalOut(BaseModel):
    """What enough users share: a count, and nobody's words."""

    model_config = example(**PROPOSAL)

    topic: str = Field(description="Attribute and value, by which it is approved or refused.")
    attribute: str
    value: str = Field(description="As values are compared.")
    users: int = Field(description="Of the tenant, who say so now.")
    suggestion: str = Field(description="A neutral text that an operator may take over.")

    @classmethod
    def of(cls, proposal: Proposal) -> ProposalOut:
        """The proposal as the API shows it."""
        return cls(**msgspec.structs.asdict(proposal))


class SystemTextOut(BaseModel):
    """A text of system memory that is in force."""

    model_config = example(**TEXT)

    id: str
    topic: str = Field(description="That it was approved for; empty for one that was added.")
    text: str
    agent: str = Field(description="Whose users it is for; empty: all agents'.")
    by: str = Field(description="Name of the key that approved or added it.")
    at: datetime

    @classmethod
    def of(cls, text: SystemText) -> SystemTextOut:
        """The text as the API shows it."""
        return cls(**msgspec.structs.asdict(text))


class SystemMemoryOut(BaseModel):
    """What is in force, and what is proposed."""

    model_config = example(items=[TEXT], proposals=[PROPOSAL], least_users=5)

    items: list[SystemTextOut]
    proposals: list[ProposalOut] = Field(description="Most users first; refused ones are left out.")
    least_users: int = Field(description="Who must share a value before it is proposed.")


class AddIn(Body):
    """A text in the operator's own words."""

    model_config = example(text="The office is closed on Fridays.")

    text: Annotated[Text, Field(max_length=MAX_TEXT)] = Field(description="Nothing of a single person's.")
    agent: Identifier | None = Field(default=None, description="For users of this agent alone.")


class ApproveIn(AddIn):
    """A proposal, and the text that it becomes."""

    model_config = example(topic=TOPIC, text=TEXT["text"])

    topic: Identifier = Field(description="As it is proposed.")


class RefuseIn(Body):
    """A proposal that is not wanted."""

    model_config = example(topic=TOPIC)

    topic: Identifier = Field(description="As it is proposed.")


class TakenOut(BaseModel):
    """What became of a removal."""

    model_config = example(id="018f…", done=True, pending=[])

    id: str
    done: bool = Field(description="True if it is gone everywhere.")
    pending: list[str] = Field(
        description="Stores that are down: it is unreachable already, and the worker removes it there later."
    )


@router.get("/system-memory")
async def list_system_memory(key: AdminKey, engine: TheEngine) -> SystemMemoryOut:
    """List the texts that hold for all users of the key's tenant, and what enough of them share."""
    policy = _policy(engine, key)
    return SystemMemoryOut(
        items=[SystemTextOut.of(one) for one in await engine.system.texts(key.tenant)],
        proposals=[ProposalOut.of(one) for one in await engine.system.proposals(key.tenant, policy)],
        least_users=policy.least_users,
    )


@router.post("/system-memory", status_code=201)
async def add_system_memory(key: AdminKey, engine: TheEngine, body: AddIn) -> SystemTextOut:
    """Add a text in the operator's own words. It is durable when this answers, and found within seconds."""
    made = await engine.system.add(key.tenant, body.text, by=key.name, agent=body.agent or "")
    return SystemTextOut.of(made)


@router.post("/system-memory/approve", status_code=201)
async def approve_system_memory(key: AdminKey, engine: TheEngine, body: ApproveIn) -> SystemTextOut:
    """Make a text system memory for what many users share, in place of an earlier one for the topic."""
    policy = _policy(engine, key)
    made = await engine.system.approve(
        key.tenant, body.topic, body.text, policy, by=key.name, agent=body.agent or ""
    )
    return SystemTextOut.of(made)


@router.post("/system-memory/refuse")
async def refuse_system_memory(key: AdminKey, engine: TheEngine, body: RefuseIn) -> ProposalOut:
    """Refuse what many users share: it is not proposed again. The same once more changes nothing."""
    policy = _policy(engine, key)
    return ProposalOut.of(await engine.system.refuse(key.tenant, body.topic, policy, by=key.name))


@router.delete(
    "/system-memory/{id}", responses={202: {"model": TakenOut, "description": "Pending in a store"}}
)
async def remove_system_memory(id: str, key: AdminKey, engine: TheEngine, response: Response) -> TakenOut:
    """Remove a text: it is not recalled any more, and leaves the log. Its topic is proposed again."""
    pending = await engine.system.remove(key.tenant, id, by=key.name)
    response.status_code = 202 if pending else 200
    return TakenOut(id=id, done=not pending, pending=list(pending))


def _policy(engine: Engine, key: Key) -> SystemMemoryPolicy:
    return engine.policies.of(key.tenant).system_memory
