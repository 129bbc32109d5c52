"""Segments and the bounds of short-term memory as pure functions: what joins, what closes, what goes."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hearth.memory.tiers.fading import Left, fading
from hearth.memory.tiers.heat import Heat, HeatPolicy, order, touch
from hearth.memory.tiers.keywords import keywords
from hearth.memory.tiers.limits import Limits
from hearth.memory.tiers.overflow import ShortTermPolicy, Waiting, overflow
from hearth.memory.tiers.segments import (
    PageShape,
    SegmentPolicy,
    begun,
    joined,
    leaving,
    over,
    place,
)
from hearth.memory.types import Embedding

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
POLICY, HEAT = SegmentPolicy(), HeatPolicy()


def axis(*weights):
    vector = np.array([*weights, *[0.0] * (8 - len(weights))])
    return (vector / np.linalg.norm(vector)).tolist()


def page(id, vector, words, hours=0, session="s1", size=100):
    return PageShape(id, session, NOON + hours * HOUR, size, Embedding("e", vector), tuple(words.split()))


SOUP = begun("soup", "t/u", page("p1", axis(1), "leek soup cook"))
CARS = begun("cars", "t/u", page("p2", axis(0, 1), "car engine oil", session="s2"))


def test_a_page_joins_the_segment_of_its_topic():
    """By meaning and by words together; the best one, and none where nothing is near."""
    found = place(page("p3", axis(1, 0.2), "soup dinner", 1), [CARS, SOUP], POLICY)
    assert found.segment is SOUP
    assert found.affinity > POLICY.affinity
    assert place(page("p4", axis(0, 0, 1), "tax form", 1, "s3"), [CARS, SOUP], POLICY).segment is None
    assert place(page("p4", axis(1), "x"), [], POLICY) == (None, 0.0)


def test_a_topic_that_returns_opens_its_segment_again():
    """After months, in another session."""
    (closed,) = over([SOUP], NOON + 100 * HOUR, POLICY)
    assert closed.closed
    back = page("p5", axis(1, 0.1), "leek soup", 3000, "s9")
    assert place(back, [closed, CARS], POLICY).segment is closed
    assert not joined(closed, back).closed


def test_what_a_segment_is_changes_with_its_pages():
    """Its direction is their mean, its keywords are counted, its time spans them."""
    both = joined(SOUP, page("p3", axis(0, 0, 1), "soup noodle", 2, size=50))
    assert (both.pages, both.size) == (2, 150)
    assert both.keywords == {"soup": 2, "cook": 1, "leek": 1, "noodle": 1}
    assert (both.opened_at, both.last_at) == (NOON, NOON + 2 * HOUR)
    near = place(page("p6", axis(1, 0, 1), ""), [structs.replace(both, session="")], POLICY)
    assert near.affinity > 0.99


def test_segments_of_another_embedder_are_passed_over():
    """Vectors of two models are never compared."""
    other = structs.replace(SOUP, embedder="other")
    assert place(page("p3", axis(1), "soup"), [other], POLICY).segment is None


def test_case_47_the_coldest_goes_and_what_was_recalled_or_pinned_stays():
    """X was recalled ten times in the last hour, Y is newer and never was, Z is pinned."""
    x, y, z = (
        begun(name, "t/u", page(name, axis(1), name, hours)) for name, hours in (("x", 0), ("y", 5), ("z", 0))
    )
    z = structs.replace(z, pinned=True)
    heats = {one.id: touch(Heat(), HEAT.page, one.last_at, HEAT) for one in (x, y, z)}
    for minutes in range(10):
        heats["x"] = touch(heats["x"], HEAT.visit, NOON + 5 * HOUR + timedelta(minutes=minutes), HEAT)
    gone = leaving([x, y, z], heats, NOON + 6 * HOUR, Limits(segments=2), HEAT)
    assert [(one.segment.id, one.reason) for one in gone] == [("y", "segments")]
    assert leaving([z], heats, NOON + 9999 * HOUR, Limits(segments=0, days=1), HEAT) == []


def test_every_limit_is_kept_and_named():
    """Segments, pages, bytes and age."""
    some = [begun(f"s{n}", "t/u", page(f"p{n}", axis(1), "a", n, size=100)) for n in range(4)]
    for limits, reason, count in (
        (Limits(segments=3), "segments", 1),
        (Limits(pages=2), "pages", 2),
        (Limits(bytes=150), "bytes", 3),
        (Limits(days=2 / 24), "age", 2),
    ):
        gone = leaving(some, {}, NOON + 4 * HOUR, limits, HEAT)
        assert [one.segment.id for one in gone] == [f"s{n}" for n in range(count)]
        assert {one.reason for one in gone} == {reason}


SEGMENTS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9), st.booleans()), max_size=12)


@given(SEGMENTS, st.integers(0, 8), st.integers(0, 5000))
def test_capacity_holds_and_the_order_does_not_depend_on_when_one_looks(given_segments, most, later):
    """No more are left than may be, but for pinned ones, and each that went was colder than each left."""
    some = [
        structs.replace(begun(f"s{n}", "t/u", page(f"p{n}", axis(1), "a", hours)), pages=pages, pinned=pinned)
        for n, (hours, pages, pinned) in enumerate(given_segments)
    ]
    heats = {one.id: touch(Heat(), one.pages, one.last_at, HEAT) for one in some}
    gone = leaving(some, heats, NOON + 60 * HOUR, Limits(segments=most), HEAT)
    assert gone == leaving(some, heats, NOON + later * HOUR, Limits(segments=most), HEAT)
    out = {one.segment.id for one in gone}
    left = [one for one in some if one.id not in out and not one.pinned]
    assert not any(one.segment.pinned for one in gone)
    assert len(left) + sum(one.pinned for one in some) <= most or not left
    for one in gone:
        assert all(order(heats[one.segment.id], HEAT) <= order(heats[other.id], HEAT) for other in left)


@given(SEGMENTS, st.integers(0, 60), st.integers(0, 5000))
def test_where_pages_are_too_many_those_leave_that_are_coldest_for_their_pages(given_segments, most, later):
    """A long chat that is as warm as a short one is not worth as many pages; capacity holds."""
    some = [
        structs.replace(begun(f"s{n}", "t/u", page(f"p{n}", axis(1), "a", hours)), pages=pages, pinned=pinned)
        for n, (hours, pages, pinned) in enumerate(given_segments)
    ]
    heats = {one.id: touch(Heat(), 1.0, one.last_at, HEAT) for one in some}
    gone = leaving(some, heats, NOON + 60 * HOUR, Limits(pages=most), HEAT)
    assert gone == leaving(some, heats, NOON + later * HOUR, Limits(pages=most), HEAT)
    left = [one for one in some if one not in [each.segment for each in gone]]
    able = [one for one in left if not one.pinned]
    assert sum(one.pages for one in left) <= most or not able

    def of_a_page(one):
        return order(heats[one.id], HEAT) - math.log(one.pages)

    assert all(of_a_page(one.segment) <= of_a_page(other) for one in gone for other in able)


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "s1", "s2"]), st.integers(0, 50), st.integers(1, 9), st.booleans()),
        max_size=12,
    ),
    st.integers(1, 4),
)
def test_no_session_has_more_segments_than_one_may(given_segments, most):
    """But for pinned ones; those that go are its coldest, and what has no session is not of one."""
    some = [
        structs.replace(begun(f"s{n}", "t/u", page(f"p{n}", axis(1), "a", hours)), session=of, pinned=pinned)
        for n, (of, hours, _, pinned) in enumerate(given_segments)
    ]
    heats = {one.id: touch(Heat(), given_segments[n][2], one.last_at, HEAT) for n, one in enumerate(some)}
    gone = leaving(some, heats, NOON + 60 * HOUR, Limits(session_segments=most), HEAT)
    out = {one.segment.id for one in gone}
    assert all(one.reason == "session segments" and one.segment.session for one in gone)
    for session in ("s1", "s2"):
        own = [one for one in some if one.session == session]
        left = [one for one in own if one.id not in out]
        able = [one for one in left if not one.pinned]
        assert len(left) <= most or not able
        assert len(left) >= min(most, len(own))
        for one in own:
            if one.id in out:
                coldest = order(heats[one.id], HEAT)
                assert not one.pinned
                assert all(coldest <= order(heats[other.id], HEAT) for other in able)


LEFT = st.lists(
    st.tuples(st.floats(0, 1), st.integers(1, 500), st.integers(0, 9), st.booleans()), max_size=12
)


@given(LEFT, st.none() | st.integers(1, 8), st.none() | st.integers(1, 2000))
def test_episodes_fade_until_there_is_room(given_left, count, size):
    """The least important first, of these the coldest; pinned ones stay; no more go than have to."""
    some = [
        Left(f"e{n}", importance, size, touch(Heat(), 1.0, NOON + hours * HOUR, HEAT), pinned)
        for n, (importance, size, hours, pinned) in enumerate(given_left)
    ]
    limits = Limits(episodes=count, episode_bytes=size)
    gone = fading(some, limits, HEAT)
    assert fading(list(reversed(some)), limits, HEAT) == gone
    out = {one.id for one in gone}
    left = [one for one in some if one.id not in out]
    assert not any(one.pinned for one in some if one.id in out)
    able = [one for one in left if not one.pinned]

    def fits(those):
        return (count is None or len(those) <= count) and (size is None or sum(o.size for o in those) <= size)

    assert fits(left) or not able
    for n, one in enumerate(gone):
        before = [other for other in some if other.id not in {g.id for g in gone[:n]}]
        assert not fits(before)
        assert (
            one.id
            == min(
                (other for other in before if not other.pinned),
                key=lambda other: (other.importance, order(other.heat, HEAT), other.id),
            ).id
        )


def waiting(id, hours, session="s1", size=100, importance=0.5):
    return Waiting(id, session, NOON + hours * HOUR, size, importance)


def test_case_46_the_oldest_leave_beyond_capacity():
    """Of ten with room for three the last three stay, in order."""
    ten = [waiting(f"t{n}", n) for n in range(1, 11)]
    gone = overflow(ten, NOON + 11 * HOUR, ShortTermPolicy(pages=3))
    assert [one.id for one in gone] == [f"t{n}" for n in range(1, 8)]


def test_an_important_page_outlives_a_trivial_one():
    """As long as there is another to leave; then the oldest important one does."""
    some = [waiting("key", 0, importance=0.9), *(waiting(f"t{n}", n) for n in range(1, 4))]
    assert [one.id for one in overflow(some, NOON, ShortTermPolicy(pages=2))] == ["t1", "t2"]
    assert [one.id for one in overflow(some, NOON, ShortTermPolicy(pages=1))] == ["key", "t1", "t2"]


def test_short_term_memory_is_bounded_by_tokens_age_and_session():
    """The newest page stays whatever its size and age."""
    long = [waiting("a", 0, size=4000), waiting("b", 1, size=4000)]
    assert [tuple(one) for one in overflow(long, NOON, ShortTermPolicy(tokens=1500))] == [("a", "tokens")]
    old = overflow(long, NOON + timedelta(days=60), ShortTermPolicy())
    assert [tuple(one) for one in old] == [("a", "age")]
    mixed = [waiting("a", 0), waiting("b", 1, "s2"), waiting("c", 2), waiting("d", 3)]
    gone = overflow(mixed, NOON, ShortTermPolicy(session_pages=2))
    assert [tuple(one) for one in gone] == [("a", "session pages")]
    gone = overflow(mixed, NOON, ShortTermPolicy(session_tokens=50))
    assert [tuple(one) for one in gone] == [("a", "session tokens")]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 99), st.integers(1, 9000), st.floats(0, 1), st.sampled_from(["", "s1", "s2"])
        ),
        max_size=20,
    ),
    st.builds(
        ShortTermPolicy,
        pages=st.integers(1, 6),
        session_pages=st.integers(1, 6),
        tokens=st.integers(1, 9000),
        session_tokens=st.none() | st.integers(1, 9000),
        days=st.floats(0.5, 5),
    ),
)
def test_the_bounds_hold_and_the_newest_stays(pages, policy):
    """Of count, tokens and age, for the user and for each session; what leaves is told once, in order of
    time, and a page leaves for more than its age only where no trivial one could leave in its place.
    """
    some = [
        waiting(f"p{n}", hours, session, size, mark) for n, (hours, size, mark, session) in enumerate(pages)
    ]
    now = NOON + 100 * HOUR
    gone = {one.id: one.reason for one in overflow(some, now, policy)}
    left = [one for one in some if one.id not in gone]
    if not some:
        return
    newest = max(some, key=lambda one: (one.at, one.id))
    assert newest in left
    assert list(gone) == [one.id for one in sorted(some, key=lambda one: (one.at, one.id)) if one.id in gone]
    assert len(left) <= policy.pages
    assert all(one.at >= now - timedelta(days=policy.days) for one in left if one != newest)
    assert left == [newest] or sum(one.size for one in left) <= policy.tokens * 4
    for session in ("s1", "s2"):
        own = [one for one in left if one.session == session]
        assert len(own) <= policy.session_pages
        most = policy.session_tokens
        assert most is None or own in ([], [newest]) or sum(one.size for one in own) <= most * 4
    important = [one for one in some if one.importance >= policy.important and gone.get(one.id) == "pages"]
    assert not important or all(one.importance >= policy.important for one in left if one != newest)


def test_keywords_are_words_that_tell():
    """No function words, no small numbers; in scripts without spaces pairs of characters."""
    found = keywords("How do I cook the leek soup? I would like to cook soup at 7.")
    assert found[:2] == ("cook", "soup")
    assert not {"how", "the", "i", "7", "like"} & set(found)
    assert keywords("我喜欢做韭葱汤")
    assert keywords("") == ()
