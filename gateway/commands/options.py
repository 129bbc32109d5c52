"""Options that several commands share, with the words that explain them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

DEFAULT_URL = "http://127.0.0.1:4000"

Url: TypeAlias = Annotated[
    str, typer.Option("--url", envvar="HEARTH_URL", help="Address of the gateway.", show_default=True)
]
ApiKey: TypeAlias = Annotated[
    str,
    typer.Option(
        "--key",
        envvar="HEARTH_API_KEY",
        help="Key of the gateway; none for a gateway without keys.",
        show_default=False,
    ),
]
User: TypeAlias = Annotated[
    str, typer.Option("--user", help="Whose memory, where the key names its users.", show_default=False)
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
Limit: TypeAlias = Annotated[int, typer.Option("--limit", min=1, help="Most records to show.")]
Config: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        envvar="HEARTH_CONFIG",
        help="The YAML file; without it, the keyless quickstart.",
        show_default=False,
    ),
]
Place: TypeAlias = Annotated[
    Path, typer.Argument(help="The configuration that it has, or its data folder.", show_default=False)
]
Host: TypeAlias = Annotated[str, typer.Option(help="Address to listen on.")]
Port: TypeAlias = Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")]
