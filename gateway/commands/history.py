"""Commands about what was said and done: sessions, exchanges, events, and the import of dialogues."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hearth.gateway.commands.client import PAGE, Answer, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Limit, Url, User
from hearth.gateway.commands.output import moment, note, one_line, say_json, table

SHOWN = 200
"""Characters of an event's payload in the table."""


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
        (s["id"], s["agent"], s["exchanges"], moment(s["started_at"]), moment(s["last_at"]))
        for s in page["items"]
    ]
    table(("session", "agent", "exchanges", "started", "last"), rows)


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
    after: Annotated[int, typer.Option(min=0, help="Events behind this position.")] = 0,
    session: Annotated[str | None, typer.Option(help="Of this conversation alone.")] = None,
    limit: Limit = 50,
    user: Annotated[
        str | None, typer.Option("--user", help="Of this user alone.", show_default=False)
    ] = None,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Read the log of the key's tenant, in order; needs an admin key.

    Example: hearth events --kind memory.added --kind memory.forgotten
    """
    found: list[Answer] = []
    with gateway(url, key) as rest:
        while len(found) < limit:
            asked = min(limit - len(found), PAGE)
            page = rest.get("/events", after=after, limit=asked, kinds=kinds, user=user, session=session)
            found += page["items"]
            after = page["next"]
            if len(page["items"]) < asked:
                break
    if as_json:
        say_json({"items": found, "next": after})
        return
    rows = [
        (
            e["seq"],
            moment(e["occurred_at"]),
            e["kind"],
            e["user"],
            _shortened(e["payload"]),
        )
        for e in found
    ]
    table(("seq", "when", "kind", "user", "about"), rows)
    note(f"go on with --after {after}; --json shows payloads whole")


def _shortened(payload: Answer) -> str:
    """What an event is about: the words of its record where it has any, else the payload itself."""
    inner = next((value for value in payload.values() if isinstance(value, dict)), payload)
    if "user_text" in inner:
        text = f"{inner['user_text']} → {inner['reply_text']}"
    else:
        text = inner.get("text") or json.dumps(payload, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
