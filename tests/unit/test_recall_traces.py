"""What is kept of a recall, and for how long."""

from __future__ import annotations

import sys
import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest

from hearth.memory.recall.traces import FIXED, TracedItem, TraceRing, trace_of
from hearth.memory.types import Block, Memory, Query, Recall, Scope, Scored

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ALICE = Scope(tenant="acme", user="alice")


def memory(number: int) -> Memory:
    """A fact."""
    return Memory(
        id=f"{number:032x}",
        scope=ALICE,
        generation=1,
        text=f"fact {number}",
        occurred_at=NOW,
        created_at=NOW,
        updated_at=NOW,
    )


def recall(trace: str, count: int = 2, at: datetime = NOW, scope: Scope = ALICE) -> Recall:
    """A recall of that many facts."""
    scored = tuple(
        Scored(
            record=memory(number),
            score=1.5 - number / 8,
            relevance=0.25,
            signals={"text": 0.5, "lexical": -1.0},
            verdict="in" if number == 0 else "over budget",
            tokens=12 + number,
        )
        for number in range(count)
    )
    block = Block(text="x", tokens=12, items=(f"{0:032x}",))
    return Recall(trace=trace, scope=scope, query=Query(text="q", at=at), block=block, scored=scored, at=at)


def test_a_trace_gives_back_every_number_of_the_recall() -> None:
    """Ids, verdicts, scores, tokens and signals come out of the packed form as they went in."""
    expected = tuple(
        TracedItem(
            id=one.record.id,
            verdict=one.verdict,
            score=one.score,
            relevance=one.relevance,
            signals=one.signals,
            tokens=one.tokens,
        )
        for one in recall("t", 5).scored
    )
    assert trace_of(recall("t", 5)).items == expected


def test_a_recall_without_candidates_has_an_empty_trace() -> None:
    """Nothing found is nothing explained."""
    assert trace_of(recall("t", 0)).items == ()


def test_a_trace_of_a_hundred_candidates_is_a_few_kilobytes() -> None:
    """The ring's size rests on it: ids and numbers, no object for each."""
    packed = trace_of(recall("t", 100)).packed
    taken = sum(map(sys.getsizeof, (packed.ids, packed.verdicts, packed.numbers)))
    assert taken < 10_000
    assert packed.size == pytest.approx(taken, rel=0.05)


def test_a_ring_takes_no_more_memory_than_it_may() -> None:
    """However many candidates there were, what a thousand recalls leave behind stays within its bytes."""
    capacity = 1_000_000
    tracemalloc.start()
    ring = TraceRing(capacity=capacity)
    before, _ = tracemalloc.get_traced_memory()
    for number in range(1_000):
        ring.add(trace_of(recall(f"t{number}", number % 50)))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.7 * capacity < after - before < 1.1 * capacity


def test_the_oldest_traces_leave_by_size_and_by_age() -> None:
    """A ring for two holds the latest two, and none that is older than it keeps them."""
    size = FIXED + trace_of(recall("t")).packed.size
    ring = TraceRing(capacity=2 * size, keep=timedelta(hours=1))
    ring.add(trace_of(recall("t0")))
    for number in range(3):
        ring.add(trace_of(recall(f"t{number}", at=NOW + timedelta(minutes=number))))
    assert [ring.get(f"t{number}") is not None for number in range(3)] == [False, True, True]
    ring.add(trace_of(recall("late", at=NOW + timedelta(hours=2))))
    assert [trace.id for trace in ring.since(NOW)] == ["late"]


def test_a_users_traces_can_be_dropped() -> None:
    """Those of another user of the tenant stay."""
    ring = TraceRing()
    ring.add(trace_of(recall("hers")))
    ring.add(trace_of(recall("his", scope=Scope(tenant="acme", user="bob"))))
    ring.drop("acme", "alice")
    assert (ring.get("hers"), ring.get("his") is not None) == (None, True)
