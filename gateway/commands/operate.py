"""Commands for whoever runs the gateway: health, switch, users, erase."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, get_args
from urllib.parse import quote

import typer

from hearth.gateway.commands.client import Answer, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Config, Json, Limit, Url
from hearth.gateway.commands.output import FAILED, MISUSED, fail, note, say, say_json, table

_SWITCHED = {
    "settings": "every call that does not ask for more, by the settings",
    "everyone": "everyone, by a switch",
    "tenant": "this tenant, by a switch",
}
"""How health puts what `switched` names; a key is named as it is."""


def health(url: Url = DEFAULT_URL, key: ApiKey = "", as_json: Json = False) -> None:
    """Say how memory is, part by part, and what it is switched off for; exit code 1 if it is down.

    Example: hearth health
    """
    with gateway(url, key) as rest:
        found = rest.get("/health")
    if as_json:
        say_json(found)
    else:
        say(found["status"], style={"ok": "green", "degraded": "yellow"}.get(found["status"], "red"))
        for what, mode in found["switched"].items():
            say(f"memory is {mode} for {_SWITCHED.get(what, what)}", style="yellow")
        rows = [
            (name, part["status"], "; ".join(part["reasons"]), _numbers(part["numbers"]))
            for name, part in found["parts"].items()
        ]
        table(("part", "status", "why", "numbers"), rows)
    raise typer.Exit(FAILED if found["status"] == "down" else 0)


def switch(
    mode: Annotated[
        str | None,
        typer.Argument(help="on, read, write, off or shadow; `on` lifts a switch. None: show the switches."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--only", help="One key of the tenant, by its name.", show_default=False)
    ] = None,
    everyone: Annotated[
        bool, typer.Option("--everyone", help="All tenants, on the gateway's own machine, with its --config.")
    ] = False,
    config: Config = None,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Switch memory without a restart: for the key's tenant, one of its keys, or everyone.

    A switch only restricts what settings and calls ask for. Needs an admin key, but for --everyone.

    Example: hearth switch off --only support-chat
    """
    if everyone:
        found = _switch_everyone(mode, name, config)
    else:
        with gateway(url, key) as rest:
            found = (
                rest.get("/switches") if mode is None else rest.put("/switches", {"mode": mode, "key": name})
            )
    if as_json:
        say_json(found)
        return
    table(("switch", "memory"), _switches(found))


def users(limit: Limit = 200, url: Url = DEFAULT_URL, key: ApiKey = "", as_json: Json = False) -> None:
    """List the users of the key's tenant who have any memory; needs an admin key.

    Example: hearth users
    """
    with gateway(url, key) as rest:
        page = rest.walk("/users", limit)
    if as_json:
        say_json({"items": page["items"]})
        return
    for user in page["items"]:
        say(user["id"])


def erase(
    user: Annotated[
        str, typer.Argument(help="Whose memory; none: the key's own user.", show_default=False)
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Erase all of a user, in every store. It can't be undone.

    Example: hearth erase alice --yes
    """
    with gateway(url, key) as rest:
        whose = user or rest.get("/scopes")["user"]
        if not whose:
            fail("this key names its users; say whose memory to erase", MISUSED)
        if not yes:
            _confirm(whose)
        receipt = rest.delete(f"/users/{quote(whose, safe='')}")
    if as_json:
        say_json(receipt)
    else:
        left = f": unreachable; {', '.join(receipt['pending'])} is cleared when it is back"
        say(f"erased {receipt['user']}{'' if receipt['done'] else left}")


def _confirm(user: str) -> None:
    if not sys.stdin.isatty():
        fail("there is nobody to ask here; add --yes", MISUSED)
    note(f"All memories, exchanges and events of {user} are removed for good.")
    typer.confirm("Erase them?", abort=True, err=True)


def _switch_everyone(mode: str | None, name: str | None, config: Path | None) -> Answer:
    """The switches of all tenants stand in the gateway's data folder, out of every key's reach."""
    import msgspec

    from hearth.config.switches import ModeName
    from hearth.gateway.commands.settings import load
    from hearth.gateway.switchboard import Switchboard

    known = get_args(ModeName)
    if name is not None or (mode is not None and mode not in known):
        expected = "--everyone without --only" if name is not None else f"one of {', '.join(known)}"
        fail(f"expected {expected}", MISUSED)
    folder = load(config).hearth.data_dir
    if not folder.is_dir():
        fail(f"{folder} does not exist; run this where the gateway runs, with its --config", MISUSED)
    board = Switchboard(folder / "switches.json")
    now = board.current() if mode is None else board.set(msgspec.convert(mode, ModeName))
    return {"everyone": now.everyone, "tenants": dict(now.tenants), "keys": dict(now.keys)}


def _switches(found: Answer) -> list[tuple[str, str]]:
    """A tenant's view names its own switch `tenant`; the operator's has all tenants by name."""
    tenants = {"tenant": found["tenant"]} if "tenant" in found else found["tenants"]
    named = {"tenant": "tenant"} if "tenant" in found else {name: f"tenant {name}" for name in tenants}
    return [
        ("everyone", found["everyone"]),
        *((named[name], mode) for name, mode in tenants.items()),
        *((f"key {name}", mode) for name, mode in found["keys"].items()),
    ]


def _numbers(numbers: Answer) -> str:
    flat = [
        (f"{name} {inner}".strip(), number)
        for name, value in numbers.items()
        for inner, number in (value.items() if isinstance(value, dict) else [("", value)])
    ]
    return ", ".join(f"{name} {number}" for name, number in flat)
