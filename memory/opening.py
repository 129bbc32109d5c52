"""The parts of memory put together: the engine of a gateway or a program, and the worker of a process."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import msgspec

from hearth.memory.admission import Gate, PolicyAdmission
from hearth.memory.capture import Capture
from hearth.memory.clock import SystemClock
from hearth.memory.encryption.master import MasterKeys
from hearth.memory.encryption.stores import EncryptedShared, EncryptedShortTerm
from hearth.memory.engine import Engine
from hearth.memory.erasure.eraser import Eraser
from hearth.memory.erasure.errands import Errands
from hearth.memory.erasure.files import Files
from hearth.memory.erasure.ledger import Ledger
from hearth.memory.erasure.provider_held import PLACE as PROVIDER
from hearth.memory.erasure.provider_held import Providers
from hearth.memory.erasure.purger import RECORDS_WAIT, Purger
from hearth.memory.erasure.restoring import apply_ledger
from hearth.memory.errors import HearthError, LogUnavailable
from hearth.memory.events.archive import NO_ARCHIVE, ArchiveFolder
from hearth.memory.events.archiving import Archiving
from hearth.memory.events.data_keys import Keyring
from hearth.memory.events.spool import Spool
from hearth.memory.events.sql_log import SqlLog
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.events.store_keys import LogKeys
from hearth.memory.extract.patterns import book
from hearth.memory.policies import Policies, Settled, nothing_settled
from hearth.memory.ports import ChatModel, Clock, EventLog, Shared, ShortTerm
from hearth.memory.recall.policy import RecallPolicy, Weights
from hearth.memory.recall.time_words import time_words
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.runner import Timing
from hearth.memory.stores.encrypted_child import EncryptedChild
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.redis_client import redis_client
from hearth.memory.stores.redis_shared import RedisShared
from hearth.memory.stores.redis_short_term import RedisShortTerm
from hearth.memory.stores.sqlite_short_term import SqliteShortTerm
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.worker import Worker
from hearth.memory.working import WorkersElsewhere, Working

logger = logging.getLogger(__name__)

Durability = Literal["power", "process"]

LOG_FILE, SHORT_TERM, LONG_TERM, ARCHIVE = "log.db", "short_term.db", "long_term", "archive"
"""The stores in a folder, those that are files."""
SPOOL, LEDGER = "spool", "erasures.ledger"
"""Captures that wait, and the ledger of erasures, in a folder."""
FORGETTING_POLL = 1.0
"""Seconds between two looks for a log that was away at the start, and may be an older copy."""
SHARED_POLL = 0.5
"""Seconds between two looks at a log that other processes write."""


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """The servers that hold memory in place of files, empty: a file; and by what it is encrypted."""

    redis_url: str = ""
    """Redis or Valkey for short-term memory (`redis_client` says what it may be)."""
    postgres_url: str = ""
    """PostgreSQL for the event log."""
    postgres_connections: int = 12
    """The most that this process holds."""
    qdrant: QdrantServer | None = None
    """Qdrant for long-term memory; None: files."""
    masters: MasterKeys | None = None
    """What is stored is encrypted by them, in servers and files alike; None: nothing is."""
    archive: Path | None = None
    """Folder for old payloads of the log, which all processes over these servers share; None: one beside a
    log that is a file, and none for a server's.
    """


class Stores(msgspec.Struct, frozen=True):
    """The open stores."""

    log: SqlLog
    short_term: ShortTerm
    long_term: VectorChild
    clock: Clock
    shared: Shared | None


class OpenWorker(msgspec.Struct, frozen=True):
    """A worker and the stores that it works on."""

    worker: Worker
    stores: Stores


@asynccontextmanager
async def open_memory(
    directory: str | Path,
    *,
    embedder: str = "fast",
    durability: Durability = "power",
    policy: RecallPolicy | None = None,
    spool: Path | None = None,
    ack_seconds: float = 0.150,
    token_tables: Path | None = None,
    clock: Clock | None = None,
    servers: Servers | None = None,
    worker: Literal["embedded", "external"] = "embedded",
    weights: Mapping[str, Weights] | None = None,
    settled: Settled = nothing_settled,
    ledger: Path | None = None,
    model: ChatModel | None = None,
    gate: Callable[[EventLog], Gate] | None = None,
    providers: Providers | None = None,
) -> AsyncIterator[Engine]:
    """Open the memory that lives in `directory`, made if it is absent, and close it at the end.

    `embedder`: `fast` is USE multilingual v3 (any platform), `quality` is multilingual-e5-small (Linux on
    x86-64, the extra `quality`), `package.module:factory` makes one of your own. `token_tables`: a folder
    with tiktoken's tables, without which tokens are estimated. `ack_seconds`: after which a capture goes to
    `spool`, in `directory` if none is given. `servers`: what is held by servers instead of files; one that is
    down is waited for beside the calls. `worker`: this process files what was said, or those of `open_worker`
    do. `weights`: of the rank score, for tenants that have their own. `settled`: values of the policy that
    are not Hearth's own; `model` reads facts. `gate`: lets in what was captured while the log was away; None:
    all. `ledger`: where erasures are noted outside the log, a file in the folder if none is given; what the
    log lacks of it is erased again before this returns. `providers`: of models, which erasures reach. Raises
    LogUnavailable for a bad folder, StoreUnavailable for no such embedder and a memory open elsewhere.
    """
    await asyncio.to_thread(_load_words)
    home = _private_folder(Path(directory))
    opening = _opened(home, embedder, durability, clock or SystemClock(), servers or Servers())
    async with opening as stores, AsyncExitStack() as stack:
        policies = await _policies(stores, settled)
        outbox = stack.enter_context(closing(_outbox(home, spool, servers, stores, policies, gate)))
        capture = _capture(stores, outbox, ack_seconds, lambda: working.notify())
        known, mine = Ledger(ledger or home / LEDGER), worker == "embedded"
        eraser = _eraser(stores, own_spool=mine, providers=providers is not None)
        emptied, files = capture.empty_spool_now, _files(home, spool)
        purger = _purger(stores, eraser, known, servers, files, emptied, providers) if mine else None
        working = _working(stores, policies, purger, model)
        engine = Engine(
            **_parts(stores),
            capture=capture,
            worker=working,
            counter=LocalTokenCounter(token_tables),
            policy=policy or RecallPolicy(),
            policies=policies,
            weights=weights,
            eraser=eraser,
        )
        await stack.enter_async_context(_forgetting_again(known, eraser, stores))
        errands = _errands(None if mine else providers, eraser, stores)
        await stack.enter_async_context(_following(policies.follow(), *errands))
        await stack.enter_async_context(_at_work(working, capture, outbox, stores.log))
        await stack.enter_async_context(_following(engine.knowledge.follow()))
        yield engine


def _load_words() -> None:
    """Read now what the first call, and the first recall of a fact, would have to wait for."""
    time_words()
    book()


def _working(stores: Stores, policies: Policies, purger: Purger | None, model: ChatModel | None) -> Working:
    """In this process where there is a purger for it, else elsewhere."""
    if purger is None:
        return WorkersElsewhere(stores.log, extracting=model is not None)
    return _worker(stores, policies, purger, model)


def _parts(stores: Stores) -> dict[str, Any]:
    """What the stores are to an engine."""
    return {
        "log": stores.log,
        "office": stores.log,
        "mid_term": stores.log,
        "consumers": stores.log,
        "short_term": stores.short_term,
        "long_term": stores.long_term,
        "clock": stores.clock,
        "shared": stores.shared,
    }


@asynccontextmanager
async def _at_work(working: Working, capture: Capture, outbox: Spool, log: EventLog) -> AsyncIterator[None]:
    """What goes on beside the calls; at the end captures under way and the spool go into the log."""
    await _try_to_empty(outbox, log)
    await working.start()
    emptying = asyncio.create_task(capture.empty_spool())
    try:
        yield
    finally:
        emptying.cancel()
        await asyncio.gather(emptying, return_exceptions=True)
        await capture.drain()
        await _try_to_empty(outbox, log)
        await working.stop()


@asynccontextmanager
async def _following(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Sees what other processes do, beside the calls."""
    following = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)


