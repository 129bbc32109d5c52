"""Numbers over time as characters: bars, curves and spans, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from hearth.gateway.commands.client import Answer

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_EIGHTHS: Final = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


class Span(NamedTuple):
    """What a fact said, from when until when."""

    label: str
    """Of what, such as `residence`."""
    value: str
    start: datetime
    end: datetime | None
    """None where it holds."""


def bar(value: float, most: float, width: int) -> str:
    """A bar of at most so many characters, to an eighth of one; empty for nothing."""
    eighths = round(min(max(value / most, 0.0), 1.0) * width * 8) if most > 0 else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]


def sparkline(values: Sequence[float | None], most: float) -> str:
    """A character a value, by height; a space where there is none."""
    top = len(_LEVELS) - 1
    return "".join(
        " " if value is None else _LEVELS[round(min(max(value / most, 0.0), 1.0) * top) if most > 0 else 0]
        for value in values
    )


def span_line(start: datetime, end: datetime, first: datetime, last: datetime, width: int) -> str:
    """Where within the whole time something held, as a line of so many characters; one at least is full."""
    whole = (last - first) / timedelta(seconds=1) or 1.0
    begin = int((start - first) / timedelta(seconds=1) / whole * width)
    begin = min(max(begin, 0), width - 1)
    stop = min(max(math.ceil((end - first) / timedelta(seconds=1) / whole * width), begin + 1), width)
    return "·" * begin + "━" * (stop - begin) + "·" * (width - stop)


def moments(first: datetime, last: datetime, steps: int) -> list[datetime]:
    """So many moments, evenly from the first to the last."""
    return [first + (last - first) * (step / max(steps - 1, 1)) for step in range(steps)]


def heat_curve(
    line: Answer, steps: int, *, first: datetime | None = None, last: datetime | None = None
) -> list[float | None]:
    """The heat of a segment, as the API tells it, at so many moments; None before its first point and after
    its eviction. Between two points it fades.
    """
    told = [(datetime.fromisoformat(one["at"]), one["heat"], one["what"]) for one in line["points"]]
    if not told:
        return [None] * steps
    times = moments(first or told[0][0], last or told[-1][0], steps)
    return [_heat_at(told, at, line["fade_hours"]) for at in times]


def _heat_at(told: Sequence[tuple[datetime, float, str]], at: datetime, fade_hours: float) -> float | None:
    before = [one for one in told if one[0] <= at]
    if not before:
        return None
    when, heat, what = before[-1]
    if what == "eviction" and when < at:
        return None
    return heat * math.exp(-(at - when).total_seconds() / 3600 / fade_hours)


def spans(facts: Sequence[Answer]) -> list[Span]:
    """Facts of the API as spans, by what they say and then by time; a fact that never was so has none."""
    made = [
        Span(
            label=_label(fact),
            value=fact["value"] or fact["text"],
            start=datetime.fromisoformat(fact["valid_from"] or fact["occurred_at"]),
            end=datetime.fromisoformat(fact["valid_to"]) if fact["valid_to"] else None,
        )
        for fact in facts
    ]
    held = [span for span in made if span.end is None or span.end > span.start]
    return sorted(held, key=lambda span: (span.label, span.start))


def _label(fact: Answer) -> str:
    attribute = str(fact["attribute"] or fact["type"])
    return attribute if fact["subject"] in ("", "user") else f"{attribute} of {fact['subject']}"
