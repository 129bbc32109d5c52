"""The times that a statement names, as days of the speaker's calendar, each with its place in the text.

Recall reads the past that a question asks about; a statement's times may lie ahead, and stand in brackets
behind its words. Both read the same words: a text's words become roles, one letter each, see `time_words`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from hearth.memory.recall.dates import zone
from hearth.memory.recall.time_tokens import Manner, Token, Tokenizer, date_of
from hearth.memory.recall.time_words import UNSPACED, Language, Meaning, fold, time_words

Precision = Literal["day", "weekend", "week", "month", "season", "year"]
Bound = Literal["at", "since", "until"]
_MANNER: Final = Manner(years=range(1900, 2100), largest=400, stops=r"!?;:\n…,(", loose=False)


class When(NamedTuple):
    """A time that words name."""

    start: int
    end: int
    """Where its words stand in the text."""
    first: date
    last: date
    """Its days, the last one included."""
    precision: Precision
    bound: Bound = "at"
    """`since` it, `until` it, or at it."""
    whole: bool = False
    """True if the words tell it to a reader of any day: they name the year."""


class _Days(NamedTuple):
    first: date
    last: date
    precision: Precision
    whole: bool = False


_Read = Callable[[Sequence[Token], date, "bool | None"], _Days | None]

_MORE: Final[dict[str, dict[str, Meaning]]] = {
    "es": {"mañana": Meaning("D", 1), "pasado mañana": Meaning("D", 2), "la mañana": Meaning("P")},
    "pt": {"depois de amanhã": Meaning("D", 2)},
    "it": {"dopodomani": Meaning("D", 2)},
    "pl": {"pojutrze": Meaning("D", 2)},
    "tr": {"öbür gün": Meaning("D", 2)},
    "ar": {
        **dict.fromkeys(("غدا", "غداً"), Meaning("D", 1)),
        "بعد غد": Meaning("D", 2),
    },
    "zh": {
        "明天": Meaning("D", 1),
        **dict.fromkeys(("后天", "後天"), Meaning("D", 2)),
        "明年": Meaning("R", ("year", 1)),
        "去年": Meaning("R", ("year", -1)),
    },
    "ja": {"来年": Meaning("R", ("year", 1)), "去年": Meaning("R", ("year", -1))},
    "ko": {
        "내일": Meaning("D", 1),
        "모레": Meaning("D", 2),
        "내년": Meaning("R", ("year", 1)),
        "작년": Meaning("R", ("year", -1)),
    },
}
"""What lies ahead, of which a question about the past says nothing."""
_HENCE: Final = "in within en dentro dans d'ici tra fra em daqui over om za за через içinde 後 后 후 뒤 بعد"
_AHEAD: Final = frozenset(_HENCE.split())
"""With a number of a unit: so long from now. Other prepositions there tell how long something lasts."""
_RETURNING: Final = (
    "every each any most some jeden jede jedes jeder immer cada todos todas los las chaque tous toutes ogni"
    " tutti tutte elke ieder iedere alle każdy każda każde co каждый каждую каждое по her кожен кожну varje"
    " hver každý každou joka 毎 每 每个 每個 매 매주 كل"
)
_EVERY: Final = frozenset(_RETURNING.split())
"""Before a time: it comes back, so it is no day."""
_WORD: Final = re.compile(r"[^\W\d_]+")


def times(text: str, start: int, end: int, language: str, today: date, ahead: bool | None) -> list[When]:
    """The times that `text[start:end]` names, in order; none for a language whose words are unknown.

    `ahead` is where what recurs is meant to lie, such as `on Friday`: True after `today`, False before it,
    None where the words don't tell; then such a time is left out.
    """
    if (known := _tokenizer(language)) is None:
        return []
    return list(_read(known.tokens(text, start, end), today, ahead, language in UNSPACED))


def start_of(day: date, timezone: str) -> datetime:
    """When that day begins in the speaker's zone, in UTC."""
    return datetime.combine(day, time(), tzinfo=zone(timezone)).astimezone(UTC)


