"""`hearth worker`: files what was said, beside any number of gateways over the same servers."""

from __future__ import annotations

from typing import Annotated

import typer

from hearth.gateway.commands.options import Config, Host
from hearth.gateway.commands.output import MISUSED, fail, note


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
    note(f"Hearth works; its health is at http://{host}:{port}/health", style="bold")
    try:
        work(settings, host=host, port=port)
    except StartError as error:
        fail(error)
