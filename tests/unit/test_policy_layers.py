"""Which of several settings of one value counts, and what may be set for whom."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.config.load import parse_settings
from hearth.gateway.life import NAMES, checked, life_of, settled_by
from hearth.memory.errors import BadInput
from hearth.memory.tiers.heat import HeatPolicy
from hearth.memory.tiers.layers import LEVELS, Level, Setting, effective, levels_of
from hearth.memory.tiers.life import LifePolicy, policy_of, values_of

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
OWN = values_of(LifePolicy())
FILE = """
hearth:
  recall: {budget_tokens: 900}
  life: {heat: {visit: 2.0}, facts: rules}
  tenants:
    acme:
      budget_tokens: 800
      life: {heat: {visit: 3.0}}
      agents: {quiz: {facts: off, budget_tokens: 700}}
  keys:
    - {name: app, tenant: acme, users: named, budget_tokens: 600, facts: rules,
       hash: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
"""


@st.composite
def a_setting(draw: st.DrawFn) -> Setting:
    """Of two values that may be set for different levels, at any level, by the file or at some minute."""
    level = draw(st.sampled_from(LEVELS))
    minute = None if level == "installation" else draw(st.none() | st.integers(0, 99))
    name = draw(st.sampled_from(["facts", "heat.visit", "recall.budget_tokens"]))
    values = st.sampled_from(["rules", "off"]) if name == "facts" else st.integers(1, 9)
    return Setting(
        name=name,
        value=draw(values),
        level=level,
        source="hearth.life" if level == "installation" else level,
        set_by="" if minute is None else "ops",
        set_at=None if minute is None else NOON + timedelta(minutes=minute),
    )


def place_of(setting: Setting) -> tuple[Level, datetime | None]:
    return setting.level, setting.set_at


@given(st.lists(a_setting(), unique_by=lambda one: (one.name, *place_of(one))), st.randoms())
def test_the_most_exact_setting_counts_in_whatever_order(settings: list[Setting], random) -> None:
    """By level first, then what was set last; and one that a level may not have changes nothing."""
    told = effective(OWN, settings)
    random.shuffle(settings)
    assert effective(OWN, settings) == told
    for one in told:
        rivals = [s for s in settings if s.name == one.name and s.level in levels_of(one.name)]
        if not rivals:
            assert (one.value, one.source) == (OWN[one.name], "Hearth")
            continue
        best = max(LEVELS.index(rival.level) for rival in rivals)
        level = [rival for rival in rivals if LEVELS.index(rival.level) == best]
        last = max((rival.set_at for rival in level if rival.set_at), default=None)
        assert (one.value, one.set_at) == (next(r.value for r in level if r.set_at == last), last)


def test_a_policy_is_the_sum_of_its_values() -> None:
    """Every value has a name, and from the names the same policy is made."""
    policy = LifePolicy(heat=HeatPolicy(visit=3.0), facts="off")
    assert policy_of(effective(values_of(policy), ())) == policy
    assert set(NAMES) == OWN.keys()


@pytest.mark.parametrize(
    ("name", "value", "level", "expected"),
    [
        ("heat.vist", 2, "tenant", "a name among"),
        ("heat.visit", -1, "tenant", "greater than 0"),
        ("heat.visit", "much", "tenant", "number"),
        ("limits.segments", True, "tenant", "integer"),
        ("limits.segments", None, "tenant", "lift it"),
        ("facts", "sometimes", "key", "'rules', 'model' or 'off'"),
        ("limits.segments", 5, "agent", "for the tenant, not for one agent: it is of a user's memory"),
        ("heat.visit", 5, "key", "for the tenant, not for one key"),
        ("recall.daily_memory_tokens", 5, "agent", "for the tenant or the key, not for one agent"),
        ("recall.budget_tokens", 100_001, "key", "100000"),
    ],
)
def test_what_can_not_be_set_is_refused_by_name_and_value(
    name: str, value: object, level: Level, expected: str
) -> None:
    """By the bounds of the file, and where it makes no sense for whom it is set."""
    with pytest.raises(BadInput) as caught:
        checked({name: value}, level)
    assert caught.value.field == name
    assert caught.value.value == value
    assert expected in caught.value.expected
    with pytest.raises(BadInput):
        checked({"facts": "off", name: value}, level)


def test_what_may_be_set_comes_as_the_file_would_have_it() -> None:
    """A whole number of a value that is none is that number."""
    given_ = {"heat.visit": 2, "facts": "off", "recall.budget_tokens": 0}
    assert checked(given_, "tenant") == {"heat.visit": 2.0, "facts": "off", "recall.budget_tokens": 0}


def test_the_file_has_values_of_every_level() -> None:
    """Installation, tenant, agent and key, each before those above it."""
    hearth = parse_settings(FILE, {}).hearth

    def found(name: str, *place: str) -> tuple[object, str]:
        told = {one.name: one for one in effective(OWN, settled_by(hearth)(*place))}
        return told[name].value, told[name].source

    assert found("recall.budget_tokens", "", "", "") == (900, "hearth.recall")
    assert found("recall.budget_tokens", "acme", "", "") == (800, "tenant")
    assert found("recall.budget_tokens", "acme", "quiz", "") == (700, "agent")
    assert found("recall.budget_tokens", "acme", "quiz", "app") == (600, "key")
    assert found("recall.budget_tokens", "rivals", "quiz", "app") == (900, "hearth.recall")
    assert found("facts", "acme", "quiz", "") == ("off", "agent")
    assert found("facts", "acme", "quiz", "app") == ("rules", "key")
    assert life_of(hearth, "acme").heat.visit == 3.0
