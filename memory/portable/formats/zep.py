"""Zep's sessions with their messages, and its facts: of a session, or edges of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hearth.memory.portable.formats.found import (
    EMPTY,
    OTHER_USER,
    Dialogue,
    Found,
    Remembered,
    Source,
    moment,
)
from hearth.memory.types import ImportedTurn

KEYS = frozenset({"role_type", "fact", "facts", "edges"})
"""Each of which only this format's records have."""


class _Message(msgspec.Struct):
    content: str = ""
    role_type: str | None = None
    role: str | None = None
    name: str | None = None
    uuid: str = ""
    created_at: str | None = None


class _Fact(msgspec.Struct):
    fact: str = ""
    content: str | None = None
    name: str | None = None
    uuid: str = ""
    created_at: str | None = None
    valid_at: str | None = None
    invalid_at: str | None = None
    expired_at: str | None = None


class Session(msgspec.Struct):
    """A session or thread, or what a graph holds of a user."""

    messages: list[_Message] = []
    facts: list[_Fact | str] = []
    edges: list[_Fact] = []
    session_id: str | None = None
    thread_id: str | None = None
    user_id: str | None = None
    created_at: str | None = None


class _Single(_Fact):
    """A record that is one message or one fact."""

    role_type: str | None = None
    role: str | None = None


def read(source: Source, raw: bytes) -> Iterator[Found]:
    """Messages and facts of a record. Raises msgspec.MsgspecError, ValueError."""
    session = msgspec.json.decode(raw, type=Session)
    if source.other(session.user_id):
        yield OTHER_USER
        return
    if not (session.messages or session.facts or session.edges):
        yield from _single(source, raw)
        return
    if session.messages:
        yield _dialogue(source, session)
    for fact in [*session.facts, *session.edges]:
        yield _remembered(source, fact if isinstance(fact, _Fact) else _Fact(fact=fact), session.created_at)


def _single(source: Source, raw: bytes) -> Iterator[Found]:
    one = msgspec.json.decode(raw, type=_Single)
    if one.fact:
        yield _remembered(source, one, None)
        return
    message = msgspec.json.decode(raw, type=_Message)
    yield _dialogue(source, Session(messages=[message]))


def _dialogue(source: Source, session: Session) -> Found:
    turns = list(_turns(source, session.messages, session))
    return Dialogue(turns=tuple(turns), left=len(session.messages) - len(turns)) if turns else EMPTY


def _turns(source: Source, messages: Sequence[_Message], session: Session) -> Iterator[ImportedTurn]:
    at = moment(session.created_at) or source.at
    for message in messages:
        at = moment(message.created_at) or at
        kind = message.role_type or message.role
        if not message.content.strip() or kind not in ("user", "assistant"):
            continue
        if at is None:
            raise ValueError(f"message {message.uuid} has no created_at: give a time for all with `at`")
        name = message.name or (message.role if message.role != kind else None)
        yield ImportedTurn(
            role="user" if kind == "user" else "assistant",
            content=message.content.strip(),
            at=at,
            session=session.session_id or session.thread_id or "zep",
            name=name or "",
            id=message.uuid,
        )


def _remembered(source: Source, fact: _Fact, otherwise: str | None) -> Found:
    text = (fact.fact or fact.content or "").strip()
    if not text:
        return EMPTY
    created = moment(fact.created_at) or moment(otherwise) or source.at
    if created is None:
        raise ValueError(f"fact {fact.uuid or text[:40]!r} has no created_at: give a time for all with `at`")
    ends = [end for end in (moment(fact.invalid_at), moment(fact.expired_at)) if end is not None]
    begins = moment(fact.valid_at)
    return Remembered(
        id=fact.uuid or text,
        text=text,
        created_at=created,
        updated_at=created,
        valid_from=begins,
        valid_to=max(min(ends), begins or min(ends)) if ends else None,
        metadata={"relation": fact.name} if fact.name else {},
    )
