"""How many of an owner's records hold each term, and the weights of lexical search that follow from it."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hearth.memory.recall.function_words import FUNCTION_WORDS
from hearth.memory.recall.lexical import analyzed
from hearth.memory.types import Record

T = TypeVar("T", float, NDArray[np.float64])

K1 = 1.2
B = 0.4
"""BM25's saturation and length constants; the usual b of 0.75 punishes a page for a long answer."""
AVERAGE_LENGTH = 60.0
"""Terms a page, taken as a constant so that a stored weight never depends on other people's texts."""

MAX_QUERY_TERMS = 512
"""Terms of one query that are looked up at all; SQLite takes no more than 32,766 variables in a statement."""

_MAX_WEIGHED = 64
"""The rarest of them, which alone are searched for: a pasted page costs no more than a sentence."""


_MAX_CONTENT = 24
"""Terms of them that are compared with every word of the candidates: more are no question but a paste."""

ENOUGH = 20
"""Records of an owner, below which no term is called common."""
TELLING = 0.2
"""Share of the weightiest term's idf below which a term finds no candidates. Lists of frequent words hold
everybody's texts, so that they cost most where there are many people, and tell little of any record.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    """What a query's words are worth to an owner."""

    held: dict[int, float]
    """The idf of each term that at least one record holds."""
    mass: float
    """The sum of idf over all terms, those that no record holds included."""
    common: frozenset[int] = frozenset()
    """Those that at least half of the owner's records hold, of `ENOUGH` or more: as a speaker's name does."""
    content: dict[int, float] = field(default_factory=dict)
    """The idf of the weightiest terms that are neither common nor function words, held or not."""

    @property
    def telling(self) -> QueryTerms:
        """The terms that candidates are found by; their scores count all."""
        least = TELLING * max(self.held.values(), default=0.0)
        held = {term: idf for term, idf in self.held.items() if idf >= least}
        return replace(self, held=held)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTerms:
    """The distinct terms of one record, and whose it is."""

    owner: str
    person: str
    record: str
    terms: frozenset[int]


class TermStats(Protocol):
    """Document frequencies by owner, kept beside an index whose engine would count other people's too.

    Any thread may call. Each call is one transaction where the store is shared; what a process keeps for
    itself may wait for `commit`. All but `close` raise StoreUnavailable where the store can't be reached.
    """

    def add(self, records: Sequence[RecordTerms]) -> bool:
        """Count each record's terms in place of those it had, so that a replay converges; True if any had
        others. Of two with one owner and id the later counts.
        """
        ...

    def remove(self, owner: str, records: Sequence[str]) -> bool:
        """Forget those records of the owner; False where all are unknown."""
        ...

    def clear(self, person: str) -> bool:
        """Forget every record of the person, of all owners that are theirs; False where there was none."""
        ...

    def weigh(self, owners: Sequence[str], terms: Iterable[int]) -> QueryTerms:
        """A query's terms by their idf among the owners' records together."""
        ...

    def is_filled(self, collection: str) -> bool:
        """Whether all of that collection's records are counted here."""
        ...

    def mark_filled(self, collection: str) -> None:
        """From now on they are. Collections of several embedders hold the same records; each is marked."""
        ...

    def commit(self) -> None:
        """Make every change so far durable."""
        ...

    def purge(self) -> None:
        """Leave nothing of what was removed in files of the store's own."""
        ...

    def close(self) -> None:
        """Commit and close."""
        ...


def terms_of(record: Record, sides: Iterable[Iterable[int]]) -> RecordTerms:
    """The terms of all the record's sides, each once."""
    scope = record.scope
    return RecordTerms(
        owner=scope.owner, person=scope.person, record=record.id, terms=frozenset().union(*sides)
    )


