"""`hearth import` and `hearth export`: a user's memory into a file, and files of Hearth's and others' in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Annotated

import typer

from hearth.gateway.commands.client import Answer, GatewayError, Rest, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url
from hearth.gateway.commands.output import MISUSED, counted, err, fail, note, say, say_json

PART = 1 << 18
"""Bytes that are sent at once."""


def import_(
    file: Annotated[str, typer.Argument(help="JSON, JSON lines or a zip file; `-` reads standard input.")],
    format: Annotated[
        str,
        typer.Option(
            "--from",
            help="hearth, turns, chatgpt, claude, openai, mem0, zep or litellm; none: found by itself.",
            show_default=False,
        ),
    ] = "",
    user: Annotated[
        str,
        typer.Option(
            "--user", "--as", help="Whose memory it becomes, where the key may say.", show_default=False
        ),
    ] = "",
    source_user: Annotated[
        str,
        typer.Option(help="Which user of the file, where it has several; `*`: all.", show_default=False),
    ] = "",
    at: Annotated[
        str | None, typer.Option(help="When things were said, where the file does not tell.")
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Of an export, also what is from before the user's erasure.")
    ] = False,
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Import what `hearth export` wrote, what other programs export, or dated turns.

    All of the file comes in or, where something can't be used, none; a second import changes nothing.

    Example: hearth import conversations.zip --from chatgpt --user alice
    """
    with ExitStack() as stack, gateway(url, key, user) as rest:
        source = stack.enter_context(_opened(file))
        done = rest.upload(
            "/import",
            _parts(source, stack),
            **{"from": format, "source_user": source_user, "at": at, "anew": anew or None},
        )
    if as_json:
        say_json(done)
    else:
        say(_summary(done))


def export(
    user: Annotated[str, typer.Argument(help="Whose memory; none: the key's own user.")] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; none: standard output.")
    ] = None,
    format: Annotated[
        str, typer.Option(help="jsonl, which can be imported, or markdown, for people to read.")
    ] = "jsonl",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
) -> None:
    """Export everything of a user: what was said, facts with their history, segments with heat, feedback.

    Example: hearth export alice -o alice.jsonl
    """
    with gateway(url, key, user) as rest:
        if output is None:
            _write(rest, sys.stdout.buffer, format)
            return
        draft = output.with_name(output.name + ".part")
        try:
            with draft.open("wb") as file:
                size = _write(rest, file, format)
            draft.replace(output)
        except OSError as error:
            fail(f"{output} can't be written: {error.strerror}", MISUSED)
        finally:
            draft.unlink(missing_ok=True)
    note(f"{output}: {size} bytes")


def _write(rest: Rest, file: IO[bytes], format: str) -> int:
    """Raises GatewayError for an export without its last line, which says that it is whole."""
    size, end = 0, b""
    for part in rest.download("/export", format=format):
        size += file.write(part)
        end = (end + part)[-PART:]
    file.flush()
    if format == "jsonl" and not end.rstrip(b"\n").rpartition(b"\n")[2].startswith(b'{"end":'):
        raise GatewayError("the export was cut off: its last line is missing; try again")
    return size


def _opened(file: str) -> IO[bytes]:
    if file == "-":
        return sys.stdin.buffer
    try:
        return Path(file).open("rb")
    except OSError as error:
        fail(f"{file} can't be read: {error.strerror}", MISUSED)


def _parts(source: IO[bytes], stack: ExitStack) -> Iterator[bytes]:
    """The file in parts, with a bar on a terminal; what it becomes is known when all is there."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("Sending"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    progress = stack.enter_context(Progress(*columns, console=err, transient=True))
    total = None if source is sys.stdin.buffer else Path(source.name).stat().st_size
    task = progress.add_task("", total=total)
    while part := source.read(PART):
        yield part
        progress.advance(task, len(part))


def _summary(done: Answer) -> str:
    dialogue = (
        f"{counted(done['exchanges'], 'exchange')} from {counted(done['turns'], 'turn')}"
        if done["turns"]
        else ""
    )
    memories = counted(done["memories"], "memory", "memories") if done["memories"] else ""
    what = ", ".join(filter(None, (dialogue, memories))) or counted(done["read"], "record")
    skipped = ", ".join(f"{count} {reason}" for reason, count in sorted(done["skipped"].items()))
    left = f"; left out: {skipped}" if skipped else ""
    return f"{what}, for {done['user']}: {done['added']} new{left}"
