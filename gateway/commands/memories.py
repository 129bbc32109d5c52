"""Commands about memories: add, list, search, forget."""

from __future__ import annotations

import sys
from typing import Annotated, Any, TypeAlias

import typer

from hearth.gateway.commands.client import Answer, GatewayError, Rest, gateway
from hearth.gateway.commands.days import AsOf, Since, Until
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Limit, Url, User
from hearth.gateway.commands.output import (
    MISUSED,
    fail,
    moment,
    note,
    number,
    one_line,
    say,
    say_gone,
    say_json,
    spoken,
    table,
)

Tags: TypeAlias = Annotated[list[str], typer.Option("--tag", help="Repeat for several; all must be there.")]
Then: TypeAlias = Annotated[
    bool, typer.Option("--then", help="With --as-of: by what memory knew then, as it knew it.")
]
Words: TypeAlias = Annotated[str, typer.Option(help="All of these words must occur.", show_default=False)]
Session: TypeAlias = Annotated[str | None, typer.Option(help="Of this conversation alone.")]


def add(
    text: Annotated[str, typer.Argument(help="What to remember; `-` reads it from standard input.")],
    type: Annotated[str, typer.Option(help="fact, persona, episode or knowledge.")] = "fact",
    attribute: Annotated[
        str, typer.Option(help="What it says of the user, such as residence; closes the value before.")
    ] = "",
    value: Annotated[str, typer.Option(help="The attribute's value.")] = "",
    tags: Annotated[list[str], typer.Option("--tag", help="Repeat for several.")] = [],  # noqa: B006
    metadata: Annotated[list[str], typer.Option("--meta", help="NAME=VALUE; repeat for several.")] = [],  # noqa: B006
    importance: Annotated[float, typer.Option(min=0, max=1, help="How much it is worth keeping.")] = 0.5,
    pin: Annotated[bool, typer.Option("--pin", help="Never let it go for want of space.")] = False,
    at: Annotated[
        str | None, typer.Option(help="When it was said or happened; now, where not given.")
    ] = None,
    expires: Annotated[str | None, typer.Option(help="When it stops to hold.")] = None,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Add a memory by hand and print its id.

    Example: hearth add "Alice is allergic to kiwi." --tag health
    """
    body = {
        "text": sys.stdin.read() if text == "-" else text,
        "type": type,
        "attribute": attribute,
        "value": value,
        "tags": tags,
        "metadata": dict(_pair(entry) for entry in metadata),
        "importance": importance,
        "pinned": pin,
        "occurred_at": at,
        "expires_at": expires,
    }
    with gateway(url, key, user) as rest:
        added = rest.post("/memories", body)
    if as_json:
        say_json(added)
    else:
        say(added["id"])


def list_(
    types: Annotated[list[str], typer.Option("--type", help="Repeat for several; none: all.")] = [],  # noqa: B006
    tags: Tags = [],  # noqa: B006
    words: Words = "",
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    then: Then = False,
    session: Session = None,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Also what a newer fact has closed.")
    ] = False,
    limit: Limit = 50,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """List memories, newest first.

    Example: hearth list --tag health --limit 20
    """
    where = {"types": types, "tags": tags, "words": words, "since": since, "until": until, "session": session}
    with gateway(url, key, user) as rest:
        page = rest.walk(
            "/memories", limit, include_superseded=superseded, as_of=as_of, known=_known(then), **where
        )
    if as_json:
        say_json({"items": page["items"], "total": page["total"]})
        return
    table(
        ("id", "type", "when", "text"),
        [(m["id"], m["type"], moment(m["occurred_at"]), m["text"]) for m in page["items"]],
    )
    note(f"{len(page['items'])} of {page['total']}")


def search(
    query: Annotated[str, typer.Argument(help="Found by meaning and by words.")],
    types: Annotated[
        list[str], typer.Option("--type", help="page (an exchange), fact, persona, episode or knowledge.")
    ] = [],  # noqa: B006
    tags: Tags = [],  # noqa: B006
    words: Words = "",
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    then: Then = False,
    session: Session = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="Most records to show.")] = 10,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Search memories and exchanges, best first.

    Example: hearth search "food allergies" --limit 5
    """
    body = {
        "query": query,
        "types": types,
        "tags": tags,
        "words": words,
        "since": since,
        "until": until,
        "as_of": as_of,
        "known": _known(then),
        "session": session,
        "limit": limit,
    }
    with gateway(url, key, user) as rest:
        found = rest.post("/memories/search", body)
    if as_json:
        say_json(found)
        return
    rows = [(item["record"], item) for item in found["items"]]
    table(
        ("id", "type", "when", "meaning", "words", "text"),
        [
            (
                record["id"],
                record["type"],
                moment(record["occurred_at"]),
                number(item["text_score"]),
                number(item["lexical_score"]),
                spoken(record),
            )
            for record, item in rows
        ],
    )


def persona(
    as_of: AsOf = None,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Show who a user is: profile, traits, and what the key's agent has agreed on with them.

    Example: hearth persona
    """
    with gateway(url, key, user) as rest:
        found = rest.get("/persona", as_of=as_of)
    if as_json:
        say_json(found)
        return
    rows = [
        (part, one["attribute"], one["value"], number(one["strength"]), one["evidence"], moment(one["last"]))
        for part in ("profile", "traits", "agreed")
        for one in found[part]
    ]
    table(("", "attribute", "value", "sure", "said", "last"), rows)


def forget(
    ids: Annotated[list[str], typer.Argument(help="Memories or exchanges, as list and search show them.")],
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Forget memories or exchanges, everywhere.

    Example: hearth forget 018f6b1c2d3e4f5061728394a5b6c7d8
    """
    with gateway(url, key, user) as rest:
        gone = [_forget(rest, id) for id in ids]
    if as_json:
        say_json({"items": gone})
        return
    for one in gone:
        say_gone(f"forgotten {one['id']}", one)


def _known(then: bool) -> str:
    return "then" if then else "now"


def _forget(rest: Rest, id: str) -> Answer:
    if not id.isalnum():
        raise GatewayError(f"{id}: expected an id, as `hearth list` shows it", status=400)
    try:
        return rest.delete(f"/memories/{id}")
    except GatewayError as error:
        if error.status != 404:
            raise
    try:
        return rest.delete(f"/exchanges/{id}")
    except GatewayError as error:
        if error.status == 404:
            raise GatewayError(f"{id}: there is no such memory or exchange", status=404) from error
        raise


def _pair(entry: str) -> tuple[str, Any]:
    name, equals, value = entry.partition("=")
    if not equals or not name:
        fail(f"--meta {one_line(entry)}: expected NAME=VALUE", MISUSED)
    return name, value
