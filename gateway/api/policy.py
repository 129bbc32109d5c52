"""Policy: the values by which memory lives, who has set each of them, and setting them without a restart."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from hearth.gateway.api.access import AdminKey, ReadKey, TheEngine, TheGateway
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import Body, Identifier
from hearth.gateway.api.problems import Problem, invalid, unknown_value
from hearth.gateway.api.shapes import WHEN, example
from hearth.gateway.api.switches import key_names
from hearth.gateway.keys import Key
from hearth.gateway.life import checked
from hearth.gateway.runtime import Gateway
from hearth.memory.errors import BadInput
from hearth.memory.policies import Policies
from hearth.memory.tiers.layers import Level, Part, Setting, Source, Value

router = APIRouter(tags=["policy"], route_class=KeyedRoute)

ITEM: dict[str, Any] = {
    "name": "heat.promotion",
    "value": 4.0,
    "source": "tenant",
    "set_by": "ops",
    "set_at": WHEN,
}
SET: dict[str, Any] = {
    "name": "facts",
    "value": "off",
    "level": "agent",
    "whose": "quiz",
    "set_by": "ops",
    "set_at": WHEN,
}


class PolicyValue(BaseModel):
    """One value of the policy, and who has set it."""

    model_config = example(**ITEM)

    name: str
    value: str | int | float | None = Field(description="Null: without a bound.")
    source: Source = Field(
        description="Hearth's own, `hearth.life` or `hearth.recall` of the installation, or whose it is."
    )
    set_by: str | None = Field(description="The key that set it by this API; null where the file says it.")
    set_at: datetime | None = Field(description="When; null likewise.")


class PolicySet(BaseModel):
    """One value that was set by this API."""

    model_config = example(**SET)

    name: str
    value: str | int | float
    level: Level
    whose: str = Field(description="The agent or key; empty of the tenant.")
    set_by: str
    set_at: datetime | None


class PolicyOut(BaseModel):
    """The policy by which memory lives."""

    model_config = example(tenant="research", agent=None, key=None, items=[ITEM], set=[SET])

    tenant: str
    agent: str | None = Field(description="For whose calls; null: for none in particular.")
    key: str | None
    items: list[PolicyValue]
    set: list[PolicySet] = Field(
        description="What was set by this API: for an admin key all of the tenant's, else what counts here."
    )


class PolicyIn(Body):
    """Values to set, for the key's tenant, or for one of its agents or keys."""

    model_config = example(values={"heat.promotion": 4.0, "limits.segments": 500})

    values: dict[str, str | int | float | bool | None] = Field(
        min_length=1, max_length=100, description="By name, as `GET /policy` lists them."
    )
    agent: Identifier | None = Field(default=None, description="For what is said to this agent alone.")
    key: Identifier | None = Field(default=None, description="For what comes by this key alone.")


Agent = Annotated[Identifier | None, Query(description="For calls to this agent.")]
KeyName = Annotated[Identifier | None, Query(description="For calls by this key, by its name.")]
Names = Annotated[list[str], Query(min_length=1, max_length=100, description="Of the values; repeatable.")]


@router.get("/policy")
async def get_policy(
    by: ReadKey, engine: TheEngine, gateway: TheGateway, agent: Agent = None, key: KeyName = None
) -> PolicyOut:
    """Say by which values the memory of the key's tenant lives, and who has set each of them.

    `key` is the caller's own, or with an admin key any of the tenant.
    """
    if key is not None and key != by.name:
        _check_admin(by)
        _check_key(key, by, gateway)
    return _policy(by, engine.policies, agent, key)


@router.put("/policy")
async def set_policy(by: AdminKey, engine: TheEngine, gateway: TheGateway, body: PolicyIn) -> PolicyOut:
    """Set values, which hold at once in this process and within two seconds in every other one.

    They go before what the file says at the same level, and stay until they are lifted.
    """
    level, whose = _place(by, gateway, body.agent, body.key)
    await engine.policies.change(by.tenant, checked(body.values, level), level=level, whose=whose, by=by.name)
    return _policy(by, engine.policies, body.agent, body.key)


@router.delete("/policy")
async def lift_policy(
    by: AdminKey,
    engine: TheEngine,
    gateway: TheGateway,
    name: Names,
    agent: Agent = None,
    key: KeyName = None,
) -> PolicyOut:
    """Lift values that were set, so that the file or a wider level counts again. Nothing set is no error."""
    level, whose = _place(by, gateway, agent, key)
    policies = engine.policies
    known = {one.name for one in policies.effective(by.tenant)}
    wrong = [unknown_value("name", one, known, "value of the policy") for one in name if one not in known]
    if wrong:
        raise invalid(wrong)
    lifted: dict[str, Value | None] = dict.fromkeys(name)
    await policies.change(by.tenant, lifted, level=level, whose=whose, by=by.name)
    return _policy(by, policies, agent, key)


def _place(by: Key, gateway: Gateway, agent: str | None, key: str | None) -> tuple[Part, str]:
    """For whom a value is set. Raises BadInput and Problem."""
    if agent is not None and key is not None:
        raise BadInput("agent", agent, "an agent or a key, not both")
    if agent is not None:
        return "agent", agent
    if key is not None:
        _check_key(key, by, gateway)
        return "key", key
    return "tenant", ""


def _check_key(key: str, by: Key, gateway: Gateway) -> None:
    names = key_names(by, gateway)
    if key not in names:
        raise invalid([unknown_value("key", key, names, "key of this tenant")])


def _check_admin(by: Key) -> None:
    if "admin" not in by.scopes:
        detail = f"The key {by.name} may read its own policy; another key's needs `admin`."
        raise Problem(403, "forbidden", detail)


def _policy(by: Key, policies: Policies, agent: str | None, key: str | None) -> PolicyOut:
    every = "admin" in by.scopes
    place = (by.tenant, agent or "", key or "")
    return PolicyOut(
        tenant=by.tenant,
        agent=agent,
        key=key,
        items=[
            PolicyValue(
                name=one.name,
                value=one.value,
                source=one.source,
                set_by=one.set_by or None,
                set_at=one.set_at,
            )
            for one in policies.effective(*place)
        ],
        set=[_set(one) for one in (policies.set_in(by.tenant) if every else policies.set_for(*place))],
    )


def _set(one: Setting) -> PolicySet:
    return PolicySet(
        name=one.name,
        value=one.value,
        level=one.level,
        whose=one.whose,
        set_by=one.set_by,
        set_at=one.set_at,
    )
