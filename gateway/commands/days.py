"""Times on the command line: a moment of ISO 8601, or a day of UTC alone, and the options that take one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, TypeAlias

import typer

from hearth.gateway.commands.output import MISUSED, fail

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def from_day(given: str) -> str:
    """The day's first moment; what is no day as it is, for the gateway to judge."""
    day = _day(given)
    return given if day is None else day.isoformat()


def to_day(given: str) -> str:
    """The day's end; what is no day as it is."""
    day = _day(given)
    if day is None:
        return given
    try:
        return (day + timedelta(days=1)).isoformat()
    except OverflowError:  # the calendar's last
        return datetime.max.replace(tzinfo=UTC).isoformat()


def by_day(given: str) -> str:
    """The day's end, or now for today: nothing is known of a later moment."""
    now = datetime.now(UTC)
    return now.isoformat() if given == f"{now:%Y-%m-%d}" else to_day(given)


def _day(given: str) -> datetime | None:
    if not _DAY.fullmatch(given):
        return None
    try:
        return datetime.strptime(given, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        fail(f"{given}: expected a day such as 2026-03-01", MISUSED)


FirstDay: TypeAlias = Annotated[
    str,
    typer.Argument(parser=from_day, metavar="DAY", help="The first day, such as 2026-03-01, from its start."),
]
LastDay: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        parser=by_day, metavar="DAY", help="The last day, to its end; none: until now.", show_default=False
    ),
]
Since: TypeAlias = Annotated[
    str | None,
    typer.Option(
        parser=from_day,
        metavar="WHEN",
        help="Said or happened at or after, such as 2026-11-28 or 2026-11-28T09:30:00Z.",
    ),
]
Until: TypeAlias = Annotated[
    str | None,
    typer.Option(parser=to_day, metavar="WHEN", help="Said or happened before; a day: to its end."),
]
_as_of = partial(typer.Option, "--as-of", parser=by_day, metavar="WHEN", show_default=False)
AsOf: TypeAlias = Annotated[str | None, _as_of(help="What held at that moment; a day: at its end.")]
AsKnown: TypeAlias = Annotated[
    str | None, _as_of(help="At that moment, with what memory knew then; a day: at its end.")
]
