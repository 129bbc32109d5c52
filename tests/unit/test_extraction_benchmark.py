"""The measure of extraction counts as right what a label says, and nothing else; its labels are well made."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from benchmarks.labelled import HALVES, Exchange, Label, judge, read, values_agree
from hearth.memory.extract.attributes import MANY, SINGLE, is_single
from hearth.memory.types import CandidateFact

USER = "Hi! I live in Oslo and I have two cats. Remember that the blue key opens the shed."
OSLO = Label(subject="user", attribute="residence", value="Oslo", quote="I live in Oslo", act="asserts")
KEY = Label(subject="user", attribute="", value="", quote="the blue key opens the shed", act="asserts")


def _exchange(*facts: Label, may: tuple[Label, ...] = (), user: str = USER, zone: str = "UTC") -> Exchange:
    return Exchange(
        id="x",
        category="statement",
        language="en",
        at=datetime(2024, 5, 1, 22, tzinfo=UTC),
        timezone=zone,
        user=user,
        assistant="I live in Bern.",
        facts=facts,
        may=may,
    )


def _found(**changed: Any) -> CandidateFact:
    given = {"quote": "I live in Oslo", "attribute": "residence", "value": "oslo.", **changed}
    return CandidateFact(statement=given["quote"], **given)


def _counts(exchange: Exchange, *found: CandidateFact) -> tuple[int, int, int]:
    judged = judge(exchange, found)
    return judged.right, len(judged.missed), len(judged.wrong)


@pytest.mark.parametrize(
    ("changed", "right"),
    [
        ({}, True),
        ({"act": "adds"}, True),
        ({"quote": "in Oslo and I have"}, True),
        ({"value": "Oslo, Norway"}, True),
        ({"subject": "User"}, True),
        ({"act": "ends"}, False),
        ({"subject": "my sister"}, False),
        ({"attribute": "birthplace"}, False),
        ({"attribute": "", "value": ""}, False),
        ({"value": "Bergen"}, False),
        ({"value": ""}, False),
        ({"quote": "I have two cats"}, False),
        ({"quote": "I live in Bern"}, False),  # not in the user's words
        ({"quote": ""}, False),
    ],
)
def test_a_fact_is_right_where_everything_agrees(changed: dict[str, Any], right: bool) -> None:
    """Place, subject, attribute, value and act count; otherwise the fact is wrong and the label missed."""
    assert _counts(_exchange(OSLO), _found(**changed)) == ((1, 0, 0) if right else (0, 1, 1))


def test_a_second_fact_of_one_label_is_wrong() -> None:
    """A duplicate counts against precision."""
    assert _counts(_exchange(OSLO), _found(), _found()) == (1, 0, 1)


def test_what_may_be_read_is_neither_right_nor_wrong() -> None:
    """It is passed over, however often; what matches a fact counts as that first."""
    cats = Label(subject="user", attribute="pet", value="cats", quote="I have two cats", act="asserts")
    found = _found(quote="two cats", attribute="pet", value="two cats")
    assert _counts(_exchange(OSLO, may=(cats,)), found, found) == (0, 1, 0)
    assert _counts(_exchange(OSLO, may=(OSLO,)), _found(), _found()) == (1, 0, 0)


def test_labels_share_out_what_was_found() -> None:
    """A label leaves a fact to another that has no other one."""
    broad = Label(
        subject="user", attribute="speaks", value="Dutch and Frisian", quote="I speak", act="asserts"
    )
    narrow = Label(subject="user", attribute="speaks", value="Dutch", quote="I speak", act="asserts")
    exchange = _exchange(broad, narrow, user="I speak Dutch and Frisian")
    found = [_found(quote=exchange.user, attribute="speaks", value=value) for value in ("Dutch", "Frisian")]
    assert _counts(exchange, *found) == (2, 0, 0)


def test_a_free_statement_needs_half_of_its_quote() -> None:
    """Its attribute is empty, and so must be that of what was found."""
    exchange = _exchange(KEY)
    for quote, right in (
        ("Remember that the blue key opens the shed.", True),
        ("key opens the shed", True),
        ("the shed", False),
    ):
        found = _found(quote=quote, attribute="", value="")
        assert _counts(exchange, found) == ((1, 0, 0) if right else (0, 1, 1))
    assert _counts(exchange, _found(quote=KEY.quote, attribute="owns", value="key")) == (0, 1, 1)


def test_a_day_is_the_users_own() -> None:
    """Where the label has a day, the fact's moment must be within it in the user's zone."""
    moved = Label(
        subject="user",
        attribute="residence",
        value="Oslo",
        quote="I live in Oslo",
        act="asserts",
        valid_from="2024-05-02",
    )
    exchange = _exchange(moved, zone="Europe/Oslo")
    assert _counts(exchange, _found(valid_from=datetime(2024, 5, 1, 22, tzinfo=UTC))) == (1, 0, 0)
    assert _counts(exchange, _found(valid_from=datetime(2024, 5, 1, 21, tzinfo=UTC))) == (0, 1, 1)
    assert _counts(exchange, _found(happens_at=datetime(2024, 5, 2, tzinfo=UTC))) == (0, 1, 1)
    assert _counts(exchange, _found()) == (0, 1, 1)


def test_alternatives_stand_alone_or_together() -> None:
    """An entry's fields are taken over as one; entries can be put on top of each other."""
    label = Label(
        subject="user",
        attribute="dislikes",
        value="rain",
        quote="I don't like rain",
        act="asserts",
        alternatives=({"attribute": "likes", "act": "denies"}, {"value": "weather"}),
    )
    exchange = _exchange(label, user="I don't like rain, or any weather")
    for changed, right in (
        ({"attribute": "dislikes"}, True),
        ({"attribute": "likes", "act": "denies"}, True),
        ({"attribute": "likes", "act": "denies", "value": "weather"}, True),
        ({"attribute": "likes"}, False),
        ({"attribute": "dislikes", "act": "denies"}, False),
    ):
        found = _found(**{"quote": exchange.user, "value": "rain", **changed})
        assert _counts(exchange, found)[0] == right


