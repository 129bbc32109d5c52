"""`hearth serve`: the gateway with the operator's configuration, or the keyless quickstart."""

from __future__ import annotations

from typing import Annotated

import typer

from hearth.gateway.commands.options import Config, Host, Port
from hearth.gateway.commands.output import note


def serve(
    config: Config = None,
    host: Host = "127.0.0.1",
    port: Port = 4000,
    workers: Annotated[int, typer.Option(min=1, help="Processes on one port, over shared servers.")] = 1,
) -> None:
    """Serve the gateway, with memory, until it is told to end.

    Without a configuration it is the keyless quickstart: for one person, on this machine only, with provider
    keys from the environment as LiteLLM reads them, and memory in the folder .hearth.

    Example: hearth serve --config litellm_config.yaml --port 4000
    """
    from hearth.gateway.commands.serving import run
    from hearth.gateway.commands.settings import load, refuse_problems

    settings = load(config)
    refuse_problems(settings, host=host, workers=workers)

    def ready(seconds: float) -> None:
        note(f"Hearth listens on http://{host}:{port} after {seconds:.0f} s", style="bold")
        note(f"OpenAI base URL http://{host}:{port}/v1, Anthropic base URL http://{host}:{port}")

    run(settings, host=host, port=port, ready=ready, config=config, workers=workers)