def shifts(
    old: Mapping[tuple[str, str], frozenset[int]], new: Mapping[tuple[str, str], frozenset[int]]
) -> tuple[Counter[tuple[str, int]], Counter[str]]:
    """What the counts change by where records, by (owner, id), have the `new` terms in place of the `old`
    ones, or none any more: the records of each (owner, term), and of each owner.
    """
    terms, records = Counter[tuple[str, int]](), Counter[str]()
    for key in {**old, **new}:
        owner, before, after = key[0], old.get(key, frozenset()), new.get(key, frozenset())
        records[owner] += (key in new) - (key in old)
        terms.update((owner, term) for term in after - before)
        terms.subtract((owner, term) for term in before - after)
    return terms, records


def differ(
    old: Mapping[tuple[str, str], frozenset[int]], new: Mapping[tuple[str, str], frozenset[int]]
) -> bool:
    """Whether any of the `old` records has other terms among the `new` ones."""
    return any(terms != new[key] for key, terms in old.items())


def packed(terms: Iterable[int]) -> bytes:
    """Terms as they are stored: in order, 32 bits each."""
    return array("I", sorted(terms)).tobytes()


def unpacked(raw: bytes) -> frozenset[int]:
    """The inverse of `packed`."""
    return frozenset(array("I", raw))


def together(sides: Iterable[Mapping[int, int]]) -> Counter[int]:
    """The counts of a record's terms, of all its sides."""
    counts = Counter[int]()
    for side in sides:
        counts.update(side)
    return counts


def saturated(counts: Mapping[int, int]) -> dict[int, float]:
    """BM25's weight of each term in its text, without the inverse document frequency."""
    length = float(sum(counts.values()))
    return {term: saturation(float(count), length) for term, count in counts.items()}


def saturation(count: T, length: T) -> T:
    """BM25's weight of a term that occurs `count` times in a text of `length` terms, 0 where it doesn't."""
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length / AVERAGE_LENGTH))


def inverse_frequency(records: int, holding: int) -> float:
    """BM25's idf, never negative: how much a term that `holding` of `records` records hold tells."""
    return math.log(1 + (records - holding + 0.5) / (holding + 0.5))


def weighed(
    terms: Sequence[int],
    records: int,
    holding: Mapping[int, int],
    common: frozenset[int] | None = None,
) -> QueryTerms:
    """The rarest of the query's terms with their idf; `holding` counts the records of each held term.

    `common`: the terms that are; None: as these counts say.
    """
    weights = {term: inverse_frequency(records, holding.get(term, 0)) for term in terms}
    rarest = sorted(weights, key=weights.__getitem__, reverse=True)[:_MAX_WEIGHED]
    if common is None:
        common = frozenset(term for term, by in holding.items() if ENOUGH <= records <= 2 * by)
    return QueryTerms(
        held={term: weights[term] for term in rarest if term in holding},
        mass=sum(weights[term] for term in rarest),
        common=common,
        content=_content({term: weights[term] for term in rarest if term not in common}),
    )


def weighed_together(
    terms: Sequence[int], records: Mapping[str, int], holding: Mapping[tuple[str, int], int]
) -> QueryTerms:
    """The same among the records of several owners: `records` by owner, `holding` by owner and term.

    A term is common that is so to one of them: a name in half of a user's pages tells those as little apart
    where a thousand documents beside them lack it.
    """
    held = Counter[int]()
    for (_, term), by in holding.items():
        held[term] += by
    common = frozenset(
        term for (owner, term), by in holding.items() if ENOUGH <= records.get(owner, 0) <= 2 * by
    )
    return weighed(terms, sum(records.values()), held, common)


def neutral(terms: Iterable[int]) -> QueryTerms:
    """Every term worth the same: what goes on where nobody can say how rare they are."""
    held = dict.fromkeys(list(terms)[:_MAX_WEIGHED], 1.0)
    return QueryTerms(held=held, mass=float(len(held)), content=_content(held))


def _content(weights: Mapping[int, float]) -> dict[int, float]:
    function = analyzed(FUNCTION_WORDS)
    return dict([(term, idf) for term, idf in weights.items() if term not in function][:_MAX_CONTENT])
