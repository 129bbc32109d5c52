"""What the asked time makes of each candidate: how near it was said, and whether it comes first or last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from hearth.memory.recall.asked_time import AskedTime, Interval, Precision, asked_time
from hearth.memory.recall.pool import Numbers
from hearth.memory.recall.relevance import FITTED_FLOOR
from hearth.memory.recall.whatever_words import are_whatever
from hearth.memory.types import Memory, Query, Record

_HALVES: Final[dict[Precision, float]] = {
    "day": 2.0,
    "week": 4.0,
    "month": 10.0,
    "season": 30.0,
    "year": 60.0,
    "recent": 14.0,
}
"""Days after an interval in which the share halves: what happened then is often told some days later."""
_BEFORE: Final = 0.5
"""Of those days, how many before an interval: a thing is seldom told before it happens."""
_RELEVANT: Final = 0.5
"""Share of the best own score from which a candidate speaks of what is asked."""
_PLACES: Final = 2.0
"""Places from the first, or the latest, in which the preference for it halves."""
_INSIDE: Final = 0.5
"""Nearness from which a record counts as said in the asked time."""
_SURELY: Final = 0.8
"""How often what is meant was said in the time that is asked."""
_TIMES: Final = 10.0
"""How many times likelier than by its text alone a record becomes at most."""
_DAY: Final = 86_400.0


def time_signals(records: Sequence[Record], own: Numbers, query: Query) -> dict[str, Numbers]:
    """Two signals, 0..1 for each record: `date`, nearness to the asked time, and `order`, how much it is the
    first or the latest of those that speak of what is asked. `own` is each record's score by its text alone.
    """
    asked = asked_time(query.text, query.at, query.timezone)
    if asked is None or not records:
        return {"date": np.zeros(len(records)), "order": np.zeros(len(records))}
    moments = np.array([record.occurred_at.timestamp() for record in records])
    held = np.array(
        [isinstance(record, Memory) and held_then(record, asked) for record in records], np.float64
    )
    return {"date": np.maximum(shares(asked, moments), held), "order": _order(asked, own, moments)}


def held_then(memory: Memory, asked: AskedTime | None) -> bool:
    """True for what has ended since, and held in a time that is asked for."""
    if asked is None or memory.valid_to is None:
        return False
    start = memory.valid_from or memory.occurred_at
    return any(
        one.weight == 1 and start < one.until and one.since < memory.valid_to for one in asked.intervals
    )


def timely(chances: Numbers, dates: Numbers, query: Query) -> Numbers:
    """The chance of each record to help, given `date` of `time_signals`: what was said in the asked time is
    likelier to be meant, the more so the less was said in it. Where nothing was said in it, all are as much
    less likely. Where the question names nothing but the time, all that was said in it is meant. As they are
    where no time is asked.
    """
    inside = dates > _INSIDE
    if inside.any() and _asks_whatever(query):
        then = (dates == dates.max()) & (chances > 0)
        return np.where(then, np.maximum(chances, FITTED_FLOOR), chances)
    if inside.any():
        odds = np.where(inside, max(min(_SURELY / float(inside.mean()), _TIMES), 1.0), 1.0)
    elif _asks_about_then(query):
        odds = np.full(len(dates), 1.0 / _TIMES)
    else:
        return chances
    return np.minimum(chances * odds / (chances * odds + 1.0 - chances), 1.0)


def _asks_about_then(query: Query) -> bool:
    """True if the question names times that are all over; `lately` leaves open since when."""
    asked = asked_time(query.text, query.at, query.timezone)
    if asked is None or not asked.intervals:
        return False
    return all(one.precision != "recent" and one.until <= query.at for one in asked.intervals)


def _asks_whatever(query: Query) -> bool:
    """True if the question names a time and nothing that was said or done in it."""
    asked = asked_time(query.text, query.at, query.timezone)
    return asked is not None and bool(asked.intervals) and are_whatever(asked.rest)


def told_until(interval: Interval) -> datetime:
    """Until when what happened in the interval is mostly told."""
    return interval.until + timedelta(days=_HALVES[interval.precision])


def shares(asked: AskedTime, moments: Numbers) -> Numbers:
    """1 inside an asked interval, falling off outside; 0 for all where none is asked. Moments in seconds."""
    found = np.zeros(len(moments))
    for interval in asked.intervals:
        found = np.maximum(found, _share(interval, moments))
    return found


def _share(interval: Interval, moments: Numbers) -> Numbers:
    before = np.maximum(_seconds(interval.since) - moments, 0.0) / _DAY
    after = np.maximum(moments - _seconds(interval.until), 0.0) / _DAY
    half = _HALVES[interval.precision]
    return interval.weight * np.exp2(-before / (half * _BEFORE) - after / half)


def _order(asked: AskedTime, own: Numbers, moments: Numbers) -> Numbers:
    """1 for the first of the relevant, or the latest, or for both where it is asked how long; halved every
    `_PLACES` places from there, 0 for all others.
    """
    order = np.zeros(len(own))
    relevant = np.flatnonzero(own >= _RELEVANT * own.max(initial=0.0))
    if asked.order is None:
        return order
    place = np.empty(len(relevant))
    place[np.argsort(moments[relevant], kind="stable")] = np.arange(len(relevant))
    from_last = len(relevant) - 1 - place
    match asked.order:
        case "first":
            far = place
        case "latest":
            far = from_last
        case "lasting":
            far = np.minimum(place, from_last)
    order[relevant] = np.exp2(-far / _PLACES)
    return order


def _seconds(moment: datetime) -> float:
    return moment.timestamp()
