"""The writer: one thread that turns queued jobs into group commits."""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from hearth.memory.errors import HearthError, LogUnavailable
from hearth.memory.events.database import Synchronous, translated

T = TypeVar("T")
logger = logging.getLogger(__name__)

MAX_BATCH = 256
"""Jobs a commit: bounds how long the first of them waits for the last."""

IDLE_SECONDS = 0.5
"""Quiet time after which the write-ahead log is copied back and truncated."""

MAX_WAL_BYTES = 16 << 20
"""Size at which it is copied back beside the commits, however busy the writer is."""

RETRY_SECONDS = 1.0
"""Pause after a checkpoint that a reader held up."""


class _Job(Generic[T]):
    """One unit of work of a commit, and who waits for it."""

    __slots__ = ("between", "error", "future", "loop", "relaxed", "result", "run")

    def __init__(
        self, run: Callable[[sqlite3.Connection], T], *, relaxed: bool = False, between: bool = False
    ) -> None:
        self.run = run
        self.relaxed = relaxed
        self.between = between
        """To be run between two commits rather than inside one."""
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()
        self.result: T | None = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Give the outcome to whoever still waits; runs on the job's loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]


class _BatchLostError(Exception):
    """The transaction is lost, and with it every job of the batch."""


class Writer:
    """Runs jobs one after another on the writing connection and acknowledges each after its commit.

    Jobs that queue up while a commit is on its way to the disk share the next one. A job that raises
    undoes its own changes only. The connection belongs to the thread between `start` and `stop`.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        *,
        wal: Path,
        synchronous: Synchronous,
        side: sqlite3.Connection | None = None,
    ) -> None:
        """`side` is a second connection to the file, which copies the log back while commits go on."""
        self._db = db
        self._side = side
        self._copying: threading.Thread | None = None
        self._copied = False
        self._wal = wal
        self._synchronous = synchronous
        self._current: str = synchronous
        self._queue: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="hearth-log-writer", daemon=True)
        self._open = False
        self._dirty = True
        self._next_checkpoint = 0.0
        self._commit_seconds: deque[float] = deque(maxlen=256)
        self.last_error = ""
        """Why the last failed commit failed; empty after a good one."""

    def start(self) -> None:
        """Begin to take jobs."""
        self._open = True
        self._thread.start()

    async def do(self, run: Callable[[sqlite3.Connection], T], *, relaxed: bool = False) -> T:
        """Run `run` in a transaction; its result, once that is durable. A cancelled caller's job still runs.

        `relaxed` jobs need not survive a power cut, only a killed process: a batch of nothing else skips the
        sync. Raises what `run` raises, and LogUnavailable if the commit fails or the writer has stopped.
        """
        return await self._submit(_Job(run, relaxed=relaxed))

    async def truncate(self) -> bool:
        """Copy the write-ahead log back and empty it now; False while a reader holds it up."""
        return await self._submit(_Job(lambda db: self._checkpoint(), between=True))

    async def vacuum(self) -> None:
        """Write the file anew without the room that nothing uses."""
        await self._submit(_Job(lambda db: db.execute("VACUUM").fetchall(), between=True))

    async def _submit(self, job: _Job[T]) -> T:
        if not self._open:
            raise LogUnavailable("the event log is closed")
        self._queue.put(job)
        return await job.future

    def stop(self) -> None:
        """Finish every job so far and end the thread. Blocks; jobs that come later are refused."""
        self._open = False
        self._queue.put(None)
        self._thread.join()
        self._await_copy()

    def fsync_p50_ms(self) -> float:
        """Median milliseconds of the last synced commits, the disk's sync included; 0 before the first."""
        return statistics.median(self._commit_seconds) * 1000 if self._commit_seconds else 0.0

    def wal_bytes(self) -> int:
        """Size of the write-ahead log."""
        try:
            return self._wal.stat().st_size
        except OSError:
            return 0

    # -- the thread --------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            jobs, last = self._next_batch()
            if jobs:
                self._do(jobs)
                _acknowledge(jobs)
            self._checkpoint_if_due(idle=not jobs)
            if last:
                break
        self._refuse_rest()

    def _next_batch(self) -> tuple[list[_Job[Any]], bool]:
        """The jobs that wait, and whether the end has come; none after a quiet time with a checkpoint due."""
        jobs: list[_Job[Any]] = []
        try:
            job = self._queue.get(timeout=IDLE_SECONDS if self._dirty else None)
            while job is not None:
                jobs.append(job)
                if len(jobs) == MAX_BATCH:
                    return jobs, False
                job = self._queue.get_nowait()
        except queue.Empty:
            return jobs, False
        return jobs, True

    def _do(self, jobs: Sequence[_Job[Any]]) -> None:
        if inside := [job for job in jobs if not job.between]:
            self._commit(inside)
        for job in jobs:
            if job.between:
                self._run_between(job)

    def _run_between(self, job: _Job[Any]) -> None:
        try:
            with translated("the event log can't be written"):
                job.result = job.run(self._db)
        except HearthError as error:
            job.error = error

    def _commit(self, jobs: Sequence[_Job[Any]]) -> None:
        """Run the jobs in one transaction; the boundary where a broken database becomes every job's error."""
        try:
            relaxed = all(job.relaxed for job in jobs)
            self._set_synchronous("NORMAL" if relaxed else self._synchronous)
            with translated("the event log can't be written"):
                self._db.execute("BEGIN IMMEDIATE")
                for job in jobs:
                    self._run(job)
                started = time.perf_counter()
                self._db.execute("COMMIT")
            if not relaxed:
                self._commit_seconds.append(time.perf_counter() - started)
            self.last_error = ""
        except Exception as error:  # noqa: BLE001 - the thread must live on; each job gets the error
            self._give_up(jobs, error)
        self._dirty = True

    def _set_synchronous(self, wanted: str) -> None:
        if wanted != self._current:
            self._db.execute(f"PRAGMA synchronous={wanted}")
            self._current = wanted

    def _run(self, job: _Job[Any]) -> None:
        """Run one job in a savepoint, so that its failure leaves the others' changes alone."""
        self._db.execute("SAVEPOINT job")
        try:
            with translated("the event log can't be written"):
                job.result = job.run(self._db)
        except Exception as error:
            job.error = error
            if not self._db.in_transaction:
                raise _BatchLostError(str(error)) from error
            self._db.execute("ROLLBACK TO job")
        self._db.execute("RELEASE job")

    def _give_up(self, jobs: Sequence[_Job[Any]], error: Exception) -> None:
        self.last_error = str(error)
        logger.error("a commit of the event log failed; %d writes were refused", len(jobs), exc_info=error)
        with suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        for job in jobs:
            if not isinstance(job.error, HearthError):
                job.error = LogUnavailable(f"the event log can't be written: {error}")

    def _checkpoint_if_due(self, *, idle: bool) -> None:
        """A failed checkpoint loses nothing and is tried again, so it is logged and no more."""
        copying = self._copying is not None and self._copying.is_alive()
        if not self._dirty or copying or time.monotonic() < self._next_checkpoint:
            return
        if not idle and self.wal_bytes() < MAX_WAL_BYTES:
            return
        if not idle and not self._copied and self._side is not None:
            self._copying = threading.Thread(target=self._copy_back, args=(self._side,), daemon=True)
            self._copying.start()
            return
        try:
            self._checkpoint()
        except sqlite3.Error:
            logger.warning("a checkpoint of the event log failed", exc_info=True)
            self._next_checkpoint = time.monotonic() + RETRY_SECONDS

    def _copy_back(self, side: sqlite3.Connection) -> None:
        """The bulk of a checkpoint, on its own thread: what is left for the writer's is short."""
        try:
            side.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error:
            logger.warning("the write-ahead log could not be copied back beside the commits", exc_info=True)
        self._copied = True

    def _await_copy(self) -> None:
        if self._copying is not None:
            self._copying.join()

    def _checkpoint(self) -> bool:
        """Copy the write-ahead log back and truncate it; False while a reader holds it up."""
        self._await_copy()
        self._copied = False
        busy = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        self._next_checkpoint = time.monotonic() + RETRY_SECONDS if busy else 0.0
        self._dirty = bool(busy)
        return not busy

    def _refuse_rest(self) -> None:
        """Answer the jobs that slipped in behind the end."""
        late: list[_Job[Any]] = []
        while not self._queue.empty():
            job = self._queue.get()
            if job is not None:
                job.error = LogUnavailable("the event log is closed")
                late.append(job)
        _acknowledge(late)


def _acknowledge(jobs: Sequence[_Job[Any]]) -> None:
    """Settle the jobs' futures with one wake-up a loop; a loop that has ended waits for nothing."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, group in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, group)
        except RuntimeError:
            logger.warning("%d writes finished after their event loop had closed", len(group))


def _settle(jobs: Sequence[_Job[Any]]) -> None:
    for job in jobs:
        job.settle()
