"""`hearth tiers`: what stands in each tier of a memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import quote

import typer

from hearth.gateway.commands.client import Answer, gateway
from hearth.gateway.commands.drawing import bar
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url, User
from hearth.gateway.commands.output import counted, moment, note, number, out, say, say_json, table

_BAR = 16
"""Characters of a bar."""


def tiers(
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="Most segments to show.")] = 20,
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="Of the flow.")] = 7,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Show what stands in each tier of a memory, the hottest segments first, and what moved lately.

    Example: hearth tiers --user alice
    """
    with gateway(url, key, user) as rest:
        found = rest.get("/tiers", limit=limit, days=days)
    if as_json:
        say_json(found)
        return
    table(("tier", "holds"), _tiers(found))
    mid = found["mid_term"]
    if not mid["items"]:
        return
    say("")
    drawn = ("",) if out.is_terminal else ()
    columns = ("segment", "heat", *drawn, "pages", "kB", "topic", "summed up", "first", "last", "words")
    table(columns, _segments(mid))
    note(f"{len(mid['items'])} of {mid['segments']}; summed up from a heat of {mid['promotion']:g} on")


def pin(
    segment: Annotated[str, typer.Argument(help="Id of the segment, as `hearth tiers` shows it.")],
    off: Annotated[bool, typer.Option("--off", help="Let its heat decide again.")] = False,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Keep a segment whatever its heat: it is never evicted.

    Example: hearth pin 5e2f0c1d7a9b45d88c3e6f7081920a3b
    """
    with gateway(url, key, user) as rest:
        path = f"/segments/{quote(segment, safe='')}/pin"
        found = rest.delete(path) if off else rest.put(path, None)
    if as_json:
        say_json(found)
    else:
        say(f"{found['id']} {'is kept' if found['pinned'] else 'is kept as long as it is warm'}")


def evictions(
    segments: Annotated[int | None, typer.Option(help="Try this limit of segments.")] = None,
    pages: Annotated[int | None, typer.Option(help="Try this limit of pages.")] = None,
    size: Annotated[int | None, typer.Option("--bytes", help="Try this limit of bytes.")] = None,
    days: Annotated[float | None, typer.Option(help="Try this age.")] = None,
    session_segments: Annotated[int | None, typer.Option(help="Try this limit of a session.")] = None,
    tenant: Annotated[
        bool, typer.Option("--tenant", help="By age and the limits over all users; needs an admin key.")
    ] = False,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Show which segments the policy's limits, or others, would evict now, and why. Nothing is evicted.

    Example: hearth evictions --segments 100 --user alice
    """
    if tenant and session_segments is not None:
        raise typer.BadParameter("no limit of a session goes with --tenant", param_hint="--session-segments")
    limits = {"segments": segments, "pages": pages, "bytes": size, "days": days}
    with gateway(url, key, user) as rest:
        if tenant:
            found = rest.get("/tenant/evictions", **limits)
        else:
            found = rest.get("/evictions", **limits, session_segments=session_segments)
    if as_json:
        say_json(found)
        return
    columns = ("segment", "heat", "pages", "kB", "last", "for")
    table(
        ("user", *columns) if tenant else columns,
        (
            (
                *([one["user"]] if tenant else []),
                one["id"],
                number(one["heat"]),
                one["pages"],
                f"{one['bytes'] / 1000:.1f}",
                moment(one["last_at"]),
                one["reason"],
            )
            for one in found["items"]
        ),
    )
    note(f"{counted(len(found['items']), 'segment')} would leave")


def _tiers(found: Answer) -> list[tuple[str, str]]:
    short, mid, long, flow = (found[name] for name in ("short_term", "mid_term", "long_term", "flow"))
    pages = f"{short['pages']} of {short['pages_limit']} pages, of {counted(short['sessions'], 'session')}"
    tokens = f"{short['tokens']:,} of {short['tokens_limit']:,} tokens"
    summed = f", {counted(short['summaries'], 'session')} summed up" if short["summaries"] else ""
    since = f", since {moment(short['oldest'])}" if short["oldest"] else ""
    most = "" if mid["segments_limit"] is None else f" of {mid['segments_limit']:,}"
    segments = f"{mid['segments']:,}{most} segments, of {counted(mid['pages'], 'page')}"
    size = f"{mid['bytes'] / 1000:,.1f} kB"
    facts, episodes = counted(long["fact"], "fact"), counted(long["episode"], "episode")
    rest = f"{long['knowledge']:,} knowledge; {long['superseded']:,} closed or replaced"
    moved, visits = counted(flow["pages_moved"], "page"), counted(flow["visits"], "visit")
    gone = f"{flow['promoted']:,} promoted, {flow['evicted']:,} evicted"
    new = f"{counted(flow['memories_added'], 'memory', 'memories')} added"
    return [
        ("short-term", f"{pages}, {tokens}{since}{summed}"),
        ("mid-term", f"{segments}, {size}; {mid['evicted']:,} have left"),
        ("long-term", f"{facts}, {long['persona']:,} persona, {episodes}, {rest}"),
        (f"{flow['days']} days", f"{moved} moved on, {visits} warmed segments, {gone}; {new}"),
    ]


def _segments(mid: Answer) -> Iterator[tuple[object, ...]]:
    most = max(mid["promotion"], *(one["heat"] for one in mid["items"]))
    for one in mid["items"]:
        drawn = (bar(one["heat"], most, _BAR),) if out.is_terminal else ()
        yield (
            one["id"],
            number(one["heat"]),
            *drawn,
            one["pages"],
            f"{one['bytes'] / 1000:.1f}",
            "rests" if one["closed"] else "open",
            one["promoted"] or "",
            moment(one["opened_at"]),
            moment(one["last_at"]),
            ", ".join(one["words"]),
        )
