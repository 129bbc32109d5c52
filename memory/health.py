"""How memory is: each part's own account, and what that means for the whole."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from hearth.memory.engine import Engine
from hearth.memory.errors import HearthError, StoreUnavailable
from hearth.memory.events.sql_log import LogHealth
from hearth.memory.policies import FileAccount
from hearth.memory.ports import EventLog, LongTerm, ShortTerm
from hearth.memory.stores.vector_child import ChildHealth
from hearth.memory.stores.vector_child_wire import State as ChildState
from hearth.memory.types import Scope, Status
from hearth.memory.working import ExtractionHealth, WorkerHealth, Working

State = Literal["ok", "degraded", "down"]

SLOW_SYNC_MS = 20.0
"""A commit that takes longer is felt at the end of every reply."""
LONG_LAG = 1_000
"""Events; short-term memory still covers fewer."""
LONG_WAIT = 60.0
"""Seconds; a worker looks for what is new several times a second."""
LATE_READING = 900.0
"""Seconds that a page may wait to be read by a model."""
WINDOW = timedelta(minutes=5)
FAILED_SHARE = 0.2
"""Of the recalls in the window."""
FEWEST_RECALLS = 5
"""Below so many the share says nothing."""
WITHOUT = {
    "dense": "by words alone, without the embedder",
    "long_term": "without long-term memory",
    "short_term": "without short-term memory",
}
"""How a recall goes on, by what it misses."""
REFUSES = "refuses what it is asked; the log of this process has its words"
PATIENCE = 1.0
"""Seconds that a part has to answer."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of memory."""

    state: State = "ok"
    reasons: tuple[str, ...] = ()
    """Why the state is not `ok`; without paths and texts, for anybody to read."""
    numbers: dict[str, Any] = {}
    """What the part says of itself."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The whole: `down` without its log, `degraded` where any part is not well."""

    state: State
    reasons: tuple[str, ...]
    parts: dict[str, Part]


@runtime_checkable
class Reports(Protocol):
    """A part that gives account of itself."""

    async def health(self) -> Any:
        """Its own record of numbers."""
        ...


async def engine_health(engine: Engine) -> Health:
    """Ask every part, all at once. Never raises for a broken part."""
    since = engine.clock.now() - WINDOW
    waiting = await asyncio.to_thread(engine.capture_path.spooled)
    parts = await store_parts(engine.log, engine.short_term, engine.long_term, engine.worker)
    spool = spool_part(waiting, engine.capture_path.lost)
    traces = engine.traces.since(since)
    missing = Counter(part for trace in traces if trace.status == "partial" for part in trace.reasons)
    recall = recall_part([trace.status for trace in traces], missing=missing)
    return overall(parts | {"spool": spool, "recall": recall} | file_parts(engine.policies.file()))


def file_parts(found: FileAccount | None) -> dict[str, Part]:
    """The part of the configuration file, where there is one that is followed."""
    if found is None:
        return {}
    reasons = ("has changed and can't be used; the one before counts",) if found.unusable else ()
    numbers = {"restart": found.restart}
    return {"configuration": Part(state="degraded" if reasons else "ok", reasons=reasons, numbers=numbers)}


async def store_parts(
    log: EventLog, short_term: ShortTerm, long_term: LongTerm, worker: Working
) -> dict[str, Part]:
    """The stores and the worker over them, asked all at once. Never raises for a broken one."""
    asked = {
        "log": _report(log),
        "short_term": short_term.latest(Scope(tenant="", user=""), limit=1),
        "long_term": _report(long_term),
    }
    stores = asyncio.gather(*(_asked(name, work) for name, work in asked.items()))
    work, found = await asyncio.gather(_worker_parts(worker), stores)
    return dict(zip(asked, found, strict=True)) | work


async def _worker_parts(worker: Working) -> dict[str, Part]:
    """The worker's own account and, where a model reads facts for it, that one's."""
    parts: dict[str, Part] = {}

    async def health() -> WorkerHealth:
        found = await worker.health()
        if found.extraction is not None:
            parts["extraction"] = extraction_part(found.extraction)
        return found

    return {"worker": await _asked("worker", health())} | parts


def overall(parts: dict[str, Part]) -> Health:
    """The state of the whole from its parts'."""
    reasons = tuple(f"{name}: {reason}" for name, part in parts.items() for reason in part.reasons)
    if parts["log"].state == "down":
        return Health(state="down", reasons=reasons, parts=parts)
    well = all(part.state == "ok" for part in parts.values())
    return Health(state="ok" if well else "degraded", reasons=reasons, parts=parts)


def log_part(log: LogHealth) -> Part:
    """The event log: down where it can't be written, degraded on a slow disk."""
    numbers = {"wal_bytes": log.wal_bytes, "sync_p50_ms": round(log.fsync_p50_ms, 2), "events": log.events}
    if not log.writable:
        return Part(state="down", reasons=("can't be written; captures go to the spool",), numbers=numbers)
    if log.fsync_p50_ms > SLOW_SYNC_MS:
        reason = f"a commit takes {log.fsync_p50_ms:.0f} ms on this disk, which every reply waits for"
        return Part(state="degraded", reasons=(reason,), numbers=numbers)
    return Part(numbers=numbers)


