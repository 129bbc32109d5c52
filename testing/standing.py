"""What stands in the files of a memory, whole, so that two states of it can be compared record for record."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import qdrant_edge as qdrant

from hearth.memory.events.views import VIEWS
from hearth.memory.opening import LOG_FILE, LONG_TERM, SHORT_TERM
from hearth.memory.ports import Embedder
from hearth.memory.stores.edge_index import EdgeIndex
from hearth.memory.types import Page

Rows = list[tuple[Any, ...]]


def views(home: Path) -> dict[str, Rows]:
    """Every row of every view of the log, heat to the last bit.

    But for segments that left after all of their pages were forgotten: the log has nothing more of these.
    """
    known = " WHERE seq IN (SELECT seq FROM payloads)"
    with closing(sqlite3.connect(home / LOG_FILE)) as db:
        return {
            view: sorted(
                db.execute(f"SELECT * FROM {view}{known if view == 'segments' else ''}"),  # noqa: S608 - constants
                key=repr,
            )
            for view in (*VIEWS, "users")
        }


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


def _plain(vectors: Any) -> dict[str, Any]:
    """Vectors as they can be compared."""
    return {
        name: (list(one.indices), list(one.values)) if hasattr(one, "indices") else list(one)
        for name, one in vectors.items()
    }
