"""What takes away that plain words are the user's: play, tests, states of a day, corrections."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import pytest

from tests import said

facts = partial(said.facts, at=datetime(2025, 5, 14, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    "text",
    [
        "My name is Torv and I live in Ironhold. What do I see?",
        "Ik heet Torv en woon in Moerdal. Wat zie ik?",
        "我叫布兰诺克，我住在成都。我看到什么？",
        "I unsheathe my dagger. I am a vegan and I live in Ravensport.",
        "Je tire mon épée. Je m'appelle Brannoch et j'habite à Metz.",
        "I'm your new neighbour, I live in Leeds and I have three dogs.",
        "GIVEN I live in Spain\nWHEN I order\nTHEN VAT is 21%",
        "Angenommen ich wohne in Spanien\nWenn ich bestelle\nDann kommt die Rechnung",
        "INPUT: I am allergic to cats\nOUTPUT: allergy",
        "As a diabetic I want to log my insulin. I live in Spain. Split this",
        "I'm a widow and I live in Leeds, thats her not me obvs",
        "I live in Leeds and I'm vegan, that's what my flatmate put down",
        "my daughter turned 18 last week (the yacht, I mean)",
        "I am a vegan, says the man eating my bacon",
        "I got a dog in Animal Crossing",
        "We lost our dog Bo last spring",
        "I have a Tesla question",
        "Soy alérgico a los lunes",
        "Ik ben allergisch voor maandagen",
        "月曜日アレルギーです",
        "(asking as my mum) I'm 70 and I live in Hull",
        "yo soy Batman y vivo en Gotham",
        "Ik ben klant bij Arriva",
        "I have two kids, Netflix and no time, says nobody",
    ],
)
def test_what_is_played_tried_or_not_meant_states_nothing(text: str) -> None:
    """Somewhere in the message stands whose words they are."""
    assert facts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Born in Lagos, raised in Leeds. Need a stage name for him.",
        "Née à Lyon, allergique aux noix. Il me faut un prénom pour elle.",
        "Geboren in Gent, allergisch voor noten. Ik zoek een achternaam voor haar.",
        "My great-uncle fought in Korea and lived in Busan",
        "Car seats for Mia (4) and Jan (10), I need two",
    ],
)
def test_clauses_without_a_subject_may_be_somebody_elses(text: str) -> None:
    """A pronoun that stands for nobody named is whom they are about."""
    assert [fact for fact in facts(text) if fact.subject == "user"] == []


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("I'm a widow this weekend, golf again", []),
        ("we're vegan this week as a challenge", []),
        ("I'm a single dad until Thursday", []),
        ("I'm twice as old as my son and in 10 years I'm 50", []),
        ("I'm blind as a bat without coffee", []),
        ("I'm a nurse to this cat now", []),
        ("I'm a widow since 2019", ["widow"]),
        ("I'm a nurse in Leeds", ["nurse"]),
    ],
)
def test_a_state_of_some_days_or_a_comparison_is_none(text: str, read: list[str]) -> None:
    """It says for how long, or what it is like."""
    assert [fact.value for fact in facts(text)] == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Not vegan, pescatarian. Menu again?", [("diet", "pescatarian", "vegan")]),
        ("I'm not married, I'm divorced", [("marital status", "divorced", "married")]),
        ("No, non sono di Bologna, sono di Modena!", [("birthplace", "Modena", "")]),
        ("no no, I live in Ghent", [("residence", "Ghent", "")]),
        ("wrong way round, I've got two sons", [("child", "two sons", "")]),
        ("Te confundes: tengo 47 años", [("age", "47", "")]),
        ("Вы перепутали: мне 47", [("age", "47", "")]),
    ],
)
def test_a_correction_is_told_by_its_form(text: str, read: list[tuple[str, str, str]]) -> None:
    """It is no news: what is wrong is named, or the message opens with a no."""
    told = facts(text)
    assert {fact.act for fact in told} == {"corrects"}
    assert [(fact.attribute, fact.value, fact.wrong) for fact in told] == read


def test_of_not_this_but_that_only_that_is_stated() -> None:
    """Nobody had said that they are a doctor."""
    for text in ("I'm not a doctor but a nurse", "Ik ben geen arts maar verpleegkundige"):
        assert [(fact.attribute, fact.act) for fact in facts(text)] == [("occupation", "asserts")]


def test_who_denies_and_states_later_corrects_nobody() -> None:
    """Only where the message opens so the assistant is meant."""
    assert {fact.act for fact in facts("I like it here. I'm not married, I'm divorced.")} == {
        "denies",
        "asserts",
    }
