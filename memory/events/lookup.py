"""Which session, and which retry, a request belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from hearth.memory.events.codec import micros, moment
from hearth.memory.events.kinds import UNKNOWN, Event, SessionSwitched, StepCaptured
from hearth.memory.events.mid_term import lines_of
from hearth.memory.events.sql import GENERATION, SESSION_MODE, USER, Database, Row, Rows, number_of
from hearth.memory.ports import CallState
from hearth.memory.types import SEVEN_DAYS, Outcome, RetryHit, Scope, SessionHit, SessionMode, Tails

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
    mode: SessionMode
    """Of its session."""
    summary: str | None
    """Of its session, as its row has it."""


class _Question(NamedTuple):
    """Which steps have that key in that column, from that moment on."""

    column: str
    key: str
    since: datetime


def open_call(
    db: Database,
    scope: Scope,
    *,
    tails: Tails,
    retry_key: str,
    response_id: str,
    now: datetime,
    unwritten: Sequence[Event],
) -> CallState:
    """Generation, session and retry of a request; see `EventLog.open_call`."""
    questions = _questions(tails, retry_key, response_id, now)
    known = db.execute(GENERATION, (scope.tenant, scope.user))
    answers = {one.column: _ask(db, scope, one) for one in questions}
    named = _ask_session(db, scope) if scope.session else None
    generation = number_of(known)
    state, step = _decided(
        questions, answers, _steps_of(unwritten, scope, generation), tails, now, generation
    )
    if named is None and step is not None:
        told = lines_of(db, (scope.tenant, scope.user), step.summary, scope.owner, step.session)
        return msgspec.structs.replace(state, summary=told)
    if named is None:
        return state
    mode, summary = ((answer.fetchone() or ("",))[0] for answer in named)
    waiting = _mode_waiting(unwritten, scope)
    told = lines_of(db, (scope.tenant, scope.user), summary, scope.owner, scope.session)
    return msgspec.structs.replace(state, mode=waiting or mode or "on", summary=told)


def _ask_session(db: Database, scope: Scope) -> tuple[Rows, Rows]:
    """How the named session was switched, and what is summed up of it."""
    who = (scope.tenant, scope.user)
    switched = db.execute(SESSION_MODE, (*who, scope.session))
    summed = f"SELECT lines FROM summaries WHERE user_id = {USER} AND owner = ? AND session = ?"
    return switched, db.execute(summed, (*who, scope.owner, scope.session))


def _questions(tails: Tails, retry_key: str, response_id: str, now: datetime) -> list[_Question]:
    asked = [
        _Question("retry_key", retry_key, now - RETRY_WINDOW),
        _Question("response_id", response_id, now - SEVEN_DAYS),
        _Question("last_pair", tails.last_pair, now - SEVEN_DAYS),
        _Question("user_texts", tails.user_texts, now - SEVEN_DAYS),
    ]
    return [one for one in asked if one.key]


def _decided(
    questions: Sequence[_Question],
    answers: Mapping[str, Iterable[Row]],
    waiting: Sequence[_Step],
    tails: Tails,
    now: datetime,
    generation: int,
) -> tuple[CallState, _Step | None]:
    """What is known of the call, and the step that leads to its session."""
    found = {one.column: _found(one, answers.get(one.column, ()), waiting) for one in questions}
    retries, answered = found.get("retry_key"), found.get("response_id")
    step = answered[0] if answered else _by_tails(found, tails, now)
    of_session = step or (retries[0] if retries else None)
    state = CallState(
        generation=generation,
        hit=SessionHit(session=step.session, exchange=step.exchange, at=moment(step.at)) if step else None,
        retry=_retry(retries[0]) if retries else None,
        mode=of_session.mode if of_session else "on",
    )
    return state, of_session


def open_unwritten(
    scope: Scope,
    *,
    tails: Tails,
    retry_key: str,
    response_id: str,
    now: datetime,
    unwritten: Sequence[Event],
) -> CallState:
    """`open_call` among the steps that wait for a log which can't be asked; the generation is unknown."""
    questions = _questions(tails, retry_key, response_id, now)
    state, _ = _decided(questions, {}, _steps_of(unwritten, scope, None), tails, now, UNKNOWN)
    return state


