"""Scopes and users: what a key may reach, and who has memory."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from hearth.config.settings import Access
from hearth.gateway.api.access import AdminKey, ReadKey, TheEngine
from hearth.gateway.api.cursor import read_name_cursor, write_cursor
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import MAX_LIMIT
from hearth.gateway.api.shapes import example

router = APIRouter(tags=["users"], route_class=KeyedRoute)


class ScopesOut(BaseModel):
    """What a key may reach."""

    model_config = example(
        key="alice-laptop",
        tenant="research",
        user="alice",
        names_users=False,
        namespace="",
        agent="default",
        isolated=False,
        access=["read", "write"],
    )

    key: str = Field(description="Name of the key.")
    tenant: str
    user: str | None = Field(description="The person whose key it is; null where requests name their users.")
    names_users: bool = Field(description="True if a request may name the user.")
    namespace: str = Field(description="What is put before the ids of users that the key names.")
    agent: str = Field(description="Which assistant speaks where a request doesn't say.")
    isolated: bool = Field(description="True if each agent has memories of its own of every user.")
    access: list[Access]


class UserOut(BaseModel):
    """A user of the tenant."""

    model_config = example(id="alice")

    id: str


class UserPage(BaseModel):
    """One page of the tenant's users, in order of name."""

    items: list[UserOut]
    next: str | None = Field(description="The `cursor` of the next page; null at the end.")


@router.get("/scopes")
async def get_scopes(key: ReadKey) -> ScopesOut:
    """Say what this key may reach."""
    return ScopesOut(
        key=key.name,
        tenant=key.tenant,
        user=key.user or key.default_user or None,
        names_users=not key.personal or "admin" in key.scopes,
        namespace=key.namespace,
        agent=key.agent,
        isolated=key.isolated,
        access=sorted(key.scopes),
    )


@router.get("/users")
async def list_users(
    key: AdminKey,
    engine: TheEngine,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
) -> UserPage:
    """List the users of the key's tenant that have any memory or exchange."""
    after = read_name_cursor("users", cursor)
    found = await engine.log.users(key.tenant, after=after, limit=limit + 1)
    more = write_cursor("users", found[limit - 1]) if len(found) > limit else None
    return UserPage(items=[UserOut(id=user) for user in found[:limit]], next=more)
