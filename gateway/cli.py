"""The command `hearth`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from hearth.gateway.commands import (
    archive,
    chat,
    compare,
    demo,
    diff,
    encryption,
    erasures,
    forgettings,
    history,
    imports,
    knowledge,
    local,
    memories,
    migrate,
    operate,
    policy,
    recalls,
    replay,
    serve,
    simulate,
    story,
    system,
    tiers,
    tune,
    verify,
    work,
)
from hearth.gateway.commands.output import prepare_streams


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hearth {version('hearth')}")
        raise typer.Exit


def top(
    shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which Hearth this is.")
    ] = False,
) -> None:
    """Memory for every LLM app, at the gateway."""


app = typer.Typer(
    callback=top,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)

PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Run": {
        "serve": serve.serve,
        "worker": work.worker,
        "demo": demo.demo,
        "retry": work.retry,
        "migrate": migrate.migrate,
        "replay": replay.replay,
        "archive": archive.archive,
        "verify": verify.verify,
        "check-config": local.check_config,
        "tune": tune.tune,
        "simulate": simulate.simulate,
    },
    "Talk": {
        "chat": chat.chat,
        "recall": recalls.recall,
        "compare": compare.compare,
        "search": memories.search,
        "feedback": recalls.feedback,
    },
    "Memory": {
        "add": memories.add,
        "list": memories.list_,
        "pin": tiers.pin,
        "persona": memories.persona,
        "forget": memories.forget,
        "undo": forgettings.undo,
        "private": history.private,
        "erase": erasures.erase,
        "erasure": erasures.erasure,
        "export": imports.export,
        "import": imports.import_,
    },
    "Look into it": {
        "tiers": tiers.tiers,
        "evictions": tiers.evictions,
        "why": story.why,
        "timeline": story.timeline,
        "diff": diff.diff,
        "sessions": history.sessions,
        "exchanges": history.exchanges,
        "explain": recalls.explain,
        "events": history.events,
        "users": operate.users,
        "health": operate.health,
        "spending": operate.spending,
        "switch": operate.switch,
    },
}
"""Every command by its name, in the groups that `hearth --help` shows."""

for panel, commands in PANELS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(command)
app.add_typer(local.key, name="key", rich_help_panel="Run")
app.add_typer(encryption.encryption, name="encryption", rich_help_panel="Run")
app.add_typer(policy.policy, name="policy", rich_help_panel="Look into it")
app.add_typer(erasures.hold, name="hold", rich_help_panel="Memory")
app.add_typer(knowledge.knowledge, name="knowledge", rich_help_panel="Memory")
app.add_typer(system.system, name="system-memory", rich_help_panel="Memory")


def main() -> None:
    """Run the command line."""
    prepare_streams()
    app()


if __name__ == "__main__":
    main()
