"""What every form of the term statistics keeps to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from hearth.memory.events.postgres_schema import upgrade
from hearth.memory.stores.postgres_terms import PostgresTerms
from hearth.memory.stores.sqlite_terms import SqliteTerms
from hearth.memory.stores.terms import RecordTerms, TermStats, neutral, weighed

Opener = Callable[[], TermStats]
"""Opens the same statistics again."""


@pytest.fixture(name="opened", params=["sqlite", "postgres"])
def _opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    if request.param == "sqlite":
        return lambda: SqliteTerms(tmp_path / "terms.sqlite")
    url, schema = request.getfixturevalue("postgres_url"), f"t{uuid4().hex}"
    upgrade(url, schema)
    return lambda: PostgresTerms(url, connections=2, schema=schema)


@pytest.fixture(name="stats")
def _stats(opened: Opener) -> Iterator[TermStats]:
    stats = opened()
    yield stats
    stats.close()


def record(name: str, *terms: int, owner: str = "t/u", person: str = "") -> RecordTerms:
    return RecordTerms(owner=owner, person=person or owner, record=name, terms=frozenset(terms))


def test_adding_twice_counts_once(stats: TermStats):
    """A record added again replaces what it had before, so a replay converges, and says if that differed."""
    assert not stats.add([record("r1", 1, 2)])
    assert stats.add([record("r1", 2, 3)])
    assert not stats.add([record("r1", 2, 3)])
    assert stats.weigh(["t/u"], [1, 2, 3]) == weighed([1, 2, 3], 1, {2: 1, 3: 1})


def test_a_batch_counts_each_record_once(stats: TermStats):
    """Records of one batch count as if they had come one by one, an id given twice by its later form."""
    stats.add([record("r1", 1, 2), record("r2", 1), record("r1", 3), record("r3", 1, owner="t/v")])
    assert stats.weigh(["t/u"], [1, 2, 3]) == weighed([1, 2, 3], 2, {1: 1, 3: 1})
    assert stats.weigh(["t/u", "t/v"], [1, 2, 3]) == weighed([1, 2, 3], 3, {1: 2, 3: 1})


def test_a_word_is_common_that_is_so_to_one_of_the_owners(stats: TermStats):
    """Many records of another owner that lack it do not make it tell one's own records apart."""
    stats.add([record(f"r{n}", 1, n + 10) for n in range(20)])
    stats.add([record(f"s{n}", 2, owner="t/*") for n in range(100)])
    assert stats.weigh(["t/u"], [1, 2]).common == {1}
    together = stats.weigh(["t/u", "t/*"], [1, 2])
    assert together.common == {1, 2}
    assert together.held == weighed([1, 2], 120, {1: 20, 2: 100}).held


def test_case_06_owners_are_apart(stats: TermStats):
    """case_06: frequencies, removal and clearing touch the very owner only."""
    stats.add([record("r", 7, owner=owner) for owner in ("t/a", "t/a%2A", "t/a-b", "t/a%3Ab")])
    assert stats.clear("t/a")
    assert stats.weigh(["t/a"], [7]) == weighed([7], 0, {})
    assert stats.remove("t/a-b", ["r", "r", "other"])
    assert not stats.remove("t/a-b", ["r"])
    assert stats.weigh(["t/a-b"], [7]) == weighed([7], 0, {})
    assert stats.weigh(["t/a%2A", "t/a%3Ab"], [7]) == weighed([7], 2, {7: 2})


def test_clearing_a_person_reaches_their_isolated_agents(stats: TermStats):
    """Every owner that is one person's goes with the person."""
    stats.add([record("r1", 1, owner="t/a"), record("r2", 1, owner="t/a/coder", person="t/a")])
    assert stats.clear("t/a")
    assert not stats.clear("t/a")
    assert stats.weigh(["t/a", "t/a/coder"], [1]) == weighed([1], 0, {})


def test_absent_terms_count_in_the_mass_but_are_not_searched(stats: TermStats):
    """The query's idf mass holds words that no record has; the search leaves them out."""
    stats.add([record("r1", 1, 2), record("r2", 1)])
    words = stats.weigh(["t/u"], [1, 2, 9])
    assert set(words.held) == {1, 2}
    assert words.held[1] < words.held[2]
    assert words.mass == pytest.approx(sum(words.held.values()) + weighed([9], 2, {}).mass)


def test_statistics_survive_reopening(opened: Opener):
    """What was committed is there again after closing, and which collections they belong to."""
    stats = opened()
    assert not stats.is_filled("first")
    stats.add([record("r1", 5)])
    stats.mark_filled("first")
    stats.mark_filled("second")
    stats.mark_filled("second")
    stats.close()
    again = opened()
    assert [again.is_filled(name) for name in ("first", "second", "third")] == [True, True, False]
    assert again.weigh(["t/u"], [5]) == weighed([5], 1, {5: 1})
    again.close()


def test_what_was_removed_leaves_the_files(opened: Opener, tmp_path: Path):
    """After `purge` no file of the store names a record that was removed."""
    stats = opened()
    stats.add([record("zebra", 5), record("kept", 6)])
    stats.commit()
    stats.remove("t/u", ["zebra"])
    stats.purge()
    assert not [path for path in tmp_path.iterdir() if b"zebra" in path.read_bytes()]
    stats.close()


def test_without_statistics_every_word_counts_alike():
    """The neutral weights hold every term, each with the same share."""
    assert neutral([3, 5]).held == {3: 1.0, 5: 1.0}
    assert neutral([3, 5]).mass == 2.0


def test_words_of_nearly_every_record_find_nothing_beside_rare_ones() -> None:
    """They are left out of the search for candidates; where there is nothing rarer they are all there is."""
    words = weighed([1, 2, 3], 1_000, {1: 3, 2: 900, 3: 990})
    assert set(words.held) == {1, 2, 3}
    assert (set(words.telling.held), words.telling.mass) == ({1}, words.mass)
    frequent = weighed([2], 1_000, {2: 900})
    assert frequent.telling == frequent
    assert neutral([3, 5]).telling == neutral([3, 5])
    assert neutral([]).telling == neutral([])
