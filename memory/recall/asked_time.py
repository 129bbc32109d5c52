"""The time that a question asks about: intervals by the user's own clock, and whether it asks for an order.

A text's words become roles (a month, a number, `ago`), one letter each, and rules over such letters make
spans of days, so that one set of rules serves every language. A text without such words costs a look at each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from typing import Any, Final, Literal, NamedTuple

from hearth.memory.recall.dates import local_day, zone
from hearth.memory.recall.time_tokens import Manner, Token, Tokenizer, date_of
from hearth.memory.recall.time_words import UNSPACED, Language, Order, Unit, fold, time_words

Precision = Literal["day", "week", "month", "season", "year", "recent"]

_SPANS: Final = 4
"""Intervals of one question at most, in order of their place."""
_READ: Final = 3
"""Languages in which a text is read at most."""
_CHARACTERS: Final = 400
"""Of a text at most: its head. What is longer is no question about a time."""
_EARLIEST: Final = timedelta(days=3650)
"""How far back what has an end and no beginning goes."""
_UNSURE: Final = 0.5
"""Weight of what may not be meant."""
_MANNER: Final = Manner(years=range(1950, 2100), largest=999, stops=r"!?;:\n…", loose=True)
_DAYS: Final[dict[Unit, float]] = {
    "hour": 1 / 24,
    "day": 1,
    "week": 7,
    "fortnight": 14,
    "month": 30.44,
    "year": 365.25,
}
_PRECISION: Final[dict[Unit, Precision]] = {
    "hour": "day",
    "day": "day",
    "week": "week",
    "fortnight": "week",
    "month": "month",
    "year": "year",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """`since` belongs to it, `until` does not; both in UTC."""

    since: datetime
    until: datetime
    precision: Precision
    weight: float = 1.0
    """Less for what may not be meant: an earlier year's May, or today, for which one can also plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTime:
    """What a question says of time."""

    intervals: tuple[Interval, ...] = ()
    order: Order | None = None
    """It asks for the first of several, the latest, or how long something has lasted."""
    rest: tuple[str, ...] = ()
    """Its other words, folded, in order: what it asks of that time. Signs, where a script parts no words."""


class _Span(NamedTuple):
    first: date
    end: date
    precision: Precision
    year: bool = True
    """False where no year was named, so that another year's may be meant."""
    weight: float = 1.0


def asked_time(text: str, at: datetime, timezone: str) -> AskedTime | None:
    """What `text`, said at `at` by a user in `timezone`, asks about; None where it says nothing of time.

    Days, weeks and months are the user's own. A date without a year is the most recent one that has begun.
    What lies wholly after `at` is left out: nothing was said then.
    """
    return _asked_time(text[:_CHARACTERS], at, timezone)


@lru_cache(maxsize=64)  # one recall asks several times
def _asked_time(text: str, at: datetime, timezone: str) -> AskedTime | None:
    folded = fold(text)
    spans, rest = _spans(text, folded, local_day(at, timezone))
    intervals = _intervals(spans, at, timezone)
    order = next((name for name, asks in time_words().orders.items() if asks.search(folded)), None)
    return AskedTime(intervals=intervals, order=order, rest=rest) if intervals or order else None


def _intervals(spans: Iterable[_Span], at: datetime, timezone: str) -> tuple[Interval, ...]:
    today = local_day(at, timezone)
    made: dict[Interval, None] = {}
    for span in spans:
        for years in (0, 1) if not span.year else (0,):
            first, end = _years_back(span.first, years), _years_back(span.end, years)
            if first <= today:
                weight = _UNSURE if years else span.weight
                made[_interval(first, end, span.precision, weight, timezone)] = None
    return tuple(made)[: 2 * _SPANS]


def _interval(first: date, end: date, precision: Precision, weight: float, timezone: str) -> Interval:
    since, until = (
        datetime.combine(day, time(), tzinfo=zone(timezone)).astimezone(UTC) for day in (first, end)
    )
    return Interval(since=since, until=until, precision=precision, weight=weight)


# Reading: words to roles


def _spans(text: str, folded: str, today: date) -> tuple[list[_Span], tuple[str, ...]]:
    if _UNSPACED_SIGNS.search(folded):
        name = "ja" if _KANA.search(folded) else "ko" if _HANGUL.search(folded) else "zh"
        return _read(_tokens(folded, name), today, True)[1:]
    best: tuple[tuple[int, int], list[_Span], tuple[str, ...]] = ((0, 0), [], ())
    words = _WORD.findall(folded)
    for language in _likely(words, folded):
        used, spans, rest = _read(_tokens(text, language.name), today, False)
        known = sum(word in language.phrases for word in words)
        best = max(best, ((used, known), spans, rest), key=lambda one: one[0])
    return best[1:]