@asynccontextmanager
async def open_worker(
    directory: str | Path,
    *,
    embedder: str = "fast",
    durability: Durability = "power",
    servers: Servers,
    settled: Settled = nothing_settled,
    ledger: Path | None = None,
    model: ChatModel | None = None,
) -> AsyncIterator[OpenWorker]:
    """A worker over shared servers, not started yet: any number of them share the log.

    `directory` holds what the process keeps for itself. Raises as `open_memory` does.
    """
    home = _private_folder(Path(directory))
    async with _opened(home, embedder, durability, SystemClock(), servers) as stores:
        policies = await _policies(stores, settled)
        known, eraser = Ledger(ledger or home / LEDGER), _eraser(stores, providers=True)
        purger = _purger(stores, eraser, known, servers)
        worker = _worker(stores, policies, purger, model)
        async with _forgetting_again(known, eraser, stores), _following(policies.follow()):
            try:
                yield OpenWorker(worker, stores)
            finally:
                await worker.stop()


@asynccontextmanager
async def _opened(
    home: Path, embedder: str, durability: Durability, clock: Clock, servers: Servers
) -> AsyncIterator[Stores]:
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(opened_log(home, durability, clock, servers))
        short_term, shared = await stack.enter_async_context(opened_short_term(home, servers.redis_url, log))
        keys = keys_for_stores(log)
        child = VectorChild if keys is None else partial(EncryptedChild, keys=keys)
        long_term = child(
            home / LONG_TERM, embedder, qdrant=servers.qdrant, postgres_url=servers.postgres_url
        )
        await long_term.start()
        stack.push_async_callback(long_term.close)
        yield Stores(log, short_term, long_term, clock, shared)


