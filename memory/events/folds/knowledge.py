"""Folds of documents, and of what was refused as system memory."""

from __future__ import annotations

from hearth.memory.events import texts
from hearth.memory.events.folds.common import as_json
from hearth.memory.events.folds.stripping import strip
from hearth.memory.events.kinds import (
    Event,
    KnowledgeLoaded,
    KnowledgeRemoved,
    SystemRefused,
)
from hearth.memory.events.sql import Database, marks
from hearth.memory.knowledge.records import version_prefix


def fold_loaded(db: Database, user: int, event: Event, payload: KnowledgeLoaded) -> None:
    """A version that was replaced since has no chunks any more, but still counts."""
    document = payload.document
    _retire(db, user, event, document.id, document.version - 1)
    write = texts.writing(db, user, (event.tenant, event.user))
    about = write(as_json(document), "document", document.id) if payload.chunks else ""
    db.execute(
        f"INSERT INTO documents VALUES ({marks(range(8))}) ON CONFLICT (user_id, id) DO UPDATE SET"
        " seq = excluded.seq, name = excluded.name, version = excluded.version, last = excluded.last,"
        " about = excluded.about",
        (
            *(user, document.id, event.seq, document.name),
            *(document.version, event.id, about, document.kind),
        ),
    )
    for position, chunk in enumerate(payload.chunks):
        body = write(as_json(chunk), "chunk", document.id, str(position))
        db.execute("INSERT INTO chunks VALUES (?, ?, ?, ?)", (user, document.id, position, body))


def fold_removed(db: Database, user: int, event: Event, payload: KnowledgeRemoved) -> None:
    """A document is gone, with its chunks."""
    _retire(db, user, event, payload.document, payload.version)
    db.execute(
        "UPDATE documents SET seq = ?, name = '', last = ?, about = '' WHERE user_id = ? AND id = ?",
        (event.seq, event.id, user, payload.document),
    )


def _retire(db: Database, user: int, event: Event, document: str, version: int) -> None:
    """Take the text of the version in force out of the log: its own, and all users' blocks that show it.

    What an envelope says and how many chunks there were stays, so that stores can be told what is gone.
    """
    in_force = "SELECT seq FROM documents WHERE user_id = ? AND id = ? AND about <> ''"
    shown = (
        "SELECT i.seq FROM injections i JOIN users u ON u.id = i.user_id"
        " WHERE u.tenant = ? AND instr(i.records, ?) > 0"
    )
    loaded = db.execute(in_force, (user, document)).fetchall()
    # a quoted id can't be found inside another one: JSON would have escaped its quotes
    blocks = db.execute(shown, (event.tenant, f'"{version_prefix(document, version)}')) if loaded else ()
    for (seq,) in (*loaded, *blocks):
        strip(db, seq)
    db.execute("DELETE FROM chunks WHERE user_id = ? AND document = ?", (user, document))


def fold_refused(db: Database, user: int, event: Event, payload: SystemRefused) -> None:
    """A proposal that nobody is to see again."""
    db.execute(
        "INSERT INTO refusals VALUES (?, ?, ?) ON CONFLICT (user_id, topic) DO UPDATE SET seq = excluded.seq",
        (user, payload.topic, event.seq),
    )
