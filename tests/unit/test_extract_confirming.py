"""What the assistant said of itself and the user says is right for them too."""

from __future__ import annotations

import pytest

from hearth.memory.extract.confirming import confirmed
from tests.said import page

BEFORE = "I'd use recursion. I prefer Rust and I live in Bern."


def told(text: str, before: str = BEFORE) -> list[tuple[str, str]]:
    return [(fact.attribute, fact.value) for fact in confirmed(page(text), before)]


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("Yes, Bern is right for me too.", BEFORE),
        ("Bern stimmt auch für mich", "Ich wohne in Bern."),
        ("Oui, Bern c'est vrai pour moi aussi", "J'habite à Bern."),
        ("Sí, Bern también vale para mí", "Vivo en Bern."),
    ],
)
def test_what_is_confirmed_has_the_attribute_that_the_assistant_gave_it(text: str, before: str) -> None:
    """In the language of either."""
    assert told(text, before) == [("residence", "Bern")]


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("Is Bern right for me too?", BEFORE),
        ("Basel is right for me too", BEFORE),
        ("Bern is right for me too", "Bern is lovely."),
        ("Bern is right for me too", 'She said "I live in Bern".'),
        ("My sister says that Bern is right for me too, but I doubt it", BEFORE),
        ("Bern", BEFORE),
    ],
)
def test_what_is_asked_or_was_not_said_confirms_nothing(text: str, before: str) -> None:
    """Only a whole sentence, and only what the assistant stated of itself."""
    assert told(text, before) == []