def _likely(words: Sequence[str], folded: str) -> list[Language]:
    """Languages that have a time word which the text has, those first that know most of its words."""
    every, anchors = time_words().languages, time_words().anchors
    if _NUMERIC.search(folded):
        names = set(every) - set(UNSPACED)
    else:
        names = {name for word in words if word in anchors for name in anchors[word]}
    known = {name: sum(word in every[name].phrases for word in words) for name in names}
    return [every[name] for name in sorted(known, key=lambda name: (-known[name], name))[:_READ]]


_WORD: Final = re.compile(r"[^\W\d_]+")
_NUMERIC: Final = re.compile(r"\b(?:19|20)\d\d\b|\d[./]\d")
_KANA: Final = re.compile(r"[\u3040-\u30ff]")
_HANGUL: Final = re.compile(r"[\uac00-\ud7af]")
_UNSPACED_SIGNS: Final = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")


@cache
def _tokenizer(name: str) -> Tokenizer:
    return Tokenizer(time_words().languages[name], _MANNER)


def _tokens(text: str, language: str) -> list[Token]:
    """The text's tokens, dates as spans."""
    tokens = _tokenizer(language).tokens(text)
    return [token._replace(value=_named(token.value)) if token.role == "@" else token for token in tokens]


def _named(value: date | tuple[int, int] | None) -> _Span | None:
    if value is None:
        return None
    return _day(value) if isinstance(value, date) else _month(*value)


# Rules: roles to spans


class _Found:
    """The tokens that a rule has found, by role."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.roles = "".join(token.role for token in tokens)

    def all(self, roles: str) -> list[Any]:
        """Values of the tokens of those roles."""
        return [token.value for token in self._tokens if token.role in roles]

    def one(self, roles: str, default: Any = None) -> Any:
        """The first one's."""
        return next(iter(self.all(roles)), default)


_Read = Callable[[_Found, date], _Span | Token | None]
_Rule = tuple[re.Pattern[str], _Read]


def _read(tokens: list[Token], today: date, unspaced: bool) -> tuple[int, list[_Span], tuple[str, ...]]:
    """How many words are part of a span, the spans, and the words that have nothing to do with time."""
    roles = "".join([token.role for token in tokens])
    for pattern, read in _RULES[unspaced]:
        if pattern.search(roles):
            tokens = _applied(pattern, read, tokens, roles, today)
            roles = "".join([token.role for token in tokens])
    spans = [token for token in tokens if token.role == "@" and token.value is not None]
    rest = tuple(token.word for token in tokens if token.role == "." and token.word)
    return sum(token.words for token in spans), [token.value for token in spans[:_SPANS]], rest


def _applied(
    pattern: re.Pattern[str], read: _Read, tokens: list[Token], roles: str, today: date
) -> list[Token]:
    """The tokens with each match that has a meaning become one."""
    made: list[Token] = []
    done = 0
    for match in pattern.finditer(roles):
        found = tokens[match.start() : match.end()]
        span = read(_Found(found), today)
        if span is not None:
            token = span if isinstance(span, Token) else Token("@", span)
            made += [*tokens[done : match.start()], token._replace(words=sum(one.words for one in found))]
            done = match.end()
    return [*made, *tokens[done:]]


def _day(day: date, *, year: bool = True) -> _Span:
    return _Span(day, day + timedelta(days=1), "day", year)


def _month(year: int, month: int, *, named: bool = True) -> _Span:
    return _Span(date(year, month, 1), _next_month(year, month), "month", named)


def _next_month(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1)


def _year(year: int) -> _Span:
    return _Span(date(year, 1, 1), date(year + 1, 1, 1), "year")


def _week_of(day: date) -> _Span:
    monday = day - timedelta(days=day.weekday())
    return _Span(monday, monday + timedelta(days=7), "week")


def _years_back(day: date, years: int) -> date:
    try:
        return day.replace(year=day.year - years)
    except ValueError:  # 29 February
        return day.replace(year=day.year - years, day=28)


def _full_date(found: _Found, today: date) -> _Span | None:
    """Day and month, with a year or the most recent one."""
    number, month, year = found.one("N"), found.one("McC"), found.one("Yy")
    if found.one("U", "day") != "day":
        return None
    if year is not None:
        day = date_of(year, month, number)
        return _day(day) if day else None
    day = date_of(today.year, month, number) or date_of(today.year - 1, month, number)
    if day is None:
        return None
    return _day(day if day <= today else _years_back(day, 1), year=False)


def _days_of_month(found: _Found, today: date) -> _Span | None:
    """`5 to 9 June`, `June 5-9`."""
    number, last = found.all("N")
    spans = [_dated(day, found.one("McC"), found.one("Yy"), today) for day in (number, last)]
    if None in spans or spans[0] is None or spans[1] is None or spans[1].end <= spans[0].first:
        return None
    return _Span(spans[0].first, spans[1].end, "day", spans[0].year)


