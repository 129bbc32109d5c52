"""By what words facts are found that these lack."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hearth.memory.extract.attributes import MANY, SINGLE
from hearth.memory.extract.patterns import book
from hearth.memory.tiers.headings import heading, headings
from hearth.memory.tiers.indexed import index_record, record_text, sides_of
from hearth.memory.types import Memory, Scope

AT = datetime(2025, 5, 24, tzinfo=UTC)


def fact(text: str, attribute: str) -> Memory:
    return Memory(
        id="f" * 32,
        scope=Scope(tenant="t", user="u"),
        generation=1,
        text=text,
        attribute=attribute,
        occurred_at=AT,
        created_at=AT,
        updated_at=AT,
    )


def test_headings_are_of_attributes_that_there_are_in_languages_that_are_read():
    """Each in all languages; a name that no fact has would be found by nobody."""
    assert set(headings()) <= SINGLE | MANY
    for attribute, named in headings().items():
        assert set(named) == set(book().tongues), attribute
        assert all(words.strip() for words in named.values())


@pytest.mark.parametrize(
    ("text", "attribute", "words"),
    [
        ("I'm a hydrologist.", "occupation", {"job"}),
        ("Ich bin Hydrologe.", "occupation", {"job", "Beruf"}),
        ("私は看護師です。", "occupation", {"job", "職業"}),
    ],
)
def test_a_fact_is_headed_in_its_language_and_in_english(text: str, attribute: str, words: set[str]):
    """Nothing of languages that it is not in."""
    made = heading(fact(text, attribute))
    assert all(word in made for word in words)
    assert "zawód" not in made


def test_what_says_nothing_in_particular_has_no_heading():
    """Statements without an attribute, and attributes that nobody asks for by a name."""
    assert heading(fact("The tap drips.", "")) == heading(fact("I like tea.", "likes")) == ""


def test_the_heading_is_searched_and_not_shown():
    """It is what the context's vector and the second side's words are made of, beside the text itself."""
    known = fact("I'm a hydrologist.", "occupation")
    made = index_record(known, None)
    assert made.text == record_text(known) == "I'm a hydrologist."
    assert made.context == f"{heading(known)}\nI'm a hydrologist."
    assert sides_of(known) == ("I'm a hydrologist.", heading(known))
    plain = fact("The tap drips.", "")
    assert index_record(plain, None).context == "The tap drips."
