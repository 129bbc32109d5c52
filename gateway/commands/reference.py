"""The pages that the program writes about itself: all commands, and which routes have memory.

`python -m hearth.gateway.commands.reference README.md docs/cli.md` renews them between their marks.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from hearth.gateway.callable_routes import is_for_callers
from hearth.gateway.cli import app
from hearth.gateway.token_count import is_token_count
from hearth.gateway.wire import route_of

ROUTES: tuple[tuple[str, str], ...] = (
    ("/v1/chat/completions", "OpenAI chat completions"),
    ("/openai/deployments/MODEL/chat/completions", "the same, as Azure's SDK calls it"),
    ("/v1/messages", "Anthropic messages"),
    ("/v1/responses", "OpenAI responses"),
    ("/v1/completions", "OpenAI completions"),
    ("/v1/messages/count_tokens", "Anthropic's token count"),
    ("/v1/embeddings", "embeddings"),
    ("/v1/images/generations", "images"),
    ("/v1/audio/transcriptions", "speech"),
    ("/v1/moderations", "moderation"),
    ("/v1/rerank", "reranking"),
    ("/anthropic/v1/messages", "pass-through to a provider's own API"),
    ("/v1beta/models/MODEL:generateContent", "Google's generateContent"),
    ("/v1/batches", "batches, as `/v1/files` and all else that is the provider account's"),
)
"""POST routes of LiteLLM that people ask about, with what they are."""
ON_REQUEST = frozenset({"completions"})
"""Routes that have memory only where `x-hearth-memory` asks for it."""

Command = Any
"""A command as Typer's own copy of Click has it."""


def commands() -> Iterator[tuple[tuple[str, ...], Command]]:
    """Every command with the words that call it, in the order of `hearth --help`."""
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {})
        if not inner or command.invoke_without_command:
            yield (name,), command
        yield from (((name, below), one) for below, one in inner.items())


def cli_reference() -> str:
    """Markdown: a heading, the help, an example and a table of options for each command."""
    return "\n".join(line for path, command in commands() for line in _command(path, command))


def routes_reference() -> str:
    """Markdown: a row for each route, by what the code does with it."""
    rows = [f"| `POST {path}` | {what} | {_memory(path)} |" for path, what in ROUTES]
    return "\n".join(["| route | | memory |", "|---|---|---|", *rows])


PARTS = {"commands": cli_reference, "routes": routes_reference}
"""What can be renewed, by the name in its mark."""


def renewed(page: str) -> str:
    """The page with what stands between its marks made anew."""

    def part(found: re.Match[str]) -> str:
        return f"{found[1]}\n\n{PARTS[found[2]]()}\n\n<!-- end -->"

    names = "|".join(PARTS)
    return re.sub(rf"(<!-- generated: ({names}) -->).*?<!-- end -->", part, page, flags=re.DOTALL)


def _memory(path: str) -> str:
    route = route_of(path)
    if is_token_count(path):
        return "counts what memory may add"
    if route is None:
        return "passed through" if is_for_callers(path) else "passed through, for LiteLLM's master key alone"
    return "where the call asks for it" if route in ON_REQUEST else "recall and capture"


def _command(path: tuple[str, ...], command: Command) -> Iterator[str]:
    text, _, example = inspect.cleandoc(command.help or "").partition("Example: ")
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    yield f"## hearth {' '.join(path)}\n"
    yield text.strip() + "\n"
    yield f"```\n{example.strip()}\n```\n"
    yield "| | | default |"
    yield "|---|---|---|"
    for parameter in arguments:
        yield f"| `{parameter.name.rstrip('_').upper()}` | {parameter.help} | {_default(parameter)} |"
    for parameter in options:
        names = ", ".join(f"`{name}`" for name in parameter.opts)
        from_variable = f" Or from `{parameter.envvar}`." if parameter.envvar else ""
        yield f"| {names} | {parameter.help}{from_variable} | {_default(parameter)} |"
    yield ""


def _default(parameter: Command) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    if value is None or value in ("", False, [], ()):
        return ""
    return f"`{value}`"


def main(pages: list[str]) -> None:
    """Renew the pages in place."""
    for name in pages:
        page = Path(name)
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