def _dated(day: int, month: int, year: int | None, today: date) -> _Span | None:
    tokens = [Token("N", day), Token("M", month)]
    return _full_date(_Found([*tokens, Token("Y", year)] if year else tokens), today)


def _month_of_year(found: _Found, today: date) -> _Span:
    return _month(found.one("Yy"), found.one("McC"))


def _bare_month(found: _Found, today: date) -> _Span:
    month = found.one("MC")
    return _month(today.year if month <= today.month else today.year - 1, month, named=False)


def _last_month(found: _Found, today: date) -> _Span:
    month = found.one("MC")
    return _month(today.year if month < today.month else today.year - 1, month)


def _season(number: int, year: int) -> _Span:
    first = date(year, 3 * number, 1)
    return _Span(first, _next_month(year + (number == 4), (3 * number + 1) % 12 + 1), "season")


def _season_of_year(found: _Found, today: date) -> _Span:
    return _season(found.one("S"), found.one("Yy"))


def _bare_season(found: _Found, today: date) -> _Span:
    """The present one, if asked for without `last`, or the most recent one before."""
    spans = [_season(found.one("S"), today.year - back) for back in (0, 1, 2)]
    over = [span for span in spans if span.first <= today and ("L" not in found.roles or span.end <= today)]
    return over[0]._replace(year="L" in found.roles)


def _whole_year(found: _Found, today: date) -> _Span | None:
    return _year(found.one("Yy")) if found.one("U", "year") == "year" else None


