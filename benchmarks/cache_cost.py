"""What memory costs at the provider: input of whole sessions with and without it, prompt caching counted.

A real gateway stands before the scripted provider, whose cache follows the providers' published rules
(`testing/cache.py`). What it received is charged as it is, and once more with every block taken out: the same
session without memory. At each turn other memories match, and some are written between turns 3 and 4.

    python benchmarks/cache_cost.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec

from hearth.gateway.wire import WIRES
from hearth.gateway.wire.types import Route
from hearth.testing.cache import CacheDouble, Charge
from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import Reply, Request, ToolCall

Body = dict[str, Any]
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
THINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "my dog Zebedee",
        (
            "My dog Zebedee limps on his left paw since he fell off the pier.",
            "Zebedee hates fireworks and hides under the sofa.",
            "The vet in Larvik gave Zebedee fish oil for his joints.",
        ),
    ),
    (
        "my sister Ludmila",
        (
            "My sister Ludmila restores church organs in Valparaíso.",
            "Ludmila is allergic to shellfish and carries an adrenaline pen.",
            "I visit Ludmila each second January.",
        ),
    ),
    (
        "the boat Halcyon",
        (
            "I keep the boat Halcyon on a mooring in Falmouth.",
            "Halcyon needs a new mast step before the spring.",
            "I bought Halcyon from a retired pilot.",
        ),
    ),
    (
        "Dr Okafor",
        (
            "Dr Okafor removed two of my wisdom teeth under sedation.",
            "Dr Okafor wants me back for a crown on the upper molar.",
            "I pay Dr Okafor in three instalments.",
        ),
    ),
    (
        "the guitar Delphine",
        (
            "The guitar Delphine is a nylon-string from Granada.",
            "Delphine buzzes at the seventh fret in dry air.",
            "I lent Delphine to a student over the summer.",
        ),
    ),
    (
        "the car Bluebell",
        (
            "The car Bluebell failed its emissions test.",
            "A mechanic called Otto quoted 900 euros for Bluebell's gearbox.",
            "Bluebell's winter tyres are in the cellar.",
        ),
    ),
    (
        "the cabin Aspenrood",
        (
            "The cabin Aspenrood has no electricity, only a wood stove.",
            "A marten got into the roof of Aspenrood.",
            "The key to Aspenrood lies under the third stone.",
        ),
    ),
    (
        "the choir Cantemus",
        (
            "In the choir Cantemus I sing second bass.",
            "Cantemus rehearses Rachmaninoff's Vespers for Easter.",
            "Cantemus travels to Tallinn by ferry.",
        ),
    ),
    (
        "my brother Anselm",
        (
            "My brother Anselm teaches chess to prisoners.",
            "Anselm broke his collarbone while skiing.",
            "I owe Anselm a birthday dinner.",
        ),
    ),
    (
        "the parrot Admiral",
        (
            "The parrot Admiral swears in Portuguese.",
            "Admiral plucks his feathers when I travel.",
            "The parrot Admiral eats only peeled almonds.",
        ),
    ),
    (
        "the bakery Krume",
        (
            "At the bakery Krume I order rye loaves without caraway.",
            "The bakery Krume closes for stocktaking in August.",
            "The owner of Krume collects my sourdough jars.",
        ),
    ),
    (
        "the horse Quillon",
        (
            "The horse Quillon jumps water but refuses ditches.",
            "Quillon's saddle was refitted by a woman from Jerez.",
            "The horse Quillon has mild hay fever.",
        ),
    ),
    (
        "the landlord Vasquez",
        (
            "The landlord Vasquez raised our rent by eight per cent.",
            "Vasquez promised to replace the boiler.",
            "I write to Vasquez by registered letter only.",
        ),
    ),
    (
        "the bicycle Peregrine",
        (
            "The bicycle Peregrine has a belt drive and hub gears.",
            "I had Peregrine stolen and returned in Ghent.",
            "Peregrine carries two panniers of books.",
        ),
    ),
    (
        "the school Larkspur",
        (
            "At the school Larkspur I volunteer in the library.",
            "Larkspur lost its lease and moves to Dock Street.",
            "The school Larkspur bans telephones.",
        ),
    ),
    (
        "the cello Ottoline",
        (
            "The cello Ottoline was made in Mirecourt in 1890.",
            "Ottoline got a hairline crack from the radiator.",
            "I insure the cello Ottoline for travel.",
        ),
    ),
    (
        "the garden Thornfield",
        (
            "In the garden Thornfield I grow quinces and medlars.",
            "Voles ate every tulip bulb of Thornfield.",
            "The well at Thornfield runs dry by July.",
        ),
    ),
    (
        "the cat Miso",
        (
            "The cat Miso takes thyroid tablets in tuna paste.",
            "Miso opens doors by hanging on handles.",
            "A neighbour feeds the cat Miso while I am away.",
        ),
    ),
    (
        "the office Marrow Hall",
        (
            "My desk in the office Marrow Hall is by the freight lift.",
            "The heating of Marrow Hall fails on Mondays.",
            "Marrow Hall's canteen serves lentils daily.",
        ),
    ),
    (
        "the therapist Lindqvist",
        (
            "The therapist Lindqvist suggested a sleep diary.",
            "Lindqvist's practice is above a tram depot.",
            "I cancelled Lindqvist twice because of deadlines.",
        ),
    ),
)
"""What the user talks of, one a turn, and what they once said about it."""
WRITTEN_LATE = 3
"""The thing whose memories are written only when its turn is next."""
WORDS = (
    "the",
    "quiet",
    "harbour",
    "keeps",
    "its",
    "lights",
    "on",
    "while",
    "small",
    "boats",
    "come",
    "home",
    "slowly",
)


def filler(tokens: int, seed: int) -> str:
    """Text of about so many tokens that is the same for the same seed and no other."""
    count = tokens * 4 // 6
    return " ".join(
        f"{WORDS[(seed + place * 7) % len(WORDS)]}{(seed * 31 + place) % 97}" for place in range(count)
    )


def question(turn: int) -> str:
    """What the user asks at a turn."""
    return f"Please help me with a plan. What did I tell you about {THINGS[turn][0]}?"


@dataclass(frozen=True)
class Caching:
    """A provider's way of caching: its route, the gateway's model, and what the client marks."""

    name: str
    route: Route
    model: str
    explicit: bool = False
    """The client sets four `cache_control` marks, as agents do."""
    automatic: bool = False
    """The client sends a top-level `cache_control`."""


CACHINGS = (
    Caching("Anthropic, explicit breakpoints", "messages", "claude", explicit=True),
    Caching("Anthropic, automatic", "messages", "claude", automatic=True),
    Caching("OpenAI, automatic prefix (gpt-4o)", "chat", "gpt"),
    Caching("OpenAI, implicit breakpoint (gpt-5.6)", "chat", "gpt-5.6"),
    Caching("OpenAI, implicit breakpoint (gpt-5.6), responses", "responses", "gpt-5.6"),
)


@dataclass(frozen=True)
class Session:
    """The size of a session; `system`, `result` and `reply` in tokens."""

    name: str
    turns: int
    steps: int
    """Tool steps a turn."""
    system: int
    result: int = 1500
    """Of a tool's result."""
    reply: int = 300


