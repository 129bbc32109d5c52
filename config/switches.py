"""Which parts of memory a call gets: pure resolution of defaults, limits, switches and the call's wish."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import Flag
from typing import Literal

import msgspec

ModeName = Literal["on", "read", "write", "off", "shadow"]
"""The words used in YAML, headers, REST and CLI."""


class Mode(Flag):
    """What memory does for a call, as a set, so that two limits combine by `&`."""

    OFF = 0
    RECALL = 1
    """Recall is computed and traced."""
    PLACE = 2
    """The block goes into the prompt."""
    CAPTURE = 4
    """The exchange is captured."""
    READ = RECALL | PLACE
    WRITE = CAPTURE
    SHADOW = RECALL | CAPTURE
    """Everything but the block in the prompt: for trying memory out beside live traffic."""
    ON = RECALL | PLACE | CAPTURE


MODES: dict[str, Mode] = {
    "on": Mode.ON,
    "read": Mode.READ,
    "write": Mode.WRITE,
    "off": Mode.OFF,
    "shadow": Mode.SHADOW,
}
"""Mode by its word."""


def narrow(first: Mode, second: Mode) -> Mode:
    """What both allow. A block can't be placed that was not recalled, so PLACE never stands alone."""
    both = first & second
    return both if Mode.RECALL in both else both & ~Mode.PLACE


class Switches(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The runtime state, changed without a restart. A switch only restricts; `on` lifts that switch again."""

    everyone: ModeName = "on"
    tenants: Mapping[str, ModeName] = {}
    """By tenant."""
    keys: Mapping[str, ModeName] = {}
    """By key name."""
    unread: bool = False
    """True where nobody could read them: then everyone's is `off`, since it may be, or `write`, where what is
    written can wait.
    """


UNREAD = Switches(everyone="off", unread=True)
AWAITED = Switches(everyone="write", unread=True)
"""Before they were read for the first time: what is captured waits until they are."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The mode of a call, and what restricted it; the reason is empty where nothing did."""

    mode: Mode
    reason: str = ""


def in_rollout(key: str, percent: float) -> bool:
    """True for about `percent` of all keys, always the same ones; a larger percent only adds keys."""
    bucket = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64
    return bucket * 100 < percent


def effective_mode(
    switches: Switches,
    *,
    tenant: str,
    key: str,
    default: Mode,
    ceiling: Mode,
    rollout: float = 100.0,
    header: ModeName | None = None,
) -> Decision:
    """The mode of one call.

    The call's own wish (`header`) replaces the default, then everything else can only narrow it: the ceiling
    of key and model, the rollout (percent of keys), and the switches for everyone, the tenant and the key.
    """
    mode = default if header is None else MODES[header]
    reason = "asked by header" if header == "off" else "" if mode else "default"
    limits = [
        ("limit of key or model", ceiling),
        ("rollout", Mode.ON if in_rollout(f"{tenant}/{key}", rollout) else Mode.OFF),
        ("switches not read" if switches.unread else "switched for everyone", MODES[switches.everyone]),
        ("switched for tenant", MODES[switches.tenants.get(tenant, "on")]),
        ("switched for key", MODES[switches.keys.get(key, "on")]),
    ]
    for name, limit in limits:
        narrowed = narrow(mode, limit)
        if narrowed != mode:
            mode, reason = narrowed, name
    return Decision(mode=mode, reason=reason)
