"""The mode of a call: its wish replaces the default, and everything else can only narrow it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.config.switches import (
    AWAITED,
    MODES,
    Decision,
    Mode,
    ModeName,
    Switches,
    effective_mode,
    in_rollout,
    narrow,
)


def decide(
    switches: Switches = Switches(),  # noqa: B008 - a frozen record
    *,
    default: str = "on",
    ceiling: str = "on",
    rollout: float = 100.0,
    header: ModeName | None = None,
) -> Decision:
    return effective_mode(
        switches,
        tenant="acme",
        key="app",
        default=MODES[default],
        ceiling=MODES[ceiling],
        rollout=rollout,
        header=header,
    )


def test_default_holds_where_nothing_else_is_said() -> None:
    """Nothing said: the default, without a reason."""
    assert decide(default="read") == Decision(mode=Mode.READ, reason="")


@pytest.mark.parametrize(
    ("switches", "reason"),
    [
        (Switches(everyone="off"), "switched for everyone"),
        (Switches(everyone="off", unread=True), "switches not read"),
        (Switches(tenants={"acme": "off"}), "switched for tenant"),
        (Switches(keys={"app": "off"}), "switched for key"),
    ],
)
def test_a_switch_beats_the_header(switches: Switches, reason: str) -> None:
    """The operator's switch at each of three levels holds against a call that asks for memory."""
    assert decide(switches, header="on") == Decision(mode=Mode.OFF, reason=reason)


def test_what_was_never_read_lets_nothing_be_recalled() -> None:
    """Before the first look what is captured can wait; what is recalled can't."""
    assert decide(AWAITED) == Decision(mode=Mode.WRITE, reason="switches not read")
    assert decide(AWAITED, header="read").mode == Mode.OFF


def test_a_switch_of_another_tenant_or_key_changes_nothing() -> None:
    """Switches are for those that they name."""
    others = Switches(tenants={"acme2": "off"}, keys={"app2": "off"})
    assert decide(others).mode == Mode.ON


def test_a_narrow_switch_can_not_lift_a_wide_one() -> None:
    """Off for everyone is off, whatever a key's switch says."""
    assert decide(Switches(everyone="off", keys={"app": "on"})).mode == Mode.OFF


def test_shadow_recalls_and_captures_but_places_nothing() -> None:
    """Shadow leaves the prompt alone."""
    mode = decide(Switches(everyone="shadow")).mode
    assert Mode.RECALL in mode
    assert Mode.CAPTURE in mode
    assert Mode.PLACE not in mode


@pytest.mark.parametrize(
    ("default", "ceiling", "header", "mode"),
    [
        ("off", "on", "on", Mode.ON),
        ("off", "off", "on", Mode.OFF),
        ("read", "read", "on", Mode.READ),
        ("read", "read", "write", Mode.OFF),
        ("on", "on", "off", Mode.OFF),
        ("on", "shadow", "read", Mode.RECALL),
    ],
)
def test_a_call_gets_what_it_asks_for_up_to_the_ceiling(
    default: str, ceiling: str, header: ModeName, mode: Mode
) -> None:
    """The header opts in and out within what the operator allows."""
    assert decide(default=default, ceiling=ceiling, header=header).mode == mode


def test_rollout_zero_and_hundred_are_none_and_all() -> None:
    """0 percent is nobody, 100 percent is everybody."""
    assert decide(rollout=0).reason == "rollout"
    assert all(in_rollout(str(number), 100) for number in range(1000))
    assert not any(in_rollout(str(number), 0) for number in range(1000))


def test_rollout_takes_about_its_share() -> None:
    """30 percent of ten thousand names are between 2,850 and 3,150."""
    assert 2850 < sum(in_rollout(f"key-{number}", 30) for number in range(10_000)) < 3150


@given(st.text(), st.floats(0, 100), st.floats(0, 100))
def test_a_larger_rollout_only_adds_keys(name: str, one: float, two: float) -> None:
    """Nobody loses memory when the percentage is raised."""
    small, large = sorted((one, two))
    assert in_rollout(name, large) or not in_rollout(name, small)


@given(st.sampled_from(list(MODES)), st.sampled_from(list(MODES)))
def test_narrowing_never_adds_and_never_places_what_was_not_recalled(one: str, two: str) -> None:
    """What two limits allow is within both."""
    both = narrow(MODES[one], MODES[two])
    assert both & ~MODES[one] == Mode.OFF
    assert both & ~MODES[two] == Mode.OFF
    assert Mode.PLACE not in both or Mode.RECALL in both
