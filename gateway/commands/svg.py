"""A timeline as an SVG image: the heat of segments as lines, facts as bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final
from xml.sax.saxutils import escape

from hearth.gateway.commands.client import Answer
from hearth.gateway.commands.drawing import Span, heat_curve, moments
from hearth.gateway.commands.output import one_line

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a7a00", "#444444")
"""Told apart by those who see few colours, too (Okabe and Ito)."""
_WIDTH: Final = 960
_LEFT: Final = 150
_RIGHT: Final = 45
_PLOT: Final = _WIDTH - _LEFT - _RIGHT
_HEAT: Final = 220
"""Height of the heat's plot."""
_ROW: Final = 26
_STEPS: Final = 240
_TICKS: Final = 5
_LONGEST: Final = 40
"""Characters of a label."""


def timeline_svg(title: str, lines: Sequence[Answer], facts: Sequence[Span], now: datetime) -> str:
    """The image as text. `lines` as the API tells the heat of segments; either part may be empty."""
    body: list[str] = [_text(20, 28, title, size=16)]
    top = 60
    if lines:
        body += _heat(lines, top)
        top += _HEAT + 40 + 18 * len(lines) + 30
    if facts:
        body += _facts(facts, now, top)
        top += _ROW * len({span.label for span in facts}) + 50
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}"'
    style = 'font-family="sans-serif" font-size="12"'
    paper = f'<rect width="{_WIDTH}" height="{top}" fill="#ffffff"/>'
    return "\n".join([f'{head} height="{top}" {style}>', paper, *body, "</svg>"]) + "\n"


def _heat(lines: Sequence[Answer], top: int) -> Iterator[str]:
    """One line a segment, all over the same time, and the heat from which segments are summed up."""
    times = [datetime.fromisoformat(point["at"]) for line in lines for point in line["points"]]
    first, last = min(times), max(times)
    heats = [point["heat"] for line in lines for point in line["points"]]
    promotion = max(line["promotion"] for line in lines)
    most = max(*heats, promotion) * 1.05 or 1.0
    foot = top + _HEAT
    yield _text(20, top + 4, "heat", size=12)
    for share in (0.0, 0.5, 1.0):
        y = foot - share * _HEAT
        yield _line(_LEFT, y, _WIDTH - _RIGHT, y, "#dddddd")
        yield _text(_LEFT - 8, y + 4, f"{share * most:.1f}", anchor="end")
    y = foot - promotion / most * _HEAT
    yield _line(_LEFT, y, _WIDTH - _RIGHT, y, "#888888", dashes="5 4")
    yield _text(_WIDTH - _RIGHT, y - 4, f"summed up from {promotion:g}", anchor="end")
    yield from _axis(first, last, foot)
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        for run in _runs(heat_curve(line, _STEPS, first=first, last=last)):
            points = " ".join(
                f"{_LEFT + step / (_STEPS - 1) * _PLOT:.1f},{foot - heat / most * _HEAT:.1f}"
                for step, heat in run
            )
            yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        y = foot + 44 + 18 * number
        yield f'<rect x="{_LEFT}" y="{y - 9}" width="12" height="10" fill="{colour}"/>'
        yield _text(_LEFT + 18, y, f"{', '.join(line['words']) or 'has left'} ({line['id'][:8]})")


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Neighbouring values, parted where there is none."""
    runs: list[list[tuple[int, float]]] = [[]]
    for step, value in enumerate(values):
        if value is not None:
            runs[-1].append((step, value))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _facts(facts: Sequence[Span], now: datetime, top: int) -> Iterator[str]:
    """A row for each thing that is known, a bar for each value that it had; what holds has a full colour."""
    first, last = min(span.start for span in facts), max(now, *(span.end or now for span in facts))
    whole = (last - first).total_seconds() or 1.0
    labels = list(dict.fromkeys(span.label for span in facts))
    for row, label in enumerate(labels):
        y = top + row * _ROW
        yield _text(_LEFT - 8, y + 15, label, anchor="end")
        for number, span in enumerate(one for one in facts if one.label == label):
            x = _LEFT + (span.start - first).total_seconds() / whole * _PLOT
            end = _LEFT + ((span.end or last) - first).total_seconds() / whole * _PLOT
            colour = COLOURS[number % len(COLOURS)]
            shape = f'x="{x:.1f}" y="{y + 2}" width="{max(end - x, 2):.1f}" height="{_ROW - 6}"'
            holds = 0.85 if span.end is None else 0.35
            yield f'<rect {shape} fill="{colour}" fill-opacity="{holds}"><title>{_title(span)}</title></rect>'
            if end - x > 7 * min(len(span.value), _LONGEST):
                ink = "#ffffff" if span.end is None else "#000000"
                yield _text(x + 4, y + 15, span.value, colour=ink)
    yield from _axis(first, last, top + _ROW * len(labels))


def _title(span: Span) -> str:
    until = f"until {span.end:%Y-%m-%d}" if span.end else "holds"
    return escape(one_line(f"{span.value}: since {span.start:%Y-%m-%d}, {until}"))


def _axis(first: datetime, last: datetime, y: float) -> Iterator[str]:
    shown = "%Y-%m-%d" if (last - first).days >= _TICKS else "%m-%d %H:%M"
    yield _line(_LEFT, y, _WIDTH - _RIGHT, y, "#444444")
    for number, at in enumerate(moments(first, last, _TICKS)):
        x = _LEFT + number / (_TICKS - 1) * _PLOT
        yield _line(x, y, x, y + 5, "#444444")
        yield _text(x, y + 19, at.astimezone().strftime(shown), anchor="middle")


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashed}/>'


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, colour: str = "#222222"
) -> str:
    line = one_line(text)
    shown = escape(line if len(line) <= _LONGEST * 2 else line[: _LONGEST * 2] + "…")
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" fill="{colour}">{shown}</text>'
