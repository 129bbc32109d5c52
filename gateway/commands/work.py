"""`hearth worker` and `hearth retry`: file what was said, beside gateways or once more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from hearth.gateway.commands.acts import write_down
from hearth.gateway.commands.options import Config, Host, Json
from hearth.gateway.commands.output import FAILED, MISUSED, counted, fail, note, say, say_json

if TYPE_CHECKING:
    from hearth.config.settings import Settings


def worker(
    config: Config = None,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of its health and counters.")] = 4001,
) -> None:
    """Work over the servers of the gateways' configuration, until it is told to end.

    Any number may run: they share the log, and one that is killed is taken over within 30 seconds.

    Example: hearth worker --config litellm_config.yaml
    """
    from hearth.config.check import check_worker
    from hearth.gateway.commands.settings import has_errors, load, show_problems
    from hearth.gateway.starting import StartError
    from hearth.gateway.worker_service import work

    settings = load(config)
    problems = check_worker(settings)
    show_problems(problems)
    if has_errors(problems):
        raise typer.Exit(MISUSED)

    def ready() -> None:
        note(f"Hearth works; its health is at http://{host}:{port}/health", style="bold")

    try:
        work(settings, host=host, port=port, ready=ready)
    except StartError as error:
        fail(error)


def retry(config: Config = None, as_json: Json = False) -> None:
    """Handle once more what workers have set aside; exit code 1 if any of it fails again.

    Gateways and workers over servers go on meanwhile; a gateway with its own stores has to be stopped first.

    Example: hearth retry --config litellm_config.yaml
    """
    from hearth.gateway.commands.settings import load_to_open
    from hearth.memory.errors import HearthError

    try:
        handled, left = asyncio.run(_retried(load_to_open(config)))
    except (HearthError, OSError) as error:
        fail(error)
    if as_json:
        say_json({"handled": handled, "left": left})
    else:
        say(f"{counted(handled, 'event')} handled, {left} still set aside")
    if left:
        raise typer.Exit(FAILED)


async def _retried(settings: Settings) -> tuple[int, int]:
    from hearth.gateway.life import settled_by
    from hearth.gateway.model import extraction_model
    from hearth.gateway.servers import servers_of
    from hearth.memory.opening import open_worker

    hearth = settings.hearth
    async with open_worker(
        hearth.data_dir,
        embedder=hearth.embedder,
        durability=hearth.durability,
        servers=servers_of(hearth),
        settled=settled_by(hearth),
        ledger=hearth.erasure.ledger,
        model=extraction_model(settings),
    ) as opened:
        await write_down(opened.stores.log, "retry")
        return await opened.worker.retry_parked()
