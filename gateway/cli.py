"""The command `hearth`."""

from __future__ import annotations

import typer

from hearth.gateway.commands import local

app = typer.Typer(
    help="Memory for every LLM app, at the gateway.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("serve")(local.serve)
app.command("check-config")(local.check_config)
app.add_typer(local.key, name="key")


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
