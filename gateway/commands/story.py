"""Commands about one record: what became of it, and what a memory held over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from hearth.gateway.commands.client import Answer, GatewayError, Rest, gateway
from hearth.gateway.commands.drawing import Span, heat_curve, span_line, spans, sparkline
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url, User
from hearth.gateway.commands.output import fail, moment, note, number, out, say, say_json, table
from hearth.gateway.commands.svg import timeline_svg

_WIDTH = 40
"""Characters of a curve or a span."""
_FACTS = 1_000
"""Facts of a user that are looked at: the newest."""


def why(
    id: Annotated[str, typer.Argument(help="Of a memory, an exchange or a segment.")],
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Tell what became of a memory, an exchange or a segment, from what was said to now.

    Example: hearth why 018f6b1c2d3e4f5061728394a5b6c7d8
    """
    with gateway(url, key, user) as rest:
        found = rest.get(f"/stories/{_checked(id)}")
    if as_json:
        say_json(found)
        return
    table(("when", "what", "with", "how"), _chapters(found))
    if found["subject"] != "segment":
        note(f"shown in {found['shown']} prompts; {found['drawn']} replies drew on it")


def timeline(
    id: Annotated[
        str, typer.Argument(help="Of a segment or a memory; none: all of the user.", show_default=False)
    ] = "",
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Also draw it into this file.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="Most segments, of a user.")] = 8,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Show a segment's heat over time, and which values a fact had from when until when.

    Example: hearth timeline --user alice --svg alice.svg
    """
    with gateway(url, key, user) as rest:
        lines, facts = _of_record(rest, _checked(id)) if id else _of_user(rest, limit)
    held = spans(facts)
    if svg is not None:
        whose = f"{'' if id else 'the memory of '}{id or user or 'this key'}"
        _write(svg, timeline_svg(f"Timeline: {whose}", lines, held, datetime.now(UTC)))
    if as_json:
        say_json({"segments": lines, "facts": facts})
        return
    _show(lines, held, alone=bool(id))


def _of_record(rest: Rest, id: str) -> tuple[list[Answer], list[Answer]]:
    """The heat of that segment, or the history of that memory."""
    try:
        return [rest.get(f"/segments/{id}/heat")], []
    except GatewayError as error:
        if error.status != 404:
            raise
    try:
        return [], rest.get(f"/memories/{id}/history")["items"]
    except GatewayError as error:
        if error.status == 404:
            raise GatewayError(f"{id}: there is no such segment or memory", status=404) from error
        raise


def _of_user(rest: Rest, limit: int) -> tuple[list[Answer], list[Answer]]:
    """The hottest segments, and all facts that fill an attribute."""
    hottest = rest.get("/tiers", limit=limit)["mid_term"]["items"]
    lines = [rest.get(f"/segments/{one['id']}/heat") for one in hottest]
    kinds = ["fact", "persona"]
    facts = rest.walk("/memories", _FACTS, types=kinds, include_superseded=True)["items"]
    return lines, [fact for fact in facts if fact["attribute"]]


def _show(lines: Sequence[Answer], held: Sequence[Span], *, alone: bool) -> None:
    if lines and alone:
        _one_segment(lines[0])
    elif lines:
        drawn = ("over time",) if out.is_terminal else ()
        table(("segment", "first", "heat", "most", *drawn, "words"), _segments(lines))
    if lines and held:
        say("")
    if held:
        drawn = ("over time",) if out.is_terminal else ()
        table(("fact", "since", "until", *drawn, "value"), _facts(held))
    if not lines and not held:
        note("nothing is known yet")


def _one_segment(line: Answer) -> None:
    if out.is_terminal and line["points"]:
        most = max(*(point["heat"] for point in line["points"]), line["promotion"])
        say(sparkline(heat_curve(line, _WIDTH * 2), most), style="yellow")
    rows = ((moment(one["at"]), number(one["heat"]), one["what"], one["of"]) for one in line["points"])
    table(("when", "heat", "what", "of"), rows)
    note(", ".join(line["words"]) if line["live"] else "it has left mid-term memory")
    if not line["whole"]:
        note("the latest points are left out: there are too many")


def _segments(lines: Sequence[Answer]) -> Iterator[tuple[object, ...]]:
    known = [line for line in lines if line["points"]]
    times = [datetime.fromisoformat(point["at"]) for line in known for point in line["points"]]
    heats = [point["heat"] for line in known for point in line["points"]]
    for line in known:
        drawn: tuple[str, ...] = ()
        if out.is_terminal:
            curve = heat_curve(line, _WIDTH, first=min(times), last=max(times))
            drawn = (sparkline(curve, max(heats)),)
        own = [point["heat"] for point in line["points"]]
        first = moment(line["points"][0]["at"])
        yield line["id"], first, number(own[-1]), number(max(own)), *drawn, ", ".join(line["words"])


def _facts(held: Sequence[Span]) -> Iterator[tuple[object, ...]]:
    now = datetime.now(UTC)
    first, last = min(span.start for span in held), max(now, *(span.end or now for span in held))
    for span in held:
        line = span_line(span.start, span.end or last, first, last, _WIDTH)
        until = moment(span.end.isoformat()) if span.end else "holds"
        drawn = (line,) if out.is_terminal else ()
        yield span.label, moment(span.start.isoformat()), until, *drawn, span.value


def _chapters(found: Answer) -> Iterator[tuple[object, ...]]:
    for one in found["chapters"]:
        quote = f" “{one['quote']}”" if one["quote"] else ""
        yield moment(one["at"]), one["what"], one["of"], f"{one['text']}{quote}"


def _checked(id: str) -> str:
    if not id.isalnum():
        raise GatewayError(f"{id}: expected an id, as `hearth tiers` and `hearth list` show it", status=400)
    return id


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{path} can't be written: {error}")
    note(f"drawn into {path}")
