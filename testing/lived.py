"""The life of a small memory, in steps that can each be told again: captured, filed, promoted, evicted,
forgotten, erased, made anew and moved elsewhere.

What is told again has the ids that it had; whoever can't know whether something was done looks first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch
from uuid import NAMESPACE_OID, UUID, uuid5

import msgspec

from hearth.memory.engine import Engine, Opened, keeping
from hearth.memory.errors import NotFound
from hearth.memory.events.sql_log import SqlLog
from hearth.memory.migrating import Installation, migrate
from hearth.memory.opening import SPOOL, Servers
from hearth.memory.replaying import PARTS, replay
from hearth.memory.tiers.heat import HeatPolicy
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.tiers.limits import Limits
from hearth.memory.tiers.overflow import ShortTermPolicy
from hearth.memory.types import PlacedBlock, Ranked, Ranking, Scope, Step, ToolUse
from hearth.testing.embedded import opened

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIFE = LifePolicy(
    short_term=ShortTermPolicy(pages=2), limits=Limits(segments=2), heat=HeatPolicy(promotion=1.5)
)
"""So small that a few exchanges are promoted, and leave."""
PLAIN = "hearth.testing.embedder:plain"
MOVED = "moved"
"""The folder, in the memory's own, to which it is migrated."""
ERASED = b"Zanzibar"
"""A word that those who are erased said in every exchange, and nobody else ever does."""

Telling: TypeAlias = Callable[[Engine], Awaitable[object]]


class SetClock:
    """Stands at the moment of a step."""

    def __init__(self, now: datetime) -> None:
        self.time = now

    def now(self) -> datetime:
        """That moment."""
        return self.time


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of the life, and what it is a step of."""

    name: str
    after: timedelta
    """Since the beginning."""
    tell: tuple[Telling, ...] = ()
    """What is said or asked for, one after the other, in a memory that is open."""
    alone: Callable[[Path], Awaitable[object]] | None = None
    """What is done with a memory that nobody has open."""
    forsaken: bool = False
    """Killed, it is not called again: whoever opens the memory next has it as it was."""


async def live(home: Path, stage: Stage, acknowledged: int, tell: Callable[[], None]) -> None:
    """Do what is left of the stage; `tell` is called for each acknowledgement."""
    if stage.alone is not None:
        await stage.alone(home)
        return
    async with opened(home, SetClock(START + stage.after), LIFE) as engine:
        for telling in stage.tell[acknowledged:]:
            await telling(engine)
            tell()


async def come_back(home: Path, stage: Stage) -> None:
    """Open the memory and close it again."""
    async with opened(home, SetClock(START + stage.after), LIFE):
        pass


# -- what is told ------------------------------------------------------------------------------------------


def named(*parts: object) -> str:
    """The id of what those words name."""
    return uuid5(NAMESPACE_OID, "/".join(map(str, parts))).hex


def said(
    user: str,
    number: int,
    text: str,
    *,
    after: int | None = None,
    session: str = "s1",
    shown: int | None = None,
    tenant: str = "acme",
) -> Telling:
    """An exchange, after an earlier one of the session; `shown` was in its block."""
    scope = Scope(tenant=tenant, user=user, session=session)
    return _captured(scope, number, after, _step(user, number, text, shown))


def used_tools(user: str, number: int, text: str, *, after: int, session: str = "s1") -> tuple[Telling, ...]:
    """An exchange of two steps: a tool is called, then it is answered."""
    asked, scope = _step(user, number, text, None), Scope(tenant="acme", user=user, session=session)
    first = msgspec.structs.replace(asked, reply_text="", closes=False, tools=(ToolUse(name="weather"),))
    return (
        _captured(scope, number, after, first, part="asks"),
        _captured(scope, number, None, asked, part="answers"),
    )


def _step(user: str, number: int, text: str, shown: int | None) -> Step:
    at = START + timedelta(minutes=number)
    step = Step(
        exchange=named(user, number),
        user_text=text,
        reply_text=f"Noted: {text}",
        outcome="complete",
        closes=True,
        started_at=at,
        finished_at=at,
    )
    if shown is None:
        return step
    item = named(user, shown)
    return msgspec.structs.replace(
        step,
        injected=(item,),
        trace=named("trace", user, number),
        ranking=Ranking(signals=("score",), items=(Ranked(id=item, shown=True, values=(1.0,)),)),
        block=PlacedBlock(exchange=step.exchange, text="Earlier.", tokens=2, items=(item,), at=at),
    )


def _captured(scope: Scope, number: int, after: int | None, step: Step, *, part: str = "step") -> Telling:
    async def capture(engine: Engine) -> None:
        opened = Opened(
            scope=scope,
            exchange=step.exchange,
            parent=None if after is None else named(scope.user, after),
            generation=await engine.log.generation(scope.tenant, scope.user),
        )
        event = named(scope.user, number, part)
        done = await engine.capture_step(opened, step, event_id=event, page_reply=step.reply_text)
        if done.place != "log":
            raise AssertionError(done)

    return capture


async def _file(engine: Engine) -> None:
    await engine.drain()


def added(text: str, **about: str) -> Telling:
    """A memory of Alice's, added by hand."""
    scope = Scope(tenant="acme", user="alice")

    async def add(engine: Engine) -> None:
        if text in [one.text for one in await engine.memories("acme", "alice")]:
            return
        with patch.object(keeping, "uuid4", lambda: UUID(named(text))):
            await engine.remember(scope, text, **about)

    return add


