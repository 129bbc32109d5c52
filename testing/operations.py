"""A memory over files that is told, asked, corrected, forgotten and killed at random, by a seed.

Killed means that the operation or the worker ends before or after a call of a port, as if the process had
gone there, and that all is opened again from the files.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hearth.memory.engine import Engine
from hearth.memory.errors import NotFound
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.tiers.limits import Limits
from hearth.memory.tiers.overflow import ShortTermPolicy
from hearth.memory.types import Scope
from hearth.testing.embedded import opened

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIFE = LifePolicy(short_term=ShortTermPolicy(pages=4), limits=Limits(segments=3))
"""So small that segments are made and leave within a hundred operations."""
TOWNS = ("Oslo", "Bern", "Lisbon", "Graz", "Turku", "Leiden")
FIRMS = ("Acme", "Brill", "Conrad", "Dunmore")
THINGS = ("bicycle", "boat", "camera", "stove", "tent")
SAYINGS: tuple[Callable[[random.Random], str], ...] = (
    lambda dice: f"I live in {dice.choice(TOWNS)} now.",
    lambda dice: f"I work at {dice.choice(FIRMS)}.",
    lambda dice: f"I don't work at {dice.choice(FIRMS)} any more.",
    lambda dice: f"My {dice.choice(THINGS)} broke {dice.randrange(9)} times in {dice.choice(TOWNS)}.",
    lambda dice: f"Where did I leave my {dice.choice(THINGS)}?",
    lambda dice: f"No, I said {dice.choice(TOWNS)}.",
)


class Killed(BaseException):
    """The process is gone; no handler of an error may go on."""


class StandingClock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        """The moment that was set."""
        return self.time


class Fuse:
    """Stands before a port, and kills at the call of a given number."""

    def __init__(self, port: Any, count: Callable[[str], None]) -> None:
        self._port = port
        self._count = count

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def counted(*given: Any, **named: Any) -> Any:
            self._count(name)
            result = await found(*given, **named)
            self._count(name)
            return result

        return counted


class Operations:
    """The memory in `home`, and what happens to it. Use `run`, then look at the files."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home = home
        self.clock = StandingClock()
        self.kills = 0
        self.done: dict[str, int] = {}
        """How often each operation was done."""
        self._dice = random.Random(seed)  # noqa: S311 (no secret)
        self._left: int | None = None
        self._ways: tuple[tuple[int, Callable[[Engine], Awaitable[None]]], ...] = (
            (40, self._say),
            (8, self._add),
            (4, self._amend),
            (4, self._forget_memory),
            (4, self._forget_exchange),
            (1, self._erase),
            (2, self._load),
            (1, self._remove),
            (2, self._rest),
            (12, self._work),
        )

    async def run(self, count: int) -> None:
        """Do so many operations, killed and opened again now and then, and let the worker end its work."""
        left = count
        while left:
            try:
                async with self._opened(killable=True) as engine:
                    while left:
                        self._left = self._dice.randrange(60) if self._dice.random() < 0.08 else None
                        left -= 1
                        await self._once(engine)
            except Killed:
                self._left = None
                self.kills += 1
        self._left = None
        async with self._opened(killable=False) as engine:
            while any((await engine.worker.health()).lag.values()):
                await engine.drain()

    async def _once(self, engine: Engine) -> None:
        weights = [weight for weight, _ in self._ways]
        (way,) = self._dice.choices([way for _, way in self._ways], weights)
        name = way.__name__.strip("_")
        self.done[name] = self.done.get(name, 0) + 1
        self.clock.time += timedelta(seconds=self._dice.randrange(1, 600))
        await way(engine)

    def _count(self, name: str) -> None:
        if self._left is None:
            return
        if self._left <= 0:
            raise Killed(name)
        self._left -= 1

    # -- what can happen -------------------------------------------------------------------------------

    async def _say(self, engine: Engine) -> None:
        scope = self._scope(session=True)
        text = self._dice.choice(SAYINGS)(self._dice)
        recall = await engine.recall(scope, text) if self._dice.random() < 0.3 else None
        reply = f"About {recall.scored[0].record.id}: {text}" if recall and recall.scored else "Noted."
        await engine.capture(scope, text, reply, recall=recall)

    async def _add(self, engine: Engine) -> None:
        town = self._dice.choice(TOWNS)
        about = {"attribute": "residence", "value": town} if self._dice.random() < 0.5 else {}
        await engine.remember(
            self._scope(), f"{town} it is, for the {self._dice.randrange(99)}th time.", **about
        )

    async def _amend(self, engine: Engine) -> None:
        if (found := await self._memory(engine)) is not None:
            await engine.amend(found.scope.tenant, found.scope.user, found.id, text=f"{found.text} Or so.")

    async def _forget_memory(self, engine: Engine) -> None:
        if (found := await self._memory(engine)) is not None:
            await engine.forget(found.scope, found.id)

    async def _forget_exchange(self, engine: Engine) -> None:
        scope = self._scope()
        found = await engine.exchanges(scope.tenant, scope.user, limit=20)
        if found:
            await engine.forget_exchange(scope, self._dice.choice(found).id)

    async def _erase(self, engine: Engine) -> None:
        scope = self._scope()
        await engine.erase(scope.tenant, scope.user)

    async def _load(self, engine: Engine) -> None:
        text = "\n\n".join(f"# Part {n}\n\nThe {self._dice.choice(THINGS)} is kept dry." for n in range(3))
        name = self._dice.choice(("guide.md", "rules.md"))
        await engine.knowledge.load("acme", name, text.encode(), "text/markdown")

    async def _remove(self, engine: Engine) -> None:
        try:
            await engine.knowledge.remove("acme", self._dice.choice(("guide.md", "rules.md")))
        except NotFound:
            return

    async def _rest(self, engine: Engine) -> None:
        self.clock.time += timedelta(hours=self._dice.randrange(1, 3))

    async def _work(self, engine: Engine) -> None:
        await engine.drain()

    def _scope(self, *, session: bool = False) -> Scope:
        user = self._dice.choice(("alice", "bob"))
        isolated = self._dice.random() < 0.2
        return Scope(
            tenant="acme",
            user=user,
            agent="hermit" if isolated else "default",
            isolated=isolated,
            session=f"{user} {isolated} {self._dice.randrange(3)}" if session else "",
        )

    async def _memory(self, engine: Engine) -> Any:
        scope = self._scope()
        found = await engine.memories(scope.tenant, scope.user, limit=30)
        return self._dice.choice(found) if found else None

    # -- the memory ------------------------------------------------------------------------------------

    def _opened(self, *, killable: bool) -> AbstractAsyncContextManager[Engine]:
        if not killable:
            return opened(self.home, self.clock, LIFE)
        return opened(self.home, self.clock, LIFE, guarded=lambda port: Fuse(port, self._count))
