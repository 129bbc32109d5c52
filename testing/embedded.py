"""A memory over files with all of its stores in this process, and a worker that works when it is told to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from hearth.memory.capture import Capture
from hearth.memory.engine import Engine
from hearth.memory.erasure.eraser import Eraser
from hearth.memory.erasure.ledger import Ledger
from hearth.memory.erasure.purger import Purger
from hearth.memory.erasure.restoring import apply_ledger
from hearth.memory.events.archiving import Archiving
from hearth.memory.events.spool import Spool
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.opening import LEDGER, LOG_FILE, LONG_TERM, SHORT_TERM, SPOOL
from hearth.memory.policies import Policies, nothing_settled
from hearth.memory.ports import Clock
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.stores.edge import EdgeLongTerm
from hearth.memory.stores.sqlite_short_term import SqliteShortTerm
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.worker import Worker
from hearth.testing.embedder import plain

STEPS = ("log", "archives", "short_term", "long_term", "spool", "ledger")
"""The places that an erasure has to reach here."""


@asynccontextmanager
async def opened(
    home: Path, clock: Clock, life: LifePolicy, *, guarded: Callable[[Any], Any] = lambda port: port
) -> AsyncIterator[Engine]:
    """As `open_memory` puts it together, but for the vector child and what goes on by itself.

    `guarded` may put something before the log, short-term and long-term memory, once these are open.
    """
    async with AsyncExitStack() as stack:
        log: Any = SqliteLog(home / LOG_FILE, durability="process", clock=clock)
        await log.start()
        stack.push_async_callback(log.close)
        short_term: Any = SqliteShortTerm(home / SHORT_TERM)
        await short_term.start()
        stack.push_async_callback(short_term.close)
        long_term: Any = EdgeLongTerm(home / LONG_TERM, plain())
        stack.push_async_callback(long_term.close)
        policies = Policies(log=log, clock=clock, own=life, settled=nothing_settled)
        await policies.look()
        log, short_term, long_term = map(guarded, (log, short_term, long_term))
        logs = {"log": log, "mid_term": log}
        stores: dict[str, Any] = {**logs, "long_term": long_term, "clock": clock}
        eraser, ledger = Eraser(**stores, office=log, steps=STEPS), Ledger(home / LEDGER)
        await apply_ledger(ledger, eraser, log, log, clock)
        spool = Spool(home / SPOOL)
        stack.callback(spool.close)
        await spool.drain(log)
        capture = Capture(
            log=log, spool=spool, short_term=short_term, ack_seconds=10.0, appended=lambda: None
        )
        stores |= {"short_term": short_term, "consumers": log}
        yield Engine(
            **stores,
            office=log,
            eraser=eraser,
            capture=capture,
            worker=_worker(stores, policies, _purger(stores, eraser, ledger, capture)),
            counter=LocalTokenCounter(),
            policy=RecallPolicy(),
            policies=policies,
        )


def _purger(stores: dict[str, Any], eraser: Eraser, ledger: Ledger, capture: Capture) -> Purger:
    """Without a scan of files, which starts a process of its own."""
    log = stores["log"]
    return Purger(
        eraser=eraser,
        log=log,
        office=log,
        short_term=stores["short_term"],
        long_term=stores["long_term"],
        clock=stores["clock"],
        ledger=ledger,
        archiving=Archiving(log, owner="embedded"),
        empty_spool=capture.empty_spool_now,
    )


def _worker(stores: dict[str, Any], policies: Policies, purger: Purger) -> Worker:
    return Worker(**stores, policy=policies.sure, purger=purger)
