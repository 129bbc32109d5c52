"""`hearth system-memory`: what holds for all users of a tenant."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from hearth.gateway.commands.client import Answer, GatewayError, Rest, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url
from hearth.gateway.commands.output import MISUSED, fail, moment, note, say, say_gone, say_json, table

Topic: TypeAlias = Annotated[
    str, typer.Argument(help="Attribute and value, as `list` shows them: speaks=german.")
]
Agent: TypeAlias = Annotated[str, typer.Option(help="For users of this agent alone.", show_default=False)]

system = typer.Typer(help="What holds for all users of the key's tenant.", no_args_is_help=True)


@system.command("list")
def list_(url: Url = DEFAULT_URL, key: ApiKey = "", as_json: Json = False) -> None:
    """List the texts in force, and what enough users share to be proposed. Needs an admin key.

    Example: hearth system-memory list
    """
    with gateway(url, key) as rest:
        found = rest.get("/system-memory")
    if as_json:
        say_json(found)
        return
    table(
        ("id", "topic", "agent", "by", "since", "text"),
        [
            (one["id"], one["topic"], one["agent"], one["by"], moment(one["at"]), one["text"])
            for one in found["items"]
        ],
    )
    say("")
    table(
        ("proposed", "users", "suggested text"),
        [(one["topic"], str(one["users"]), one["suggestion"]) for one in found["proposals"]],
    )
    note(
        f"{len(found['items'])} texts, {len(found['proposals'])} proposals;"
        f" shared by {found['least_users']} users at least"
    )


@system.command("approve")
def approve(
    topic: Topic,
    text: Annotated[
        str, typer.Option("--text", help="What all users get; nothing of a single person's.")
    ] = "",
    suggested: Annotated[bool, typer.Option("--suggested", help="Take the suggested text.")] = False,
    agent: Agent = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Make a text system memory for what many users share. Needs an admin key.

    Example: hearth system-memory approve speaks=german --text "Answer in German where asked in it."
    """
    if bool(text.strip()) == suggested:
        fail("expected either --text or --suggested", MISUSED)
    with gateway(url, key) as rest:
        text = _suggestion(rest, topic) if suggested else text
        made = rest.post("/system-memory/approve", {"topic": topic, "text": text, "agent": agent or None})
    _say_made(made, as_json=as_json)


@system.command("refuse")
def refuse(topic: Topic, url: Url = DEFAULT_URL, key: ApiKey = "", as_json: Json = False) -> None:
    """Refuse what many users share: it is not proposed again. Needs an admin key.

    Example: hearth system-memory refuse speaks=german
    """
    with gateway(url, key) as rest:
        refused = rest.post("/system-memory/refuse", {"topic": topic})
    if as_json:
        say_json(refused)
    else:
        say(f"refused {refused['topic']}")


@system.command("add")
def add(
    text: Annotated[str, typer.Argument(help="What all users get; nothing of a single person's.")],
    agent: Agent = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Add a text in your own words. Needs an admin key.

    Example: hearth system-memory add "The office is closed on Fridays."
    """
    with gateway(url, key) as rest:
        made = rest.post("/system-memory", {"text": text, "agent": agent or None})
    _say_made(made, as_json=as_json)


@system.command("remove")
def remove(
    ids: Annotated[list[str], typer.Argument(help="Texts, by their ids.")],
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Remove texts: nobody gets them any more, and they leave all stores. Needs an admin key.

    Example: hearth system-memory remove c0ffee00c0ffee00c0ffee00c0ffee00
    """
    with gateway(url, key) as rest:
        gone = [rest.delete(f"/system-memory/{_checked(id)}") for id in ids]
    if as_json:
        say_json({"items": gone})
        return
    for one in gone:
        say_gone(f"removed {one['id']}", one)


def _suggestion(rest: Rest, topic: str) -> str:
    for one in rest.get("/system-memory")["proposals"]:
        if one["topic"] == topic:
            return str(one["suggestion"])
    raise GatewayError(f"{topic}: expected a topic that is proposed now", status=400)


def _checked(id: str) -> str:
    if not id.isalnum():
        raise GatewayError(f"{id}: expected a text's id, as `list` shows it", status=400)
    return id


def _say_made(made: Answer, *, as_json: bool) -> None:
    if as_json:
        say_json(made)
    else:
        say(f"{made['id']} {made['text']}")
