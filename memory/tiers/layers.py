"""Who has set a value of the policy, from the installation to the key, and which of them counts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Level: TypeAlias = Literal["installation", "tenant", "agent", "key"]
"""For whom a value is set."""
Part: TypeAlias = Literal["tenant", "agent", "key"]
"""For whom it may be set while the gateway runs."""
LEVELS: Final[tuple[Level, ...]] = ("installation", "tenant", "agent", "key")
"""Each goes before those to its left."""
Value: TypeAlias = str | int | float
"""Of a policy, as it is set."""
Source: TypeAlias = Literal[
    "Hearth", "hearth.life", "hearth.recall", "hearth.capture", "tenant", "agent", "key"
]
"""Where a value comes from: Hearth's own, a section of the installation's, or whose it is."""

_OF_MEMORY: Final = frozenset({"installation", "tenant"})
_OF_CALLS: Final = frozenset(LEVELS)
_ALLOWED: Final[dict[str, frozenset[str]]] = {
    "facts": _OF_CALLS,
    "recall.budget_tokens": _OF_CALLS,
    "recall.daily_memory_tokens": frozenset({"tenant", "key"}),
    "capture.redact": frozenset({"installation", "tenant", "key"}),
}
"""What is decided call by call. All else is about a user's memory as a whole, which agents and keys share."""


class Setting(Struct, frozen=True, kw_only=True):
    """A value that somebody has set, in the file or while the gateway runs."""

    name: str
    """Such as `heat.visit`."""
    value: Value
    level: Level
    source: Source
    whose: str = ""
    """The agent or key; empty of the installation and of the tenant."""
    set_by: str = ""
    """Name of the key that set it while the gateway ran; empty where the file says it."""
    set_at: datetime | None = None
    """When; None where the file says it."""


class Effective(Struct, frozen=True, kw_only=True):
    """One value of a policy, and who has set it."""

    name: str
    value: Value | None
    """None: without a bound."""
    source: Source
    set_by: str = ""
    set_at: datetime | None = None
    """As in `Setting`."""


def levels_of(name: str) -> tuple[Level, ...]:
    """For whom the value of that name may be set, the least exact first."""
    allowed = _ALLOWED.get(name, _OF_MEMORY)
    return tuple(level for level in LEVELS if level in allowed)


def effective(own: Mapping[str, Value | None], settings: Iterable[Setting]) -> list[Effective]:
    """Each value of Hearth's own, or what goes before it: the most exact level's, and of one level what was
    set while the gateway ran before what the file says. The order of `settings` means nothing, and a setting
    of a name that is unknown or of a level that it may not be set for counts for nothing.
    """
    best: dict[str, Setting] = {}
    for one in settings:
        known = best.get(one.name)
        if one.level in levels_of(one.name) and (known is None or _rank(one) > _rank(known)):
            best[one.name] = one
    return [_of(name, value, best.get(name)) for name, value in own.items()]


def _rank(setting: Setting) -> tuple[int, bool, float]:
    at = setting.set_at
    return LEVELS.index(setting.level), at is not None, at.timestamp() if at is not None else 0.0


def _of(name: str, own: Value | None, setting: Setting | None) -> Effective:
    if setting is None:
        return Effective(name=name, value=own, source="Hearth")
    return Effective(
        name=name,
        value=setting.value,
        source=setting.source,
        set_by=setting.set_by,
        set_at=setting.set_at,
    )
