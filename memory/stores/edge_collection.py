"""One collection on disk: its folder, lock, metadata, Qdrant Edge shard and term statistics.

The folder is named by embedder and dimension, so that opening one embedder's collection with another is
impossible and vectors of two models are never compared. Another embedder means another, empty collection
beside the old one; `needs_rebuild` then says that it has to be filled from the log.

Qdrant Edge's own flush syncs some thirty files while it holds the GIL: 0.1 to 0.3 s in which nothing is
answered. Its write-ahead log is replayed at opening, so it is enough to sync that, and other work can go on
meanwhile (`sync`); the flush proper (`checkpoint`) only keeps the log short.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from urllib.parse import quote

import qdrant_edge as qdrant
from filelock import FileLock, Timeout

from hearth.memory.errors import StoreUnavailable
from hearth.memory.stores.sqlite_terms import SqliteTerms
from hearth.memory.stores.succession import Made
from hearth.memory.stores.vector_index import PART
from hearth.memory.stores.whole import write_whole

_log = logging.getLogger(__name__)

LOCK_SECONDS = 5.0
"""How long a process that is going away may still hold the lock."""
_FORMAT = 4
CHECKPOINT_EVERY = 2_000
"""Writes between two flushes proper: about 20 MB of write-ahead log, 0.2 s to replay."""
_DESCRIPTION, _UNFILLED = "collection.json", "needs-rebuild"
_SHARD, _FRESH, _STALE = "shard", "shard.fresh", "shard.stale"
_COPIED = 64
_NO_GRAPH = 10**9
"""Kilobytes before a segment gets an HNSW graph: never, since one owner's records are scanned faster."""


class Collection:
    """The open parts of one collection. Raises StoreUnavailable if another process has it.

    A shard that does not open is renamed aside (`set_aside`) and an empty one made in its place.
    """

    def __init__(self, directory: Path, *, embedder: str, dimension: int, loader: str = "") -> None:
        """`loader`: what `load_embedder` takes for the embedder; empty where it can't be loaded by name."""
        self.folder = directory / f"{quote(embedder, safe='')}-{dimension}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.set_aside = ""
        self.needs_rebuild = self._marker.exists()
        """True from the moment an empty shard was made until `mark_rebuilt`, restarts included."""
        self.writes = 0
        self._lock = FileLock(self.folder / "lock", timeout=LOCK_SECONDS, thread_local=False)
        self._acquire()
        try:
            self._describe(embedder, dimension, loader)
        except StoreUnavailable:
            self._lock.release()
            raise
        self._config = _config(dimension)
        self._tidy()
        self.shard = self._open()
        self.terms = SqliteTerms(self.folder / "terms.sqlite")

    def mark_rebuilt(self) -> None:
        """The collection holds all that the log says it should."""
        self._marker.unlink(missing_ok=True)
        self.needs_rebuild = False

    def commit(self) -> None:
        """Hand everything written so far to the system: it survives a killed process. Part one of a flush."""
        self.terms.commit()
        if self.writes >= CHECKPOINT_EVERY:
            self.checkpoint()

    def sync(self) -> None:
        """Make what was committed survive a power cut. Part two of a flush; reads may go on meanwhile."""
        for path in [*(self.folder / _SHARD / "wal").iterdir(), *self.folder.glob("terms.sqlite*")]:
            _sync(path)

    def checkpoint(self) -> None:
        """Write everything to its last place, so that the write-ahead log can be dropped."""
        self.terms.commit()
        self.shard.flush()
        self.writes = 0

    def compact(self, piece: Callable[[], AbstractContextManager[None]]) -> None:
        """Copy every record into a new shard and delete the old one, files and all.

        Holds `piece()` for 64 records at a time and at the end for the exchange of the two. Killed at any
        moment it leaves one whole shard, which the next opening finds.
        """
        fresh = _create(self.folder / _FRESH, self._config)
        after: qdrant.PointId | None = None
        while True:
            with piece():
                after = _copy(self.shard, fresh, after)
            if after is None:
                break
        with piece():
            fresh.flush()
            fresh.close()
            self._exchange()

    def close(self) -> None:
        """Checkpoint, close and unlock."""
        self.checkpoint()
        self.shard.close()
        self.terms.close()
        self._lock.release()

    @property
    def unclean(self) -> bool:
        """True while its files may hold bytes of what was removed, restarts included."""
        return self._removed.exists()

    def mark_unclean(self) -> None:
        """Something was removed or replaced."""
        self._removed.touch()

    @property
    def _removed(self) -> Path:
        return self.folder / "unclean"

    @property
    def _marker(self) -> Path:
        return self.folder / _UNFILLED

    def _acquire(self) -> None:
        try:
            self._lock.acquire()
        except Timeout as error:
            holder = self.folder / "holder"
            who = holder.read_text() if holder.exists() else "another process"
            raise StoreUnavailable(PART, f"{self.folder} is in use by {who}") from error
        (self.folder / "holder").write_text(f"process {os.getpid()} on {socket.gethostname()}")

    def _describe(self, embedder: str, dimension: int, loader: str) -> None:
        """Say whose collection this is. One of another format is emptied, to be filled from the log anew."""
        path = self.folder / _DESCRIPTION
        mine = {"format": _FORMAT, "embedder": embedder, "dimension": dimension, "loader": loader}
        found = json.loads(path.read_text()) if path.exists() else None
        if found == mine:
            return
        if found is not None and found.get("format", 0) > _FORMAT:
            cause = (
                f"{self.folder} was written by a newer Hearth (format {found['format']}, this one knows"
                f" {_FORMAT}): upgrade Hearth, or move that folder away, and it is made anew from the log"
            )
            raise StoreUnavailable(PART, cause)
        if found is not None and found | {"loader": loader} != mine:
            _log.warning("%s says %s, this program writes %s; it is made anew", path, found, mine)
            rmtree(self.folder / _SHARD, ignore_errors=True)
            for file in self.folder.glob("terms.sqlite*"):
                file.unlink()
        write_whole(path, json.dumps(mine).encode())

    def _exchange(self) -> None:
        self.shard.close()
        (self.folder / _SHARD).rename(self.folder / _STALE)
        (self.folder / _FRESH).rename(self.folder / _SHARD)
        self.shard = qdrant.EdgeShard.load(str(self.folder / _SHARD), self._config)
        rmtree(self.folder / _STALE)
        self.terms.purge()
        self.writes = 0
        self._removed.unlink(missing_ok=True)

    def _tidy(self) -> None:
        """Undo or finish a `compact` that was killed."""
        if not (self.folder / _SHARD).exists() and (self.folder / _STALE).exists():
            (self.folder / _STALE).rename(self.folder / _SHARD)
        for name in (_FRESH, _STALE):
            rmtree(self.folder / name, ignore_errors=True)

    def _open(self) -> qdrant.EdgeShard:
        path = self.folder / _SHARD
        config = self._config
        if path.exists():
            try:
                return qdrant.EdgeShard.load(str(path), config)
            except BaseException as error:  # a panic of the library is no Exception
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
                self._put_aside(path, error)
        self._marker.touch()
        self.needs_rebuild = True
        return _create(path, config)

    def _put_aside(self, path: Path, error: BaseException) -> None:
        kept = f"broken-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
        _log.error("%s does not open (%s); it is kept as %s and an empty one made", path, error, kept)
        path.rename(self.folder / kept)
        for file in self.folder.glob("terms.sqlite*"):
            file.unlink()
        self.set_aside = kept


