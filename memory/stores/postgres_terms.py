"""Term statistics in PostgreSQL, beside the event log, for all processes that search one Qdrant server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from hearth.memory.errors import LogUnavailable, StoreUnavailable
from hearth.memory.events.postgres import SCHEMA, PostgresDatabase
from hearth.memory.events.postgres_pool import PostgresPool
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

T = TypeVar("T")

PART = "term statistics"
_LOCK_CLASS = 0x48727474


class PostgresTerms:
    """The TermStats port over tables that the log's migrations make. Each change is durable when it returns.

    One round trip a query, three a change. Changes for one owner wait for each other.
    """

    def __init__(self, url: str, *, connections: int, schema: str = SCHEMA) -> None:
        settings = {"search_path": schema, "lock_timeout": "4s"}
        self._pool = PostgresPool(url, size=connections, settings=settings)
        self._pool.open()

    def add(self, records: Sequence[RecordTerms]) -> bool:
        """See TermStats."""
        latest = {(one.owner, one.record): one for one in records}
        if not latest:
            return False
        new = {key: one.terms for key, one in latest.items()}

        def change(db: PostgresDatabase) -> bool:
            _lock(db, {owner for owner, _ in latest})
            old = _known(db, new)
            db.execute(
                "INSERT INTO term_records SELECT * FROM unnest(?::text[], ?::text[], ?::text[], ?::bytea[])"
                " ON CONFLICT (owner, id) DO UPDATE SET person = excluded.person, terms = excluded.terms",
                _columns([(*key, one.person, packed(one.terms)) for key, one in latest.items()]),
            )
            _apply(db, *shifts(old, new))
            return differ(old, new)

        return self._change(change)

    def remove(self, owner: str, records: Sequence[str]) -> bool:
        """See TermStats."""
        if not records:
            return False

        def change(db: PostgresDatabase) -> bool:
            _lock(db, {owner})
            old = _known(db, {(owner, record) for record in records})
            if old:
                ids = [record for _, record in old]
                db.execute("DELETE FROM term_records WHERE owner = ? AND id = ANY(?::text[])", (owner, ids))
                _apply(db, *shifts(old, {}))
            return bool(old)

        return self._change(change)

    def clear(self, person: str) -> bool:
        """See TermStats."""

        def change(db: PostgresDatabase) -> bool:
            found = db.execute("SELECT DISTINCT owner FROM term_records WHERE person = ?", (person,))
            owners = [row[0] for row in found]
            if owners:
                _lock(db, set(owners))
                db.execute("DELETE FROM term_frequencies WHERE owner = ANY(?::text[])", (owners,))
                db.execute("DELETE FROM term_owners WHERE owner = ANY(?::text[])", (owners,))
                db.execute("DELETE FROM term_records WHERE owner = ANY(?::text[])", (owners,))
            return bool(owners)

        return self._change(change)

    def weigh(self, owners: Sequence[str], terms: Iterable[int]) -> QueryTerms:
        """See TermStats."""
        wanted = list(terms)[:MAX_QUERY_TERMS]

        def ask(db: PostgresDatabase) -> tuple[dict[str, int], dict[tuple[str, int], int]]:
            total = db.execute(
                "SELECT owner, records FROM term_owners WHERE owner = ANY(?::text[])", (list(owners),)
            )
            held = db.execute(
                "SELECT owner, term, records FROM term_frequencies WHERE owner = ANY(?::text[])"
                " AND term = ANY(?::bigint[])",
                (list(owners), wanted),
            )
            return dict(total), {(owner, term): records for owner, term, records in held}

        return weighed_together(wanted, *self._ask(ask))

    def is_filled(self, collection: str) -> bool:
        """See TermStats."""
        found = "SELECT 1 FROM term_filled WHERE collection = ?"
        return self._ask(lambda db: db.execute(found, (collection,)).fetchone()) is not None

    def mark_filled(self, collection: str) -> None:
        """See TermStats."""

        def change(db: PostgresDatabase) -> None:
            db.execute("INSERT INTO term_filled VALUES (?) ON CONFLICT DO NOTHING", (collection,))

        self._change(change)

    def commit(self) -> None:
        """See TermStats: each change is one."""

    def purge(self) -> None:
        """See TermStats: the server's vacuum does it."""

    def close(self) -> None:
        """See TermStats."""
        self._pool.close()

    def _ask(self, ask: Callable[[PostgresDatabase], T]) -> T:
        with _translated():
            return self._pool.call(lambda connection: PostgresDatabase(connection, None).plain(ask))

    def _change(self, change: Callable[[PostgresDatabase], T]) -> T:
        with _translated():
            return self._pool.call(lambda connection: PostgresDatabase(connection, None).transact(change))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except LogUnavailable as error:
        raise StoreUnavailable(PART, str(error)) from error


def _lock(db: PostgresDatabase, owners: set[str]) -> None:
    """Until the transaction ends; always in one order."""
    for owner in sorted(owners):
        db.execute("SELECT pg_advisory_xact_lock(?, hashtext(?))", (_LOCK_CLASS, owner))


def _known(db: PostgresDatabase, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], frozenset[int]]:
    """The terms of those records that are counted already."""
    found = db.execute(
        "SELECT owner, id, terms FROM term_records"
        " JOIN unnest(?::text[], ?::text[]) AS asked (owner, id) USING (owner, id)",
        _columns(list(keys)),
    )
    return {(owner, record): unpacked(terms) for owner, record, terms in found}


def _apply(db: PostgresDatabase, terms: Mapping[tuple[str, int], int], records: Mapping[str, int]) -> None:
    owners = [(owner, by) for owner, by in records.items() if by]
    if owners:
        db.execute(
            "INSERT INTO term_owners AS o SELECT * FROM unnest(?::text[], ?::bigint[])"
            " ON CONFLICT (owner) DO UPDATE SET records = o.records + excluded.records",
            _columns(owners),
        )
    moved = sorted((owner, term, by) for (owner, term), by in terms.items() if by)
    if moved:
        columns = _columns(moved)
        db.execute(
            "INSERT INTO term_frequencies AS f SELECT * FROM unnest(?::text[], ?::bigint[], ?::bigint[])"
            " ON CONFLICT (owner, term) DO UPDATE SET records = f.records + excluded.records",
            columns,
        )
        db.execute(
            "DELETE FROM term_frequencies f USING unnest(?::text[], ?::bigint[]) AS moved (owner, term)"
            " WHERE f.owner = moved.owner AND f.term = moved.term AND f.records <= 0",
            columns[:2],
        )


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
