"""`hearth encryption`: master keys, their rotation, and what is encrypted by them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from hearth.gateway.commands.acts import write_down
from hearth.gateway.commands.options import Config, Json
from hearth.gateway.commands.output import MISUSED, fail, note, say, say_json, waiting

if TYPE_CHECKING:
    from hearth.memory.events.data_keys import Keyring
    from hearth.memory.events.sql_log import SqlLog

T = TypeVar("T")

encryption = typer.Typer(help="Keys by which memory is stored encrypted.", no_args_is_help=True)


@encryption.command("new-key")
def new_key(as_json: Json = False) -> None:
    """Make a random master key and print it, this once.

    Example: hearth encryption new-key
    """
    from hearth.memory.encryption.master import name_of, new_master_key, read_master_key

    made = new_master_key()
    name = name_of(read_master_key(made))
    if as_json:
        say_json({"name": name, "key": made})
        return
    note("The master key, shown this once; whoever has lost it can read nothing that it encrypted:")
    typer.echo(made)
    note(f"Its name is {name}. Put it into the environment, and into the YAML where it is to be found:")
    typer.echo("hearth: {encryption: {keys: [os.environ/HEARTH_ENCRYPTION_KEY]}}")


@encryption.command("status")
def status(config: Config = None, as_json: Json = False) -> None:
    """Show which master keys wrap the users' keys, and how many payloads of the log are not encrypted.

    Example: hearth encryption status --config litellm_config.yaml
    """
    from hearth.memory.rekeying import keys_held

    async def found(log: SqlLog, keyring: Keyring) -> dict[str, object]:
        held = await keys_held(log)
        return {
            "configured": list(keyring.masters.names),
            "data_keys": held.masters,
            "payloads": held.payloads,
            "readable": held.readable,
        }

    told = _over_log(config, found, "Counting")
    if as_json:
        say_json(told)
        return
    say(f"master keys: {', '.join(told['configured'])}; the first one encrypts")  # type: ignore[arg-type]
    say(f"data keys by master key: {told['data_keys'] or 'none'}")
    say(f"{told['readable']} of {told['payloads']} payloads in the log are not encrypted")


@encryption.command("rotate")
def rotate(
    config: Config = None,
    data_keys: Annotated[
        bool,
        typer.Option("--data-keys", help="New keys for all users too, for what is written from then on."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Wrap every user's key by the first of the configured master keys, so that the others can go.

    Gateways and workers over servers go on meanwhile; a gateway with its own stores has to be stopped first.

    Example: hearth encryption rotate --config litellm_config.yaml
    """
    from hearth.memory import rekeying

    async def rotated(log: SqlLog, keyring: Keyring) -> rekeying.Rotated:
        await write_down(log, "rotate", "data keys" if data_keys else "")
        return await rekeying.rotate(log, keyring, renew=data_keys)

    done = _over_log(config, rotated, "Wrapping")
    if as_json:
        say_json({"wrapped": done.wrapped, "made": done.made})
    else:
        say(f"{done.wrapped} data keys wrapped anew, {done.made} new ones made")


@encryption.command("apply")
def apply(config: Config = None, as_json: Json = False) -> None:
    """Encrypt what the log holds from before encryption was turned on, its archives too.

    Gateways and workers over servers go on meanwhile; a gateway with its own stores has to be stopped first.

    Example: hearth encryption apply --config litellm_config.yaml
    """
    from hearth.memory.events.archiving import Archiving
    from hearth.memory.opening import process_name
    from hearth.memory.rekeying import encrypt_rest

    async def applied(log: SqlLog, keyring: Keyring) -> int:
        await write_down(log, "encrypt")
        return await encrypt_rest(log, Archiving(log, owner=process_name()))

    done = _over_log(config, applied, "Encrypting")
    if as_json:
        say_json({"encrypted": done})
    else:
        say(f"{done} payloads encrypted")


def _over_log(config: Config, work: Callable[[SqlLog, Keyring], Awaitable[T]], what: str) -> T:
    """What `work` returns over the configured log; ends the command where there is no master key."""
    from hearth.gateway.commands.settings import load
    from hearth.gateway.servers import servers_of
    from hearth.memory.clock import SystemClock
    from hearth.memory.errors import HearthError
    from hearth.memory.events.data_keys import Keyring
    from hearth.memory.opening import opened_log

    hearth = load(config).hearth

    async def run() -> T:
        async with opened_log(hearth.data_dir, hearth.durability, SystemClock(), servers_of(hearth)) as log:
            if not isinstance(log.keys, Keyring):
                fail("hearth.encryption.keys: got none, expected a master key at least", MISUSED)
            return await work(log, log.keys)

    try:
        with waiting(what):
            return asyncio.run(run())
    except (HearthError, OSError) as error:
        fail(error)