def shown(when: When, language: str) -> str:
    """Its days as a reader of any day understands them; ISO dates but in English."""
    if when.precision == "year":
        return str(when.first.year)
    if language != "en":
        if when.precision == "month":
            return f"{when.first:%Y-%m}"
        return when.first.isoformat() + (f" – {when.last.isoformat()}" if when.last > when.first else "")
    if when.precision in ("month", "season"):
        months = f"{when.first:%B} to " if when.precision == "season" else ""
        return f"{months}{when.last:%B %Y}"
    last = f"{when.last.day} {when.last:%B %Y}"
    if when.last == when.first:
        return last
    return f"{when.first.day} {when.first:%B %Y} to {last}" if when.precision != "day" else last


# Words to roles


@cache
def _tokenizer(name: str) -> Tokenizer | None:
    known = _language(name)
    return None if known is None else Tokenizer(known, _MANNER)


def _language(name: str) -> Language | None:
    """The language's words with those of `_MORE`."""
    known = time_words().languages.get(name)
    if known is None or name not in _MORE:
        return known
    phrases = {word: list(listed) for word, listed in known.phrases.items()}
    for phrase, meaning in _MORE[name].items():
        words = (fold(phrase),) if name in UNSPACED else tuple(_WORD.findall(fold(phrase)))
        others = [one for one in phrases.get(words[0], []) if one[0] != words]
        phrases[words[0]] = sorted([*others, (words, meaning)], key=lambda one: -len(one[0]))
    return Language(name=known.name, phrases=phrases, order=known.order)


# Roles to days


def _read(tokens: list[Token], today: date, ahead: bool | None, unspaced: bool) -> Iterator[When]:
    roles = "".join(token.role for token in tokens)
    place = 0
    while place < len(tokens):
        length = 1
        if roles[place] != ".":
            bound = _bound(tokens, place)
            side = {"since": False, "until": True}.get(bound) if ahead is None else ahead
            length, days = _longest(tokens, roles, place, today, side)
            if days is not None and not _recurs(tokens, place):
                yield _when(tokens, place, length, days, bound, unspaced)
        place += length


def _longest(
    tokens: list[Token], roles: str, place: int, today: date, ahead: bool | None
) -> tuple[int, _Days | None]:
    """The first rule that reads what begins here, and how many tokens it takes."""
    for pattern, read in _RULES:
        match = pattern.match(roles, place)
        if match is not None:
            days = _safely(read, tokens[place : match.end()], today, ahead)
            return match.end() - place, days
    return 1, None


