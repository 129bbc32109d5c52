"""The concept decider: sums up facts and episodes that belong together, and does so anew when one changes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from msgspec import structs

from hearth.memory.events.kinds import (
    Event,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    MemoryWithdrawn,
    Payload,
)
from hearth.memory.policies import PolicyOf
from hearth.memory.ports import Clock, EventLog, LongTerm, MemoryFilter
from hearth.memory.tiers.concepts import Concept, concepts, member
from hearth.memory.tiers.indexed import is_recallable
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.tiers.pages import decisions
from hearth.memory.types import Embedding, Evidence, Memory, Scope

_NAMESPACE: Final = uuid5(NAMESPACE_URL, "hearth:concept")
_MEMBERS: Final = 300
"""The latest facts and episodes of a user that are looked at."""
_LOOKS: Final = 20
_PAUSE: Final = 0.1
"""Seconds between two looks at whether all of them are indexed."""
_PART: Final = 20
"""One in so many of what is looked at has to be new."""
_SUMMED_UP: Final = ("fact", "episode")


class ConceptDecider:
    """Turns facts and episodes of a user into concepts, each time some more of them are known and whenever
    one that a concept sums up has changed or gone.

    A concept is a memory whose evidence are its members. The log itself takes it out with the event that
    changes a member; here it is only made anew.
    """

    name = "concepts"
    kinds = ("memory.added", "memory.changed", "memory.forgotten", "memory.withdrawn")

    def __init__(self, *, log: EventLog, long_term: LongTerm, clock: Clock, policy: PolicyOf) -> None:
        """`policy` of a tenant."""
        self._log = log
        self._long_term = long_term
        self._clock = clock
        self._policy = policy

    def together(self, events: Sequence[Event]) -> int:
        """All of the head: a user's concepts are made once, as the log is after the last of them."""
        return len(events)

    async def probe(self, event: Event) -> None:
        """Raise StoreUnavailable if long-term memory, which has the vectors, is down."""
        await self._long_term.count(Scope(tenant=event.tenant, user=event.user).owner)

    async def handle(self, events: Sequence[Event]) -> list[Event]:
        """Decide for each user that the events are about. Raises StoreUnavailable."""
        users: defaultdict[tuple[str, str, int], list[Event]] = defaultdict(list)
        for event in events:
            users[event.tenant, event.user, event.generation].append(event)
        made: list[Event] = []
        for about in users.values():
            made += decisions(about[-1], await self._decide(about), cause=self.name)
        return made

    async def _decide(self, events: Sequence[Event]) -> list[Payload]:
        last = events[-1]
        changed = [id for event in events if (id := _changed(event))]
        resting = await self._log.concepts_on(last.tenant, last.user, changed)
        policy = self._policy(last.tenant, "", "")
        if not (resting or await self._has_gained(events, policy.concepts.gain)):
            return []
        known = await self._log.memories(
            last.tenant,
            last.user,
            where=MemoryFilter(types=(*_SUMMED_UP, "concept")),
            after=None,
            limit=_MEMBERS,
        )
        there = {one.id for one in known}
        made: list[Payload] = [
            MemoryForgotten(memory=id, reason="what it sums up changed") for id in resting if id not in there
        ]
        agents = dict.fromkeys(one.scope.own_agent for one in reversed(known))
        for agent in agents:
            made += await self._of_owner(last, [one for one in known if one.scope.own_agent == agent], policy)
        return made

    async def _has_gained(self, events: Sequence[Event], gain: int) -> bool:
        """Whether the number of facts and episodes passed a multiple of `gain` with these events, or of a
        part of those that are looked at where that is more: each time all of them are.
        """
        added = sum(_is_summed_up(event) for event in events)
        if not added:
            return False
        last, where = events[-1], MemoryFilter(types=_SUMMED_UP)
        later = sum(_is_summed_up(event) for event in await self._later(last))
        count = await self._log.count_memories(last.tenant, last.user, where=where)
        count = max(count - later, added)  # what was forgotten since is counted in neither
        gain = max(gain, min(count, _MEMBERS) // _PART)
        return count // gain > (count - added) // gain

    async def _later(self, event: Event) -> list[Event]:
        """What the user gained since: its turn comes, and it may be handled one by one after a crash."""
        return await self._log.read(
            after=event.seq, kinds=("memory.added",), tenant=event.tenant, user=event.user
        )

    async def _of_owner(self, event: Event, known: Sequence[Memory], policy: LifePolicy) -> list[Payload]:
        """What the concepts that are known give way to; one that is still right stays."""
        scope = structs.replace(known[0].scope, session="")
        found = await self._found(scope.owner, known, policy)
        old = {one.text: one for one in known if one.type == "concept" and one.source == "extraction"}
        new = {one.text: one for one in found}
        gone = [one.id for text, one in old.items() if text not in new or _members(one) != _ids(new[text])]
        kept = {text for text, one in old.items() if one.id not in gone}
        made: list[Payload] = [MemoryForgotten(memory=id, reason="summed up anew") for id in gone]
        for number, one in enumerate(found):
            if one.text not in kept:
                id = uuid5(_NAMESPACE, f"{event.id}/{scope.owner}/{number}").hex
                made.append(MemoryAdded(memory=self._memory(id, one, scope, event.generation)))
        return made

    async def _found(self, owner: str, known: Sequence[Memory], policy: LifePolicy) -> list[Concept]:
        current = [one for one in known if one.type in _SUMMED_UP and is_recallable(one)]
        vectors = await self._vectors(owner, [one.id for one in current])
        by = next((vectors[one.id].by for one in current if one.id in vectors), "")
        members = [
            member(one, vectors[one.id].numbers)
            for one in current
            if one.id in vectors and vectors[one.id].by == by
        ]
        return await asyncio.to_thread(concepts, members, policy.concepts, policy.segments)

    async def _vectors(self, owner: str, ids: Sequence[str]) -> dict[str, Embedding]:
        """Those of the memories that are indexed; what is about to be is waited for."""
        for _ in range(_LOOKS):
            vectors = await self._long_term.vectors(owner, ids)
            if len(vectors) == len(ids):
                break
            await asyncio.sleep(_PAUSE)
        return vectors

    def _memory(self, id: str, concept: Concept, scope: Scope, generation: int) -> Memory:
        now = self._clock.now()
        return Memory(
            id=id,
            scope=scope,
            generation=generation,
            type="concept",
            text=concept.text,
            metadata={"name": concept.name},
            confidence=min(one.confidence for one in concept.members),
            importance=max(one.importance for one in concept.members),
            occurred_at=concept.members[-1].occurred_at,
            created_at=now,
            updated_at=now,
            evidence=tuple(
                Evidence(id=one.id, role="user", quote=one.text, at=one.occurred_at)
                for one in concept.members
            ),
            source="extraction",
        )


def _is_summed_up(event: Event) -> bool:
    return isinstance(event.payload, MemoryAdded) and event.payload.memory.type in _SUMMED_UP


def _changed(event: Event) -> str:
    """The memory that says something else now, or nothing; empty where there is none."""
    match event.payload:
        case MemoryChanged(memory=memory) if event.payload.says_otherwise:
            return memory.id
        case MemoryForgotten(memory=id) | MemoryWithdrawn(memory=id):
            return id
        case _:
            return ""


def _members(concept: Memory) -> frozenset[str]:
    return frozenset(one.id for one in concept.evidence)


def _ids(concept: Concept) -> frozenset[str]:
    return frozenset(one.id for one in concept.members)
