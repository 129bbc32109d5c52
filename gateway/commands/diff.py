"""`hearth diff`: what became of a user's memory between two days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from hearth.gateway.commands.client import Answer, gateway
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url, User
from hearth.gateway.commands.output import MISUSED, fail, moment, note, one_line, say_json, table


def diff(
    first: Annotated[str, typer.Argument(help="The first day, such as 2026-03-01, from its beginning.")],
    last: Annotated[
        str, typer.Argument(help="The last day, to its end; none: until now.", show_default=False)
    ] = "",
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Tell what a user's memory learned, changed, ended and forgot between two days (UTC).

    Example: hearth diff 2026-03-01 2026-03-31 --user alice
    """
    since, until = _day(first), None
    if last:
        end = _day(last) + timedelta(days=1)
        until = end.isoformat() if end <= datetime.now(UTC) else None
    with gateway(url, key, user) as rest:
        found = rest.get("/diff", since=since.isoformat(), until=until)
    if as_json:
        say_json(found)
        return
    rows = list(_rows(found))
    if rows:
        table(("what", "id", "type", "since", "text"), rows)
    gone = found["forgotten_memories"], found["forgotten_exchanges"]
    note(f"{found['exchanges']} exchanges filed; {gone[0]} memories and {gone[1]} exchanges forgotten")


def _rows(found: Answer) -> Iterator[tuple[object, ...]]:
    for memory in found["learned"]:
        yield _row("learned", memory, memory["text"])
    for change in found["changed"]:
        before, after = change["before"], change["after"]
        text = (
            f"{after['text']} (was: {before['text']})" if before["text"] != after["text"] else after["text"]
        )
        yield _row("changed", after, text)
    for memory in found["ended"]:
        yield _row("ended", memory, f"{memory['text']} (until {moment(memory['valid_to'])})")
    for memory in found["withdrawn"]:
        yield _row("taken back", memory, memory["text"])


def _row(what: str, memory: Answer, text: str) -> tuple[object, ...]:
    return what, memory["id"], memory["type"], moment(memory["occurred_at"]), text


def _day(given: str) -> datetime:
    try:
        return datetime.strptime(given, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        fail(f"{one_line(given)}: expected a day such as 2026-03-01", MISUSED)
