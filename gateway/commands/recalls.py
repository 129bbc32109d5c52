"""Commands about recalls: what would be recalled, why something was or was not, and how good that was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, TypeAlias

import typer

from hearth.gateway.commands.client import Answer, GatewayError, Rest, gateway
from hearth.gateway.commands.days import AsKnown
from hearth.gateway.commands.options import DEFAULT_URL, ApiKey, Json, Url, User
from hearth.gateway.commands.output import note, number, say, say_json, spoken, table

Explained: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="Id of the recall, as the header x-hearth-trace and `hearth recall` give it, or of an exchange."
    ),
]
TraceId: TypeAlias = Annotated[
    str, typer.Argument(help="Id of the recall, as the header x-hearth-trace and `hearth recall` give it.")
]


def recall(
    query: Annotated[str, typer.Argument(help="What the user would say.")],
    before: Annotated[
        str, typer.Option(help="The turn before, for a short question.", show_default=False)
    ] = "",
    budget: Annotated[
        int | None, typer.Option(min=0, help="Tokens of the block; the key's, if not given.")
    ] = None,
    model: Annotated[str, typer.Option(help="Whose tokens are counted.", show_default=False)] = "",
    as_of: AsKnown = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also how the question was read, every candidate's scores, and what was left out.",
        ),
    ] = False,
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Show what would go into the prompt for a message, without calling a model.

    Example: hearth recall "What should I cook tonight?" --explain
    """
    body = {"query": query, "before": before, "budget": budget, "model": model, "as_of": as_of}
    with gateway(url, key, user) as rest:
        found = rest.post("/recall", body)
    if as_json:
        say_json(found)
        return
    if found["block"]:
        say(found["block"])
    if explain:
        _explain(found)
    _sum_up(found)


def explain(
    trace: Explained, user: User = "", url: Url = DEFAULT_URL, key: ApiKey = "", as_json: Json = False
) -> None:
    """Explain an earlier recall: how its question was read, every candidate's scores, and what was left out.

    However long ago: one that no gateway has in mind any more is told by the log, with what memory knew then.

    Example: hearth explain c0ffee00c0ffee00c0ffee00c0ffee00
    """
    with gateway(url, key, user) as rest:
        found = rest.get(f"/recalls/{_of_exchange(rest, _checked(trace))}")
    if as_json:
        say_json(found)
        return
    if found["block"]:
        say(found["block"])
    _explain(found)
    _sum_up(found)
    if found["source"] == "log":
        shown = sum(item["recorded"] for item in found["items"])
        note(f"recorded: {'the block, ' if found['block'] else ''}{shown} candidates and their signals")
        note(
            "rebuilt, over what memory knew then: scores, how the question was read, and all other candidates"
        )


def feedback(
    trace: TraceId,
    judgement: Annotated[
        str, typer.Argument(help="useful, useless or wrong: it helped, was of no use, or misled.")
    ],
    items: Annotated[
        list[str],
        typer.Option(
            "--item", help="Of this candidate alone, by its id; repeat for several.", show_default=False
        ),
    ] = [],  # noqa: B006
    about: Annotated[str, typer.Option("--note", help="Why; kept with it.", show_default=False)] = "",
    user: User = "",
    url: Url = DEFAULT_URL,
    key: ApiKey = "",
    as_json: Json = False,
) -> None:
    """Say how good a recall was, as a whole or by item; `hearth tune` learns from it.

    Example: hearth feedback c0ffee00c0ffee00c0ffee00c0ffee00 useful
    """
    of_items = [{"id": item, "verdict": judgement} for item in items]
    body = {"judgement": None if items else judgement, "items": of_items, "note": about}
    with gateway(url, key, user) as rest:
        kept = rest.post(f"/recalls/{_checked(trace)}/feedback", body)
    if as_json:
        say_json(kept)
    else:
        say(f"{judgement}: {f'{len(items)} items of ' if items else ''}recall {kept['recall']}")


def _of_exchange(rest: Rest, id: str) -> str:
    """The recall that went into the exchange of that id, or else the id itself."""
    try:
        return str(rest.get(f"/exchanges/{id}")["trace"] or id)
    except GatewayError as error:
        if error.status != 404:
            raise
        return id


def _checked(trace: str) -> str:
    if not trace.isalnum():
        raise GatewayError(f"{trace}: expected a recall's id, as x-hearth-trace gives it", status=400)
    return trace


def _sum_up(found: Answer) -> None:
    shown = sum(item["verdict"] == "in" for item in found["items"])
    reasons = f", {found['status']}: {'; '.join(found['reasons'])}" if found["reasons"] else ""
    note(f"{shown} recalled, {found['tokens']} tokens, {found['milliseconds']:.0f} ms{reasons}")
    note(f"trace {found['id']}")


def _explain(found: Answer) -> None:
    """Three tables, the candidates numbered in both of theirs, and what was left out."""
    table(("question", ""), _read(found["analysis"]))
    say("")
    if not found["items"]:
        say("no candidates")
        return
    table(("#", "verdict", "relevance", "score", "tokens", "id", "type", "text"), _candidates(found["items"]))
    say("")
    names = list(dict.fromkeys(name for item in found["items"] for name in item["signals"]))
    table(("#", *names), _signals(found["items"], names))
    say("")
    cut = Counter(item["verdict"] for item in found["items"] if item["verdict"] != "in")
    say(f"left out: {', '.join(f'{count} {why}' for why, count in cut.items()) or 'nothing'}")


def _read(analysis: Answer) -> Iterator[tuple[str, str]]:
    known = analysis["text"] is not None
    yield "looked up", analysis["text"] if known else "not known: no exchange was captured with it"
    if known:
        yield "words", " ".join(analysis["words"])
        yield "time", ", ".join(analysis["time"]) or "none named"
    yield "turn before", "used" if analysis["before"] else "not used"
    yield "time zone", analysis["timezone"]
    tokens = f" of {analysis['model']}" if analysis["model"] else ""
    yield "budget", f"{analysis['budget']} tokens{tokens}, by {analysis['budget_from']}"
    yield "floor", f"{number(analysis['floor'])}, by {analysis['floor_from']}"


def _candidates(items: list[Answer]) -> Iterator[tuple[object, ...]]:
    for place, item in enumerate(items, 1):
        record = item["record"]
        shown = (record["type"], spoken(record)) if record else ("", "forgotten meanwhile")
        tokens = item["tokens"] or ""
        scores = (number(item["relevance"]), number(item["score"]))
        yield place, item["verdict"], *scores, tokens, item["id"], *shown


def _signals(items: list[Answer], names: list[str]) -> Iterator[tuple[object, ...]]:
    for place, item in enumerate(items, 1):
        yield place, *(number(item["signals"].get(name)) for name in names)
