"""Heat: a decayed sum whose order time does not change, whatever the order of touches."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.memory.tiers.heat import Heat, HeatPolicy, order, touch, warmth

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
POLICY = HeatPolicy()

HOURS = st.floats(0, 20_000, allow_nan=False)
TOUCHES = st.lists(st.tuples(st.floats(0.05, 5), HOURS), min_size=1, max_size=30)


def heated(touches, policy=POLICY):
    heat = Heat()
    for weight, hours in touches:
        heat = touch(heat, weight, NOON + hours * HOUR, policy)
    return heat


def plain(touches, at, policy=POLICY):
    """The definition: every touch faded by its own age, and the last one's recency."""
    age = [(weight, at - hours) for weight, hours in touches]
    last = min(hours for _, hours in age)
    return sum(w * math.exp(-h / policy.fade_hours) for w, h in age) + policy.recency * math.exp(
        -last / policy.fade_hours
    )


@given(TOUCHES, st.floats(0, 500))
def test_heat_is_the_sum_of_all_touches_each_faded_by_its_age(touches, later):
    """To nine digits, after years too."""
    at = max(hours for _, hours in touches) + later
    found = warmth(heated(touches), NOON + at * HOUR, POLICY)
    assert found == pytest.approx(plain(touches, at), rel=1e-7, abs=1e-200)


@given(TOUCHES, st.randoms())
def test_touches_in_any_order_give_the_same(touches, random):
    """Up to the last bits of a floating sum."""
    shuffled = random.sample(touches, len(touches))
    assert order(heated(shuffled), POLICY) == pytest.approx(order(heated(touches), POLICY), rel=1e-12)


@given(TOUCHES, TOUCHES, HOURS)
def test_the_order_of_two_does_not_depend_on_when_one_looks(one, other, later):
    """What is colder now is colder at every later moment."""
    first, second = heated(one), heated(other)
    if order(first, POLICY) < order(second, POLICY):
        at = NOON + (20_000 + later) * HOUR
        assert warmth(first, at, POLICY) <= warmth(second, at, POLICY)


@given(TOUCHES, st.floats(1, 1000))
def test_another_fading_keeps_what_heat_there_was(touches, hours):
    """At the last touch it is the same; from then on it fades by the new policy."""
    heat, other = heated(touches), HeatPolicy(fade_hours=hours)
    assert heat.touched is not None
    assert warmth(heat, heat.touched, other) == pytest.approx(warmth(heat, heat.touched, POLICY), rel=1e-7)


def test_case_47_odd_records_have_a_finite_heat_that_is_not_negative():
    """A touch in the future counts as of now; one that was never touched has none."""
    ahead = touch(Heat(), 1.0, NOON + 1000 * HOUR, POLICY)
    assert 0 < warmth(ahead, NOON, POLICY) <= 2.0
    assert warmth(Heat(), NOON, POLICY) == 0
    assert warmth(touch(Heat(), 0.0, NOON, POLICY), NOON, POLICY) == pytest.approx(1.0)
    assert math.isfinite(order(Heat(), POLICY))
    assert warmth(ahead, NOON + 100_000 * HOUR, POLICY) == 0


def test_a_visit_that_the_reply_did_not_draw_on_warms_less():
    """One drawn on is worth five that were only seen."""
    drawn = heated([(POLICY.visit, 0)])
    seen = heated([(POLICY.visit * POLICY.seen, 0)] * 5)
    assert warmth(drawn, NOON, POLICY) == pytest.approx(warmth(seen, NOON, POLICY))
