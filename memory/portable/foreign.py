"""What other programs' files say, as events of the user: dialogues as captured steps, memories as added."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec.structs import replace

from hearth.memory.errors import BadInput
from hearth.memory.events.kinds import Event, MemoryAdded
from hearth.memory.imports import imported_steps
from hearth.memory.portable.formats.found import Dialogue, Found, Left, Remembered, Source
from hearth.memory.portable.formats.pick import found_in
from hearth.memory.portable.parcel import Mask
from hearth.memory.portable.taking import BATCH_EVENTS, Taken, Taking
from hearth.memory.types import ImportedTurn, Memory, Scope

_NAMESPACE: Final = uuid5(NAMESPACE_URL, "hearth:foreign")
_LONGEST: Final = 128
"""Characters of a session's or speaker's name."""
_AHEAD: Final = timedelta(minutes=1)
_YEARS: Final = (1900, 9990)


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """What a file of dialogues and memories brought."""

    taken: Taken = Taken()
    turns: int = 0
    exchanges: int = 0
    """That those turns make."""
    memories: int = 0


class Bringing:
    """Takes one file in, for the user that `taking` is for."""

    def __init__(
        self, taking: Taking, source: Source, format: str, *, scope: Scope, generation: int, mask: Mask
    ) -> None:
        self._taking, self._source, self._format = taking, source, format
        self._scope, self._generation, self._mask = scope, generation, mask

    async def all(self, now: datetime) -> Brought:
        """Read the whole file, then take it in. Raises BadInput that names the record."""
        await asyncio.to_thread(self._survey, now)
        found = found_in(self._source, self._format)
        brought = Brought()
        while True:
            part, events = await asyncio.to_thread(self._next, found)
            taken = await self._taking.events(events)
            brought = _sum(brought, part, taken)
            if not part.taken.read:
                return brought

    def _survey(self, now: datetime) -> None:
        anything = False
        for place, one in found_in(self._source, self._format):
            anything = True
            for moment in _moments(one):
                if moment > now + _AHEAD or not _YEARS[0] <= moment.year <= _YEARS[1]:
                    raise BadInput(place, moment.isoformat(), "a time that is not in the future")
        if not anything:
            raise BadInput("file", "nothing", "at least one record")

    def _next(self, found: Iterator[tuple[str, Found]]) -> tuple[Brought, list[Event]]:
        """The events of the next records, as many as one append takes, and what was read for them."""
        events: list[Event] = []
        read = turns = exchanges = memories = 0
        left: Counter[str] = Counter()
        for _, one in found:
            match one:
                case Dialogue():
                    made = self._steps(one.turns)
                    events += made
                    turns, exchanges = turns + len(one.turns), exchanges + len(made)
                    read += len(one.turns) + one.left
                    left.update({"not said": one.left} if one.left else {})
                case Remembered():
                    events.append(self._memory(one))
                    read, memories = read + 1, memories + 1
                case Left(reason=reason):
                    read += 1
                    left[reason] += 1
            if len(events) >= BATCH_EVENTS:
                break
        taken = Taken(read=read, skipped=dict(left))
        return Brought(taken=taken, turns=turns, exchanges=exchanges, memories=memories), events

    def _steps(self, turns: Sequence[ImportedTurn]) -> list[Event]:
        usable = [replace(turn, session=_short(turn.session), name=turn.name[:_LONGEST]) for turn in turns]
        return imported_steps(self._scope, usable, generation=self._generation, mask=self._mask)

    def _memory(self, one: Remembered) -> Event:
        """The same record gives the same memory, and the same event unless the source has changed it."""
        identity = f"{self._scope.owner} {self._generation} {self._format} {one.id}"
        memory = Memory(
            id=uuid5(_NAMESPACE, identity).hex,
            scope=self._scope,
            generation=self._generation,
            text=self._mask(one.text),
            tags=one.tags,
            metadata={"source": self._format, **one.metadata},
            occurred_at=one.created_at,
            created_at=one.created_at,
            updated_at=one.updated_at,
            valid_from=one.valid_from,
            valid_to=one.valid_to,
            expires_at=one.expires_at,
        )
        told = sha256(msgspec.json.encode(memory)).hexdigest()
        return Event(
            id=uuid5(_NAMESPACE, f"{identity} {told}").hex,
            tenant=self._scope.tenant,
            user=self._scope.user,
            agent=self._scope.agent,
            generation=self._generation,
            occurred_at=one.created_at,
            payload=MemoryAdded(memory=memory),
        )


def _moments(one: Found) -> list[datetime]:
    match one:
        case Dialogue(turns=turns):
            return [turn.at for turn in turns]
        case Remembered():
            return [one.created_at, one.updated_at]
        case _:
            return []


def _sum(before: Brought, part: Brought, taken: Taken) -> Brought:
    """`taken` counts events; what was read is counted in the file's own records."""
    return Brought(
        taken=before.taken.plus(part.taken).plus(replace(taken, read=0)),
        turns=before.turns + part.turns,
        exchanges=before.exchanges + part.exchanges,
        memories=before.memories + part.memories,
    )


def _short(session: str) -> str:
    """A session's id that can be used as one: another program's may be anything."""
    if len(session) <= _LONGEST and session.isprintable():
        return session
    return sha256(session.encode(errors="replace")).hexdigest()[:32]