async def _policies(stores: Stores, settled: Settled) -> Policies:
    """Looked at already, unless the log is away: then nothing is decided until it is back."""
    own = LifePolicy.for_embedder(stores.long_term.embedder)
    policies = Policies(log=stores.log, clock=stores.clock, own=own, settled=settled)
    try:
        await policies.look()
    except LogUnavailable:
        logger.warning("what was set of the policy is not known yet", exc_info=True)
    return policies


def _capture(stores: Stores, outbox: Spool, ack_seconds: float, appended: Callable[[], None]) -> Capture:
    return Capture(
        log=stores.log,
        spool=outbox,
        short_term=stores.short_term,
        ack_seconds=ack_seconds,
        appended=appended,
    )


def _outbox(
    home: Path,
    spool: Path | None,
    servers: Servers | None,
    stores: Stores,
    policies: Policies,
    gate: Callable[[EventLog], Gate] | None,
) -> Spool:
    admission = PolicyAdmission(policies, gate and gate(stores.log))
    return Spool(spool or home / SPOOL, admission, masters=servers.masters if servers else None)


def _files(home: Path, spool: Path | None) -> Files:
    places = {LOG_FILE: "log", SHORT_TERM: "short_term", LONG_TERM: "long_term", LEDGER: "ledger"}
    return Files(home, places, spool=spool or home / SPOOL)


def _eraser(stores: Stores, *, own_spool: bool = False, providers: bool = False) -> Eraser:
    """`own_spool`: whether whoever works at the log's erasures has all captures that wait; `providers`:
    whether they can ask models' providers.
    """
    shared = ("shared",) if stores.shared is not None else ()
    spool = ("spool",) if own_spool else ()
    keys = ("keys",) if stores.log.keys.on else ()
    outside = (PROVIDER,) if providers else ()
    return Eraser(
        log=stores.log,
        office=stores.log,
        mid_term=stores.log,
        long_term=stores.long_term,
        clock=stores.clock,
        steps=(*keys, "log", "archives", "short_term", "long_term", *shared, *spool, "ledger", *outside),
    )


def _errands(providers: Providers | None, eraser: Eraser, stores: Stores) -> list[Coroutine[Any, Any, None]]:
    """What is left of erasures to a process that can ask providers and is no worker; none without them."""
    if providers is None:
        return []
    log = stores.log
    return [Errands(providers, eraser=eraser, office=log, consumers=log, clock=stores.clock).follow()]


def _purger(
    stores: Stores,
    eraser: Eraser,
    ledger: Ledger,
    servers: Servers | None,
    files: Files | None = None,
    emptied: Callable[[], Awaitable[int]] | None = None,
    providers: Providers | None = None,
) -> Purger:
    # A server takes what is removed out of its files by itself.
    wait = timedelta(0) if servers and servers.qdrant else RECORDS_WAIT
    return Purger(
        eraser=eraser,
        log=stores.log,
        office=stores.log,
        short_term=stores.short_term,
        long_term=stores.long_term,
        clock=stores.clock,
        shared=stores.shared,
        ledger=ledger,
        files=files,
        archiving=_archiving(stores),
        empty_spool=emptied,
        records_wait=wait,
        providers=providers,
    )


