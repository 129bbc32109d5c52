"""How a question was read, as an explanation tells it."""

from __future__ import annotations

from hearth.memory.recall.explain import analysis
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.types import Query
from tests.events import START

POLICY = RecallPolicy()


def test_a_question_is_explained_by_what_was_looked_up() -> None:
    """Its text is what was embedded; its words are the index's own, each once and in order."""
    read = analysis(Query(text="Which dogs did the dog meet?", at=START), POLICY)
    assert read.text == "Which dogs did the dog meet?"
    assert read.words == ("which", "dog", "did", "the", "meet")
    assert read.time == ()


def test_the_turn_before_stands_in_front_where_it_was_needed() -> None:
    """A short question is read with it, a long one without."""
    before = "Zebedee is ill."
    short = analysis(Query(text="And now?", before=before, at=START), POLICY)
    long = analysis(
        Query(text="Where do I keep the spare keys of the house?", before=before, at=START), POLICY
    )
    assert short.text == f"{before}\nAnd now?"
    assert "zebede" in short.words
    assert before not in long.text


def test_the_time_that_a_question_names_is_told() -> None:
    """In days, whatever the language."""
    read = analysis(Query(text="Was war am 7. Mai 2025?", at=START), POLICY)
    assert read.time == ("2025-05-07",)