def made_in(folder: Path) -> Made | None:
    """What the collection in that folder says of itself; None where this program can't read it."""
    said = json.loads((folder / _DESCRIPTION).read_text())
    if said.get("format") != _FORMAT or not (folder / _SHARD).exists():
        return None
    return Made(
        embedder=said["embedder"],
        dimension=said["dimension"],
        loader=said["loader"],
        filled=not (folder / _UNFILLED).exists(),
    )


def _copy(
    source: qdrant.EdgeShard, target: qdrant.EdgeShard, after: qdrant.PointId | None
) -> qdrant.PointId | None:
    """Copy the next records in order of id; returns where to go on, None at the end."""
    request = qdrant.ScrollRequest(limit=_COPIED, offset=after, with_payload=True, with_vector=True)
    records, following = source.scroll(request)
    points = [qdrant.Point(one.id, one.vector or {}, one.payload) for one in records]
    if points:
        target.update(qdrant.UpdateOperation.upsert_points(points))
    return following


def _sync(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:  # the statistics' own log comes and goes
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _config(dimension: int) -> qdrant.EdgeConfig:
    dense = qdrant.EdgeVectorParams(size=dimension, distance=qdrant.Distance.Cosine)
    return qdrant.EdgeConfig(
        vectors={"text": dense, "context": dense},
        sparse_vectors={"lexical": qdrant.EdgeSparseVectorParams()},
        optimizers=qdrant.EdgeOptimizersConfig(indexing_threshold=_NO_GRAPH),
    )


def _create(path: Path, config: qdrant.EdgeConfig) -> qdrant.EdgeShard:
    path.mkdir()
    shard = qdrant.EdgeShard.create(str(path), config)
    owner = qdrant.KeywordIndexParams(is_tenant=True)
    shard.update(qdrant.UpdateOperation.create_field_index("owner", owner))
    for field in ("person", "kind"):
        index = qdrant.KeywordIndexParams()
        shard.update(qdrant.UpdateOperation.create_field_index(field, index))
    shard.flush()
    return shard
