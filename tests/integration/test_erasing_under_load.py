"""A user erased while everybody talks, twice, with a store down in between: nothing of it stays anywhere."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hearth.gateway.flow import Flow
from hearth.gateway.identity import Identity
from hearth.memory.engine import Engine
from hearth.memory.errors import StoreUnavailable
from hearth.memory.stores.edge import EdgeLongTerm
from hearth.memory.stores.sqlite_short_term import SqliteShortTerm
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.types import Scope
from hearth.memory.verify import Verifier
from hearth.testing import standing
from hearth.testing.embedded import opened
from hearth.testing.embedder import plain
from tests.events import ManualClock
from tests.flow import Talker, identity

OTHERS = ("bob", "carol", "dave", "erin")
SECRET = "Zanzibar"
"""In all that alice says before her last erasure, and in nothing that anybody else says."""
STORES = {"long-term": EdgeLongTerm, "short-term": SqliteShortTerm}


class Outage:
    """A store that can be down: every call of it then fails."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.down = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def called(*given: Any, **named: Any) -> Any:
            if self.down:
                raise StoreUnavailable("a store", "down for the test")
            return await found(*given, **named)

        return called


class Talk:
    """Everybody talks at once, each by a client that sends all of its conversation every time."""

    def __init__(self, engine: Engine, clock: ManualClock) -> None:
        self._engine, self._flow, self._clock = engine, Flow(engine), clock
        self.secret = True
        """Whether alice still says what is to be erased."""
        self.ended = False
        self.said = Counter[str]()
        """Calls that each has made."""
        self.prompts: list[str] = []
        """What went upstream for the others."""

    async def all(self) -> None:
        """Until it is ended."""
        async with asyncio.TaskGroup() as group:
            for user in ("alice", *OTHERS):
                group.create_task(self._talk(user))

    async def go_on(self, calls: int = 1) -> None:
        """Until everybody has made so many more."""
        until = {user: self.said[user] + calls for user in ("alice", *OTHERS)}
        while any(self.said[user] < count for user, count in until.items()):  # noqa: ASYNC110 (nothing tells)
            await asyncio.sleep(0.001)

    def client(self, user: str) -> Talker:
        who = Identity(scope=Scope(tenant="acme", user=user), policy=identity().policy, key=user)
        return Talker(self._flow, self._clock, who)

    async def _talk(self, user: str) -> None:
        client = self.client(user)
        while not self.ended:
            await client.say(self._words(user, self.said[user]))
            self._engine.worker.notify()
            self.said[user] += 1
            if user != "alice":
                self.prompts.append(client.prompt())

    def _words(self, user: str, number: int) -> str:
        if user != "alice":
            return words_of(user, number)
        return f"I keep {number} bees on {SECRET}" if self.secret else f"I begin anew, day {number}"


def words_of(user: str, number: int) -> str:
    return f"{user} keeps sheep number {number} behind the hill"


@pytest.mark.parametrize("down", STORES)
async def test_an_erasure_under_load_takes_one_user_and_nobody_else(
    tmp_path: Path, clock: ManualClock, down: str
) -> None:
    """What is under way is refused, what her client sends again brings nothing back, each receipt comes to
    its end once the store is back, and what the others said stands in every store as it was said.
    """
    stores: dict[type, Outage] = {}

    def guarded(port: Any) -> Any:
        stores[type(port)] = Outage(port)
        return stores[type(port)] if isinstance(port, STORES[down]) else port

    async with opened(tmp_path, clock, LifePolicy(), guarded=guarded) as engine:
        await engine.worker.start()
        talk, store = Talk(engine, clock), stores[STORES[down]]
        talking = asyncio.create_task(talk.all())
        await talk.go_on()
        first = await engine.erase("acme", "alice")
        await talk.go_on()
        store.down = True
        await talk.go_on()
        talk.secret = False
        await talk.go_on()
        late = talk.client("alice")
        late.messages.append({"role": "user", "content": f"I left a jar on {SECRET}"})
        call = await late.begin()
        second = await engine.erase("acme", "alice")
        await late.end(call)
        await talk.go_on()
        store.down = False
        await talk.go_on()
        talk.ended = True
        await talking
        await engine.drain()
        await engine.worker.purge()  # type: ignore[attr-defined]
        for done in (first, second):
            assert (await engine.receipt("acme", done.receipt)).state == "purged"
        assert down.replace("-", "_") in second.pending
        await others_are_whole(engine, talk.said)
        assert not any(SECRET in prompt for prompt in talk.prompts)
        anew = [one.user_text for one in await engine.exchanges("acme", "alice", limit=100)]
        assert anew
        assert all(text.startswith("I begin anew") for text in anew)
        await engine.worker.stop()
    assert standing.everything(tmp_path, plain(), [SECRET.encode()])["files with the words"] == []


async def others_are_whole(engine: Engine, said: Mapping[str, int]) -> None:
    for user in OTHERS:
        kept = [one.user_text for one in reversed(await engine.exchanges("acme", user, limit=100))]
        assert kept == [words_of(user, number) for number in range(said[user])]
    stores: dict[str, Any] = {"short_term": engine.short_term, "long_term": engine.long_term}
    verifier = Verifier(log=engine.log, consumers=engine.log, **stores)  # type: ignore[arg-type]
    found, _ = await verifier.some("acme")
    assert (found.behind, found.drift, found.damages) == (0, 0, 0)
    assert found.records >= sum(said[user] for user in OTHERS)
