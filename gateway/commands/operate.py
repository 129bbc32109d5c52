"""Commands for whoever runs the gateway: health, switch, users."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from hearth.gateway.commands.acts import write_down, write_down_beside
from hearth.gateway.commands.client import Answer, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Config, Json, Limit, Url
from hearth.gateway.commands.output import FAILED, MISUSED, fail, note, say, say_json, table

if TYPE_CHECKING:
    from hearth.config.settings import HearthSettings, Settings
    from hearth.config.switches import ModeName, Switches
    from hearth.gateway.switchboard import FileSwitchboard

_SWITCHED = {
    "settings": "every call that does not ask for more, by the settings",
    "everyone": "everyone, by a switch",
    "unread": "everyone, until the switches can be read",
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


def spending(
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="Today included.")] = 30,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Show what memory itself asked of models for the key's tenant: tokens and dollars by day.

    Example: hearth spending --days 7
    """
    with gateway(url, key) as rest:
        found = rest.get("/spending", days=days)
    if as_json:
        say_json(found)
        return
    rows = (
        (
            one["day"],
            one["purpose"],
            one["model"],
            one["calls"],
            one["input"],
            one["output"],
            f"{one['cost']:.4f}",
        )
        for one in found["items"]
    )
    table(("day", "purpose", "model", "calls", "tokens in", "out", "dollars"), rows)
    note(f"{found['left_today']:,} of {found['daily_tokens']:,} tokens are left today")


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


def _switch_everyone(mode: str | None, name: str | None, config: Path | None) -> Answer:
    """The switches of all tenants stand where no key reaches: in the data folder, or the log's database."""
    import msgspec

    from hearth.config.switches import ModeName
    from hearth.gateway.commands.settings import load

    known = get_args(ModeName)
    if name is not None or (mode is not None and mode not in known):
        expected = "--everyone without --only" if name is not None else f"one of {', '.join(known)}"
        fail(f"expected {expected}", MISUSED)
    wanted = None if mode is None else msgspec.convert(mode, ModeName)
    now = _switched(load(config), wanted)
    return {"everyone": now.everyone, "tenants": dict(now.tenants), "keys": dict(now.keys)}


def _switched(settings: Settings, mode: ModeName | None) -> Switches:
    """The switches, changed if a mode is given, of the database or the folder that the settings name."""
    if settings.hearth.postgres_url is not None:
        return asyncio.run(_switched_in_database(settings.hearth, mode))
    board = _board_in(settings.hearth.data_dir)
    if mode is None:
        return board.current()
    try:
        write_down_beside(settings.hearth, "switch", _everyone(mode))
    except OSError as error:
        note(f"who switches is written down nowhere: {error}", style="yellow")
    return asyncio.run(board.set(mode))


def _everyone(mode: ModeName) -> str:
    return f"everyone {mode}"


async def _switched_in_database(hearth: HearthSettings, mode: ModeName | None) -> Switches:
    from hearth.gateway.servers import servers_of
    from hearth.gateway.switchboard import SharedSwitchboard
    from hearth.memory.clock import SystemClock
    from hearth.memory.errors import LogUnavailable
    from hearth.memory.events.postgres_log import PostgresLog

    servers = servers_of(hearth)
    log = PostgresLog(servers.postgres_url, clock=SystemClock(), connections=2, masters=servers.masters)
    try:
        await log.start()
    except LogUnavailable as error:
        fail(error)
    try:
        board = SharedSwitchboard(log)
        await board.look()
        if mode is None:
            return board.current()
        await write_down(log, "switch", _everyone(mode))
        return await board.set(mode)
    except LogUnavailable as error:
        fail(error)
    finally:
        await log.close()


def _board_in(folder: Path) -> FileSwitchboard:
    from hearth.gateway.switchboard import FileSwitchboard

    if not folder.is_dir():
        fail(f"{folder} does not exist; run this where the gateway runs, with its --config", MISUSED)
    return FileSwitchboard(folder / "switches.json")


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