def _retry(step: _Step) -> RetryHit:
    return RetryHit(session=step.session, exchange=step.exchange, outcome=step.outcome, at=moment(step.at))


def _steps_of(unwritten: Sequence[Event], scope: Scope, generation: int | None) -> list[_Step]:
    """Those of the scope alone, in its generation unless that is not known, newest first."""
    found = []
    for event in reversed(unwritten):
        payload = event.payload
        if not isinstance(payload, StepCaptured | SessionSwitched):
            continue
        isolated = payload.step.isolated if isinstance(payload, StepCaptured) else payload.isolated
        if (
            (event.tenant, event.user) == (scope.tenant, scope.user)
            and generation in (None, event.generation)
            and isolated == scope.isolated
            and (not scope.isolated or event.agent == scope.agent)
            and scope.session in ("", event.session)
        ):
            found.append(_step_of(event, payload))
    return found


def _mode_waiting(unwritten: Sequence[Event], scope: Scope) -> SessionMode | None:
    """What the session was switched to by what is on its way into the log."""
    named = (scope.tenant, scope.user, scope.session)
    modes = [
        event.payload.mode
        for event in unwritten
        if isinstance(event.payload, SessionSwitched) and (event.tenant, event.user, event.session) == named
    ]
    return modes[-1] if modes else None


def _step_of(event: Event, payload: StepCaptured | SessionSwitched) -> _Step:
    if isinstance(payload, SessionSwitched):
        return _Step(
            session=event.session,
            exchange=payload.exchange,
            at=micros(event.occurred_at),
            outcome="complete",
            retry_key="",
            response_id=payload.response_id,
            mode=payload.mode,
            summary=None,
            **msgspec.structs.asdict(payload.tails),
        )
    step = payload.step
    return _Step(
        session=event.session,
        exchange=step.exchange,
        at=micros(step.finished_at),
        outcome=step.outcome,
        retry_key=step.retry_key,
        response_id=step.response_id,
        mode="on",
        summary=None,
        **msgspec.structs.asdict(step.tails),
    )


def _ask(db: Database, scope: Scope, question: _Question) -> Rows:
    """Steps of the scope alone: its session where it has one, its agent where that is isolated."""
    within: dict[str, str | bool] = {"isolated": scope.isolated}
    within |= {"agent": scope.agent} if scope.isolated else {}
    within |= {"session": scope.session} if scope.session else {}
    conditions = "".join(f" AND k.{name} = ?" for name in within)
    column = question.column
    *fields, _, _ = _Step._fields
    sql = (
        f"SELECT {', '.join(f'k.{field}' for field in fields)}, coalesce(w.mode, 'on'), m.lines"
        " FROM step_keys k LEFT JOIN switched w ON w.user_id = k.user_id AND w.session = k.session"
        " LEFT JOIN summaries m ON m.user_id = k.user_id AND m.owner = ? AND m.session = k.session"
        f" WHERE k.user_id = {USER} AND k.{column} = ? AND k.{column} <> '' AND k.at >= ?{conditions}"
        f" ORDER BY k.at DESC, k.seq DESC LIMIT {_MOST}"
    )
    return db.execute(
        sql, (scope.owner, scope.tenant, scope.user, question.key, micros(question.since), *within.values())
    )


def _found(question: _Question, rows: Iterable[Row], unwritten: Sequence[_Step]) -> list[_Step]:
    """The answer, newest first, with what is on its way into the log."""
    since = micros(question.since)
    waiting = [s for s in unwritten if getattr(s, question.column) == question.key and s.at >= since]
    return sorted([*waiting, *map(_Step._make, rows)], key=lambda step: step.at, reverse=True)


def _by_tails(asked: Mapping[str, list[_Step]], tails: Tails, now: datetime) -> _Step | None:
    """The step whose transcript ends like this one: by its last pair, else by the user's texts alone."""
    found: Sequence[_Step] = asked.get("last_pair") or asked.get("user_texts") or []
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