SESSIONS = (
    Session("chat, 20 turns", 20, 0, 4000),
    Session("agent, 10 turns of 5 tool steps", 10, 5, 15000),
)


Item = tuple[str, str, str]
"""(kind, id, text) with kind user, assistant, call or result."""


def calls(session: Session) -> Iterator[tuple[int, list[Item], Reply]]:
    """(turn, transcript, reply) of each call of the session."""
    items: list[Item] = []
    for turn in range(session.turns):
        items.append(("user", "", question(turn)))
        for step in range(session.steps):
            place = f"call_{turn}_{step}"
            yield (
                turn,
                list(items),
                Reply(text="", tools=(ToolCall(name="read", arguments={"at": step}, id=place),)),
            )
            items.append(("call", place, json.dumps({"at": step})))
            items.append(("result", place, filler(session.result, turn * 100 + step)))
        answer = filler(session.reply, 7000 + turn)
        yield turn, list(items), Reply(text=answer)
        items.append(("assistant", "", answer))


def body_of(caching: Caching, session: Session, items: Sequence[Item]) -> Body:
    """A request of the session in the format of the route, marked as the client marks it."""
    system = filler(session.system, 99)
    made: Body = {"model": caching.model, "stream": True}
    if caching.route == "chat":
        messages = [{"role": "system", "content": system}, *map(_chat_item, items)]
        made |= {"messages": messages, **({"tools": [CHAT_TOOL]} if session.steps else {})}
    elif caching.route == "responses":
        made |= {"instructions": system, "input": list(map(_response_item, items)), "store": False}
        made |= {"tools": [RESPONSES_TOOL]} if session.steps else {}
    else:
        messages = [_message(item) for item in items]
        made |= {"system": [{"type": "text", "text": system}], "messages": messages, "max_tokens": 500}
        made |= {"tools": [dict(TOOL)]} if session.steps else {}
    if caching.automatic:
        made["cache_control"] = {"type": "ephemeral"}
    return _marked(made) if caching.explicit else made


TOOL: Body = {
    "name": "read",
    "description": "Reads a file.",
    "input_schema": {"type": "object", "properties": {}},
}
CHAT_TOOL: Body = {"type": "function", "function": {"name": "read", "parameters": TOOL["input_schema"]}}
RESPONSES_TOOL: Body = {"type": "function", "name": "read", "parameters": TOOL["input_schema"]}


