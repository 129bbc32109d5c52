"""Commands about what is removed for good: erase, its receipts, and legal holds."""

from __future__ import annotations

import sys
from typing import Annotated
from urllib.parse import quote

import typer

from hearth.gateway.commands.client import Answer, Rest, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Limit, Url, User
from hearth.gateway.commands.output import FAILED, MISUSED, fail, moment, note, say, say_json, table

hold = typer.Typer(help="Legal holds: who is neither erased nor runs out.", no_args_is_help=True)


def erase(
    user: Annotated[
        str, typer.Argument(help="Whose memory; none: the key's own user.", show_default=False)
    ] = "",
    session: Annotated[
        str, typer.Option("--session", help="That conversation of the user alone.", show_default=False)
    ] = "",
    tenant: Annotated[
        str,
        typer.Option(
            "--tenant", help="The key's tenant, by its name: all its users and documents.", show_default=False
        ),
    ] = "",
    reason: Annotated[str, typer.Option("--reason", help="Why; stands in the receipt.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Erase all of a user, a session, or a tenant, in every store. It can't be undone.

    Example: hearth erase alice --reason "asked by mail" --yes
    """
    if tenant and (user or session):
        fail("expected a user, perhaps with --session, or --tenant", MISUSED)
    with gateway(url, key, user if session else "") as rest:
        whose = tenant or user or rest.get("/scopes")["user"]
        if not whose:
            fail("this key names its users; say whose memory to erase", MISUSED)
        if not yes:
            _confirm(f"session {session} of {whose}" if session else whose)
        done = _erase(rest, whose, session, tenant, reason)
    if as_json:
        say_json(done)
        return
    pending = done.get("pending", ["its users"])
    left = f": unreachable; {', '.join(pending)} is cleared when it is back"
    if tenant:
        left = ": unreachable; the worker comes to its users one after the other"
    say(f"erased {session or whose}{'' if done.get('done') else left}")
    say(f"receipt {done['receipt']}")


def erasure(
    id: Annotated[str, typer.Argument(help="A receipt's id; none: the latest.", show_default=False)] = "",
    limit: Limit = 20,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Show the receipt of an erasure: what went where, and what a scan found of it; exit code 1 if anything.

    Without an id: the latest of the tenant, with an admin key.

    Example: hearth erasure 018f6b1c2d3e4f5061728394a5b6c7d8
    """
    with gateway(url, key, user) as rest:
        found = rest.get(f"/erasures/{quote(id, safe='')}") if id else rest.get("/erasures", limit=limit)
    if as_json:
        say_json(found)
    elif id:
        _show(found)
    else:
        rows = [
            (one["id"], one["what"], one["user"], one["state"], moment(one["requested_at"]))
            for one in found["items"]
        ]
        table(("receipt", "what", "user", "state", "when"), rows)
    raise typer.Exit(FAILED if id and any(one["found"] for one in found["scan"]) else 0)


@hold.command("place")
def place(
    user: Annotated[str, typer.Argument(help="Who.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; stands in the log.")],
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Place a legal hold on a user: erasures wait, and nothing of them runs out. Needs an admin key.

    Example: hearth hold place alice --reason "case 7"
    """
    with gateway(url, key) as rest:
        placed = rest.put(f"/holds/{quote(user, safe='')}", {"reason": reason})
    if as_json:
        say_json(placed)
    else:
        say(f"{placed['user']} is held since {moment(placed['at'])}")


@hold.command("lift")
def lift(
    user: Annotated[str, typer.Argument(help="Who.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; stands in the log.")],
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Lift a legal hold; erasures that waited for that follow. Needs an admin key.

    Example: hearth hold lift alice --reason "settled"
    """
    with gateway(url, key) as rest:
        lifted = rest.delete(f"/holds/{quote(user, safe='')}", reason=reason)
    if as_json:
        say_json(lifted)
    else:
        say(f"{lifted['user']} is held no more")


@hold.command("list")
def list_(url: Url = DEFAULT_URL, key: ApiKey = "", as_json: Json = False) -> None:
    """List who is held, since when, why, and by which key. Needs an admin key.

    Example: hearth hold list
    """
    with gateway(url, key) as rest:
        found = rest.get("/holds")
    if as_json:
        say_json(found)
        return
    rows = [(one["user"], moment(one["at"]), one["by"], one["reason"]) for one in found["items"]]
    table(("user", "since", "by", "why"), rows)


def _erase(rest: Rest, whose: str, session: str, tenant: str, reason: str) -> Answer:
    because = reason or None
    if tenant:
        return rest.delete("/tenant", confirm=tenant, reason=because)
    if session:
        return rest.delete(f"/sessions/{quote(session, safe='')}", reason=because)
    return rest.delete(f"/users/{quote(whose, safe='')}", reason=because)


def _confirm(what: str) -> None:
    if not sys.stdin.isatty():
        fail("there is nobody to ask here; add --yes", MISUSED)
    note(f"All memories, exchanges and events of {what} are removed for good.")
    typer.confirm("Erase them?", abort=True, err=True)


def _show(receipt: Answer) -> None:
    about = f"{receipt['what']} {receipt['record'] or receipt['user']}".strip()
    when = f", on {moment(receipt['requested_at'])}"
    by = f", by {receipt['by']}" if receipt["by"] else ""
    say(f"{about}: {receipt['state']}{by}{when}{': ' if receipt['reason'] else ''}{receipt['reason']}")
    there = ", ".join(f"{number} {sort}" for sort, number in receipt["found"].items())
    say(f"there were {there or 'none'}")
    if receipt["steps"]:
        rows = [
            (one["place"], moment(one["done_at"]) or "not yet", one["trouble"]) for one in receipt["steps"]
        ]
        table(("place", "gone", "why not"), rows)
    if receipt["scan"]:
        scans = [(one["place"], one["how"], one["size"], one["found"]) for one in receipt["scan"]]
        table(("place", "scanned", "size", "found"), scans)
    if held := receipt["provider_held"]:
        left = sum(one["gone_at"] is None for one in held)
        say(f"{len(held)} responses were kept by their providers, {left} may be still:")
        rows = [(one["response"], one["model"], moment(one["at"]), moment(one["gone_at"])) for one in held]
        table(("response", "model", "when", "deleted"), rows)
