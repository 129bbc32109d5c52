"""Terms of texts in many languages, and their weights."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.memory.stores.analyzer import Analyzer, term_id
from hearth.memory.stores.terms import saturated

ANALYZER = Analyzer()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Running dogs' owners ran", ["run", "dog", "owner", "ran"]),
        ("Caroline's", ["carolin"]),
        ("snake foo_bar", ["snake", "foo_bar", "foo", "bar"]),
        ("E1234", ["e1234", "1234"]),
        ("me@x.example", ["me@x.example", "me", "x", "exampl"]),
        ("/usr/lib/a.py", ["usr/lib/a.py", "usr", "lib", "a", "py"]),
        ("2023-05-07", ["2023-05-07", "2023", "05", "07"]),
        ("Zürich CAFÉ", ["zurich", "cafe"]),
        ("ＦＵＬＬ", ["full"]),
        ("l'école", ["l'ecol", "l", "ecol"]),
        ("Йод, ёлка", ["йод", "ёлка"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー", "東", "京"]),
        ("猫", ["猫"]),
        ("ฉันชอบ", ["ฉั", "ัน", "นช", "ชอ", "อบ"]),
        ("가게에서", ["가게", "게에", "에서"]),
        ("用户1", ["用户", "用", "户", "1"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("a\ud83db", ["a", "\ufffd", "b"]),
        ("🚀 go", ["🚀", "go"]),
        ("", []),
        ("?! …", []),
    ],
)
def test_words_of_a_text(text: str, words: list[str]):
    """Each script is broken, folded and stemmed by its own rule."""
    assert ANALYZER.words(text) == words


def test_ascii_and_unicode_paths_agree():
    """An English sentence has the same terms whether or not another script stands beside it."""
    text = "The user_id of Caroline's 2nd cat, e-mail: cat@home.example, isn't E1234."
    assert [*ANALYZER.words(text), "猫"] == ANALYZER.words(text + " 猫")


@given(st.text(max_size=200))
def test_any_text_has_terms_in_range(text: str):
    """No text raises, and every id fits 31 bits, so that its presence bit is free."""
    assert all(0 <= term < 2**31 for term in ANALYZER.terms(text))


def test_ids_are_stable():
    """A term's id never changes, since stored vectors consist of them."""
    assert term_id("oslo") == 15971874


def test_repetition_saturates_and_length_discounts():
    """A word said often weighs more than once said, but less than in proportion; long texts dilute it."""
    once, often = saturated({1: 1, 2: 9})[1], saturated({1: 5, 2: 5})[1]
    assert once < often < 5 * once
    assert saturated({1: 1, 2: 500})[1] < once
