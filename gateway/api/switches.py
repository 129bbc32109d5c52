"""Switches: memory on or off for the key's tenant, or for one of the tenant's keys, without a restart."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from fastapi import APIRouter
from pydantic import BaseModel, Field

from hearth.config.switches import ModeName, Switches
from hearth.gateway.api.access import AdminKey, TheGateway
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import Body
from hearth.gateway.api.problems import invalid, unknown_value
from hearth.gateway.api.shapes import example
from hearth.gateway.keys import Key
from hearth.gateway.runtime import Gateway
from hearth.memory.errors import LogUnavailable

logger = logging.getLogger(__name__)
router = APIRouter(tags=["operations"], route_class=KeyedRoute)


class SwitchIn(Body):
    """What to switch."""

    model_config = example(mode="read", key="alice-laptop")

    mode: ModeName = Field(description="`on` lifts the switch again.")
    key: str | None = Field(
        default=None, description="Name of one key of the tenant; none: the whole tenant."
    )


class SwitchesOut(BaseModel):
    """The switches that concern the key's tenant. A switch only restricts what settings and calls ask for."""

    model_config = example(everyone="on", tenant="on", keys={"alice-laptop": "read"})

    everyone: ModeName = Field(description="For all tenants; set with `hearth switch --everyone`.")
    tenant: ModeName
    keys: dict[str, ModeName] = Field(description="By name of the key; the others are on.")


@router.get("/switches")
async def get_switches(key: AdminKey, gateway: TheGateway) -> SwitchesOut:
    """Read the switches of the key's tenant."""
    return switches_of(gateway.switchboard.current(), key, gateway)


@router.put("/switches")
async def set_switch(key: AdminKey, gateway: TheGateway, body: SwitchIn) -> SwitchesOut:
    """Switch the tenant, or one of its keys. Every process sees it within two seconds."""
    if body.key is None:
        switches = await gateway.switchboard.set(body.mode, tenant=key.tenant)
    else:
        names = key_names(key, gateway)
        if body.key not in names:
            raise invalid([unknown_value("key", body.key, names, "key of this tenant")])
        switches = await gateway.switchboard.set(body.mode, key=body.key)
    await _note(key, gateway, f"{body.key or 'tenant'} {body.mode}")
    return switches_of(switches, key, gateway)


async def _note(key: Key, gateway: Gateway, what: str) -> None:
    """Who switched; where the log is away, which need keep nobody from switching, in the process's own."""
    try:
        await gateway.flow.engine.note(key.tenant, "switch", by=key.name, about=what)
    except LogUnavailable:
        logger.warning("the key %s of tenant %s switched: %s", key.name, key.tenant, what)


def switches_of(switches: Switches, key: Key, gateway: Gateway) -> SwitchesOut:
    """Those switches that concern the key's tenant."""
    keys: Mapping[str, ModeName] = switches.keys
    own = key_names(key, gateway)
    return SwitchesOut(
        everyone=switches.everyone,
        tenant=switches.tenants.get(key.tenant, "on"),
        keys={name: mode for name, mode in keys.items() if name in own},
    )


def key_names(key: Key, gateway: Gateway) -> set[str]:
    """The keys of the key's tenant that are known by name."""
    configured = {one.name for one in gateway.settings.hearth.keys if one.tenant == key.tenant}
    return configured | {key.name}
