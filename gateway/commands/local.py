"""Commands that need no running gateway: serve, check-config, key."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from hearth.config.check import check
from hearth.config.load import load_settings
from hearth.config.problems import Problem, SettingsError
from hearth.config.settings import Settings

QUICKSTART = Path(__file__).resolve().parents[2] / "config" / "quickstart.yaml"
"""The keyless configuration, used where no file is named."""

ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="The YAML file; without it, the keyless quickstart.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

errors = Console(stderr=True)


def load(path: Path | None) -> Settings:
    """Settings of the file, or of the quickstart. Prints every problem and exits with 2 if there is one."""
    try:
        return load_settings(path or _quickstart(), os.environ)
    except SettingsError as error:
        _show(error.problems)
        raise typer.Exit(2) from error


def serve(
    config: ConfigOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 4000,
    workers: Annotated[int, typer.Option(help="Processes; the embedded stores allow one.")] = 1,
) -> None:
    """Serve the gateway.

    Example: hearth serve --config litellm_config.yaml --port 4000
    """
    settings = load(config)
    problems = check(settings, host=host, workers=workers)
    _show(problems)
    if any(problem.level == "error" for problem in problems):
        raise typer.Exit(2)
    from hearth.gateway.server import serve as serve_gateway

    errors.print(f"Hearth listens on http://{host}:{port} (OpenAI base URL http://{host}:{port}/v1)")
    serve_gateway(settings, host=host, port=port)


def check_config(
    config: Annotated[Path, typer.Argument(help="The YAML file.")] = Path("litellm_config.yaml"),
    as_json: JsonOption = False,
) -> None:
    """Check a configuration file and say what to change.

    Example: hearth check-config litellm_config.yaml
    """
    try:
        problems = check(load_settings(config, os.environ))
    except SettingsError as error:
        problems = list(error.problems)
    bad = any(problem.level == "error" for problem in problems)
    if as_json:
        typer.echo(json.dumps([_fields(problem) for problem in problems]))
    else:
        _show(problems)
        errors.print("There are errors." if bad else f"{config} is in order.")
    raise typer.Exit(2 if bad else 0)


key = typer.Typer(help="Make gateway keys.", no_args_is_help=True)


@key.command("new")
def key_new(
    name: Annotated[str, typer.Argument(help="The key's name in logs, metrics and switches.")],
    as_json: JsonOption = False,
) -> None:
    """Make a random key; print it once, and its hash for the YAML.

    Example: hearth key new alice-laptop
    """
    from hearth.gateway.keys import new_key

    made = new_key(name)
    if as_json:
        typer.echo(json.dumps({"name": name, "key": made.plain, "yaml": made.yaml}))
        return
    errors.print("The key, shown this once; give it to its user:")
    typer.echo(made.plain)
    errors.print("For `hearth.keys` in the YAML, to which you add `tenant` and `user` or `users: named`:")
    typer.echo(made.yaml)


def _quickstart() -> Path:
    return QUICKSTART


def _fields(problem: Problem) -> dict[str, str]:
    return {
        "level": problem.level,
        "where": problem.where,
        "message": problem.message,
        "remedy": problem.remedy,
    }


def _show(problems: list[Problem] | tuple[Problem, ...]) -> None:
    if not problems:
        return
    table = Table("", "Where", "What", "Remedy", show_lines=False, box=None)
    for problem in problems:
        table.add_row(problem.level, problem.where, problem.message, problem.remedy)
    errors.print(table)
