"""The command that takes a request to forget back."""

from __future__ import annotations

from typing import Annotated

import typer

from hearth.gateway.commands.client import Answer, GatewayError, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url, User
from hearth.gateway.commands.output import moment, say, say_json, table


def undo(
    exchange: Annotated[
        str,
        typer.Argument(help="In which it was asked; none: list what was asked.", show_default=False),
    ] = "",
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Bring back what was forgotten because a conversation asked for it, within a day.

    Example: hearth undo 7d3c1a9b5e8f40218a6b4c2d0e1f3a5b
    """
    if exchange and not exchange.isalnum():
        raise GatewayError(f"{exchange}: expected an exchange's id", status=400)
    with gateway(url, key, user) as rest:
        found = rest.post(f"/forgettings/{exchange}/undo", {}) if exchange else rest.get("/forgettings")
    if as_json:
        say_json(found)
    elif exchange:
        say(f"{_what(found)} recalled again")
    else:
        rows = [
            (f["exchange"], moment(f["at"]), f["understood"], f["outcome"], _what(f), _until(f))
            for f in found["items"]
        ]
        table(("exchange", "when", "understood", "outcome", "what", "can be undone"), rows)


def _what(found: Answer) -> str:
    counts = {"memories": found["memories"], "exchanges": found["exchanges"], "parts": found["marked"]}
    return ", ".join(f"{len(ids)} {name}" for name, ids in counts.items() if ids) or "nothing"


def _until(found: Answer) -> str:
    return f"until {moment(found['until'])}" if found["state"] == "waiting" else found["state"]
