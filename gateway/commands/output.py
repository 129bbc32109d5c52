"""What commands print: results on stdout, remarks on stderr, and nothing that could steer a terminal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

FAILED, MISUSED = 1, 2
"""Exit codes: the gateway can't or won't do it; the command, a value or the configuration is wrong."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and the marks that turn the direction of text around."""


def prepare_streams() -> None:
    """Let no character that the terminal's encoding lacks end a command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def plain(text: object) -> str:
    """The text with U+FFFD for what could steer a terminal; memories hold what strangers wrote."""
    return _CONTROL.sub("\ufffd", str(text))


def one_line(text: object) -> str:
    """The same on one line, white space collapsed."""
    return " ".join(plain(text).split())


def say(text: object, *, style: str = "") -> None:
    """Print a result."""
    out.print(Text(plain(text), style=style), soft_wrap=True)


def note(text: object, *, style: str = "dim") -> None:
    """Print a remark, to stderr."""
    err.print(Text(plain(text), style=style), soft_wrap=True)


def say_gone(what: str, answer: Mapping[str, Any]) -> None:
    """Print what is gone, and the stores in which it is not yet."""
    waiting = f" (unreachable; {', '.join(answer['pending'])} is cleared when it is back)"
    say(f"{what}{'' if answer['done'] else waiting}")


def counted(many: int, what: str, several: str = "") -> str:
    """`1 exchange`, `2 exchanges`: a number and its noun, whose plural is `several` or has an `s`."""
    return f"{many:,} {what if many == 1 else several or f'{what}s'}"


def say_json(document: object) -> None:
    """Print one JSON document on a line of its own."""
    typer.echo(json.dumps(document, ensure_ascii=False))


def fail(message: object, code: int = FAILED) -> NoReturn:
    """Print one line that says what is wrong and end the command."""
    err.print(Text("error: ", style="bold red") + Text(one_line(message)), soft_wrap=True)
    raise typer.Exit(code)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their headings; on a pipe nothing is cut off."""
    made = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        made.add_row(*(Text(one_line(cell)) for cell in row))
    made.columns[-1].ratio = 1
    width = None if out.is_terminal else 10_000
    for line in out.render_lines(made, out.options.update(width=width) if width else None, pad=False):
        out.print(Text.assemble(*((part.text, part.style or "") for part in line)), soft_wrap=True)


def moment(text: str | None) -> str:
    """A time of the API to the minute, in the zone of this machine."""
    if not text:
        return ""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M")


def number(value: float | None) -> str:
    """A score with two decimals; nothing where there is none."""
    return "" if value is None else f"{value:.2f}"


def spoken(record: dict[str, Any]) -> str:
    """A record of the API in one line: a memory's text, or of an exchange what both said."""
    if record.get("reply") is None:
        return one_line(record["text"])
    return one_line(f"{record['text']} → {record['reply']}" if record["reply"] else record["text"])


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say what takes its time: turning on a terminal, as one line elsewhere."""
    if err.is_terminal:
        with err.status(Text(what)):
            yield
    else:
        note(what)
        yield