def _safely(read: _Read, tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    """None where the day would lie outside the calendar."""
    try:
        return read(tokens, today, ahead)
    except (OverflowError, ValueError):
        return None


def _recurs(tokens: Sequence[Token], place: int) -> bool:
    before = tokens[place - 1].word if place else ""
    return before in _EVERY or tokens[place].word in _EVERY


def _when(
    tokens: Sequence[Token], place: int, length: int, days: _Days, bound: Bound, unspaced: bool
) -> When:
    last = tokens[place + length - 1]
    if unspaced and place + length < len(tokens):
        bound = _BOUNDS.get(tokens[place + length].role, bound)
    return When(tokens[place].start, last.end, days.first, days.last, days.precision, bound, days.whole)


_BOUNDS: Final[dict[str, Bound]] = {"s": "since", "u": "until"}


def _bound(tokens: Sequence[Token], place: int) -> Bound:
    """What the two words before a time, or its own first, make of it."""
    found = (_BOUNDS.get(token.role) for token in tokens[max(place - 2, 0) : place + 1])
    return next((bound for bound in found if bound), "at")


def _one(tokens: Sequence[Token], roles: str, default: Any = None) -> Any:
    """The value of the first token of those roles."""
    return next((token.value for token in tokens if token.role in roles), default)


def _day(day: date | None, *, whole: bool = False) -> _Days | None:
    return _Days(day, day, "day", whole) if day else None


def _month(year: int, month: int, *, whole: bool = False) -> _Days:
    return _Days(date(year, month, 1), _last_of(year, month), "month", whole)


def _last_of(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def _year(year: int, *, whole: bool = False) -> _Days:
    return _Days(date(year, 1, 1), date(year, 12, 31), "year", whole)


def _shift(tokens: Sequence[Token]) -> int | None:
    """-1 for `last`, 0 for `this`, 1 for `next`."""
    return next(("LTX".index(token.role) - 1 for token in tokens if token.role in "LTX"), None)


def _given(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    return _day(tokens[0].value, whole=True)


def _full_date(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    """Day and month, of the year that is named, or of the nearest on the right side of today."""
    number, month, year = _one(tokens, "N"), _one(tokens, "McC"), _one(tokens, "Yy")
    if year is not None:
        return _day(date_of(year, month, number), whole=True)
    if ahead is None:
        return None
    years = range(today.year, today.year + 9) if ahead else range(today.year, today.year - 9, -1)
    days = (date_of(one, month, number) for one in years)
    return _day(next((day for day in days if day and (day >= today if ahead else day <= today)), None))


def _month_of_year(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    return _month(_one(tokens, "Yy"), _one(tokens, "McC"), whole=True)


def _bare_month(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    """`in May`, `last May`: the nearest on the right side of today, this month included but with `last`."""
    month, shift = _one(tokens, "McC"), _shift(tokens)
    if shift == 0:
        return _month(today.year, month)
    if shift:
        ahead = shift > 0
    if ahead is None:
        return None
    past, over = month < today.month, month > today.month
    if shift and month == today.month:
        return _month(today.year + shift, month)
    return _month(today.year + (past if ahead else -over), month)


def _season(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    number, year, shift = _one(tokens, "S"), _one(tokens, "Yy"), _shift(tokens)
    if year is not None:
        return _of_season(number, year, whole=True)
    if shift:
        ahead = shift > 0
    if shift == 0:
        return _of_season(number, today.year)
    if ahead is None:
        return None
    seasons = [_of_season(number, today.year + years) for years in ((0, 1) if ahead else (0, -1, -2))]
    return next((one for one in seasons if (one.last >= today if ahead else one.last <= today)), None)


def _of_season(number: int, year: int, *, whole: bool = False) -> _Days:
    month = 3 * number + 2
    return _Days(
        date(year, 3 * number, 1), _last_of(year + month // 13, (month - 1) % 12 + 1), "season", whole
    )


def _named_year(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    return _year(_one(tokens, "Yy"), whole=True)


def _counted_day(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    return _day(today + timedelta(days=_one(tokens, "D")))


def _weekday(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    """The nearest on the right side of today; `this` one is of today's week or after it."""
    shift = _shift(tokens)
    forward = (_one(tokens, "W") - today.weekday()) % 7
    if shift is not None:
        ahead = shift >= 0
    if ahead is None:
        return None
    if shift is not None and tokens[-1].word[:1] in _OF_WEEK:
        monday = today - timedelta(days=today.weekday())
        return _day(monday + timedelta(days=7 * shift + _one(tokens, "W")))
    if ahead:
        # `next Friday` said on a Monday is the one after this Friday for some, and this one for others
        if shift == 1 and forward and today.weekday() + forward < 7:
            return None
        return _day(today + timedelta(days=forward if forward or shift == 0 else 7))
    return _day(today - timedelta(days=7 - forward))


_OF_WEEK: Final = ("周", "週", "星", "礼", "禮")
"""How Chinese weekdays begin: `next` there means the week."""


def _weekday_of_week(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    unit, count = _unit(tokens)
    if unit != "week":
        return None
    monday = today - timedelta(days=today.weekday()) + timedelta(days=7 * count)
    return _day(monday + timedelta(days=_one(tokens, "W")))


def _unit(tokens: Sequence[Token]) -> tuple[str, int]:
    counted: tuple[str, int] = _one(tokens, "R") or (_one(tokens, "U"), _shift(tokens) or 0)
    return counted


def _relative_unit(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    """`last week`, `this month`, `next year`."""
    unit, count = _unit(tokens)
    match unit:
        case "week":
            monday = today - timedelta(days=today.weekday()) + timedelta(days=7 * count)
            return _Days(monday, monday + timedelta(days=6), "week")
        case "month":
            return _month_from(today, count)
        case "year":
            return _year(today.year + count)
        case _:
            return None


def _month_from(today: date, count: int) -> _Days:
    months = today.year * 12 + today.month - 1 + count
    return _month(months // 12, months % 12 + 1)


def _ago(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    return _away(tokens, today, -1)


def _hence(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    if not any(token.word in _AHEAD for token in tokens):
        return None
    return _away(tokens, today, 1)


def _away(tokens: Sequence[Token], today: date, sign: int) -> _Days | None:
    """So many units from today, as exact as the unit is."""
    unit, count = _one(tokens, "U"), sign * _one(tokens, "Nn", 1)
    match unit:
        case "day":
            return _day(today + timedelta(days=count))
        case "week" | "fortnight":
            day = today + timedelta(days=count * (7 if unit == "week" else 14))
            return _Days(day, day, "week")
        case "month":
            return _month_from(today, count)
        case "year":
            return _year(today.year + count)
        case _:
            return None


def _weekend(tokens: Sequence[Token], today: date, ahead: bool | None) -> _Days | None:
    """Saturday and Sunday; `this weekend` is the one that has not ended."""
    shift = _shift(tokens)
    if shift is not None:
        ahead = shift >= 0
    if ahead is None:
        return None
    saturday = today - timedelta(days=(today.weekday() - 5) % 7)
    ended = saturday + timedelta(days=1) < today
    if ahead and ended:
        saturday += timedelta(days=7)
    if shift == 1 and today.weekday() >= 5:
        saturday += timedelta(days=7)
    if not ahead and not ended:
        saturday -= timedelta(days=7)
    return _Days(saturday, saturday + timedelta(days=1), "weekend")


def _rules(*rules: tuple[str, _Read]) -> tuple[tuple[re.Pattern[str], _Read], ...]:
    return tuple((re.compile(pattern), read) for pattern, read in rules)


_RULES: Final = _rules(
    (r"@", _given),
    (r"y[ot]?[Mc]NU?|N[ot]?[McC][oti]?[Yy]?|[Mc]N[Yy]?U?", _full_date),
    (r"[McC][oti]?[Yy]|y[oti]?M", _month_of_year),
    (r"S[oti]?[Yy]|y[oti]?S", _season),
    (r"[LTX][MC]|[Mc][LX]", _bare_month),
    (r"(?<=[isuj])[McC]|(?<!.)M(?=i)|M(?!.)", _bare_month),
    (r"[LTX]S|S[LX]|(?<=[ij])S", _season),
    (r"y|(?<=[isu])Y", _named_year),
    (r"W[oti]?(?:R|[LTX]U|U[LX])|(?:R|[LTX]U)W", _weekday_of_week),
    (r"[LTX]W|W[LX]|W", _weekday),
    (r"[LTX]E|E[LX]|E", _weekend),
    (r"D", _counted_day),
    (r"i?(?:[Nn]U[Aa])|[Aa][Nn]U|(?<![Tt.m])UA|AU", _ago),
    (r"[Nn]U[Xf]|[ifX][Nn]U", _hence),
    (r"[LTX]U|U[LX]|R", _relative_unit),
)
"""Tried in this order where a role begins; `(?<=…)` looks at the role before."""
