"""A life in minutes: dialogue played on a clock that is set, so that one sees what memory makes of a year."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Final, cast

import msgspec

from hearth.memory.engine import Engine
from hearth.memory.opening import open_memory
from hearth.memory.policies import Settled, nothing_settled
from hearth.memory.recall.unanswered import only_asks
from hearth.memory.types import Memory, Recall, Record, Scope
from hearth.memory.worker import Worker

_PATIENCE: Final = 10.0
"""Seconds that a recall may take: nobody waits for the answer."""
_KNOWN: Final = "As far as I know: "


class SetClock:
    """A clock that stands at the moment it was set to."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        """That moment."""
        return self.at


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange of the script."""

    at: datetime
    session: str
    text: str
    reply: str | None = None
    """None: made of what was recalled, as a model would."""


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """What a day cost."""

    at: datetime
    """Its last exchange."""
    exchanges: int
    recalled: int
    """Of them, those with a block."""
    tokens: int
    """Of their blocks."""
    worker_seconds: float
    """All that it took to file them, at the end of the day what is due daily among it."""
    processor_seconds: float
    """Of that, as far as processors worked on it."""


class Simulation:
    """An open memory with a clock of its own.

    Its worker does nothing beside the exchanges, but comes to its end after each: between two of them lie
    minutes of that clock. What a worker does nightly to see that nothing is damaged is left out.
    """

    def __init__(
        self, engine: Engine, worker: Worker, clock: SetClock, scope: Scope, processor: Callable[[], float]
    ) -> None:
        """`worker`: the engine's, which has been stopped. `processor`: seconds of processor time so far."""
        self.engine = engine
        self.clock = clock
        self.scope = scope
        self._worker = worker
        self._processor = processor
        self._worked = self._computed = 0.0

    async def play(self, script: Iterable[Played], *, each: Callable[[Day], None] = lambda _: None) -> None:
        """Play the exchanges in order. `each` is told of each day."""
        for _, day in groupby(script, key=lambda one: one.at.date()):
            exchanges = list(day)
            self._worked = self._computed = 0.0
            blocks = [await self._exchange(one) for one in exchanges]
            await self._work(self._worker.tick, self._worker.sweep, self.engine.drain)
            each(
                Day(
                    at=self.clock.at,
                    exchanges=len(exchanges),
                    recalled=sum(bool(recall.block.text) for recall in blocks),
                    tokens=sum(recall.block.tokens for recall in blocks),
                    worker_seconds=self._worked,
                    processor_seconds=self._computed,
                )
            )

    async def ask(self, question: str, *, at: datetime | None = None, budget: int | None = None) -> Recall:
        """What would be recalled for the question, without leaving a trace in memory."""
        self.clock.at = at or self.clock.at
        return await self.engine.recall(self.scope, question, budget=budget, deadline=_PATIENCE)

    async def _exchange(self, one: Played) -> Recall:
        self.clock.at = max(one.at, self.clock.at)
        recall = await self.ask(one.text)
        scope = msgspec.structs.replace(self.scope, session=one.session)
        reply = reply_from(recall) if one.reply is None else one.reply
        await self.engine.capture(scope, one.text, reply, recall=recall)
        await self.engine.capture_path.drain()
        await self._work(self.engine.drain)
        return recall

    async def _work(self, *parts: Callable[[], Awaitable[object]]) -> None:
        started, computed = time.perf_counter(), self._processor()
        for part in parts:
            await part()
        self._worked += time.perf_counter() - started
        self._computed += self._processor() - computed


@asynccontextmanager
async def simulated(
    directory: str | Path,
    start: datetime,
    *,
    embedder: str = "fast",
    settled: Settled = nothing_settled,
    processor: Callable[[], float] = time.process_time,
) -> AsyncIterator[Simulation]:
    """A memory in `directory` whose clock stands at `start`, open until the end. `processor`: seconds of
    processor time so far, this process's if none is given. Raises as `open_memory`.
    """
    clock = SetClock(start)
    async with open_memory(
        directory, embedder=embedder, durability="process", clock=clock, settled=settled
    ) as engine:
        worker = cast("Worker", engine.worker)  # nobody has asked for one elsewhere
        await worker.stop()
        yield Simulation(engine, worker, clock, Scope(tenant="simulation", user="user"), processor)


def reply_from(recall: Recall) -> str:
    """A reply that repeats the best of what was recalled, as a model that uses its memory does.

    Of an exchange in which the user only asked that is what was replied then.
    """
    shown = (one.record for one in recall.scored if one.verdict == "in")
    told = next((said for said in map(_said, shown) if said), "")
    return f"{_KNOWN}{told}" if told else "I see."


def _said(record: Record) -> str:
    if isinstance(record, Memory):
        return record.text
    asked = only_asks(record.user_text)
    return record.reply_text.removeprefix(_KNOWN) if asked else record.user_text
