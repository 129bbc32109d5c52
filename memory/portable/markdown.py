"""What is known of a user as Markdown, for people: memories by kind, then what was said, by conversation."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Final

from hearth.memory.ports import EventLog, MemoryFilter
from hearth.memory.types import Exchange, Memory, Scope

_ROWS: Final = 100
_HEADINGS: Final = {"fact": "Facts", "persona": "Persona", "episode": "Episodes", "knowledge": "Knowledge"}
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|])")
_AT_START: Final = re.compile(r"^(\s*)([#+=~-]|\d+[.)])", re.MULTILINE)


async def readable(log: EventLog, scope: Scope, *, now: datetime) -> AsyncIterator[bytes]:
    """The text, a part at a time. It can't be imported. Raises LogUnavailable."""
    yield f"# Memory of {_plain(scope.user)}\n\nAs of {_moment(now)}.\n".encode()
    for type, heading in _HEADINGS.items():
        first = True
        async for memory in _memories(log, scope, type):
            yield (f"\n## {heading}\n\n" if first else "").encode() + _memory(memory, now).encode()
            first = False
    yield b"\n## Conversations\n"
    async for part in _conversations(log, scope):
        yield part.encode()


async def _memories(log: EventLog, scope: Scope, type: str) -> AsyncIterator[Memory]:
    own = scope.own_agent or None
    where = MemoryFilter(types=(type,), include_superseded=True, own_agent=own)
    after: tuple[datetime, str] | None = None
    while found := await log.memories(scope.tenant, scope.user, where=where, after=after, limit=_ROWS):
        for memory in found:
            yield memory
        after = (found[-1].created_at, found[-1].id)


def _memory(memory: Memory, now: datetime) -> str:
    ended = memory.valid_to is not None and memory.valid_to <= now
    text = _line(memory.text)
    return f"- {f'~~{text}~~' if ended else text} ({'; '.join(_about(memory))})\n"


def _about(memory: Memory) -> Iterator[str]:
    yield _moment(memory.occurred_at)
    if memory.valid_from is not None:
        yield f"since {_moment(memory.valid_from)}"
    if memory.valid_to is not None:
        yield f"until {_moment(memory.valid_to)}"
    if memory.expires_at is not None:
        yield f"expires {_moment(memory.expires_at)}"
    if memory.pinned:
        yield "pinned"
    if memory.tags:
        yield "tags: " + ", ".join(_line(tag) for tag in memory.tags)
    if memory.successor:
        yield f"replaced by `{memory.successor}`"
    yield f"`{memory.id}`"


async def _conversations(log: EventLog, scope: Scope) -> AsyncIterator[str]:
    """Conversations from the latest on, each from its start."""
    after: tuple[datetime, str] | None = None
    while found := await log.sessions(scope.tenant, scope.user, after=after, limit=_ROWS):
        for session in found:
            if scope.isolated and session.scope.owner != scope.owner:
                continue
            yield f"\n### {_line(session.id)}\n"
            async for exchange in _exchanges(log, session.scope, session.id):
                yield _exchange(exchange)
        after = (found[-1].last_at, found[-1].id)


async def _exchanges(log: EventLog, scope: Scope, session: str) -> AsyncIterator[Exchange]:
    """Those of the scope's owner as they happened. Of each only its place is held, then it is read."""
    places: list[str] = []
    after: tuple[datetime, str] | None = None
    user = (scope.tenant, scope.user)
    while found := await log.exchanges(*user, session=session, after=after, limit=_ROWS):
        places += [one.id for one in found if one.scope.owner == scope.owner]
        after = (found[-1].started_at, found[-1].id)
    for id in reversed(places):
        exchange = await log.exchange(*user, id)
        if exchange is not None and exchange.state != "inactive":
            yield exchange


def _exchange(exchange: Exchange) -> str:
    said, reply = _plain(exchange.user_text), _plain(exchange.reply_text)
    parts = [f"\n**User**, {_moment(exchange.started_at)}:\n\n{said}\n"]
    if reply:
        parts.append(f"\n**Assistant**:\n\n{reply}\n")
    return "".join(parts)


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _line(text: str) -> str:
    return " ".join(_plain(text).split())


def _plain(text: str) -> str:
    """The text with nothing in it that Markdown would read as markup."""
    return _AT_START.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", text))
