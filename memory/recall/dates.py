"""Days and parts of days: those that a question names, and the user's local day of a moment."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

Part = tuple[str, int]
"""`("year", 2023)`, `("month", 5)` or `("day", 7)`."""

_MONTHS: Final = (
    ("january", "jan", "januar", "jänner", "enero", "janvier", "gennaio", "janeiro", "января", "январь"),
    ("february", "feb", "februar", "febrero", "février", "febbraio", "fevereiro", "февраля", "февраль"),
    ("march", "mar", "märz", "marzo", "mars", "março", "марта", "март"),
    ("april", "apr", "abril", "avril", "aprile", "апреля", "апрель"),
    ("may", "mai", "mayo", "maggio", "maio", "мая", "май"),
    ("june", "jun", "juni", "junio", "juin", "giugno", "junho", "июня", "июнь"),
    ("july", "jul", "juli", "julio", "juillet", "luglio", "julho", "июля", "июль"),
    ("august", "aug", "agosto", "août", "августа", "август"),
    ("september", "sep", "sept", "septiembre", "septembre", "settembre", "setembro", "сентября", "сентябрь"),
    ("october", "oct", "oktober", "octubre", "octobre", "ottobre", "outubro", "октября", "октябрь"),
    ("november", "nov", "noviembre", "novembre", "novembro", "ноября", "ноябрь"),
    ("december", "dec", "dezember", "diciembre", "décembre", "dicembre", "dezembro", "декабря", "декабрь"),
)
_MONTH: Final = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}
_NAMES: Final = "|".join(sorted(_MONTH, key=len, reverse=True))
_AMBIGUOUS: Final = frozenset({"may", "mar", "march", "mars", "mai"})
"""Also common words: months only beside a number."""

_ISO: Final = re.compile(r"\b((?:19|20)\d\d)-(\d{1,2})(?:-(\d{1,2}))?\b")
_CJK: Final = re.compile(r"(?:((?:19|20)\d\d)[年년]\s*)?(\d{1,2})[月월](?:\s*(\d{1,2})[日号號일])?")
_NAMED: Final = re.compile(
    rf"(?:\b(?P<before>\d{{1,2}})(?:st|nd|rd|th|\.|º|er)?\s+(?:of\s+|de\s+)?)?"
    rf"\b(?P<month>{_NAMES})\b\.?"
    rf"(?:\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b)?(?P<year>,?\s+(?:de\s+|of\s+)?(?:19|20)\d\d\b)?",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_YESTERDAY: Final = re.compile(
    r"\b(?:yesterday|gestern|ayer|hier|ieri|ontem|вчера)\b|昨天|昨日|어제", re.IGNORECASE
)
_TODAY: Final = re.compile(
    r"\b(?:today|heute|hoy|aujourd'hui|oggi|hoje|сегодня)\b|今天|今日|오늘", re.IGNORECASE
)


def local_day(moment: datetime, timezone: str) -> date:
    """The user's calendar day at `moment`; UTC's where the zone is unknown."""
    return moment.astimezone(zone(timezone)).date()


@lru_cache(maxsize=256)
def zone(name: str) -> ZoneInfo:
    """The IANA zone of that name, else UTC: a client may send any string."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError on some versions
        return ZoneInfo("UTC")
    except KeyError:
        return ZoneInfo("UTC")


@lru_cache(maxsize=4096)
def day_parts(moment: datetime, timezone: str) -> frozenset[Part]:
    """Year, month and day of the user's day at `moment`."""
    return _parts(local_day(moment, timezone))


def date_parts(text: str, at: datetime, timezone: str) -> frozenset[Part]:
    """The date parts that `text` names; `today` and `yesterday` are counted from `at`. Empty where none."""
    if not any(character.isdigit() for character in text):
        return _relative(text, at, timezone) | _months(text)
    found = {("year", int(year)) for year in _YEAR.findall(text)}
    for pattern in (_ISO, _CJK):
        for year, month, day in pattern.findall(text):
            found |= _numbers(year, month, day)
    return frozenset(found) | _months(text) | _relative(text, at, timezone)


def _months(text: str) -> frozenset[Part]:
    found: set[Part] = set()
    for match in _NAMED.finditer(text):
        name, day = match["month"].lower(), match["before"] or match["after"]
        if name not in _AMBIGUOUS or day or match["year"] or match["month"] == "May":
            found |= _numbers("", str(_MONTH[name]), day or "")
    return frozenset(found)


def _relative(text: str, at: datetime, timezone: str) -> frozenset[Part]:
    if _YESTERDAY.search(text):
        return _parts(local_day(at, timezone) - timedelta(days=1))
    return _parts(local_day(at, timezone)) if _TODAY.search(text) else frozenset()


def _numbers(year: str, month: str, day: str) -> set[Part]:
    named = (("year", year), ("month", month), ("day", day))
    return {(part, int(value)) for part, value in named if value and (part == "year" or 0 < int(value) < 32)}


def _parts(day: date) -> frozenset[Part]:
    return frozenset((("year", day.year), ("month", day.month), ("day", day.day)))
