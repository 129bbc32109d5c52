"""Memory in one folder, with no server: the embedded form of every port, put together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

from hearth.memory.capture import Capture
from hearth.memory.clock import SystemClock
from hearth.memory.engine import Engine
from hearth.memory.errors import HearthError, LogUnavailable
from hearth.memory.events.spool import Spool
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.ports import Clock, ShortTerm
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.redis_client import redis_client
from hearth.memory.stores.redis_short_term import RedisShortTerm
from hearth.memory.stores.sqlite_short_term import SqliteShortTerm
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.worker import Worker

logger = logging.getLogger(__name__)


@asynccontextmanager
async def open_memory(
    directory: str | Path,
    *,
    embedder: str = "fast",
    durability: Literal["power", "process"] = "power",
    policy: RecallPolicy | None = None,
    spool: Path | None = None,
    ack_seconds: float = 0.150,
    token_tables: Path | None = None,
    clock: Clock | None = None,
    redis_url: str = "",
    qdrant: QdrantServer | None = None,
) -> AsyncIterator[Engine]:
    """Open the memory that lives in `directory`, made if it is absent, and close it at the end.

    `embedder`: `fast` is USE multilingual v3 (any platform), `quality` is multilingual-e5-small (Linux on
    x86-64, the extra `quality`), `package.module:factory` makes one of your own. `token_tables`: a folder
    with tiktoken's tables, without which tokens are estimated. `ack_seconds`: how long a capture waits for
    the log before it goes to `spool`, a folder inside `directory` unless another is given. `redis_url`: a
    Redis or Valkey that holds short-term memory instead of a file (`redis_client` says what it may be).
    `qdrant`: a server that holds long-term memory instead of a folder.

    Raises LogUnavailable where the folder can't be used, StoreUnavailable where there is no such embedder
    or another process has the memory open.
    """
    home = _private_folder(Path(directory))
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        log = SqliteLog(home / "log.db", durability=durability, clock=clock)
        await log.start()
        stack.push_async_callback(log.close)
        short_term = await stack.enter_async_context(_short_term(home, redis_url))
        long_term = VectorChild(home / "long_term", embedder, qdrant=qdrant)
        await long_term.start()
        stack.push_async_callback(long_term.close)
        worker = Worker(log=log, consumers=log, short_term=short_term, long_term=long_term, clock=clock)
        outbox = Spool(spool or home / "spool")
        stack.callback(outbox.close)
        capture = Capture(
            log=log, spool=outbox, short_term=short_term, ack_seconds=ack_seconds, appended=worker.notify
        )
        engine = Engine(
            log=log,
            short_term=short_term,
            long_term=long_term,
            capture=capture,
            worker=worker,
            counter=LocalTokenCounter(token_tables),
            clock=clock,
            policy=policy or RecallPolicy(),
            embedder=long_term.embedder,
        )
        await outbox.drain(log)
        await worker.start()
        stack.push_async_callback(worker.stop)
        stack.push_async_callback(_empty_at_last, outbox, log)
        stack.push_async_callback(capture.drain)
        emptying = asyncio.create_task(capture.empty_spool())
        stack.callback(emptying.cancel)
        yield engine


@asynccontextmanager
async def _short_term(home: Path, redis_url: str) -> AsyncIterator[ShortTerm]:
    """In the named server, which may be down now and come later, or else in a file of the folder."""
    if redis_url:
        client = redis_client(redis_url)
        try:
            yield RedisShortTerm(client)
        finally:
            await client.aclose()
        return
    store = SqliteShortTerm(home / "short_term.db")
    await store.start()
    try:
        yield store
    finally:
        await store.close()


def _private_folder(path: Path) -> Path:
    """The folder, made for its owner's eyes alone where it is absent. Raises LogUnavailable."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LogUnavailable(f"the folder {path} can't be made: {error}") from error
    return path


async def _empty_at_last(spool: Spool, log: SqliteLog) -> None:
    """Bring what still waits into the log before it is closed; what it does not take stays on disk."""
    try:
        await spool.drain(log)
    except HearthError:
        logger.warning("captures stay in the spool for the next start", exc_info=True)
