"""What stands in the files of a memory, whole, so that two states of it can be compared record for record."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import qdrant_edge as qdrant
import zstandard

from hearth.memory.events.folds.common import VIEWS
from hearth.memory.opening import LOG_FILE, LONG_TERM, SHORT_TERM, SPOOL
from hearth.memory.ports import Embedder
from hearth.memory.stores.edge_index import EdgeIndex
from hearth.memory.types import Page
from hearth.testing.holes import data_of

Rows = list[tuple[Any, ...]]
_SESSION, _PARENT = 5, 9
"""Places of an event's columns, as they are read here."""
_VISITS = ("drawn", "seen", "visited")
"""Columns of a page."""
_ID, _NUMBER = re.compile(r"\b[0-9a-f]{32}\b"), re.compile(r"\d+")


def views(home: Path) -> dict[str, Rows]:
    """Every row of every view of the log, heat to the last bit.

    But for segments that left after all of their pages were forgotten: the log has nothing more of these. Nor
    has it of visits by an exchange that was forgotten since, which stay counted.
    """
    known = " WHERE seq IN (SELECT seq FROM payloads)"
    with closing(sqlite3.connect(home / LOG_FILE)) as db:
        return {
            view: sorted(
                db.execute(f"SELECT {_columns(db, view)} FROM {view}{known if view == 'segments' else ''}"),  # noqa: S608 - constants
                key=repr,
            )
            for view in (*VIEWS, "users")
        }


def _columns(db: sqlite3.Connection, view: str) -> str:
    named = [row[1] for row in db.execute(f"PRAGMA table_info({view})")]
    return ", ".join(name for name in named if view != "pages" or name not in _VISITS)


def long_term(home: Path, embedder: Embedder) -> dict[Any, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Every point of the index: payload and vectors, by id; and what is counted of its words."""
    index = EdgeIndex(home / LONG_TERM, embedder=embedder.name, dimension=embedder.dimension)
    try:
        request = qdrant.ScrollRequest(limit=1_000_000, with_payload=True, with_vector=True)
        points, _ = index.collection.shard.scroll(request)
        return {point.id: (point.payload or {}, _plain(point.vector)) for point in points}
    finally:
        index.close()


def terms(home: Path) -> dict[str, Rows]:
    """The index's statistics of words."""
    counted = " WHERE records > 0"
    (path,) = (home / LONG_TERM).glob("*/terms.sqlite")
    with closing(sqlite3.connect(path)) as db:
        return {
            table: sorted(db.execute(f"SELECT * FROM {table}{some}"))  # noqa: S608 - constants
            for table, some in (("record", ""), ("frequency", counted), ("owner", counted))
        }


def short_term(home: Path) -> dict[str, dict[str, Page]]:
    """The pages held, by owner and id."""
    decoder = msgspec.msgpack.Decoder(Page)
    held: dict[str, dict[str, Page]] = {}
    with closing(sqlite3.connect(home / SHORT_TERM)) as db:
        for owner, body in db.execute("SELECT owner, body FROM pages"):
            page = decoder.decode(body)
            held.setdefault(owner, {})[page.id] = page
    return held


def everything(home: Path, embedder: Embedder, words: Sequence[bytes] = ()) -> dict[str, Any]:
    """All that stands, in a form that two memories of the same life have alike: ids that were made at random
    are numbered in the order of the log. `words`: files that have one of them are named.
    """
    events = _events(home)
    numbered: dict[str, str] = {}
    for found in _ID.findall("\n".join(events)):
        numbered.setdefault(found, f"id {len(numbered)}")

    def told(value: Any) -> str:
        text = json.dumps(value, sort_keys=True, default=_readable)
        return _ID.sub(lambda found: numbered.get(found[0], found[0]), text)

    held = short_term(home)
    return {
        "events": [_ID.sub(lambda found: numbered[found[0]], one) for one in events],
        **{f"view {view}": sorted(map(told, rows)) for view, rows in views(home).items()},
        "long-term": sorted(told(point) for point in long_term(home, embedder).values()),
        **{f"words by {table}": sorted(map(told, rows)) for table, rows in terms(home).items()},
        "short-term": sorted(
            told([owner, msgspec.to_builtins(page)]) for owner in held for page in held[owner].values()
        ),
        "blocks": sorted(
            map(told, _rows(home / SHORT_TERM, "SELECT subject, exchange, generation FROM blocks"))
        ),
        "cursors": sorted(map(told, _rows(home / LOG_FILE, "SELECT name, seq FROM consumers WHERE seq > 0"))),
        "set aside": _rows(home / LOG_FILE, "SELECT * FROM parked"),
        "spooled": sorted(path.name for path in (home / SPOOL).glob("*")),
        "files with the words": sorted(_having(home, words)),
    }


def _events(home: Path) -> list[str]:
    """All events in their order, what was redacted without its content, as JSON."""
    rows = _rows(
        home / LOG_FILE,
        "SELECT e.id, u.tenant, u.name, e.kind, e.agent, e.session, e.generation, e.occurred, e.recorded,"
        " e.parent, e.subject, p.body FROM events e JOIN users u ON u.id = e.user_id"
        " LEFT JOIN payloads p ON p.seq = e.seq ORDER BY e.seq",
    )
    return [json.dumps(_event(row)) for row in rows]


def _event(row: Sequence[Any]) -> list[Any]:
    """Its envelope and payload. Which of several events brought a concept about depends on how many of them
    were looked at together, and is left out.
    """
    *envelope, body = row
    payload = None if body is None else _said(body)
    if payload is not None and _is_of_concepts(payload):
        envelope[_SESSION] = envelope[_PARENT] = None
    return [*envelope, payload]


def _is_of_concepts(payload: dict[str, Any]) -> bool:
    made = payload.get("memory", {})
    reasons = ("summed up anew", "what it sums up changed")
    return made.get("type") == "concept" if isinstance(made, dict) else payload.get("reason") in reasons


def _said(body: bytes) -> Any:
    """A payload, without what is drawn by lot for each receipt."""
    payload = msgspec.json.decode(zstandard.ZstdDecompressor().decompress(body))
    if "receipt" in payload:
        payload["receipt"] |= {"salt": "", "fragments": []}
    return payload


def _rows(path: Path, sql: str) -> Rows:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def _having(home: Path, words: Sequence[bytes]) -> Iterator[str]:
    for path in filter(Path.is_file, home.rglob("*")):
        held = b"".join(some for _, some in data_of(path))
        if any(word in held for word in words):
            yield _NUMBER.sub("…", str(path.relative_to(home)))


def _readable(value: Any) -> Any:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _plain(vectors: Any) -> dict[str, Any]:
    """Vectors as they can be compared."""
    return {
        name: (list(one.indices), list(one.values)) if hasattr(one, "indices") else list(one)
        for name, one in vectors.items()
    }
