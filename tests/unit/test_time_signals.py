"""What the asked time makes of candidates: nearness, order, chance, and a search within it."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from hearth.memory.ports import MemoryFilter, SearchRequest
from hearth.memory.recall.dates import local_day
from hearth.memory.recall.pipeline import recall_block
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.time_search import merged, search_in_time
from hearth.memory.recall.time_signals import time_signals, timely
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.types import Candidate, Embedding, Page, Query, Scope, SearchResult, ShortTermView

NOW = datetime(2024, 6, 12, 15, tzinfo=UTC)
SCOPE = Scope(tenant="t", user="u")


def page(name, at, said="I cooked leek soup."):
    return Page(id=name, scope=SCOPE, generation=1, user_text=said, reply_text="Noted.", occurred_at=at)


def pages(*ago):
    return [page(f"p{i}", NOW - timedelta(days=days)) for i, days in enumerate(ago)]


def found(*records, cosine=0.6):
    return SearchResult(
        candidates=tuple(Candidate(record=r, text_score=cosine, context_score=cosine) for r in records),
        vector=Embedding("use-m3", [1.0, 0.0]),
    )


LAST_WEEK = Query(text="What did I cook last week?", at=NOW)


def told(question, records, own=None):
    own = np.ones(len(records)) if own is None else np.array(own)
    return time_signals(records, own, Query(text=question, at=NOW))


def test_a_question_without_time_gives_no_signal():
    """Zero for everything, and every chance as it was."""
    signals = told("What do I like to cook?", pages(0, 5))
    assert [list(numbers) for numbers in signals.values()] == [[0, 0], [0, 0]]
    chances = np.array([0.2, 0.4])
    assert list(timely(chances, signals["date"], Query(text="What do I like to cook?", at=NOW))) == [0.2, 0.4]


def test_a_thing_is_told_after_it_happened_rather_than_before():
    """1 in the asked week, which ended on Sunday; less on Tuesday, and less still on the Saturday before."""
    inside, after, before = told("What did I cook last week?", pages(5, 1, 11))["date"]
    assert inside == 1 > after > before > 0


def test_another_years_month_counts_half():
    """`in May` is this year's, but may be meant as the one before."""
    dates = told("What did I cook in May?", pages(30, 30 + 365, 30 + 2 * 365))["date"]
    assert [round(number, 2) for number in dates] == [1, 0.5, 0]


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("When did I first cook?", [1]),
        ("What did I last cook? The last time?", [2]),
        ("How long have I been cooking?", [1, 2]),
    ],
)
def test_the_first_the_latest_or_both_are_preferred(question, best):
    """Among those that speak of what is asked; the last one here does not."""
    order = told(question, pages(50, 100, 10, 200), own=[1.0, 0.9, 0.8, 0.1])["order"]
    assert [i for i, number in enumerate(order) if number == 1] == best
    assert order[3] == 0


def test_what_was_said_in_the_asked_time_is_likelier_to_be_meant():
    """Up to ten times; what cannot be stays so, and what is sure too."""
    chances = timely(np.array([0.2, 0.2, 0.0, 1.0]), np.array([1.0, 0.0, 1.0, 1.0]), LAST_WEEK)
    assert chances[0] > 0.2
    assert list(chances[1:]) == [0.2, 0.0, 1.0]


def test_where_all_was_said_in_the_asked_time_no_chance_is_less():
    """It tells nothing then."""
    assert list(timely(np.array([0.2, 0.4]), np.ones(2), LAST_WEEK)) == pytest.approx([0.2, 0.4])


def test_where_nothing_was_said_in_the_asked_time_all_is_less_likely():
    """A tenth of the odds, so that only what fits by all its words is given; not for times that go on."""
    chances, far = np.array([0.8, 0.999]), np.array([0.0, 0.01])
    less = timely(chances, far, LAST_WEEK)
    assert less[0] == pytest.approx(0.4 / 1.4)
    assert less[1] > 0.98
    for question in (
        "What have I cooked lately?",
        "What should I cook tonight?",
        "What did I cook this week?",
    ):
        assert list(timely(chances, far, Query(text=question, at=NOW))) == list(chances)


