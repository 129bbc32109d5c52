"""Words that are used of the same things, and how far a text has those of a question."""

from __future__ import annotations

import numpy as np
import pytest

from hearth.memory.recall.function_words import FUNCTION_WORDS
from hearth.memory.stores.analyzer import Analyzer
from hearth.memory.stores.related import likeness
from hearth.memory.stores.terms import QueryTerms, weighed
from hearth.memory.stores.words import packed_words, related_to, score_words

ANALYZER = Analyzer()


def term(word: str) -> int:
    return next(iter(ANALYZER.terms(word)))


def like(one: str, other: str) -> float:
    return float(likeness(np.array([term(one)], np.uint32), [term(other)])[0, 0])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("dog", "perro"),
        ("Hund", "dog"),
        ("book", "книги"),
        ("film", "电影"),
        ("book", "Bücher"),
        ("cat", "gatos"),
    ],
)
def test_a_word_is_like_its_translation(one: str, other: str):
    """Of sixteen languages, by their stems."""
    assert like(one, other) > 0.6


@pytest.mark.parametrize(
    ("one", "other"), [("dog", "invoice"), ("guitar", "Steuer"), ("the", "der"), ("zxqvky", "dog")]
)
def test_other_words_are_not(one: str, other: str):
    """Nor function words, nor words that the table lacks."""
    assert like(one, other) == 0


def test_a_word_is_like_itself_known_or_not():
    """1 is the same word alone."""
    assert like("Zebedee", "zebedee") == like("dog", "Dogs") == 1
    assert like("dog", "pet") < 1


def test_how_far_a_text_has_a_question():
    """The weighted mean over the question's words of the likest word of the text."""
    wanted = {term("dog"): 3.0, term("Zebedee"): 1.0}
    full, half = ANALYZER.terms("Zebedee is a dog"), ANALYZER.terms("our dogs")
    assert related_to(full, wanted) == 1
    assert related_to(half, wanted) == pytest.approx(0.75)
    assert 0 < related_to(ANALYZER.terms("a pet"), wanted) < 0.75
    assert related_to([], wanted) == related_to(full, {}) == 0


def test_each_side_has_its_own():
    """Sides without words count nothing, wherever they stand."""
    sides = [["my dog", "how nice"], ["", "a pet"], ["nothing", ""]]
    packed = [packed_words([ANALYZER.terms(side) for side in both]) for both in sides]
    words = QueryTerms(held={}, mass=1.0, content={term("dog"): 2.0})
    related = [scores.related for scores in score_words(packed, words)]
    assert related[0] == (1.0, 0.0)
    assert related[1][0] == 0
    assert 0 < related[1][1] < 1
    assert related[2] == (0.0, 0.0)


def test_function_words_and_common_ones_are_no_content():
    """What stands in half of the records tells nothing of any, though nobody may hold a word at all."""
    terms = list(ANALYZER.terms("what is the name of Anna's puppy"))
    found = weighed(terms, 30, {term("Anna"): 20, term("name"): 2})
    assert term("Anna") not in found.content
    assert {term("puppy"), term("name")} <= found.content.keys()
    assert found.content.keys().isdisjoint(ANALYZER.terms(FUNCTION_WORDS))
