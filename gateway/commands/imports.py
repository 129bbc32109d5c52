"""`hearth import`: dialogues that were held elsewhere, in batches that never cut an exchange in two."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hearth.gateway.commands.client import Answer, GatewayError, Rest, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url, User
from hearth.gateway.commands.output import MISUSED, err, fail, say, say_json, waiting

if TYPE_CHECKING:
    from hearth.memory.types import ImportedTurn

BATCH_TURNS = 500
"""Turns of a request: about a second's work, so that progress shows."""
BATCH_CHARACTERS = 4_000_000
"""Text of a request; the gateway takes 64 MB, and a character may be twelve bytes of JSON."""


def import_(
    file: Annotated[str, typer.Argument(help="JSON lines; `-` reads standard input.")],
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Import dialogues from JSON lines; a second import of the same lines changes nothing.

    A line is an object with `role` (user or assistant), `content` and `at` (an ISO 8601 time with its zone),
    and where there are any `session`, `name`, `shown` (what a picture with it shows) and `id`.

    Example: hearth import dialogue.jsonl --user alice
    """
    turns = _read(file)
    with gateway(url, key, user) as rest:
        done = _send(rest, turns)
    if as_json:
        say_json(done)
    else:
        say(f"{done['exchanges']} exchanges from {done['turns']} turns, for {done['user']}")


def batches(turns: Sequence[ImportedTurn]) -> Iterator[list[ImportedTurn]]:
    """The turns in order of session and time, cut only before a user's turn that follows an assistant's.

    The gateway makes exchanges of each batch alone, so it makes the same ones of all batches as of the whole.
    """
    batch: list[ImportedTurn] = []
    characters = 0
    for exchange in _exchanges(turns):
        size = sum(len(turn.content) for turn in exchange)
        full = len(batch) + len(exchange) > BATCH_TURNS or characters + size > BATCH_CHARACTERS
        if batch and full:
            yield batch
            batch, characters = [], 0
        batch += exchange
        characters += size
    if batch:
        yield batch


def _exchanges(turns: Sequence[ImportedTurn]) -> Iterator[list[ImportedTurn]]:
    ordered = sorted(turns, key=lambda turn: (turn.session, turn.at))
    for _, group in groupby(ordered, key=lambda turn: turn.session):
        current: list[ImportedTurn] = []
        answered = False
        for turn in group:
            if turn.role == "user" and answered:
                yield current
                current, answered = [], False
            current.append(turn)
            answered = answered or turn.role == "assistant"
        yield current


def _read(file: str) -> list[ImportedTurn]:
    """All turns of the file, checked as the gateway checks them, before anything is sent."""
    from hearth.gateway.api.imports import read_lines
    from hearth.gateway.api.problems import Problem

    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        fail(f"{file} can't be read: {error.strerror}", MISUSED)
    try:
        with waiting("Checking the lines …"):
            return read_lines(raw, datetime.now(UTC))
    except Problem as problem:
        fail(f"{file}: {problem.detail}", MISUSED)


def _send(rest: Rest, turns: Sequence[ImportedTurn]) -> Answer:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("Importing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("turns"),
        TimeRemainingColumn(),
    )
    done: Answer = {"user": "", "exchanges": 0, "turns": 0}
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("", total=len(turns))
        for batch in batches(turns):
            answer = _post(rest, batch, done["turns"])
            done["user"] = answer["user"]
            done["exchanges"] += answer["exchanges"]
            done["turns"] += answer["turns"]
            progress.advance(task, len(batch))
    return done


def _post(rest: Rest, batch: Sequence[ImportedTurn], before: int) -> Answer:
    try:
        return rest.post("/import", {"turns": [_document(turn) for turn in batch]})
    except GatewayError as error:
        kept = f" ({before} turns are in; the same command goes on from there)" if before else ""
        raise GatewayError(f"{error}{kept}", status=error.status) from error


def _document(turn: ImportedTurn) -> Answer:
    optional = {"session": turn.session, "name": turn.name, "shown": turn.shown, "id": turn.id}
    return {
        "role": turn.role,
        "content": turn.content,
        "at": turn.at.isoformat(),
        **{name: value for name, value in optional.items() if value},
    }
