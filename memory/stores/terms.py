"""How many of an owner's records hold each term, and the weights of lexical search that follow from it."""

from __future__ import annotations

import math
import sqlite3
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

K1 = 1.2
B = 0.4
"""BM25's saturation and length constants; the usual b of 0.75 punishes a page for a long answer."""
AVERAGE_LENGTH = 60.0
"""Terms a page, taken as a constant so that a stored weight never depends on other people's texts."""

_MAX_QUERY_TERMS = 512
"""Terms of one query that are looked up at all; SQLite takes no more than 32,766 variables in a statement."""

_MAX_WEIGHED = 64
"""The rarest of them, which alone are searched for: a pasted page costs no more than a sentence."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS record (
    owner TEXT NOT NULL, id TEXT NOT NULL, person TEXT NOT NULL, terms BLOB NOT NULL,
    PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS record_person ON record (person);
CREATE TABLE IF NOT EXISTS frequency (
    owner TEXT NOT NULL, term INTEGER NOT NULL, records INTEGER NOT NULL, PRIMARY KEY (owner, term)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owner (owner TEXT PRIMARY KEY, records INTEGER NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    """What a query's words are worth to an owner."""

    held: dict[int, float]
    """The idf of each term that at least one record holds."""
    mass: float
    """The sum of idf over all terms, those that no record holds included."""


def saturated(counts: Mapping[int, int]) -> dict[int, float]:
    """BM25's weight of each term in its text, without the inverse document frequency."""
    length = sum(counts.values())
    norm = K1 * (1 - B + B * length / AVERAGE_LENGTH)
    return {term: count * (K1 + 1) / (count + norm) for term, count in counts.items()}


def inverse_frequency(records: int, holding: int) -> float:
    """BM25's idf, never negative: how much a term that `holding` of `records` records hold tells."""
    return math.log(1 + (records - holding + 0.5) / (holding + 0.5))


class TermStats:
    """Document frequencies by owner in one SQLite file, or in memory without `path`. One thread at a time.

    Changes are durable after `commit`. Adding is idempotent by record, so a replay converges.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._db = sqlite3.connect(path or ":memory:", check_same_thread=False)
        self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON;")
        self._db.executescript(_SCHEMA)

    def add(self, owner: str, person: str, record: str, terms: Iterable[int]) -> bool:
        """Count the record's distinct terms, in place of those that it had before; True if it had others."""
        new = set(terms)
        old = self._terms(owner, record)
        if old is None:
            self._total(owner, 1)
        self._shift(owner, new - (old or set()), 1)
        self._shift(owner, (old or set()) - new, -1)
        self._db.execute(
            "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)",
            (owner, record, person, array("I", sorted(new)).tobytes()),
        )
        return old is not None and old != new

    def remove(self, owner: str, record: str) -> bool:
        """Forget the record; False for an unknown one."""
        old = self._terms(owner, record)
        if old is None:
            return False
        self._db.execute("DELETE FROM record WHERE owner = ? AND id = ?", (owner, record))
        self._shift(owner, old, -1)
        self._total(owner, -1)
        return True

    def clear(self, person: str) -> bool:
        """Forget every record of the person, of all owners that are theirs; False where there was none."""
        owners = [
            row[0]
            for row in self._db.execute("SELECT DISTINCT owner FROM record WHERE person = ?", (person,))
        ]
        for owner in owners:
            self._db.execute("DELETE FROM frequency WHERE owner = ?", (owner,))
            self._db.execute("DELETE FROM owner WHERE owner = ?", (owner,))
        self._db.execute("DELETE FROM record WHERE person = ?", (person,))
        return bool(owners)

    def frequencies(self, owners: Sequence[str], terms: Sequence[int]) -> tuple[int, dict[int, int]]:
        """How many records the owners have together, and how many of them hold each of the terms."""
        marks = ",".join("?" * len(owners))
        (total,) = self._db.execute(
            f"SELECT coalesce(sum(records), 0) FROM owner WHERE owner IN ({marks})",  # noqa: S608 (marks only)
            tuple(owners),
        ).fetchone()
        rows = self._db.execute(
            f"SELECT term, sum(records) FROM frequency WHERE owner IN ({marks})"  # noqa: S608 (marks only)
            f" AND term IN ({','.join('?' * len(terms))}) GROUP BY term",
            (*owners, *terms),
        )
        return total, dict(rows.fetchall())

    def weigh(self, owners: Sequence[str], terms: Iterable[int]) -> QueryTerms:
        """The query's terms by their idf among the owners' records."""
        wanted = list(terms)[:_MAX_QUERY_TERMS]
        total, holding = self.frequencies(owners, wanted)
        weights = {term: inverse_frequency(total, holding.get(term, 0)) for term in wanted}
        rarest = sorted(weights, key=weights.__getitem__, reverse=True)[:_MAX_WEIGHED]
        return QueryTerms(
            held={term: weights[term] for term in rarest if term in holding},
            mass=sum(weights[term] for term in rarest),
        )

    def commit(self) -> None:
        """Make every change so far durable."""
        self._db.commit()

    def truncate(self) -> None:
        """Leave nothing of what was removed in SQLite's own log."""
        self._db.commit()
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Commit and close."""
        self._db.commit()
        self._db.close()

    def _terms(self, owner: str, record: str) -> set[int] | None:
        row = self._db.execute(
            "SELECT terms FROM record WHERE owner = ? AND id = ?", (owner, record)
        ).fetchone()
        return None if row is None else set(array("I", row[0]))

    def _total(self, owner: str, by: int) -> None:
        self._db.execute(
            "INSERT INTO owner VALUES (?, ?) ON CONFLICT DO UPDATE SET records = records + excluded.records",
            (owner, by),
        )

    def _shift(self, owner: str, terms: set[int], by: int) -> None:
        rows = [(owner, term, by) for term in terms]
        self._db.executemany(
            "INSERT INTO frequency VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET records = records + excluded.records",
            rows,
        )
        if by < 0:
            self._db.executemany(
                "DELETE FROM frequency WHERE owner = ? AND term = ? AND records <= 0",
                [(owner, term) for term in terms],
            )