def _chat_item(item: Item) -> Body:
    kind, place, text = item
    if kind == "call":
        call = {"id": place, "type": "function", "function": {"name": "read", "arguments": text}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "result":
        return {"role": "tool", "tool_call_id": place, "content": text}
    return {"role": kind, "content": text}


def _response_item(item: Item) -> Body:
    kind, place, text = item
    if kind == "call":
        return {"type": "function_call", "name": "read", "call_id": place, "arguments": text}
    if kind == "result":
        return {"type": "function_call_output", "call_id": place, "output": text}
    part = "output_text" if kind == "assistant" else "input_text"
    return {"type": "message", "role": kind, "content": [{"type": part, "text": text}]}


def _message(item: Item) -> Body:
    kind, place, text = item
    if kind == "call":
        part: Body = {"type": "tool_use", "id": place, "name": "read", "input": json.loads(text)}
    elif kind == "result":
        part = {"type": "tool_result", "tool_use_id": place, "content": text}
    else:
        part = {"type": "text", "text": text}
    return {"role": "assistant" if kind in ("assistant", "call") else "user", "content": [part]}


def _marked(body: Body) -> Body:
    """Marks on tools, system, the newest message and the user message before it: four at most."""
    users = [message for message in body["messages"] if message["role"] == "user"]
    holders = [*(body.get("tools") or ())[-1:], body["system"][-1], *(m["content"][-1] for m in users[-2:])]
    for holder in holders:
        holder["cache_control"] = {"type": "ephemeral"}
    return body


def hold(
    client: httpx.Client,
    provider: ScriptedProvider,
    caching: Caching,
    session: Session,
    before_turn: Callable[[int], None],
) -> tuple[list[Request], list[int]]:
    """Hold the session with memory on; what the provider received, and the block tokens of each call."""
    provider.clear()
    tokens, seen = [], -1
    for turn, items, reply in calls(session):
        if turn != seen:
            before_turn(turn)
            seen = turn
        provider.answer = lambda _, reply=reply: reply
        answer = client.post(PATHS[caching.route], json=body_of(caching, session, items))
        answer.raise_for_status()
        tokens.append(int(answer.headers.get("x-hearth-tokens", "0")))
    provider.answer = None
    return provider.requests, tokens


def charges(requests: Iterable[Request], change: Callable[[Body], Body] = lambda body: body) -> list[Charge]:
    """What a cache that was empty before charges for the requests, each body changed first."""
    cache = CacheDouble()
    return [cache.charge(change(request.body), request.at) for request in requests]


def stripped(route: Route) -> Callable[[Body], Body]:
    """A body without any block: the same session without memory."""
    return WIRES[route].strip


def cost(charged: Sequence[Charge]) -> float:
    """In tokens of plain input."""
    return sum(charge.cost for charge in charged)


def read_share(charged: Sequence[Charge]) -> float:
    """Which part of the input was read from the cache."""
    return sum(charge.cache_read for charge in charged) / sum(charge.total for charge in charged)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table."""

    session: str
    caching: str
    plain: float
    """Cost without memory, in tokens of plain input."""
    remembered: float
    plain_read: float
    """Share of the input read from the cache without memory; the next with it."""
    remembered_read: float
    block: float
    """Mean tokens of a turn's block."""

    @property
    def ratio(self) -> float:
        """Cost with memory to that without."""
        return self.remembered / self.plain


def measure(
    client: httpx.Client,
    provider: ScriptedProvider,
    caching: Caching,
    session: Session,
    remember: Callable[[Sequence[str]], None],
) -> Row:
    """Hold the session as one user, whose memories `remember` writes, and charge it with and without them."""
    early = [said for turn, (_, said) in enumerate(THINGS[: session.turns]) if turn != WRITTEN_LATE]
    remember([text for texts in early for text in texts])

    def before_turn(turn: int) -> None:
        if turn == WRITTEN_LATE:
            remember(THINGS[turn][1])

    requests, tokens = hold(client, provider, caching, session, before_turn)
    plain, remembered = charges(requests, stripped(caching.route)), charges(requests)
    return Row(
        session=session.name,
        caching=caching.name,
        plain=cost(plain),
        remembered=cost(remembered),
        plain_read=read_share(plain),
        remembered_read=read_share(remembered),
        block=sum(tokens) / len(tokens),
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = [
        "| session | caching | block | read without | read with | cost with / without |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.session} | {row.caching} | {row.block:.0f} | {row.plain_read:.0%} |"
        f" {row.remembered_read:.0%} | {row.ratio:.2f} |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Start a gateway, measure all, print the table."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.acceptance import conftest, talk

    rows = []
    with tempfile.TemporaryDirectory() as folder, ScriptedProvider() as provider:
        home = Path(folder) / "data"
        gateway = conftest.start(conftest.document(provider, home), home)
        try:
            for number, (session, caching) in enumerate((s, c) for s in SESSIONS for c in CACHINGS):
                user = f"cost-{number}"
                with gateway.client(conftest.APP, **{"x-hearth-user": user}) as client:

                    def remember(texts: Sequence[str], user: str = user) -> None:
                        talk.remember_all(gateway, user, texts)

                    rows.append(measure(client, provider, caching, session, remember))
        finally:
            conftest.stop(gateway)
    print(table(rows))


if __name__ == "__main__":
    main()