def _forget(number: int) -> Telling:
    async def forget(engine: Engine) -> None:
        try:
            await engine.forget_exchange(Scope(tenant="acme", user="alice"), named("alice", number))
        except NotFound:
            return

    return forget


def _forget_added(text: str) -> Telling:
    async def forget(engine: Engine) -> None:
        try:
            await engine.forget(Scope(tenant="acme", user="alice"), named(text))
        except NotFound:
            return

    return forget


async def _erase(engine: Engine) -> None:
    if all(one.what != "user" for one in await engine.office.erasures("acme", limit=10)):
        await engine.erase("acme", "bob")


async def _erase_tenant(engine: Engine) -> None:
    if not await engine.office.erasures("globex", limit=10):
        await engine.eraser.begin("tenant", "globex")


async def _purge(engine: Engine) -> None:
    worker: Any = engine.worker
    for _ in range(5):
        if not await engine.office.open_erasures(limit=10):
            return
        await worker.purge()
        await engine.drain()  # a tenant's users are erased by the purge
    raise AssertionError(await engine.office.open_erasures(limit=10))


# -- what is done alone ------------------------------------------------------------------------------------


def _installation(home: Path) -> Installation:
    return Installation(
        home=home, spool=home / SPOOL, servers=Servers(), embedder=PLAIN, durability="process"
    )


async def _replay(home: Path) -> None:
    await replay(_installation(home), PARTS, lambda *_: None)


class _Open:
    """Nothing is switched off."""

    async def look(self) -> None:
        """There is nothing to know."""

    def admits(self, tenant: str, key: str) -> bool:
        """Everything."""
        return True


async def _migrate(home: Path) -> None:
    async def nothing(source: SqlLog, target: SqlLog) -> None:
        """There are no switches to take along."""

    target = _installation(home / MOVED)
    moved = await migrate(
        _installation(home), target, watch=lambda *_: None, also=nothing, gate=lambda log: _Open()
    )
    if moved.copied.differences:
        raise AssertionError(moved.copied.differences)


# -- the life ----------------------------------------------------------------------------------------------

SOUP = "My leek soup recipe needs leek, potatoes and a soup pot, variant {}."
CARS = "The car engine needs new engine oil, and the car a mechanic, visit {}."
BOB = "Bob keeps {} bees on Zanzibar."
DOG = (
    "My dog Bilbo is called Bilbo Baggins.",
    "My dog Bilbo is afraid of thunder.",
    "My dog Bilbo is fed with salmon alone.",
    "My dog Bilbo is five years old.",
    "My dog Bilbo is treated by Dr. Farkas.",
)
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)

STAGES = (
    Stage(name="opening", after=_MINUTE),
    Stage(
        name="capture",
        after=2 * _MINUTE,
        tell=(
            said("alice", 1, "I live in Oslo now."),
            said("bob", 1, "I work at Acme on Zanzibar."),
            *used_tools("alice", 2, "What is the weather like there?", after=1),
            said("bob", 2, BOB.format("two"), after=1),
        ),
    ),
    Stage(name="projection", after=3 * _MINUTE, tell=(_file,)),
    Stage(
        name="capture on another branch",
        after=4 * _MINUTE,
        tell=(
            said("alice", 3, "What is the food like there?", after=1, shown=1),
            said("alice", 4, SOUP.format(1), after=3),
        ),
    ),
    Stage(name="branch and first segment", after=5 * _MINUTE, tell=(_file,)),
    Stage(
        name="capture of more",
        after=10 * _MINUTE,
        tell=(
            *(said("alice", number, SOUP.format(number), after=number - 1) for number in (5, 6)),
            *(said("bob", number, BOB.format(number), after=number - 1) for number in (3, 4)),
            *(said(user, 1, BOB.format("three"), tenant="globex") for user in ("carl", "dora")),
        ),
    ),
    Stage(name="promotion", after=11 * _MINUTE, tell=(_file,)),
    Stage(
        name="capture on another topic",
        after=5 * _DAY,
        tell=(
            *(said("alice", number, CARS.format(number), session="s2") for number in (7, 8, 9)),
            said("alice", 10, "It is fine weather.", session="s3", shown=5),
        ),
    ),
    Stage(name="eviction", after=5 * _DAY + _MINUTE, tell=(_file,)),
    Stage(
        name="additions by hand, and a concept of them",
        after=5 * _DAY + 2 * _MINUTE,
        tell=(
            added("Alice lives in Bern.", attribute="residence", value="Bern"),
            *(added(text, subject="Bilbo") for text in DOG),
            _file,
        ),
    ),
    Stage(name="forgetting", after=5 * _DAY + 3 * _MINUTE, tell=(_forget(7), _forget_added(DOG[2]), _file)),
    Stage(name="erasure", after=5 * _DAY + 4 * _MINUTE, tell=(_erase, _file)),
    Stage(name="purge of what was erased", after=6 * _DAY, tell=(_purge,)),
    Stage(name="erasure of a tenant", after=6 * _DAY + _MINUTE, tell=(_erase_tenant, _file)),
    Stage(name="purge of a tenant", after=6 * _DAY + 2 * _MINUTE, tell=(_purge,)),
    Stage(name="replay, not gone on with", after=6 * _DAY + 3 * _MINUTE, alone=_replay, forsaken=True),
    Stage(name="replay", after=6 * _DAY + 3 * _MINUTE, alone=_replay),
    Stage(
        name="capture and filing after all",
        after=7 * _DAY,
        tell=(said("alice", 11, "I ski.", session="s4"), _file),
    ),
    Stage(name="migration", after=7 * _DAY, alone=_migrate),
)
