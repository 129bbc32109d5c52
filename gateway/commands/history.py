"""Commands about what was said and done: sessions, exchanges, events, and the import of dialogues."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeAlias
from urllib.parse import quote

import typer

from hearth.gateway.commands.acts import installation_events
from hearth.gateway.commands.client import PAGE, Answer, Rest, gateway
from hearth.gateway.commands.days import Since, Until
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Config, Json, Limit, Url, User
from hearth.gateway.commands.output import moment, note, one_line, say, say_json, table

SHOWN = 200
"""Characters of an event's payload in the table."""
NEWEST = 2**63 - 1
"""In front of it are all events."""
FOLLOW_SECONDS = 1.0
"""Between two looks at what is new."""

OfInstallation: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--installation",
        help="What was done to all tenants by commands on the machine; read there, with its --config.",
    ),
]


def sessions(
    limit: Limit = 50,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """List conversations, the latest first.

    Example: hearth sessions --limit 10
    """
    with gateway(url, key, user) as rest:
        page = rest.walk("/sessions", limit)
    if as_json:
        say_json({"items": page["items"]})
        return
    rows = [
        (
            s["id"],
            s["agent"],
            s["exchanges"],
            moment(s["started_at"]),
            moment(s["last_at"]),
            s["memory"],
            len(s["summary"]),
        )
        for s in page["items"]
    ]
    table(("session", "agent", "exchanges", "started", "last", "memory", "summed up"), rows)


def private(
    session: Annotated[str, typer.Argument(help="As the calls name it, or as `hearth sessions` shows it.")],
    mode: Annotated[
        str | None,
        typer.Argument(
            help="read: recalled, nothing captured; off: neither; on: private no more. None: show it.",
            show_default=False,
        ),
    ] = None,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Make a session private, from now on: nothing of it is captured. What was said before stays.

    Example: hearth private 5a1c read
    """
    path = f"/sessions/{quote(session, safe='')}/memory"
    with gateway(url, key, user) as rest:
        found = rest.get(path) if mode is None else rest.put(path, {"memory": mode})
    if as_json:
        say_json(found)
    else:
        say(f"memory is {found['memory']} in session {session}")


def exchanges(
    session: Annotated[str | None, typer.Option(help="Of this conversation alone.")] = None,
    limit: Limit = 50,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """List what was said and answered, newest first.

    Example: hearth exchanges --limit 10
    """
    with gateway(url, key, user) as rest:
        page = rest.walk("/exchanges", limit, session=session)
    if as_json:
        say_json({"items": page["items"]})
        return
    rows = [
        (
            e["id"],
            moment(e["started_at"]),
            e["route"],
            e["state"],
            len(e["injected"]),
            one_line(f"{e['user_text']} → {e['reply_text']}"),
        )
        for e in page["items"]
    ]
    table(("exchange", "when", "route", "state", "recalled", "text"), rows)


def events(
    kinds: Annotated[
        list[str], typer.Option("--kind", help="Such as memory.added; repeat for several.")
    ] = [],  # noqa: B006
    words: Annotated[
        str, typer.Option(help="All of these words occur in its texts.", show_default=False)
    ] = "",
    tags: Annotated[list[str], typer.Option("--tag", help="With this tag; repeat for several.")] = [],  # noqa: B006
    metadata: Annotated[str | None, typer.Option(help="Equal values, as a JSON object.")] = None,
    trace: Annotated[str | None, typer.Option(help="About this recall.")] = None,
    since: Since = None,
    until: Until = None,
    session: Annotated[str | None, typer.Option(help="Of this conversation alone.")] = None,
    agent: Annotated[str | None, typer.Option(help="Of this agent alone.")] = None,
    after: Annotated[
        int | None, typer.Option(min=0, help="Events behind this position.", show_default=False)
    ] = None,
    latest: Annotated[bool, typer.Option("--latest", help="The latest first.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until interrupted.")
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Count them by month and kind; takes no other filter than --user.")
    ] = False,
    limit: Limit = 50,
    user: Annotated[
        str, typer.Option("--user", help="Of this user alone; needed with an app's key.", show_default=False)
    ] = "",
    installation: OfInstallation = False,
    config: Config = None,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    lines: Annotated[bool, typer.Option("--lines", help="Print each event as a line of JSON.")] = False,
    as_json: Json = False,
) -> None:
    """Read the log: of the key's user, or with an admin key of the whole tenant.

    Example: hearth events --kind memory.added --words kiwi --latest
    """
    asked = {"kinds": kinds, "words": words or None, "tags": tags, "metadata": metadata, "trace": trace}
    asked |= {"since": since, "until": until, "session": session, "agent": agent}
    if follow and latest:
        raise typer.BadParameter("what comes is read in its order", param_hint="--latest with --follow")
    if stats and any(asked.values()):
        raise typer.BadParameter("no filter but --user", param_hint="--stats")
    if installation:
        asked |= {"user": user, "follow": follow, "stats": stats}
        found = _events(installation_events(config, asked), after or 0, limit, latest=latest)
        _show_events(*found, limit, lines=lines, as_json=as_json)
        return
    with gateway(url, key, user) as rest:
        if stats:
            _show_counts(rest.get("/events/counts")["items"], as_json=as_json)
        elif follow:
            _follow(rest, asked, after, lines=lines or as_json)
        else:
            found = _events(partial(rest.get, "/events", **asked), after or 0, limit, latest=latest)
            _show_events(*found, limit, lines=lines, as_json=as_json)


def _events(ask: Callable[..., Answer], after: int, limit: int, *, latest: bool) -> tuple[list[Answer], int]:
    """The first events that match, over as many pages as that takes, and where the rest begins."""
    found: list[Answer] = []
    place, ended = ("before", NEWEST) if latest else ("after", after), False
    while len(found) < limit and not ended:
        page = ask(**{place[0]: place[1]}, limit=min(limit - len(found), PAGE))
        found += page["items"]
        _note_unreadable(page)
        place, ended = (place[0], page["next"]), page["ended"]
    return found, place[1]


def _follow(rest: Rest, asked: Answer, after: int | None, *, lines: bool) -> None:
    """Without a position it begins with what is new."""
    if after is None:
        (after,) = {one["seq"] for one in _events(partial(rest.get, "/events"), 0, 1, latest=True)[0]} or {0}
    while True:
        page = rest.get("/events", after=after, limit=PAGE, **asked)
        _note_unreadable(page)
        for event in page["items"]:
            if lines:
                say_json(event)
            else:
                say("  ".join(str(cell) for cell in _row(event)))
        after = page["next"]
        if page["ended"]:
            time.sleep(FOLLOW_SECONDS)


def _note_unreadable(page: Answer) -> None:
    for one in page["unreadable"]:
        note(
            f"event {one['seq']} ({one['kind']}, {one['id']}) can't be read: {one['reason']}", style="yellow"
        )


def _show_events(found: list[Answer], end: int, limit: int, *, lines: bool, as_json: bool) -> None:
    if as_json:
        say_json({"items": found, "next": end})
    elif lines:
        for event in found:
            say_json(event)
    else:
        table(("seq", "when", "kind", "user", "about"), [_row(event) for event in found])
        rest = f"the rest begins at {end}; " if len(found) == limit else ""
        note(f"{rest}--json and --lines show payloads whole")


def _row(event: Answer) -> tuple[object, ...]:
    return (
        event["seq"],
        moment(event["occurred_at"]),
        event["kind"],
        event["user"],
        _shortened(event["payload"]),
    )


def _show_counts(items: list[Answer], *, as_json: bool) -> None:
    if as_json:
        say_json({"items": items})
        return
    columns = ("month", "kind", "events", "redacted", "archived", "bytes")
    numbers = columns[2:]
    total = ("all", "", *(sum(one[name] for one in items) for name in numbers))
    table(columns, [*(tuple(one[name] for name in columns) for one in items), total])


def _shortened(payload: Answer) -> str:
    """What an event is about: the words of its record where it has any, else the payload itself."""
    inner = next((value for value in payload.values() if isinstance(value, dict)), payload)
    if "user_text" in inner:
        text = f"{inner['user_text']} → {inner['reply_text']}"
    else:
        text = inner.get("text") or json.dumps(payload, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