def child_part(child: ChildHealth) -> Part:
    """Long-term memory: degraded while its child is restarted, its server down, or it is not filled."""
    names = ("restarts", "in_flight", "late", "refused", "lexical_only", "failed")
    numbers: dict[str, Any] = {name: getattr(child, name) for name in names}
    numbers["search_ms"] = round(child.search_milliseconds, 2)
    numbers["unclean"] = bool(child.state and child.state.unclean)
    numbers["unfilled"] = bool(child.state and child.state.unfilled)
    if child.state and child.state.wanted:
        numbers |= {"points": child.state.points, "wanted": child.state.wanted}
    if not child.running:
        return Part(
            state="degraded", reasons=("is being restarted; recall uses short-term memory",), numbers=numbers
        )
    state = child.state
    said = {
        f"its server {REFUSES}": bool(state and state.refused),
        "its server can't be reached; recall uses short-term memory": bool(
            state and state.problem and not state.refused
        ),
        _filling(state): bool(state and state.unfilled),
    }
    reasons = tuple(reason for reason, holds in said.items() if holds)
    return Part(state="degraded" if reasons else "ok", reasons=reasons, numbers=numbers)


def _filling(state: ChildState | None) -> str:
    """How far the collection is filled, and what answers meanwhile."""
    if state is None or not state.wanted:
        return "is being filled from the log"
    left = "" if state.seconds_left is None else f", {state.seconds_left / 60:.0f} minutes left"
    return (
        f"is being filled from the log, {state.points} of {state.wanted} records{left}; "
        f"the collection of {state.answering} answers meanwhile"
    )


def worker_part(worker: WorkerHealth) -> Part:
    """The worker: degraded where it stands, lags, fails or has set events aside."""
    lag = max(worker.lag.values(), default=0)
    said = {
        "does not run": not worker.running,
        f"{lag} events behind": lag > LONG_LAG,
        f"the oldest event has waited {worker.waited:.0f} s; does a worker run?": worker.waited > LONG_WAIT,
        f"{worker.parked} events set aside; see the log, then retry them": worker.parked > 0,
        f"stopped: {', '.join(sorted(worker.stopped))}": bool(worker.stopped),
        f"failing: {', '.join(sorted(worker.errors))}": bool(worker.errors),
        "events are damaged or gone; `hearth verify` tells more": bool(
            worker.verified and (worker.verified.found.damages or worker.verified.found.missing)
        ),
    }
    reasons = tuple(reason for reason, holds in said.items() if holds)
    numbers = {"lag": worker.lag, "waited_s": round(worker.waited, 1), "parked": worker.parked}
    if worker.verified is not None:
        found = worker.verified.found
        numbers |= {
            "verified_at": worker.verified.ended.timestamp(),
            "damaged": found.damages + found.missing,
            "drift": found.drift,
        }
    return Part(state="degraded" if reasons else "ok", reasons=reasons, numbers=numbers)


def extraction_part(reading: ExtractionHealth) -> Part:
    """The model that reads facts: degraded where it fails or lags. Neither loses anything."""
    said = {
        f"does not read: {reading.error}": bool(reading.error),
        f"the oldest exchange has waited {reading.waited:.0f} s to be read": reading.waited > LATE_READING,
    }
    reasons = tuple(reason for reason, holds in said.items() if holds)
    numbers = {"lag": reading.lag, "waited_s": round(reading.waited, 1)}
    return Part(state="degraded" if reasons else "ok", reasons=reasons, numbers=numbers)


def spool_part(waiting: int, lost: int) -> Part:
    """The spool: degraded while captures wait in it, and where any was lost since the start."""
    said = {
        f"{waiting} captures wait for the log": waiting > 0,
        f"{lost} captures lost since the start": lost > 0,
    }
    reasons = tuple(reason for reason, holds in said.items() if holds)
    numbers = {"waiting": waiting, "lost": lost}
    return Part(state="degraded" if reasons else "ok", reasons=reasons, numbers=numbers)


def recall_part(statuses: Sequence[Status], *, missing: Mapping[str, int] | None = None) -> Part:
    """Recall in the last minutes: degraded where more than a fifth failed, or went on without the same part.

    `missing` counts the partial recalls that went on without a part, by its name.
    """
    failed, missing = statuses.count("failed"), missing or {}
    numbers = {
        "recalls": len(statuses),
        "failed": failed,
        "partial": statuses.count("partial"),
        "without": dict(missing),
    }
    said = {f"{failed} of {len(statuses)} failed": failed} | {
        f"{missing[part]} of {len(statuses)} went {how}": missing[part]
        for part, how in WITHOUT.items()
        if part in missing
    }
    most = FAILED_SHARE * len(statuses) if len(statuses) >= FEWEST_RECALLS else len(statuses)
    reasons = tuple(
        f"{what} in the last {WINDOW.seconds // 60} minutes" for what, count in said.items() if count > most
    )
    return Part(state="degraded" if reasons else "ok", reasons=reasons, numbers=numbers)


async def _report(part: object) -> object:
    return await part.health() if isinstance(part, Reports) else None


async def _asked(name: str, work: Awaitable[object]) -> Part:
    try:
        async with asyncio.timeout(PATIENCE):
            answer = await work
    except (HearthError, TimeoutError) as error:
        refused = isinstance(error, StoreUnavailable) and error.refused
        reason = REFUSES if refused else "does not answer"
        return Part(state="down" if name == "log" else "degraded", reasons=(reason,))
    match answer:
        case LogHealth():
            return log_part(answer)
        case ChildHealth():
            return child_part(answer)
        case WorkerHealth():
            return worker_part(answer)
        case _:
            return Part()
