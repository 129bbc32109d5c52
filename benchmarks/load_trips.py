"""How often a call goes to each store: every verb of the ports counted, and what a server counts itself."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import redis
from filled import filled
from population import EMBEDDER, Population

from hearth.memory import open_memory
from hearth.memory.dialogue import read, retry_key, tails
from hearth.memory.engine import Engine
from hearth.memory.ports import Consumers, EventLog, LongTerm, ShortTerm
from hearth.memory.types import Query, Scope, Step, Turn

PORTS = {"log": (EventLog, Consumers), "short_term": (ShortTerm,), "long_term": (LongTerm,)}
"""The engine's stores, by attribute, and the ports whose verbs are counted."""
OURS = ("info", "client", "hello", "ping", "select", "auth")
"""Commands of connections and of the counting itself."""


def count_verbs(engine: Engine) -> Counter[tuple[str, str]]:
    """Count every call of a port's verb from now on, by store and verb; whoever makes it."""
    counts: Counter[tuple[str, str]] = Counter()
    for name, ports in PORTS.items():
        store = getattr(engine, name)
        for port in ports:
            for verb, member in vars(port).items():
                if callable(member) and not verb.startswith("_"):
                    setattr(store, verb, _counted(counts, (name, verb), getattr(store, verb)))
    return counts


def _counted(
    counts: Counter[tuple[str, str]], key: tuple[str, str], verb: Callable[..., Any]
) -> Callable[..., Any]:
    @wraps(verb)
    def call(*given: Any, **named: Any) -> Any:
        counts[key] += 1
        return verb(*given, **named)

    return call


async def trips_a_call(pages: int, calls: int) -> list[dict[str, Any]]:
    """Rows of (store, verb, times a call) over `calls` of a population's callers.

    The first call of a user alone may bring pages back from the log; each caller calls once before.
    """
    with tempfile.TemporaryDirectory(prefix="hearth-load-") as name:
        data = Path(name) / "data"
        shutil.copytree(filled(pages), data)
        population = Population(pages)
        users = population.draw(np.random.default_rng(42), calls).tolist()
        async with open_memory(data, embedder=EMBEDDER, durability="process") as engine:
            for at, user in enumerate(users):
                await one_call(engine, population.scope(user), population.question(60_000_000 + at, user))
            await engine.drain()
            await engine.worker.stop()
            counts = count_verbs(engine)
            for at, user in enumerate(users):
                await one_call(engine, population.scope(user), population.question(70_000_000 + at, user))
            await engine.capture_path.drain()
            on_path = Counter(counts)
            await engine.worker.start()
            await engine.worker.drain()
    worker = counts - on_path
    return [
        {"pages": pages, "store": store, "verb": verb, "who": who, "a call": round(count / calls, 2)}
        for who, found in (("the call", on_path), ("the worker", worker))
        for (store, verb), count in sorted(found.items())
    ]


async def one_call(engine: Engine, scope: Scope, text: str) -> None:
    """What the gateway asks of memory for a first message and its reply, in its order."""
    now = datetime.now(UTC)
    dialogue = read([Turn(role="user", text=text, index=0)])
    by = engine.due()
    search = engine.look_up(scope, Query(text=text, at=now))
    secret = await engine.secret(scope.tenant, by=by)
    key = retry_key(scope.owner, [Turn(role="user", text=text, index=0)], secret, about=("chat", "gpt", ""))
    opened = await engine.open(scope, dialogue, secret=secret, retry_key=key, by=by)
    view = await engine.view(opened.scope, by=by)
    recall = await engine.recall(
        opened.scope, Query(text=text, at=now), generation=opened.generation, view=view, search=search
    )
    step = Step(
        exchange=opened.exchange,
        user_text=text,
        reply_text="Noted.",
        outcome="complete",
        closes=True,
        tails=tails(dialogue.answered("Noted."), secret),
        tails_before=tails(dialogue.history, secret),
        retry_key=key,
        injected=recall.block.items,
        route="chat",
        model="gpt",
        started_at=now,
        finished_at=datetime.now(UTC),
    )
    await engine.capture_step(opened, step, event_id=uuid4().hex, page_reply="Noted.", vector=recall.vector)


def redis_calls(url: str | None) -> dict[str, int]:
    """Commands that the server has carried out so far, by name; none without a server."""
    if url is None:
        return {}
    with redis.Redis.from_url(url) as client:
        stats = client.info("commandstats")
    named = {name.removeprefix("cmdstat_"): numbers["calls"] for name, numbers in stats.items()}
    return {name: calls for name, calls in named.items() if name.partition("|")[0] not in OURS}


def redis_bytes(url: str) -> int:
    """Memory that the server's data takes now."""
    with redis.Redis.from_url(url) as client:
        return int(client.info("memory")["used_memory_dataset"])