def _relative_unit(found: _Found, today: date) -> _Span | None:
    """`last week`, `this month`."""
    unit, offset = _counted_unit(found)
    weight = 1.0 if offset else _UNSURE
    match unit:
        case "week":
            return _week_of(today + timedelta(days=7 * offset))._replace(weight=weight)
        case "month":
            months = today.year * 12 + today.month - 1 + offset
            return _month(months // 12, months % 12 + 1)._replace(weight=weight)
        case "fortnight":
            return _Span(today - timedelta(days=14), today + timedelta(days=1), "week")
        case _:
            return None


def _year_token(found: _Found, today: date) -> Token | None:
    """`last year`, which makes a date of `May last year`."""
    unit, offset = _counted_unit(found)
    return Token("y", today.year + offset) if unit == "year" else None


def _ago(found: _Found, today: date) -> _Span:
    unit = found.one("U")
    if "F" in found.roles:
        return _few(unit, today)
    return _around(today - timedelta(days=_DAYS[unit] * found.one("Nn", 1)), unit)


def _few(unit: Unit, today: date) -> _Span:
    near, far = (today - timedelta(days=_DAYS[unit] * count) for count in (2, 6))
    return _Span(far, near + timedelta(days=1), _PRECISION[unit])


def _around(day: date, unit: Unit) -> _Span:
    """One unit's length of days about a day."""
    half = timedelta(days=int(_DAYS[unit] / 2))
    return _Span(day - half, day + half + timedelta(days=1), _PRECISION[unit])


def _last_units(found: _Found, today: date) -> _Span:
    unit = found.one("U")
    length = timedelta(days=max(_DAYS[unit] * found.one("Nn", 4), 1))
    return _Span(today - length, today + timedelta(days=1), _PRECISION[unit])


def _weekend(found: _Found, today: date) -> _Span:
    """The most recent that has begun; `last weekend` is over."""
    saturday = today - timedelta(days=(today.weekday() - 5) % 7)
    if "L" in found.roles and saturday + timedelta(days=2) > today:
        saturday -= timedelta(days=7)
    return _Span(saturday, saturday + timedelta(days=2), "day")


def _weekday(found: _Found, today: date) -> _Span:
    """The most recent before today; with `this` today's too."""
    back = (today.weekday() - found.one("W")) % 7
    return _day(today - timedelta(days=back if back or "T" in found.roles else 7))


def _weekday_of_week(found: _Found, today: date) -> _Span | None:
    """`Friday of last week`."""
    unit, offset = _counted_unit(found)
    if unit != "week":
        return None
    monday = _week_of(today).first + timedelta(days=7 * offset)
    return _day(monday + timedelta(days=found.one("W")))


def _counted_unit(found: _Found) -> tuple[Unit, int]:
    """`last week` and its like: a unit and how far it is from the present one."""
    counted: tuple[Unit, int] = found.one("R") or (found.one("U"), -1 if "L" in found.roles else 0)
    return counted


def _counted_day(found: _Found, today: date) -> _Span:
    days = found.one("D")
    return _day(today + timedelta(days=days))._replace(weight=1.0 if days else _UNSURE)


def _this_part(found: _Found, today: date) -> _Span:
    return _day(today)._replace(weight=_UNSURE)


def _recently(found: _Found, today: date) -> _Span:
    return _Span(today - timedelta(days=21), today + timedelta(days=1), "recent")


def _beside(found: _Found, today: date) -> _Span | None:
    """`the week before 9 June`, `two weeks after 9 June`."""
    span, unit = found.one("@"), found.one("U")
    if span is None:
        return None
    later = "f" in found.roles
    if (count := found.one("Nn")) is not None:
        shift = timedelta(days=_DAYS[unit] * count)
        return _around(span.first + (shift if later else -shift), unit)
    length = timedelta(days=max(_DAYS[unit], 1))
    edge = span.end if later else span.first - length
    return _Span(edge, edge + length, _PRECISION[unit])


def _range(found: _Found, today: date) -> _Span | None:
    first, last = found.all("@")
    if first is None or last is None:
        return None
    start = first.first
    if start > last.first and not first.year:
        start = _years_back(start, 1)
    if start > last.first and last.year is False:
        return None
    return _Span(start, max(last.end, start), last.precision, last.year or first.year)


def _since(found: _Found, today: date) -> _Span | None:
    span = found.one("@")
    return span and _Span(span.first, today + timedelta(days=1), span.precision)


def _after(found: _Found, today: date) -> _Span | None:
    span = found.one("@")
    return span and _Span(span.end, max(today + timedelta(days=1), span.end), span.precision)


def _until(found: _Found, today: date) -> _Span | None:
    span = found.one("@")
    return span and _Span(span.first - _EARLIEST, span.end, span.precision)


def _before(found: _Found, today: date) -> _Span | None:
    span = found.one("@")
    return span and _Span(span.first - _EARLIEST, span.first, span.precision)


def _rules(*rules: tuple[str, _Read]) -> tuple[_Rule, ...]:
    return tuple((re.compile(pattern), read) for pattern, read in rules)


_DATES: Final = _rules(
    (r"(?<!m)[LT]U(?!o\.)|(?<!m)UL|R", _year_token),
    (r"N[&ui]j?N[ot]?[McC][oti]?[Yy]?|[Mc]N[&ui]N[Yy]?", _days_of_month),
    (r"y[ot]?[Mc]NU?|N[ot]?[McC][oti]?[Yy]|[McC]N[Yy]|[Mc]N(?!U)|MNU(?=$|[^A])|N[ot]?[McC]", _full_date),
    (r"[McC][oti]?[Yy]|y[oti]?M", _month_of_year),
    (r"S[oti]?[Yy]|y[oti]?S", _season_of_year),
    (r"[LX][MC]|ML", _last_month),
    (r"(?<=[isubftToAa])[MC]", _bare_month),
    (r"(?<=@[&u])[MC]|(?<=@i)M", _bare_month),
    (r"L[S]|SL|T[S]|(?<=[ijso])S", _bare_season),
    (r"y|(?<=[ijsubftoAa])U?YU?|UY|YU", _whole_year),
    (r"(?<=@[&ui])Y", _whole_year),
    (r"W[oti]?(?:R|[LT]U|UL)|(?:R|[LT]U|UL)W", _weekday_of_week),
    (r"LW|WL|TW|(?<=[ijsbfA])W", _weekday),
    (r"(?<!m)LE|EL|TE|(?<=[ijo])E", _weekend),
    (r"D", _counted_day),
    (r"TP", _this_part),
)
_SPACED: Final = _rules(
    (r"[Nn]?U[bfA]j?@", _beside),
    (r"[NnF]U[Aa]|[Aa][NnF]U|(?<![Tt.m])UA|AU", _ago),
    (r"L[NnF]U|[NnF]LU|[NnF]UL", _last_units),
    (r"(?<!m)[LT]U(?!o[.])|(?<!m)UL|R", _relative_unit),
    (r"V", _recently),
    (r"[tsu]j?@[&ui]j?@", _range),
    (r"[sa]j?@", _since),
    (r"uj?@", _until),
    (r"[bA]j?@", _before),
    (r"fj?@", _after),
)
_POSTPOSED: Final = _rules(
    (r"[Nn]?U[bfA]@", _beside),
    (r"[NnF]UA", _ago),
    (r"L[NnF]U", _last_units),
    (r"[LT]U|UL|R", _relative_unit),
    (r"V", _recently),
    (r"[ts]?@[&t]@u?", _range),
    (r"s@|@[st&]", _since),
    (r"u@|@u", _until),
    (r"b@|@[bA]", _before),
    (r"f@|@f", _after),
)
_RULES: Final[dict[bool, tuple[_Rule, ...]]] = {
    False: (*_DATES, *_SPACED),
    True: (*_DATES, *_rules((r"M", _bare_month), (r"W", _weekday), (r"E", _weekend)), *_POSTPOSED),
}
