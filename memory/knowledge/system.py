"""System memory: what holds for all users of a tenant, in an operator's words and nobody else's.

The machine proposes what many users share as an attribute, a value and a count. What becomes memory is a text
that an operator wrote or approved: no user's sentence ever does.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Final
from uuid import NAMESPACE_URL, uuid4, uuid5

import msgspec

from hearth.memory.errors import BadInput, NotFound
from hearth.memory.events.kinds import SystemRefused, happened
from hearth.memory.extract.attributes import SHAREABLE
from hearth.memory.extract.personal import MaskFor
from hearth.memory.knowledge.library import Library
from hearth.memory.knowledge.records import everybody, system_id
from hearth.memory.ports import Clock, EventLog
from hearth.memory.tiers.life import SystemMemoryPolicy
from hearth.memory.types import Chunk, Common, Document

MAX_TEXT: Final = 500
"""Characters of one text."""
MOST: Final = 200
"""Proposals, and texts in force, that are read at once."""
_WORDS: Final = 4
"""Of a value; a longer one may be a sentence."""
_SUGGESTIONS: Final = {
    "preferred language": "Users here often prefer to be answered in {value}.",
    "speaks": "Users here often speak {value}.",
    "learns": "Users here are often learning {value}.",
    "timezone": "Users here are often in the time zone {value}.",
    "skill": "Users here are often skilled in {value}.",
    "uses": "Users here often use {value}.",
    "plays": "Users here often play {value}.",
    "hobby": "A frequent hobby of users here: {value}.",
}
"""Texts of nobody's, by attribute."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What enough users share, for an operator to approve with a text, or to refuse."""

    topic: str
    """Attribute and value."""
    attribute: str
    value: str
    users: int
    suggestion: str
    """A neutral text that an operator may take over."""


class SystemText(msgspec.Struct, frozen=True, kw_only=True):
    """A text of system memory that is in force."""

    id: str
    topic: str
    """That it was approved for; empty for one that was added."""
    text: str
    agent: str
    """Whose users it is for; empty: all agents'."""
    by: str
    """Name of the key that approved or added it."""
    at: datetime


class SystemMemory:
    """One instance serves all tenants of a process. Texts live as documents do, under the tenant's owner."""

    def __init__(
        self, *, log: EventLog, library: Library, clock: Clock, appended: Callable[[], None], mask: MaskFor
    ) -> None:
        """`mask`: what is done to a text, by tenant and the key that puts it there."""
        self._mask = mask
        self._log = log
        self._library = library
        self._clock = clock
        self._appended = appended

    async def proposals(self, tenant: str, policy: SystemMemoryPolicy) -> list[Proposal]:
        """What enough users share now, most first, without what was refused or stands in a text already.

        Raises LogUnavailable.
        """
        decided = {*await self._log.refusals(tenant), *(one.topic for one in await self.texts(tenant))}
        return [one for one in await self._shared(tenant, policy) if one.topic not in decided]

    async def texts(self, tenant: str) -> list[SystemText]:
        """All texts in force. Raises LogUnavailable."""
        found: list[Document] = []
        while some := await self._log.documents(
            tenant, "system", after=found[-1].name if found else "", limit=MOST
        ):
            found += some
        return [one for one in await asyncio.gather(*(self._text(tenant, one) for one in found)) if one]

    async def approve(
        self, tenant: str, topic: str, text: str, policy: SystemMemoryPolicy, *, by: str, agent: str = ""
    ) -> SystemText:
        """Make `text` system memory because of what many share, in place of an earlier text for the topic.

        A topic that was refused can be approved too. Raises NotFound for one that not enough users share,
        BadInput for a text that is empty or too long, LogUnavailable.
        """
        await self._find(tenant, topic, policy)
        return await self._put(tenant, topic, topic, text, by=by, agent=agent)

    async def add(self, tenant: str, text: str, *, by: str, agent: str = "") -> SystemText:
        """Make an operator's own text system memory. Raises BadInput, LogUnavailable."""
        return await self._put(tenant, f"={uuid4().hex}", "", text, by=by, agent=agent)

    async def refuse(self, tenant: str, topic: str, policy: SystemMemoryPolicy, *, by: str) -> Proposal:
        """Never propose the topic again. Refusing twice changes nothing.

        Raises NotFound for a topic that not enough users share, LogUnavailable.
        """
        refused = await self._find(tenant, topic, policy)
        scope = everybody(tenant)
        generation = await self._log.generation(tenant, scope.user)
        id = uuid5(NAMESPACE_URL, f"hearth:refused:{scope.owner}:{generation}:{topic}").hex
        refusal = SystemRefused(topic=topic, by=by)
        event = happened(scope, refusal, generation, at=self._clock.now(), id=id)
        await self._log.append([event])
        self._appended()
        return refused

    async def remove(self, tenant: str, id: str, *, by: str) -> tuple[str, ...]:
        """Take a text out of system memory; its topic is proposed again where enough users share it.

        Names the stores that are down, as `Library.remove`. Raises NotFound, LogUnavailable.
        """
        known = await self._log.document(tenant, id)
        if known is None or known.document is None or known.document.kind != "system":
            raise NotFound("System memory has no text of that id. Check the id.")
        return await self._library.remove(tenant, id, by=by)

    # -- inside ----------------------------------------------------------------------------------------

    async def _shared(self, tenant: str, policy: SystemMemoryPolicy) -> list[Proposal]:
        names = [name for name in map(str.strip, policy.attributes.split(",")) if name in SHAREABLE]
        found = await self._log.common(tenant, attributes=names, least=policy.least_users, limit=MOST)
        return [_proposal(one) for one in found if len(one.value.split()) <= _WORDS]

    async def _find(self, tenant: str, topic: str, policy: SystemMemoryPolicy) -> Proposal:
        found = next((one for one in await self._shared(tenant, policy) if one.topic == topic), None)
        if found is None:
            raise NotFound("Not enough users share this topic now. See what is proposed.")
        return found

    async def _put(self, tenant: str, name: str, topic: str, text: str, *, by: str, agent: str) -> SystemText:
        text = self._mask(tenant, by)(" ".join(text.split()))
        if not 0 < len(text) <= MAX_TEXT:
            raise BadInput("text", text, f"1 to {MAX_TEXT} characters")
        document = Document(
            kind="system",
            id=system_id(tenant, name),
            version=0,
            name=name,
            media_type="text/plain",
            digest=hashlib.sha256(f"{agent}\0{text}".encode()).hexdigest(),
            characters=len(text),
            chunks=1,
            agent=agent,
            by=by,
            loaded_at=self._clock.now(),
        )
        put = await self._library.put(tenant, document, (Chunk(text=text),))
        return _shown(put.document, text)

    async def _text(self, tenant: str, document: Document) -> SystemText | None:
        chunks = await self._log.chunks(tenant, document.id, version=document.version, limit=1)
        return _shown(document, chunks[0].text) if chunks else None


def _proposal(common: Common) -> Proposal:
    return Proposal(
        topic=f"{common.attribute}={common.value}",
        attribute=common.attribute,
        value=common.value,
        users=common.users,
        suggestion=_SUGGESTIONS[common.attribute].format(value=common.value),
    )


def _shown(document: Document, text: str) -> SystemText:
    return SystemText(
        id=document.id,
        topic="" if document.name.startswith("=") else document.name,
        text=text,
        agent=document.agent,
        by=document.by,
        at=document.loaded_at,
    )
