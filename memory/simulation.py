"""A life in minutes: dialogue played on a clock that is set, so that one sees what memory makes of a year."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from hearth.memory.engine import Engine
from hearth.memory.opening import open_memory
from hearth.memory.policies import Settled, nothing_settled
from hearth.memory.types import Recall, Scope

_PATIENCE: Final = 10.0
"""Seconds that a recall may take: nobody waits for the answer."""
_HOUR: Final = timedelta(hours=1)


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
    """From the last reply until everything was filed, divided by nothing."""


class Simulation:
    """An open memory with a clock of its own."""

    def __init__(self, engine: Engine, clock: SetClock, scope: Scope) -> None:
        self.engine = engine
        self.clock = clock
        self.scope = scope

    async def play(self, script: Iterable[Played], *, each: Callable[[Day], None] = lambda _: None) -> None:
        """Play the exchanges in order, and let the worker come to its end after each day. `each` is told."""
        for _, day in groupby(script, key=lambda one: one.at.date()):
            exchanges = list(day)
            blocks = [await self._exchange(one) for one in exchanges]
            started = time.perf_counter()
            await self.engine.drain()
            each(
                Day(
                    at=self.clock.at,
                    exchanges=len(exchanges),
                    recalled=sum(bool(recall.block.text) for recall in blocks),
                    tokens=sum(recall.block.tokens for recall in blocks),
                    worker_seconds=time.perf_counter() - started,
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
        return recall


@asynccontextmanager
async def simulated(
    directory: str | Path, start: datetime, *, embedder: str = "fast", settled: Settled = nothing_settled
) -> AsyncIterator[Simulation]:
    """A memory in `directory` whose clock stands at `start`, open until the end. Raises as `open_memory`."""
    clock = SetClock(start)
    async with open_memory(
        directory, embedder=embedder, durability="process", clock=clock, settled=settled
    ) as engine:
        yield Simulation(engine, clock, Scope(tenant="simulation", user="user"))


def reply_from(recall: Recall) -> str:
    """A reply that repeats the best of what was recalled, as a model that uses its memory does."""
    best = next((one.record for one in recall.scored if one.verdict == "in"), None)
    if best is None:
        return "I see."
    told = getattr(best, "text", None) or getattr(best, "user_text", "")
    return f"As far as I know: {told}"
