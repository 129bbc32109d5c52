"""What the log keeps of a recall's ranking."""

from __future__ import annotations

from hearth.memory.events.codec import encode
from hearth.memory.events.kinds import RecallDrawn
from hearth.memory.recall.ranking import ranking_of
from hearth.memory.recall.traces import TracedItem
from hearth.memory.types import DrawnItem

NAMES = (
    "text",
    "context",
    "lexical",
    "previous",
    "next",
    "session",
    "speaker",
    "date",
    "recency",
    "importance",
)


def candidate(number: int, verdict: str) -> TracedItem:
    """One with a value of its own for each signal."""
    signals = {name: (number * 7 + place) % 97 / 97 for place, name in enumerate(NAMES)}
    return TracedItem(
        id=f"{number:032x}", verdict=verdict, score=0.5, relevance=0.5, signals=signals, tokens=9
    )


def test_what_was_shown_and_the_best_of_the_rest_are_kept() -> None:
    """Of those that the ranking left out the best four; none that the record or the request ruled out."""
    verdicts = ["in", "stale", "below floor", "in", *["over budget"] * 9, "duplicate"]
    items = [candidate(number, verdict) for number, verdict in enumerate(verdicts)]
    ranking = ranking_of(items)
    assert ranking is not None
    assert [(int(item.id, 16), item.shown) for item in ranking.items] == [
        (0, True),
        (2, False),
        (3, True),
        (4, False),
        (5, False),
        (6, False),
    ]
    named = ranking_of(items, also={items[-1].id})
    assert named is not None
    assert named.items[-1].id == items[-1].id


def test_signals_are_kept_by_name_with_three_digits() -> None:
    """Whatever the signals are called."""
    ranking = ranking_of([candidate(5, "in")])
    assert ranking is not None
    assert ranking.signals == NAMES
    assert ranking.items[0].values[1] == round(36 / 97, 3)
    assert ranking_of([]) is None


def test_a_ranking_takes_little_of_the_log() -> None:
    """Of ten items shown and four that were not, with what the reply drew on: about a kilobyte."""
    items = [candidate(number, "in" if number < 10 else "over budget") for number in range(60)]
    ranking = ranking_of(items)
    assert ranking is not None
    drawn = tuple(DrawnItem(id=item.id, share=0.125, used=False) for item in ranking.items if item.shown)
    payload = RecallDrawn(trace="t" * 32, exchange="e" * 32, items=drawn, ranking=ranking)
    assert len(encode(payload).body) < 1_200
