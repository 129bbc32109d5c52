"""Terms of texts in many languages, and their weights."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.memory.stores.analyzer import Analyzer, term_id
from hearth.memory.stores.terms import TermStats, inverse_frequency, saturated

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


@pytest.fixture(name="stats")
def _stats():
    stats = TermStats()
    yield stats
    stats.close()


def test_adding_twice_counts_once(stats: TermStats):
    """A record added again replaces what it had before, so a replay converges."""
    stats.add("t/u", "t/u", "r1", [1, 2])
    stats.add("t/u", "t/u", "r1", [2, 3])
    stats.add("t/u", "t/u", "r1", [2, 3])
    assert stats.frequencies(["t/u"], [1, 2, 3]) == (1, {2: 1, 3: 1})


def test_case_06_owners_are_apart(stats: TermStats):
    """case_06: frequencies, removal and clearing touch the very owner only."""
    for owner in ("t/a", "t/a%2A", "t/a-b", "t/a%3Ab"):
        stats.add(owner, owner, "r", [7])
    stats.clear("t/a")
    assert stats.frequencies(["t/a"], [7]) == (0, {})
    stats.remove("t/a-b", "r")
    stats.remove("t/a-b", "r")
    assert stats.frequencies(["t/a-b"], [7]) == (0, {})
    assert stats.frequencies(["t/a%2A", "t/a%3Ab"], [7]) == (2, {7: 2})


def test_clearing_a_person_reaches_their_isolated_agents(stats: TermStats):
    """Every owner that is one person's goes with the person."""
    stats.add("t/a", "t/a", "r1", [1])
    stats.add("t/a/coder", "t/a", "r2", [1])
    stats.clear("t/a")
    assert stats.frequencies(["t/a", "t/a/coder"], [1]) == (0, {})


def test_absent_terms_count_in_the_mass_but_are_not_searched(stats: TermStats):
    """The query's idf mass holds words that no record has; the search leaves them out."""
    stats.add("t/u", "t/u", "r1", [1, 2])
    stats.add("t/u", "t/u", "r2", [1])
    weighed = stats.weigh(["t/u"], [1, 2, 9])
    assert set(weighed.held) == {1, 2}
    assert weighed.held[1] < weighed.held[2]
    assert weighed.mass == pytest.approx(sum(inverse_frequency(2, held) for held in (2, 1, 0)))


def test_statistics_survive_reopening(tmp_path):
    """What was committed is there again after closing."""
    stats = TermStats(tmp_path / "terms.sqlite")
    stats.add("t/u", "t/u", "r1", [5])
    stats.close()
    again = TermStats(tmp_path / "terms.sqlite")
    assert again.frequencies(["t/u"], [5]) == (1, {5: 1})
    again.close()
