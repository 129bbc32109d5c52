"""A clock that a test sets, and events with as little said as the test needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from hearth.memory.events.kinds import (
    Event,
    MemoryAdded,
    MemoryForgotten,
    PageClosed,
    PageForgotten,
    Payload,
    StepCaptured,
    UserErased,
)
from hearth.memory.types import Memory, Page, Scope, Step

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class ManualClock:
    """Stands still until it is told otherwise."""

    def __init__(self, now: datetime = START) -> None:
        self.time = now

    def now(self) -> datetime:
        """The moment that was set."""
        return self.time

    def advance(self, **delta: float) -> datetime:
        """Move on by a timedelta's arguments and return the new moment."""
        self.time += timedelta(**delta)
        return self.time


def event(payload: Payload, *, at: datetime = START, **fields: Any) -> Event:
    """An event of tenant `acme` and user `alice` in generation 1, unless `fields` say otherwise."""
    given = {"id": uuid4().hex, "tenant": "acme", "user": "alice", "generation": 1} | fields
    return Event(occurred_at=at, payload=payload, **given)


def step(
    exchange: str = "",
    *,
    at: datetime = START,
    session: str = "s1",
    parent: str | None = None,
    user: str = "alice",
    generation: int = 1,
    agent: str = "default",
    id: str = "",
    **fields: Any,
) -> Event:
    """A captured step, complete and closing, whose reply took a second."""
    given = {"user_text": "Hi", "reply_text": "Hello", "outcome": "complete", "closes": True} | fields
    given = {"started_at": at, "finished_at": at + timedelta(seconds=1)} | given
    return event(
        StepCaptured(step=Step(exchange=exchange or uuid4().hex, **given)),
        at=at,
        session=session,
        parent=parent,
        user=user,
        generation=generation,
        agent=agent,
        id=id or uuid4().hex,
    )


def page(
    id: str,
    *,
    at: datetime = START,
    session: str = "s1",
    user: str = "alice",
    generation: int = 1,
    **fields: Any,
) -> Event:
    """The decision that an exchange is a page."""
    scope = Scope(tenant="acme", user=user, session=session)
    given = {"user_text": "Hi", "reply_text": "Hello"} | fields
    payload = PageClosed(page=Page(id=id, scope=scope, generation=generation, occurred_at=at, **given))
    return event(payload, at=at, session=session, user=user, generation=generation)


def memory(
    text: str = "likes tea",
    *,
    id: str = "",
    at: datetime = START,
    user: str = "alice",
    generation: int = 1,
    agent: str = "default",
    session: str = "",
    **fields: Any,
) -> Event:
    """A memory added by hand."""
    given = {"occurred_at": at, "created_at": at, "updated_at": at} | fields
    scope = Scope(tenant="acme", user=user, agent=agent, session=session)
    added = Memory(id=id or uuid4().hex, scope=scope, generation=generation, text=text, **given)
    return event(MemoryAdded(memory=added), at=at, user=user, generation=generation)


def forget_memory(id: str, *, at: datetime = START, user: str = "alice") -> Event:
    """The removal of one memory."""
    return event(MemoryForgotten(memory=id), at=at, user=user)


def forget_page(id: str, *, at: datetime = START, user: str = "alice") -> Event:
    """The removal of one exchange."""
    return event(PageForgotten(page=id), at=at, user=user)


def erase(generation: int, *, at: datetime = START, user: str = "alice") -> Event:
    """The removal of all of a user."""
    return event(UserErased(generation=generation), at=at, user=user, generation=generation)
