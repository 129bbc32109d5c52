"""`hearth diff`: what became of a user's memory between two days."""

from __future__ import annotations

from collections.abc import Iterator

from hearth.gateway.commands.client import Answer, gateway
from hearth.gateway.commands.days import FirstDay, LastDay
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url, User
from hearth.gateway.commands.output import counted, moment, note, say_json, table


def diff(
    first: FirstDay,
    last: LastDay = None,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Tell what a user's memory learned, changed, ended and forgot between two days (UTC).

    Example: hearth diff 2026-03-01 2026-03-31 --user alice
    """
    with gateway(url, key, user) as rest:
        found = rest.get("/diff", since=first, until=last)
    if as_json:
        say_json(found)
        return
    rows = list(_rows(found))
    if rows:
        table(("what", "id", "type", "since", "text"), rows)
    gone = counted(found["forgotten_memories"], "memory", "memories")
    note(
        f"{counted(found['exchanges'], 'exchange')} filed; {gone} and"
        f" {counted(found['forgotten_exchanges'], 'exchange')} forgotten"
    )


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
