"""What a block says already is not said twice, however the texts are looked up."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.memory.recall.eligible import Shown

_WORDS = [f"w{'o' * n}{n}" for n in range(30)]
_TEXTS = st.lists(st.sets(st.sampled_from(_WORDS), min_size=1), min_size=2, max_size=12)


def _alike(one: set[str], other: set[str]) -> bool:
    return len(one & other) / len(one | other) >= 0.85


@settings(max_examples=200)
@given(_TEXTS, st.data())
def test_a_text_is_admitted_unless_one_before_has_nearly_its_words(
    texts: list[set[str]], data: st.DataObject
) -> None:
    """As comparing it with each one before says."""
    near = [text ^ data.draw(st.sets(st.sampled_from(_WORDS), max_size=4)) for text in texts]
    shown = Shown()
    before: list[set[str]] = []
    for words in [*texts, *(words for words in near if words)]:
        new = not any(_alike(words, other) for other in before)
        assert shown.admits(" ".join(sorted(words, reverse=len(before) % 2 == 0))) == new
        if new:
            before.append(words)


def test_texts_without_words_are_the_same_only_where_they_are_equal() -> None:
    """Marks alone share no word."""
    shown = Shown()
    assert shown.admits("?!")
    assert not shown.admits("?!")
    assert shown.admits("…")
