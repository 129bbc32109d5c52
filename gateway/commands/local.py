"""Commands that need no gateway: check-config and key new."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hearth.gateway.commands.options import Json
from hearth.gateway.commands.output import MISUSED, note, say_json


def check_config(
    config: Annotated[
        Path, typer.Argument(envvar="HEARTH_CONFIG", help="The YAML file.", show_default=True)
    ] = Path("litellm_config.yaml"),
    as_json: Json = False,
) -> None:
    """Check a configuration file and say what to change; exit code 2 if it can't be served.

    Example: hearth check-config litellm_config.yaml
    """
    from hearth.gateway.commands.settings import has_errors, problems_of, show_problems

    problems = problems_of(config)
    bad = has_errors(problems)
    if as_json:
        fields = ("level", "where", "message", "remedy")
        say_json([{field: getattr(problem, field) for field in fields} for problem in problems])
    else:
        show_problems(problems)
        note("There are errors." if bad else f"{config} is in order.", style="")
    raise typer.Exit(MISUSED if bad else 0)


key = typer.Typer(help="Make gateway keys.", no_args_is_help=True)


@key.command("new")
def key_new(
    name: Annotated[str, typer.Argument(help="The key's name in logs, metrics and switches.")],
    as_json: Json = False,
) -> None:
    """Make a random key; print it once, and its hash for the YAML.

    Example: hearth key new alice-laptop
    """
    from hearth.gateway.keys import new_key

    made = new_key(name)
    if as_json:
        say_json({"name": name, "key": made.plain, "yaml": made.yaml})
        return
    note("The key, shown this once; give it to its user:")
    typer.echo(made.plain)
    note("For `hearth.keys` in the YAML, to which you add `tenant` and `user` or `users: named`:")
    typer.echo(made.yaml)
