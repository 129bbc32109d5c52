"""Memories, exchanges and sessions: added, read and changed by hand."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

import msgspec

from hearth.memory.engine.answers import CLOCKS_APART
from hearth.memory.engine.parts import Parts
from hearth.memory.errors import BadInput, NotFound
from hearth.memory.events.kinds import MemoryAdded, MemoryChanged, Payload, SegmentPinned
from hearth.memory.outdating import outdated_pages
from hearth.memory.ports import MemoryFilter
from hearth.memory.reading import latest_memories
from hearth.memory.tiers.facts import chain_of, changes, put
from hearth.memory.tiers.persona import Persona, is_of, persona
from hearth.memory.types import Exchange, Memory, MemoryType, Metadata, Scope, SessionInfo

logger = logging.getLogger(__name__)

PERSONA_FACTS = 2_000
"""Latest facts that a persona is made of."""


class Keeping(Parts):
    """What somebody keeps of a user, and reads."""

    async def remember(
        self,
        scope: Scope,
        text: str,
        *,
        type: MemoryType = "fact",
        subject: str = "",
        attribute: str = "",
        value: str = "",
        tags: Sequence[str] = (),
        metadata: Metadata | None = None,
        importance: float = 0.5,
        pinned: bool = False,
        occurred_at: datetime | None = None,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        expires_at: datetime | None = None,
        key: str = "",
    ) -> Memory:
        """Add a memory by hand. Durable when it returns, recallable within a second.

        Of an `attribute` that has one value at a time it closes the value before. Without a `subject` such a
        fact is the user's. `key`: by which it comes; its policy says what is masked.

        Raises BadInput for an empty text, an importance outside 0 to 1 or a future time, LogUnavailable.
        """
        _check_text(text)
        _check_importance(importance)
        now, mask = self.clock.now(), self.policies.mask(scope.tenant, key)
        occurred_at = _past(occurred_at or now, now)
        _check_validity(valid_from, valid_to)
        memory = Memory(
            id=uuid4().hex,
            scope=scope,
            generation=await self.log.generation(scope.tenant, scope.user),
            type=type,
            text=mask(text.strip()),
            subject=subject or ("user" if attribute else ""),
            attribute=attribute,
            value=mask(value.strip()),
            tags=tuple(dict.fromkeys(tags)),
            metadata=metadata or {},
            importance=importance,
            pinned=pinned,
            occurred_at=occurred_at,
            created_at=now,
            updated_at=now,
            valid_from=valid_from,
            valid_to=valid_to,
            expires_at=expires_at,
        )
        payloads: list[Payload] = [MemoryAdded(memory=memory)]
        if attribute:
            about = await self.log.facts_about(scope.tenant, scope.user, [(memory.subject, attribute)])
            known = {one.id: one for one in about if one.scope.owner == scope.owner and is_of(one, scope)}
            after = put(known, memory)
            payloads = changes(known, after, now=now, forgotten=False)
            payloads += await outdated_pages(self.log, scope.tenant, scope.user, known, after)
        await self._append(*(self._event(scope, one, memory.generation) for one in payloads))
        return memory

    async def memory(self, tenant: str, user: str, memory_id: str) -> Memory:
        """One live memory. Raises NotFound, LogUnavailable."""
        found = await self.log.memory(tenant, user, memory_id)
        if found is None:
            raise NotFound
        return found

    async def memories(
        self,
        tenant: str,
        user: str,
        *,
        where: MemoryFilter | None = None,
        after: tuple[datetime, str] | None = None,
        limit: int = 50,
    ) -> list[Memory]:
        """Live memories, newest first, after the keyset position (created_at, id)."""
        return await self.log.memories(tenant, user, where=where or MemoryFilter(), after=after, limit=limit)

    async def count_memories(self, tenant: str, user: str, *, where: MemoryFilter | None = None) -> int:
        """How many live memories match."""
        return await self.log.count_memories(tenant, user, where=where or MemoryFilter())

    async def amend(self, tenant: str, user: str, memory_id: str, *, key: str = "", **changes: Any) -> Memory:
        """Change fields of a memory: text, value, type, tags, metadata, importance, pinned, valid_from,
        valid_to, expires_at. `key`: by which it comes; its policy says what is masked.

        What was changed by hand is no longer read from the user's words: they neither change nor withdraw it.
        Raises NotFound, BadInput, LogUnavailable.
        """
        old = await self.memory(tenant, user, memory_id)
        if "text" in changes:
            _check_text(changes["text"])
        for name in {"text", "value"} & changes.keys():
            changes[name] = self.policies.mask(tenant, key)(changes[name].strip())
        if "importance" in changes:
            _check_importance(changes["importance"])
        changed = tuple(sorted(name for name, value in changes.items() if getattr(old, name) != value))
        if not changed:
            return old
        new = msgspec.structs.replace(old, **changes, source="api", updated_at=self.clock.now())
        payloads: list[Payload] = [MemoryChanged(memory=new, changed=changed)]
        payloads += await outdated_pages(self.log, tenant, user, {old.id: old}, {new.id: new})
        await self._append(*(self._event(old.scope, one, old.generation) for one in payloads))
        await self._removed(("short_term", self.short_term.drop(old.scope, [memory_id])))
        return new

    async def history(self, tenant: str, user: str, memory_id: str) -> list[Memory]:
        """All that was said of what a memory is about, oldest first. Raises NotFound, LogUnavailable."""
        memory = await self.memory(tenant, user, memory_id)
        chain = chain_of(memory)
        beside = await self.log.facts_about(tenant, user, [(memory.subject, memory.attribute)])
        same = [
            one
            for one in beside
            if chain_of(one) == chain and one.scope.owner == memory.scope.owner and is_of(one, memory.scope)
        ]
        return sorted(same, key=lambda one: (one.occurred_at, one.id))

    async def persona(self, scope: Scope, *, as_of: datetime | None = None) -> Persona:
        """What is known of the user, and what the agent has agreed on with them. Raises LogUnavailable.

        `as_of`: what held at that moment, by what is known now.
        """
        found = await latest_memories(
            self.log,
            scope.tenant,
            scope.user,
            MemoryFilter(types=("fact", "persona"), as_of=as_of),
            most=PERSONA_FACTS,
            wanted=lambda one: not scope.isolated or one.scope.owner == scope.owner,
        )
        return persona(found, scope, as_of or self.clock.now())

    async def pin_segment(self, scope: Scope, segment: str, *, pinned: bool) -> None:
        """Keep a live segment whatever its heat, or no longer; the worker sees to it within a moment.

        Raises NotFound, LogUnavailable.
        """
        found = await self.mid_term.segments_named(scope.tenant, scope.user, [segment])
        if not found or found[0].state != "live" or (scope.isolated and found[0].owner != scope.owner):
            raise NotFound
        generation = await self.log.generation(scope.tenant, scope.user)
        payload = SegmentPinned(segment=segment, pinned=pinned)
        await self._append(self._event(scope, payload, generation))

    async def exchange(self, tenant: str, user: str, exchange_id: str) -> Exchange:
        """One exchange. Raises NotFound, LogUnavailable."""
        found = await self.log.exchange(tenant, user, exchange_id)
        if found is None:
            raise NotFound
        return found

    async def exchanges(
        self,
        tenant: str,
        user: str,
        *,
        session: str | None = None,
        after: tuple[datetime, str] | None = None,
        limit: int = 50,
    ) -> list[Exchange]:
        """Exchanges, newest first, after the keyset position (started_at, id)."""
        return await self.log.exchanges(tenant, user, session=session, after=after, limit=limit)

    async def sessions(
        self, tenant: str, user: str, *, after: tuple[datetime, str] | None = None, limit: int = 50
    ) -> list[SessionInfo]:
        """Sessions, newest first, after the keyset position (last_at, id)."""
        return await self.log.sessions(tenant, user, after=after, limit=limit)


def _check_text(text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise BadInput("text", text, "text that is not empty")


def _past(moment: datetime, now: datetime) -> datetime:
    """The moment, or now where a clock that runs ahead a little gave it. Raises BadInput."""
    if moment > now + CLOCKS_APART:
        raise BadInput("occurred_at", moment.isoformat(), "a time that is not in the future")
    return min(moment, now)


def _check_validity(since: datetime | None, until: datetime | None) -> None:
    if since is not None and until is not None and until < since:
        raise BadInput("valid_to", until.isoformat(), "a time that is not before valid_from")


def _check_importance(importance: float) -> None:
    if not 0 <= importance <= 1:
        raise BadInput("importance", importance, "a number from 0 to 1")
