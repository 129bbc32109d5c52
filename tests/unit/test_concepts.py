"""Concepts: which facts belong together, what they say in one, and when that takes the place of several."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.config.environment import bundled_token_tables
from hearth.memory.recall.comparing import compared
from hearth.memory.recall.pipeline import recall_block
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.tiers.concepts import ConceptPolicy, Member, concepts, member, summed_up
from hearth.memory.tiers.segments import SegmentPolicy
from hearth.memory.types import (
    Block,
    Candidate,
    Embedding,
    Evidence,
    Memory,
    Query,
    Scope,
    Scored,
    SearchResult,
    ShortTermView,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCOPE = Scope(tenant="acme", user="alice")
COUNTER = LocalTokenCounter(bundled_token_tables())
POLICY, COSINES = ConceptPolicy(least=2), SegmentPolicy()
DOG = (
    "My dog is called Bilbo.",
    "My dog is afraid of thunder.",
    "My dog is fed with salmon alone.",
    "The vet of my dog is Dr. Farkas.",
)
WORDS = ("dog", "cat", "Bilbo", "vet", "opera", "rowing", "salmon", "thunder", "likes", "is", "my")
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), max_size=14)


def fact(text: str, number: int, **fields: object) -> Memory:
    at = NOW - timedelta(days=number)
    given = {"id": f"{number:032x}", "scope": SCOPE, "generation": 1, "text": text, "occurred_at": at}
    return Memory(**{**given, "created_at": at, "updated_at": at, **fields})  # type: ignore[arg-type]


def members(texts: list[str] | tuple[str, ...]) -> list[Member]:
    """Texts whose words alone say how near they are."""
    return [member(fact(text, number), [1.0, 0.0]) for number, text in enumerate(texts)]


def concept(*facts: Memory, **fields: object) -> Memory:
    text, told = summed_up(sorted(facts, key=lambda one: one.occurred_at))
    evidence = tuple(Evidence(id=one.id, role="user", quote=one.text, at=NOW) for one in told)
    return fact(text, 0, id="c" * 32, type="concept", evidence=evidence, **fields)


def recall(
    *records: Memory, question: str = "What do you know of my dog?", budget: int = 1024, compact: bool = True
) -> tuple[Block, tuple[Scored, ...]]:
    found = tuple(
        Candidate(record=one, text_score=0.6, context_score=0.6, lexical_score=2.0, coverage=0.5)
        for one in records
    )
    return recall_block(
        Query(text=question, at=NOW),
        SearchResult(candidates=found, vector=Embedding("use-m3", [1.0])),
        ShortTermView(),
        scope=SCOPE,
        generation=1,
        policy=RecallPolicy(),
        counter=COUNTER,
        budget=budget,
        compact=compact,
    )


@settings(max_examples=80)
@given(texts=TEXTS, seed=st.randoms(use_true_random=False))
def test_a_concept_has_members_of_its_own_whatever_their_order(texts: list[str], seed: object) -> None:
    """No fact is in two, none is smaller or larger than it may be, and every word of a member is in it."""
    given_ = members(texts)
    found = concepts(given_, POLICY, COSINES)
    shuffled = list(given_)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    assert concepts(shuffled, POLICY, COSINES) == found
    ids = [one.id for concept in found for one in concept.members]
    assert len(ids) == len(set(ids))
    for one in found:
        assert POLICY.least <= len(one.members) <= POLICY.most
        assert {word for m in one.members for word in m.text.split()} <= set(
            one.text.replace(",", "").replace(".", "").split()
        )


def test_facts_of_one_thing_are_told_in_one_and_others_are_not() -> None:
    """What begins alike is said once; the name is what they have in common."""
    unrelated = [[1.0, 0.0], [0.0, 1.0]]
    facts = [member(fact(text, 9 - n), unrelated[0]) for n, text in enumerate(DOG)]
    others = [member(fact("I row on Sundays.", 20), unrelated[1])]
    (one,) = concepts([*others, *facts], ConceptPolicy(), COSINES)
    assert one.text == (
        "My dog is called Bilbo, afraid of thunder, fed with salmon alone. The vet of my dog is Dr. Farkas."
    )
    assert one.name.startswith("dog")
    assert [m.text for m in one.members] == list(DOG)
    assert concepts(facts[:2], ConceptPolicy(), COSINES) == []


def test_a_concept_takes_the_place_of_several_items_where_that_is_shorter() -> None:
    """The block then has every one of their words, fewer tokens, and the concept under its own heading."""
    facts = [fact(text, n) for n, text in enumerate(DOG)]
    raw, compact = recall(*facts, compact=False), recall(*facts, concept(*facts))
    assert recall(concept(*facts), *facts) == compact
    assert "# Concepts\n2026\nSun 1 Mar\n- The vet of my dog is Dr. Farkas." in compact[0].text
    assert compact[0].tokens < raw[0].tokens
    assert compact[0].items == ("c" * 32,)
    assert {one.verdict for one in compact[1] if one.record.type != "concept"} == {"duplicate"}  # type: ignore[union-attr]
    told = compared(raw, compact)
    assert [(one.raw, one.compacted, one.concept) for one in told.evidence] == [(True, True, "c" * 32)] * 4


def test_a_concept_that_does_not_help_is_not_shown() -> None:
    """For one item, where it is longer, where time is asked for, and where a member changed meanwhile."""
    facts = [fact(text, n) for n, text in enumerate(DOG)]
    whole = concept(*facts)
    without = recall(*facts)[0]
    assert whole.id not in recall(facts[0], whole)[0].items
    long = concept(*facts, *(fact(f"My dog has the toy number {n} in its box.", n) for n in range(5, 12)))
    assert recall(*facts[:2], long)[0] == recall(*facts[:2])[0]
    for question in (
        "When did my dog meet the vet?",
        "What did my dog do last week?",
        "Wann war mein Hund da?",
    ):
        assert whole.id not in recall(*facts, whole, question=question)[0].items
    ended = fact(DOG[0], 0, valid_to=NOW - timedelta(hours=1), valid_from=NOW - timedelta(days=2))
    for changed in (ended, fact("My dog is called Frodo.", 0)):
        assert whole.id not in recall(changed, *facts[1:], whole)[0].items
    other = fact(whole.text, 0, id=whole.id, type="concept", generation=2, evidence=whole.evidence)
    assert recall(*facts, other)[0] == without


@settings(max_examples=25)
@given(texts=st.lists(st.text(min_size=1, max_size=60), min_size=2, max_size=6), budget=st.integers(0, 400))
def test_with_concepts_a_block_keeps_its_budget_and_never_loses_a_record(
    texts: list[str], budget: int
) -> None:
    """What the block without them shows stands in the one with them, itself or in a concept."""
    facts = [fact(text, n) for n, text in enumerate(texts)]
    raw = recall(*facts, budget=budget, compact=False)
    compact = recall(*facts, concept(*facts), budget=budget)
    assert compact[0].tokens <= budget
    assert compact[0].tokens == COUNTER.count(compact[0].text)
    assert all(one.compacted for one in compared(raw, compact).evidence if one.raw)