def test_a_search_within_the_asked_time_is_made_where_one_is_asked():
    """With the same owners and conditions, the vector that is known, and some days more for the telling."""
    request = SearchRequest(owners=("t/u",), text="x", where=MemoryFilter(types=("page",)))
    query = Query(text="What did I cook on 3 March 2024?", at=NOW)
    within = search_in_time(request, query, found(*pages(1)))
    assert within is not None
    assert (within.owners, within.where.types, within.vector.numbers) == (("t/u",), ("page",), [1.0, 0.0])
    assert within.where.since == datetime(2024, 3, 3, tzinfo=UTC)
    assert within.where.until == datetime(2024, 3, 6, tzinfo=UTC)
    assert within.limit < request.limit


@pytest.mark.parametrize(
    "question", ["What do I cook?", "When did I first cook?", "What should I cook tonight?"]
)
def test_no_search_within_a_time_is_made_where_none_is_asked(question):
    """Nor where the first search found nothing."""
    request = SearchRequest(owners=("t/u",), text="x")
    assert search_in_time(request, Query(text=question, at=NOW), found(*pages(1))) is None
    timed = Query(text="What did I cook yesterday?", at=NOW)
    assert search_in_time(request, timed, SearchResult(missing=("long_term",))) is None


def test_candidates_of_both_searches_stand_once():
    """The first search's come first."""
    one, two, three = pages(1, 2, 3)
    both = merged(found(one, two), found(two, three))
    assert [candidate.record.id for candidate in both.candidates] == ["p0", "p1", "p2"]


def test_case_49_recall_filters_and_shows_by_the_users_local_day():
    """Said half an hour into the new year in Tokyo: shown under that day, and the one that `today` finds."""
    new_year = page("new", datetime(2025, 12, 31, 15, 30, tzinfo=UTC), "My exam is tomorrow.")
    old_year = page("old", datetime(2025, 12, 31, 14, 30, tzinfo=UTC), "My exam went badly, I think.")
    query = Query(
        text="What did I say about my exam today?",
        at=datetime(2025, 12, 31, 16, tzinfo=UTC),
        timezone="Asia/Tokyo",
    )
    block, scored = recall_block(
        query,
        found(new_year, old_year),
        ShortTermView(),
        scope=SCOPE,
        generation=1,
        policy=RecallPolicy(),
        counter=LocalTokenCounter(),
    )
    dates = {one.record.id: one.signals["date"] for one in scored}
    assert dates["new"] > dates["old"]
    assert block.text.index("Wed 31 Dec") < block.text.index("went badly")
    assert block.text.index("2026\nThu 1 Jan") < block.text.index("is tomorrow")
    assert local_day(new_year.occurred_at, "Asia/Tokyo").isoformat() == "2026-01-01"


@pytest.mark.parametrize(
    "question",
    [
        "What happened last week?",
        "Worüber haben wir letzte Woche gesprochen?",
        "上周发生了什么？",
        "Tell me about last week.",
    ],
)
def test_a_question_for_nothing_but_a_time_means_all_that_was_said_then(question):
    """What was said in it reaches the floor, unless it says nothing; what was said later does not."""
    dates = told(question, pages(5, 1, 4))["date"]
    chances = timely(np.array([0.1, 0.1, 0.0]), dates, Query(text=question, at=NOW))
    assert list(chances) == [0.5, 0.1, 0.0]


@pytest.mark.parametrize(
    "question", ["What did I buy last week?", "What did Anna say last week?", "昨日何を買った？"]
)
def test_a_question_for_something_at_a_time_still_has_to_find_it(question):
    """One word that names something is enough."""
    chances = timely(np.array([0.01, 0.01]), np.array([1.0, 0.0]), Query(text=question, at=NOW))
    assert max(chances) < 0.2
