"""`hearth knowledge`: documents for all users of a tenant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from hearth.gateway.commands.client import Answer, GatewayError, Rest, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Limit, Url
from hearth.gateway.commands.output import MISUSED, fail, moment, note, say, say_gone, say_json, table

KINDS = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".txt": "text/plain",
    ".text": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
    ".pdf": "application/pdf",
}
"""Media type by a file's suffix."""

knowledge = typer.Typer(help="Documents for all users of the key's tenant.", no_args_is_help=True)


@knowledge.command("load")
def load(
    files: Annotated[list[str], typer.Argument(help="Markdown, text, HTML or PDF; `-`: standard input.")],
    name: Annotated[
        str, typer.Option(help="In place of the file's name; of a single file.", show_default=False)
    ] = "",
    title: Annotated[str, typer.Option(help="In place of what the document says.", show_default=False)] = "",
    kind: Annotated[
        str, typer.Option("--type", help="Media type, in place of the suffix's.", show_default=False)
    ] = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Load documents, each in place of the one of its name; what has not changed stays. Needs an admin key.

    Example: hearth knowledge load handbook.md prices.pdf
    """
    if (name or title) and len(files) > 1:
        fail("--name and --title are for a single file", MISUSED)
    given = [(name or _name(file), _kind(file, kind), _read(file)) for file in files]
    with gateway(url, key) as rest:
        done = [_load(rest, *one, title) for one in given]
    if as_json:
        say_json({"items": done})
        return
    for one in done:
        what = "loaded" if one["changed"] else "unchanged"
        say(f"{what} {one['name']}, version {one['version']}: {one['chunks']} parts")


@knowledge.command("list")
def list_(limit: Limit = 50, url: Url = DEFAULT_URL, key: ApiKey = "", as_json: Json = False) -> None:
    """List the documents, by name. Needs an admin key.

    Example: hearth knowledge list
    """
    with gateway(url, key) as rest:
        page = rest.walk("/knowledge", limit)
    if as_json:
        say_json({"items": page["items"]})
        return
    table(
        ("name", "version", "parts", "loaded", "title"),
        [
            (one["name"], str(one["version"]), str(one["chunks"]), moment(one["loaded_at"]), one["title"])
            for one in page["items"]
        ],
    )
    note(f"{len(page['items'])} documents{', and there are more' if page['next'] else ''}")


@knowledge.command("show")
def show(
    name: Annotated[str, typer.Argument(help="The document, as `list` shows it.")],
    limit: Limit = 50,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Show a document and its parts, as they are found and shown. Needs an admin key.

    Example: hearth knowledge show handbook.md
    """
    with gateway(url, key) as rest:
        found = _parts(rest, _path(name), limit)
    if as_json:
        say_json(found)
        return
    table(
        ("part", "source", "text"),
        [(str(one["position"]), one["source"], one["text"]) for one in found["items"]],
    )
    note(f"version {found['version']}: {len(found['items'])} of {found['chunks']} parts")


@knowledge.command("remove")
def remove(
    names: Annotated[list[str], typer.Argument(help="Documents, as `list` shows them.")],
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Remove documents: their text leaves all stores. Needs an admin key.

    Example: hearth knowledge remove handbook.md
    """
    with gateway(url, key) as rest:
        gone = [rest.delete(_path(name)) for name in names]
    if as_json:
        say_json({"items": gone})
        return
    for one in gone:
        say_gone(f"removed {one['name']}", one)


def _load(rest: Rest, name: str, kind: str, raw: bytes, title: str) -> Answer:
    try:
        return rest.send(_path(name), raw, kind, **({"title": title} if title else {}))
    except GatewayError as error:
        raise GatewayError(f"{name}: {error}", status=error.status) from error


def _parts(rest: Rest, path: str, limit: int) -> Answer:
    found = rest.get(path, limit=min(limit, 200))
    items = list(found["items"])
    while found["next"] is not None and len(items) < limit:
        found = rest.get(path, limit=min(limit - len(items), 200), after=found["next"])
        items += found["items"]
    return {**found, "items": items}


def _path(name: str) -> str:
    if name.strip() in ("", ".", ".."):
        raise GatewayError(f"{name!r}: expected a document's name", status=400)
    return f"/knowledge/{quote(name, safe='')}"


def _name(file: str) -> str:
    if file == "-":
        fail("standard input needs --name", MISUSED)
    return Path(file).name


def _kind(file: str, given: str) -> str:
    kind = given or KINDS.get(Path(file).suffix.lower(), "")
    if not kind:
        fail(f"{file}: expected one of {', '.join(KINDS)}, or --type", MISUSED)
    return kind


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        fail(f"{file} can't be read: {error.strerror}", MISUSED)