def test_a_favourite_is_told_by_its_value() -> None:
    """What it is a favourite of may be named in another way."""
    label = Label(subject="user", attribute="favourite colour", value="Oslo", quote="Oslo", act="asserts")
    assert _counts(_exchange(label), _found(attribute="favourite color")) == (1, 0, 0)
    assert _counts(_exchange(label), _found(attribute="likes")) == (0, 1, 1)


def test_values_are_compared_without_case_and_punctuation() -> None:
    """Signs that tell names apart stay."""
    assert values_agree("St. Luke's", "st luke's hospital")
    assert values_agree("两只猫", "猫")
    assert not values_agree("C++", "C#")
    assert not values_agree("!", "?")


@pytest.mark.parametrize("half", HALVES)
def test_labels_are_well_made(half: str) -> None:
    """Quotes stand in the user's words, attributes are known, days are days, in all readings."""
    for exchange in read(half):
        assert exchange.at.utcoffset() == exchange.at.astimezone(ZoneInfo(exchange.timezone)).utcoffset()
        for label in chain.from_iterable(one.readings() for one in (*exchange.facts, *exchange.may)):
            assert label.quote in exchange.user, exchange.id
            assert label.quote.strip(), exchange.id
            assert label.subject, exchange.id
            assert not label.attribute or label.attribute in SINGLE | MANY or is_single(label.attribute)
            assert bool(label.value) or not label.attribute, exchange.id
            for day in filter(None, (label.happens_at, label.valid_from, label.valid_to)):
                assert date.fromisoformat(day)


@pytest.mark.parametrize("half", HALVES)
def test_a_perfect_extractor_is_told_as_one(half: str) -> None:
    """What the labels say, read as they stand, is all right and leaves nothing out."""
    for exchange in read(half):
        judged = judge(exchange, [_as_found(label, exchange) for label in exchange.facts])
        assert not judged.missed, exchange.id
        assert not judged.wrong, exchange.id


def _as_found(label: Label, exchange: Exchange) -> CandidateFact:
    days = {
        field: datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(exchange.timezone))
        for field in ("happens_at", "valid_from", "valid_to")
        if (day := getattr(label, field))
    }
    return CandidateFact(
        statement=label.quote,
        quote=label.quote,
        subject=label.subject,
        attribute=label.attribute,
        value=label.value,
        act=label.act,
        wrong=label.wrong,
        **days,
    )


def test_the_halves_are_of_one_kind() -> None:
    """The same share of each category, about half without a fact, and no id or text twice."""
    dev, held = (read(half) for half in ("dev", "held"))
    kinds, held_kinds = (Counter(one.category for one in exchanges) for exchanges in (dev, held))
    assert kinds == {category: 2 * count for category, count in held_kinds.items()}
    assert len(held_kinds) == 19
    assert min(held_kinds.values()) == 8
    for exchanges, count in ((dev, 320), (held, 160)):
        assert len(exchanges) == count
        assert 70 <= sum(not one.facts for one in exchanges) * 160 / count <= 90
        assert 90 <= sum(one.language == "en" for one in exchanges) * 160 / count <= 102
    everything = [*dev, *held]
    assert len({one.id for one in everything}) == len({one.user for one in everything}) == len(everything)
