"""What a reply visibly drew on, over made-up pairs of items and replies in ten languages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hearth.memory.recall.drawn import USED, drawn_shares

PAIRS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "fixtures" / "drawn.jsonl").read_text("utf-8").splitlines()
]


def used(pair: dict[str, Any]) -> bool:
    """Whether the pair's reply is seen to draw on its item."""
    return drawn_shares([pair["item"]], pair["question"], pair["reply"])[0] >= USED


def test_nine_of_ten_that_count_as_used_were_used_and_eight_of_ten_are_seen() -> None:
    """Over 40 pairs in which the reply drew on the item, and 40 in which it did not, some alike by chance.

    No constant was fitted to these pairs. Missed are paraphrases; wrong are common facts that any reply has.
    """
    told = [pair["used"] for pair in PAIRS]
    assert (len(PAIRS), sum(told)) == (80, 40)
    seen = [used(pair) for pair in PAIRS]
    right = sum(a and b for a, b in zip(seen, told, strict=True))
    precision, recall = right / sum(seen), right / sum(told)
    assert (round(precision, 2), round(recall, 2)) == (0.89, 0.82)


def test_every_language_has_pairs_of_both_kinds() -> None:
    """So that no language is told by the other half alone."""
    kinds = {(pair["language"], pair["used"]) for pair in PAIRS}
    languages = {language for language, _ in kinds}
    assert len(languages) >= 8
    assert kinds == {(language, used) for language in languages for used in (True, False)}


def test_words_of_the_question_tell_nothing() -> None:
    """A reply that only repeats what was asked shows nothing of an item that says the same."""
    question = "Is my flight to Lisbon on Friday?"
    shares = drawn_shares(["My flight to Lisbon"], question, "I can't see your flight to Lisbon on Friday.")
    assert shares == [0.0]


def test_a_word_that_several_items_have_counts_less_for_each() -> None:
    """What tells one item from the others is what was drawn on."""
    question, reply = "Where do I work?", "At Globex in Oslo."
    alone = drawn_shares(["I joined Globex in Bergen"], question, reply)
    first, second = drawn_shares(["I joined Globex in Bergen", "I joined Globex in Oslo"], question, reply)
    assert first < alone[0]
    assert second > first


def test_there_may_be_no_words_at_all() -> None:
    """No item, an empty one, an empty reply and signs alone give no share and no error."""
    assert drawn_shares([], "q", "r") == []
    assert drawn_shares(["", "…!?", "The dog barks"], "", "") == [0.0, 0.0, 0.0]
    assert drawn_shares(["", "…!?"], "?", "The dog barks") == [0.0, 0.0]