@asynccontextmanager
async def _forgetting_again(ledger: Ledger, eraser: Eraser, stores: Stores) -> AsyncIterator[None]:
    """Erases what a restored log has not forgotten, now, or as soon as its server answers."""
    await ledger.start()
    again = partial(apply_ledger, ledger, eraser, stores.log, stores.log, stores.clock)
    try:
        await again()
    except LogUnavailable:
        if stores.log.partitions == 1:
            raise
        waiting = asyncio.create_task(_once_it_answers(again))
        try:
            yield
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return
    yield


async def _once_it_answers(work: Callable[[], Awaitable[object]]) -> None:
    while True:
        await asyncio.sleep(FORGETTING_POLL)
        try:
            await work()
        except LogUnavailable:
            continue
        return


def _worker(stores: Stores, policies: Policies, purger: Purger, model: ChatModel | None) -> Worker:
    """Alone with a file it keeps one name, and so takes its own leases over at once after a crash."""
    shared = stores.log.partitions > 1
    return Worker(
        log=stores.log,
        consumers=stores.log,
        mid_term=stores.log,
        short_term=stores.short_term,
        long_term=stores.long_term,
        clock=stores.clock,
        model=model,
        policy=policies.sure,
        owner=_owner(stores),
        archiving=_archiving(stores),
        timing=Timing(poll=SHARED_POLL) if shared else None,
        purger=purger,
    )


def _owner(stores: Stores) -> str:
    return process_name() if stores.log.partitions > 1 else "embedded"


def _archiving(stores: Stores) -> Archiving:
    return Archiving(stores.log, owner=_owner(stores))


def process_name() -> str:
    """Names this process, or a part of it, among all that share a log."""
    return f"{socket.gethostname()} {os.getpid()} {uuid4().hex[:8]}"


@asynccontextmanager
async def opened_log(
    home: Path,
    durability: Durability,
    clock: Clock,
    servers: Servers,
    *,
    copying: bool = False,
    reading: bool = False,
) -> AsyncIterator[SqlLog]:
    """The log that the servers or the folder hold, until the end; `copying` and, for a file, `reading` as the
    logs take it.
    """
    log = _log_of(home, durability, clock, servers, copying=copying, reading=reading)
    await log.start()
    try:
        yield log
    finally:
        await log.close()


def _log_of(
    home: Path, durability: Durability, clock: Clock, servers: Servers, *, copying: bool, reading: bool
) -> SqlLog:
    if not servers.postgres_url:
        archive = ArchiveFolder(servers.archive or home / ARCHIVE)
        path = home / LOG_FILE
        return SqliteLog(
            path,
            durability=durability,
            clock=clock,
            copying=copying,
            reading=reading,
            archive=archive,
            masters=servers.masters,
        )
    # takes most of a second to load, which a log in a file should not pay
    from hearth.memory.events.postgres_log import PostgresLog

    return PostgresLog(
        servers.postgres_url,
        durability=durability,
        clock=clock,
        connections=servers.postgres_connections,
        copying=copying,
        archive=ArchiveFolder(servers.archive) if servers.archive else NO_ARCHIVE,
        masters=servers.masters,
    )


def keys_for_stores(log: SqlLog) -> LogKeys | None:
    """By which stores beside the log are encrypted; None where the log is not."""
    return LogKeys(log, log.keys) if isinstance(log.keys, Keyring) else None


@asynccontextmanager
async def opened_short_term(
    home: Path, redis_url: str, log: SqlLog
) -> AsyncIterator[tuple[ShortTerm, Shared | None]]:
    """In the named server, which may be down now and come later, or else in a file of the folder; encrypted
    where the log is.
    """
    keys = keys_for_stores(log)
    if redis_url:
        client = redis_client(redis_url)
        short_term, shared = RedisShortTerm(client), RedisShared(client)
        try:
            if keys is None:
                yield short_term, shared
            else:
                yield EncryptedShortTerm(short_term, keys), EncryptedShared(shared, keys)
        finally:
            await client.aclose()
        return
    store = SqliteShortTerm(home / SHORT_TERM)
    await store.start()
    try:
        yield store if keys is None else EncryptedShortTerm(store, keys), None
    finally:
        await store.close()


def _private_folder(path: Path) -> Path:
    """The folder, made for its owner's eyes alone where it is absent. Raises LogUnavailable."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LogUnavailable(f"the folder {path} can't be made: {error}") from error
    return path


async def _try_to_empty(spool: Spool, log: EventLog) -> None:
    """Bring what waits in the spool into the log; what it does not take stays on disk."""
    try:
        await spool.drain(log)
    except HearthError:
        logger.warning("captures stay in the spool for now", exc_info=True)
