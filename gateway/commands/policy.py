"""`hearth policy`: by which values memory lives, who has set each of them, and setting them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import msgspec
import typer

from hearth.gateway.commands.client import Answer, Rest, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Config, Json, Url
from hearth.gateway.commands.output import MISUSED, fail, moment, note, say_json, table

policy = typer.Typer(invoke_without_command=True)

Tenant = Annotated[
    str | None, typer.Option("--tenant", help="The key's tenant, to be sure that it is this one.")
]
Agent = Annotated[str | None, typer.Option("--agent", help="For what is said to this agent.")]
KeyName = Annotated[str | None, typer.Option("--only", help="For what comes by this key, by its name.")]


@policy.callback()
def show(
    context: typer.Context,
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", help="Of this tenant, by the file alone, without a gateway."),
    ] = None,
    agent: Agent = None,
    name: KeyName = None,
    config: Config = None,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Show each value by which memory lives, and who has set it: Hearth, the file, or a key while it ran.

    Of the key's tenant; with --tenant or --config what the file says, which a gateway may not have read yet.

    Example: hearth policy --tenant research --config litellm_config.yaml
    """
    if context.invoked_subcommand is not None:
        return
    source = context.get_parameter_source("config")
    if tenant is not None or (source is not None and source.name == "COMMANDLINE"):
        found = _by_file(config, tenant or "", agent or "", name or "")
    else:
        with gateway(url, key) as rest:
            found = rest.get("/policy", agent=agent, key=name)
    _show(found, as_json=as_json)


@policy.command("set")
def set_(
    value_name: Annotated[str, typer.Argument(metavar="NAME", help="Such as heat.visit.")],
    value: Annotated[str, typer.Argument(help="A number or a word.")],
    tenant: Tenant = None,
    agent: Agent = None,
    name: KeyName = None,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Set a value for the key's tenant, or for one of its agents or keys, without a restart.

    It goes before what the file says at the same level, in every process within two seconds. Needs an admin
    key.

    Example: hearth policy set heat.visit 2 --tenant acme
    """
    with gateway(url, key) as rest:
        _check_tenant(rest, tenant)
        body = {"values": {value_name: _parsed(value)}, "agent": agent, "key": name}
        found = rest.put("/policy", body)
    _show(found, as_json=as_json, only=value_name)


@policy.command("unset")
def unset(
    value_name: Annotated[str, typer.Argument(metavar="NAME", help="Such as heat.visit.")],
    tenant: Tenant = None,
    agent: Agent = None,
    name: KeyName = None,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Lift a value that was set, so that the file or a wider level counts again. Needs an admin key.

    Example: hearth policy unset heat.visit
    """
    with gateway(url, key) as rest:
        _check_tenant(rest, tenant)
        found = rest.delete("/policy", name=value_name, agent=agent, key=name)
    _show(found, as_json=as_json, only=value_name)


def _check_tenant(rest: Rest, tenant: str | None) -> None:
    own = rest.get("/scopes")["tenant"] if tenant is not None else None
    if own != tenant:
        fail(
            f"the key is of the tenant {own}, not of {tenant}; an admin key of that tenant can do it", MISUSED
        )


def _parsed(value: str) -> object:
    """A number where it is one, else the word."""
    try:
        found = msgspec.json.decode(value.encode())
    except msgspec.DecodeError:
        return value
    return found if isinstance(found, int | float) else value


def _show(found: Answer, *, as_json: bool, only: str = "") -> None:
    if as_json:
        say_json(found)
        return
    items = [one for one in found["items"] if one["name"] == only or not only]
    table(("value", "is", "by", "set"), ((one["name"], _value(one["value"]), *_by(one)) for one in items))
    note(f"of {' '.join(_whose(found))}")
    beside = [one for one in found["set"] if one["whose"] not in ("", found["agent"], found["key"])]
    if beside and not only:
        note("set for agents and keys:")
        rows = ((one["level"], one["whose"], one["name"], _value(one["value"]), _set(one)) for one in beside)
        table(("for", "name", "value", "is", "set"), rows)


def _whose(found: Answer) -> Iterator[str]:
    tenant = found["tenant"]
    yield f"tenant {tenant}" if tenant else "every tenant without values of its own"
    for level in ("agent", "key"):
        if found[level]:
            yield f"{level} {found[level]}"


def _by(one: Answer) -> tuple[str, str]:
    return one["source"], _set(one)


def _set(one: Answer) -> str:
    return f"{moment(one['set_at'])} by {one['set_by']}" if one["set_at"] else ""


def _by_file(config: Path | None, tenant: str, agent: str, key: str) -> Answer:
    from hearth.gateway.commands.settings import load
    from hearth.gateway.life import effective_by_file, embedder_name

    hearth = load(config).hearth
    known = {*hearth.tenants, *(one.tenant for one in hearth.keys)}
    if tenant and known and tenant not in known:
        _unknown("tenant", tenant, known)
    keys = {one.name for one in hearth.keys if one.tenant == tenant}
    if key and key not in keys:
        _unknown("key", key, keys)
    values = effective_by_file(hearth, tenant, embedder_name(hearth), agent=agent, key=key)
    items = [
        {"name": one.name, "value": one.value, "source": one.source, "set_by": None, "set_at": None}
        for one in values
    ]
    return {"tenant": tenant, "agent": agent or None, "key": key or None, "items": items, "set": []}


def _unknown(what: str, name: str, known: set[str]) -> NoReturn:
    fail(
        f"--{what} {name}: the file has no such {what}; it has {', '.join(sorted(known)) or 'none'}", MISUSED
    )


def _value(value: object) -> str:
    return "any" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
