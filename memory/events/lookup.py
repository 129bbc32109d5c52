"""Which session, and which retry, a request belongs to."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from hearth.memory.events.codec import micros, moment
from hearth.memory.events.kinds import Event, StepCaptured
from hearth.memory.events.rows import user_row
from hearth.memory.ports import CallState
from hearth.memory.types import SEVEN_DAYS, Outcome, RetryHit, Scope, SessionHit, Step, Tails

RETRY_WINDOW = timedelta(minutes=10)
AMBIGUITY_WINDOW = timedelta(minutes=30)

_MOST = 64
"""Newest steps looked at for one key; a greeting that came oftener than this is ambiguous anyhow."""


class _Step(NamedTuple):
    """A captured step, as far as it can be found again."""

    session: str
    exchange: str
    at: int
    outcome: Outcome
    last_pair: str
    last_two_pairs: str
    user_texts: str
    chain: str
    retry_key: str
    response_id: str


_Find = Callable[[str, str, datetime], list[_Step]]
"""(column, key, not before) → steps, newest first; none for an empty key."""


def open_call(
    db: sqlite3.Connection,
    scope: Scope,
    *,
    tails: Tails,
    retry_key: str,
    response_id: str,
    now: datetime,
    unwritten: Sequence[Event],
) -> CallState:
    """Generation, session and retry of a request; see `EventLog.open_call`."""
    user, generation = user_row(db, scope.tenant, scope.user) or (None, 1)
    find = _finder(db, user, scope, _steps_of(unwritten, scope, generation))
    retries = find("retry_key", retry_key, now - RETRY_WINDOW)
    answered = find("response_id", response_id, now - SEVEN_DAYS)
    step = answered[0] if answered else _by_tails(find, tails, now)
    return CallState(
        generation=generation,
        hit=SessionHit(session=step.session, exchange=step.exchange, at=moment(step.at)) if step else None,
        retry=_retry(retries[0]) if retries else None,
    )


def _retry(step: _Step) -> RetryHit:
    return RetryHit(session=step.session, exchange=step.exchange, outcome=step.outcome, at=moment(step.at))


def _steps_of(unwritten: Sequence[Event], scope: Scope, generation: int) -> list[_Step]:
    """Those of the scope alone, in its generation, newest first."""
    return [
        _step_of(event, event.payload.step)
        for event in reversed(unwritten)
        if isinstance(event.payload, StepCaptured)
        and (event.tenant, event.user, event.generation) == (scope.tenant, scope.user, generation)
        and event.payload.step.isolated == scope.isolated
        and (not scope.isolated or event.agent == scope.agent)
        and scope.session in ("", event.session)
    ]


def _step_of(event: Event, step: Step) -> _Step:
    return _Step(
        session=event.session,
        exchange=step.exchange,
        at=micros(step.finished_at),
        outcome=step.outcome,
        retry_key=step.retry_key,
        response_id=step.response_id,
        **msgspec.structs.asdict(step.tails),
    )


def _finder(db: sqlite3.Connection, user: int | None, scope: Scope, unwritten: Sequence[_Step]) -> _Find:
    """Steps of the scope alone: its session where it has one, its agent where that is isolated."""
    within: dict[str, str | bool] = {"isolated": scope.isolated}
    within |= {"agent": scope.agent} if scope.isolated else {}
    within |= {"session": scope.session} if scope.session else {}
    conditions = "".join(f" AND {name} = ?" for name in within)

    def find(column: str, key: str, since: datetime) -> list[_Step]:
        if not key:
            return []
        sql = (
            f"SELECT {', '.join(_Step._fields)} FROM step_keys"
            f" WHERE user = ? AND {column} = ? AND {column} <> '' AND at >= ?{conditions}"
            f" ORDER BY at DESC, seq DESC LIMIT {_MOST}"
        )
        rows = db.execute(sql, (user, key, micros(since), *within.values()))
        found = [step for step in unwritten if getattr(step, column) == key and step.at >= micros(since)]
        return sorted([*found, *map(_Step._make, rows)], key=lambda step: step.at, reverse=True)

    return find


def _by_tails(find: _Find, tails: Tails, now: datetime) -> _Step | None:
    """The step whose transcript ends like this one: by its last pair, else by the user's texts alone."""
    since = now - SEVEN_DAYS
    found: Sequence[_Step] = find("last_pair", tails.last_pair, since) or find(
        "user_texts", tails.user_texts, since
    )
    for name in ("last_two_pairs", "user_texts", "chain"):
        found = _narrow(found, name, getattr(tails, name))
    if _sessions(found) > 1:
        newest = micros(now - AMBIGUITY_WINDOW)
        found = [step for step in found[:1] if step.at >= newest]
    return found[0] if found else None


def _narrow(found: Sequence[_Step], name: str, key: str) -> Sequence[_Step]:
    """Those steps that agree in this tail too, if any does; it also tells branches of one session apart."""
    if len(found) < 2 or not key:
        return found
    return [step for step in found if getattr(step, name) == key] or found


def _sessions(found: Sequence[_Step]) -> int:
    return len({step.session for step in found})
