"""`hearth verify`: the log against its checksums, its views against the events, and the stores against it."""

from __future__ import annotations

from typing import Annotated

import typer

from hearth.gateway.commands.client import Answer, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url
from hearth.gateway.commands.output import FAILED, counted, note, say, say_json, table, waiting

NAMED = 1_000
"""Damaged events that are named at most."""


def verify(
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Bring views, short-term and long-term memory to what the events say."),
    ] = False,
    user: Annotated[
        str | None, typer.Option("--user", help="Of this user alone.", show_default=False)
    ] = None,
    after: Annotated[str, typer.Option(help="Users behind this name: go on where it was interrupted.")] = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Compare events with their checksums, the log's views with events, and stores with the log; needs an
    admin key.

    Exit code 1 if an event is damaged or gone, or if views or stores differ and are not repaired.

    Example: hearth verify --repair
    """
    with gateway(url, key) as rest, waiting("Verifying"):
        found: Answer | None = None
        following: str | None = after
        while following is not None:
            part = rest.post(
                "/verifications", {"user": user, "after": following, "repair": repair}, wait=True
            )
            found = part if found is None else _added(found, part)
            following = part["next"]
            if following is not None:
                note(f"{counted(found['users'], 'user')} so far; --after {following} goes on from here")
    if found is None:
        return
    del found["next"]
    drift = sum(sum(found[store].values()) for store in ("long_term", "short_term", "views"))
    if as_json:
        say_json(found)
    else:
        _show(found)
    if found["damages"] or found["missing"] or (drift and not repair):
        raise typer.Exit(FAILED)


def _added(found: Answer, part: Answer) -> Answer:
    """Two parts as one: numbers added up, lists one behind the other."""
    sums: Answer = {}
    for name, value in part.items():
        match value:
            case dict():
                sums[name] = _added(found[name], value)
            case list():
                sums[name] = [*found[name], *value][:NAMED]
            case int():
                sums[name] = found[name] + value
            case _:
                sums[name] = value
    return sums


def _show(found: Answer) -> None:
    damage = f"{found['damages']} damaged, {found['missing']} gone"
    say(
        f"{counted(found['events'], 'event')} of {counted(found['users'], 'user')}: {damage},"
        f" {found['redacted']} redacted, {found['unsealed']} without checksums"
    )
    for one in found["damaged"]:
        say(f"  event {one['seq']} ({one['kind']}, {one['id']}): {one['reason']}", style="red")
    columns = ("missing", "extra", "different", "older")
    stores = (("long-term", "long_term"), ("short-term", "short_term"), ("views", "views"))
    table(
        ("store", *columns), [(shown, *(found[name][column] for column in columns)) for shown, name in stores]
    )
    say(f"{found['records']} records in the log, {found['repaired']} repaired")
    if found["unfolded"]:
        why = "an event can't be read, or they went on talking"
        note(f"{found['unfolded']} users' views were not compared: {why}")
    if found["behind"]:
        note(f"{found['behind']} users' stores were not compared: the worker has yet to file what they said")
