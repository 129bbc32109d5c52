"""Term statistics in one SQLite file, for one process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import RLock

from hearth.memory.stores.terms import (
    MAX_QUERY_TERMS,
    QueryTerms,
    RecordTerms,
    differ,
    packed,
    shifts,
    unpacked,
    weighed_together,
)

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
CREATE TABLE IF NOT EXISTS filled (collection TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_ALL = -1
"""Stands for a term in the row that counts all records."""


class SqliteTerms:
    """The TermStats port in one file, or in memory without `path`. Changes are durable after `commit`."""

    def __init__(self, path: Path | None = None) -> None:
        self._turn = RLock()
        self._db = sqlite3.connect(path or ":memory:", check_same_thread=False)
        self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON;")
        self._db.executescript(_SCHEMA)

    def add(self, records: Sequence[RecordTerms]) -> bool:
        """See TermStats."""
        latest = {(one.owner, one.record): one for one in records}
        new = {key: one.terms for key, one in latest.items()}
        with self._turn:
            old = self._known(new)
            self._db.executemany(
                "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)",
                [(*key, one.person, packed(one.terms)) for key, one in latest.items()],
            )
            self._apply(*shifts(old, new))
        return differ(old, new)

    def remove(self, owner: str, records: Sequence[str]) -> bool:
        """See TermStats."""
        with self._turn:
            old = self._known((owner, record) for record in records)
            self._db.executemany("DELETE FROM record WHERE owner = ? AND id = ?", list(old))
            self._apply(*shifts(old, {}))
        return bool(old)

    def clear(self, person: str) -> bool:
        """See TermStats."""
        with self._turn:
            found = self._db.execute("SELECT DISTINCT owner FROM record WHERE person = ?", (person,))
            owners = found.fetchall()
            self._db.executemany("DELETE FROM frequency WHERE owner = ?", owners)
            self._db.executemany("DELETE FROM owner WHERE owner = ?", owners)
            self._db.execute("DELETE FROM record WHERE person = ?", (person,))
        return bool(owners)

    def weigh(self, owners: Sequence[str], terms: Iterable[int]) -> QueryTerms:
        """See TermStats."""
        wanted = list(terms)[:MAX_QUERY_TERMS]
        marks = ",".join("?" * len(owners))
        with self._turn:
            rows = self._db.execute(
                f"SELECT owner, {_ALL}, records FROM owner WHERE owner IN ({marks})"  # noqa: S608 (marks only)
                f" UNION ALL SELECT owner, term, records FROM frequency WHERE owner IN ({marks})"
                f" AND term IN ({','.join('?' * len(wanted))})",
                (*owners, *owners, *wanted),
            )
            found = {(owner, term): records for owner, term, records in rows.fetchall()}
        return weighed_together(wanted, {owner: found.pop((owner, _ALL), 0) for owner in owners}, found)

    def is_filled(self, collection: str) -> bool:
        """See TermStats."""
        with self._turn:
            found = self._db.execute("SELECT 1 FROM filled WHERE collection = ?", (collection,))
            return found.fetchone() is not None

    def mark_filled(self, collection: str) -> None:
        """See TermStats."""
        with self._turn:
            self._db.execute("INSERT OR IGNORE INTO filled VALUES (?)", (collection,))

    def commit(self) -> None:
        """See TermStats."""
        with self._turn:
            self._db.commit()

    def purge(self) -> None:
        """See TermStats: empties SQLite's own log."""
        with self._turn:
            self._db.commit()
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """See TermStats."""
        with self._turn:
            self._db.commit()
            self._db.close()

    def _known(self, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], frozenset[int]]:
        """The terms of those records, by (owner, id), that are counted already."""
        sql = "SELECT terms FROM record WHERE owner = ? AND id = ?"
        found = ((key, self._db.execute(sql, key).fetchone()) for key in keys)
        return {key: unpacked(row[0]) for key, row in found if row is not None}

    def _apply(self, terms: Mapping[tuple[str, int], int], records: Mapping[str, int]) -> None:
        self._db.executemany(
            "INSERT INTO owner VALUES (?, ?) ON CONFLICT DO UPDATE SET records = records + excluded.records",
            [(owner, by) for owner, by in records.items() if by],
        )
        self._db.executemany(
            "INSERT INTO frequency VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET records = records + excluded.records",
            [(*key, by) for key, by in terms.items() if by],
        )
        self._db.executemany(
            "DELETE FROM frequency WHERE owner = ? AND term = ? AND records <= 0",
            [key for key, by in terms.items() if by < 0],
        )
