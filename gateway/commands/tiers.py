"""Commands about a memory's tiers: what stands in each of them, and by which policy it lives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from hearth.gateway.commands.client import Answer, gateway
from hearth.gateway.commands.drawing import bar
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Config, Json, Url, User
from hearth.gateway.commands.output import moment, note, number, out, say, say_json, table

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


def policy(
    context: typer.Context,
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", help="Of this tenant, by the file alone, without a gateway."),
    ] = None,
    config: Config = None,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Show each value by which memory lives, and who has set it: Hearth, `hearth.life` or the tenant.

    Of the key's tenant; with --tenant or --config what the file says, which a gateway may not have read yet.

    Example: hearth policy --tenant research --config litellm_config.yaml
    """
    source = context.get_parameter_source("config")
    if tenant is not None or (source is not None and source.name == "COMMANDLINE"):
        found = _by_file(config, tenant or "")
    else:
        with gateway(url, key) as rest:
            found = rest.get("/policy")
    if as_json:
        say_json(found)
        return
    rows = ((one["name"], _value(one["value"]), one["source"]) for one in found["items"])
    table(("value", "is", "by"), rows)
    whose = f"tenant {found['tenant']}" if found["tenant"] else "every tenant without values of its own"
    note(f"of {whose}")


def _by_file(config: Path | None, tenant: str) -> Answer:
    from hearth.gateway.commands.settings import load
    from hearth.gateway.life import effective, embedder_name

    hearth = load(config).hearth
    values = effective(hearth, tenant, embedder_name(hearth))
    return {"tenant": tenant, "items": [one._asdict() for one in values]}


def _value(value: object) -> str:
    return "any" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _tiers(found: Answer) -> list[tuple[str, str]]:
    short, mid, long, flow = (found[name] for name in ("short_term", "mid_term", "long_term", "flow"))
    pages = f"{short['pages']} of {short['pages_limit']} pages, of {_some(short['sessions'], 'session')}"
    tokens = f"{short['tokens']:,} of {short['tokens_limit']:,} tokens"
    since = f", since {moment(short['oldest'])}" if short["oldest"] else ""
    most = "" if mid["segments_limit"] is None else f" of {mid['segments_limit']:,}"
    segments = f"{mid['segments']:,}{most} segments, of {_some(mid['pages'], 'page')}"
    size = f"{mid['bytes'] / 1000:,.1f} kB"
    facts = f"{_some(long['fact'], 'fact')}, {long['persona']:,} persona, {_some(long['episode'], 'episode')}"
    rest = f"{long['knowledge']:,} knowledge; {long['superseded']:,} closed or replaced"
    moved = f"{_some(flow['pages_moved'], 'page')} moved on, {_some(flow['visits'], 'visit')} warmed segments"
    gone = f"{flow['promoted']:,} promoted, {flow['evicted']:,} evicted"
    new = f"{_some(flow['memories_added'], 'memory', 'memories')} added"
    return [
        ("short-term", f"{pages}, {tokens}{since}"),
        ("mid-term", f"{segments}, {size}; {mid['evicted']:,} have left"),
        ("long-term", f"{facts}, {rest}"),
        (f"{flow['days']} days", f"{moved}, {gone}; {new}"),
    ]


def _some(count: int, one: str, several: str = "") -> str:
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


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
