"""`hearth compare`: raw against compacted context for a question."""

from __future__ import annotations

from typing import Annotated

import typer

from hearth.gateway.commands.client import Answer, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url, User
from hearth.gateway.commands.output import note, say, say_json, table


def compare(
    query: Annotated[str, typer.Argument(help="What the user would say.")],
    budget: Annotated[
        int | None, typer.Option(min=0, help="Tokens of each block; the key's, if not given.")
    ] = None,
    model: Annotated[str, typer.Option(help="Whose tokens are counted.", show_default=False)] = "",
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Show what concepts save for a message: the tokens with and without them, and which evidence is in each.

    Example: hearth compare "What do you know about my dog?"
    """
    with gateway(url, key, user) as rest:
        found = rest.post("/compare", {"query": query, "budget": budget, "model": model})
    if as_json:
        say_json(found)
        return
    table(
        ("context", "tokens", "items"),
        [(name, found[name]["tokens"], found[name]["items"]) for name in ("raw", "compacted")],
    )
    say("")
    table(
        ("evidence", "raw", "compacted", "text"),
        [(one["type"], "yes" if one["raw"] else "", _where(one), one["text"]) for one in found["evidence"]],
    )
    note(f"{found['saved']} tokens saved; of what raw shows {found['kept']} kept, {found['lost']} left out")


def _where(one: Answer) -> str:
    if one["concept"]:
        return f"in concept {one['concept'][:8]}"
    return "yes" if one["compacted"] else ""
