"""What a question was taken to ask: the text and words that were looked up, and the time that it names."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from hearth.memory.ports import EventLog
from hearth.memory.recall.asked_time import Interval, asked_time
from hearth.memory.recall.dates import local_day
from hearth.memory.recall.lexical import words
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.query import lexical_text, search_text
from hearth.memory.recall.traces import Trace
from hearth.memory.tiers.pages import parent_of
from hearth.memory.types import Exchange, Query

_MOMENT = timedelta(microseconds=1)
_NEAREST = 8
"""Exchanges looked at for the one that a recall was made for: those of its session that began just before."""


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """A question as recall read it."""

    text: str
    """What was embedded: the question, after the turn before where that was needed."""
    words: tuple[str, ...]
    """What was looked up by words, as the index has them."""
    time: tuple[str, ...] = ()
    """What the question says of time, in the user's own days: `2024-05-01 to 2024-05-31`, `first`."""


def analysis(query: Query, policy: RecallPolicy) -> Analysis:
    """How `query` is read under that policy."""
    return Analysis(
        text=search_text(query, policy),
        words=words(lexical_text(query, policy)),
        time=_time(query),
    )


def _time(query: Query) -> tuple[str, ...]:
    asked = asked_time(query.text, query.at, query.timezone)
    if asked is None:
        return ()
    days = [_days(interval, query.timezone) for interval in asked.intervals]
    return (*days, asked.order) if asked.order else tuple(days)


def _days(interval: Interval, timezone: str) -> str:
    first = local_day(interval.since, timezone).isoformat()
    last = local_day(interval.until - _MOMENT, timezone).isoformat()
    return first if first == last else f"{first} to {last}"


async def question_of(log: EventLog, trace: Trace, exchange: Exchange) -> Query:
    """The question of an earlier recall, from the exchange that was captured with it (`exchange_of`).

    A trace has no text of its own, so that what is forgotten is gone from it too. Raises LogUnavailable.
    """
    return Query(
        text=exchange.user_text,
        before=await before_of(log, exchange) if trace.conditions.before else "",
        at=exchange.started_at,
        timezone=trace.conditions.timezone,
    )


async def exchange_of(log: EventLog, trace: Trace) -> Exchange | None:
    """The exchange that was captured with an earlier recall; None where none was. Raises LogUnavailable."""
    scope, latest = trace.scope, (trace.at + _MOMENT, "")
    found = await log.exchanges(scope.tenant, scope.user, session=scope.session, after=latest, limit=_NEAREST)
    return next((exchange for exchange in found if exchange.trace == trace.id), None)


async def before_of(log: EventLog, exchange: Exchange) -> str:
    """The turn before, as a transcript has it: the reply of the exchange before, or else its question."""
    tenant, user = exchange.scope.tenant, exchange.scope.user
    parent = parent_of(await log.steps(tenant, user, exchange.id))
    earlier = await log.exchange(tenant, user, parent) if parent else None
    return (earlier.reply_text or earlier.user_text) if earlier else ""
