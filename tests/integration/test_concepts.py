"""Concepts over REST: made by the worker, shown in place of facts, gone with what they say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.concept_decider import ConceptDecider
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.ports import MemoryFilter
from hearth.memory.reading import indexed
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.tiers.concepts import ConceptPolicy
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.types import Memory
from hearth.testing.embedder import ScriptedEmbedder
from tests.api import Api, open_api
from tests.events import ManualClock, memory

DOG = (
    "My dog Bilbo is called Bilbo Baggins.",
    "My dog Bilbo is afraid of thunder.",
    "My dog Bilbo is fed with salmon alone.",
    "My dog Bilbo is five years old.",
    "My dog Bilbo is treated by Dr. Farkas.",
)
QUESTION = "What do you know about my dog Bilbo?"


@pytest.fixture(name="api")
async def _api(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=clock) as api:
        yield api


async def tell(api: Api, clock: ManualClock, key: str = "alice") -> list[str]:
    ids = []
    async with api.client(key) as client:
        for text in DOG:
            clock.advance(days=1)
            ids.append((await client.post("/memories", json={"text": text, "subject": "Bilbo"})).json()["id"])
    await api.engine.drain()
    return ids


async def known(api: Api, user: str = "alice", tenant: str = "acme") -> list[Memory]:
    return await api.engine.memories(tenant, user, where=MemoryFilter(types=("concept",)))


async def post(api: Api, path: str, key: str = "alice", **body: Any) -> dict[str, Any]:
    async with api.client(key) as client:
        answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_facts_become_a_concept_that_stands_for_them(api: Api, clock: ManualClock) -> None:
    """It has all of their words in fewer tokens, names its evidence, and is its user's alone."""
    ids = await tell(api, clock)
    (concept,) = await known(api)
    assert [one.id for one in concept.evidence] == ids
    assert "called Bilbo Baggins, afraid of thunder, fed with salmon alone" in concept.text
    block = (await post(api, "/recall", query=QUESTION))["block"]
    assert f"# Concepts\n2026\nFri 6 Mar\n- {concept.text}\n" in block
    assert "# Facts" not in block
    found = await post(api, "/compare", query=QUESTION)
    assert found["saved"] == found["raw"]["tokens"] - found["compacted"]["tokens"] > 0
    assert (found["kept"], found["lost"], found["raw"]["items"]) == (5, 0, 5)
    assert {one["concept"] for one in found["evidence"]} == {concept.id}
    assert (await post(api, "/recall", "bob", query=QUESTION))["block"] == ""
    assert (await post(api, "/compare", "rival", query=QUESTION, user="alice"))["evidence"] == []


async def test_what_a_concept_says_no_more_is_gone_at_once(api: Api, clock: ManualClock) -> None:
    """A member that ends or is forgotten takes it out when the answer comes; a new one is made without it."""
    ids = await tell(api, clock)
    (first,) = await known(api)
    async with api.client("alice") as alice:
        assert (await alice.delete(f"/memories/{ids[1]}")).json()["done"]
        assert await known(api) == []
        assert first.id not in [one.record.id for one in await api.engine.search(first.scope, "thunder")]
        await api.engine.drain()
        (second,) = await known(api)
        assert "thunder" not in second.text
        assert len(second.evidence) == 4
        day = clock.now().isoformat()
        assert (await alice.patch(f"/memories/{ids[3]}", json={"valid_to": day})).is_success
        clock.advance(hours=1)
        assert await known(api) == []
        await api.engine.drain()
        (third,) = await known(api)
        assert "five years" not in third.text
        await alice.patch(f"/memories/{ids[0]}", json={"importance": 0.9})
        await api.engine.drain()
        assert [one.id for one in await known(api)] == [third.id]
    events = str(await api.engine.log.read(tenant="acme", user="alice", limit=500))
    assert "thunder" not in events
    await api.engine.erase("acme", "alice")
    await api.engine.drain()
    assert await known(api) == []
    assert await api.engine.long_term.count(first.scope.owner) == 0


async def test_facts_that_are_looked_at_one_by_one_become_a_concept_too(
    sqlite_log: SqliteLog, clock: ManualClock
) -> None:
    """As they are after a crash amid all of them: the log has the later ones already, and they count once."""
    long_term = MemoryLongTerm(ScriptedEmbedder())
    told = [memory(text, subject="Bilbo", id=f"{n:032x}") for n, text in enumerate(DOG)]
    await sqlite_log.append(told)
    await long_term.upsert([await indexed(sqlite_log, event.payload.memory) for event in told])
    decider = ConceptDecider(
        log=sqlite_log, long_term=long_term, clock=clock, policy=lambda tenant, agent, key: LifePolicy()
    )
    made = [one for event in await sqlite_log.read() for one in await decider.handle([event])]
    (concept,) = [one.payload.memory for one in made]
    assert [one.id for one in concept.evidence] == [event.payload.memory.id for event in told]


async def test_facts_that_are_told_while_it_decides_make_no_concept_early(
    sqlite_log: SqliteLog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are none of those that it looks at, and none that it had before."""
    long_term = MemoryLongTerm(ScriptedEmbedder())
    told = [memory(text, subject="Bilbo", id=f"{n:032x}") for n, text in enumerate(DOG)]
    await sqlite_log.append(told[:3])
    await long_term.upsert([await indexed(sqlite_log, event.payload.memory) for event in told[:3]])
    policy = LifePolicy(concepts=ConceptPolicy(gain=1_000))
    decider = ConceptDecider(
        log=sqlite_log, long_term=long_term, clock=clock, policy=lambda tenant, agent, key: policy
    )
    count = sqlite_log.count_memories

    async def counted(*args: Any, **more: Any) -> int:
        found = await count(*args, **more)
        await sqlite_log.append([memory("My dog Bilbo ate a shoe.", subject="Bilbo")])
        return found

    monkeypatch.setattr(sqlite_log, "count_memories", counted)
    (first, *_) = await sqlite_log.read()
    assert await decider.handle([first]) == []
