"""How fast memory is made anew from its log: `python benchmarks/replay.py [--exchanges N] [--embedder fast]`.

A memory is told exchanges by the product's own import and filed by its own worker: pages, facts, segments,
heat. Then each part is made anew, and all of them together. CPU is that of the whole process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from report import Row, write

from hearth.memory.migrating import Installation
from hearth.memory.opening import Servers, open_memory
from hearth.memory.replaying import PARTS, Part, replay
from hearth.memory.types import ImportedTurn, Scope

USERS = 20
SESSION = 12
"""Exchanges of one conversation."""
STATEMENTS = (
    "I moved to {town} in spring and live near the {place} now.",
    "I work at {firm}, mostly on the {thing} that nobody else wants to touch.",
    "My favourite dish is {food}; I cook it whenever friends come by.",
    "What would you take along to {town} for a weekend with a {thing}?",
    "The {thing} broke again, right in front of the {place}. Can it be repaired?",
    "I am allergic to {food}, so please leave it out of every recipe.",
)
REPLIES = (
    "Noted. {town} has a fine {place}, and there are quiet streets around it where one can walk for hours.",
    "I would begin with the {thing}: look at what holds it together, then at what it is for.",
    "Then something else than {food}: the market by the {place} has all that is needed for it.",
)
WORDS = {
    "town": ("Oslo", "Bern", "Lisbon", "Graz", "Turku", "Leiden", "Porto", "Gdansk"),
    "place": ("river", "station", "old mill", "library", "harbour", "park"),
    "firm": ("Acme", "Brill", "Conrad", "Dunmore", "Elmwood"),
    "thing": ("bicycle", "loom", "boat", "camera", "stove", "printer", "tent"),
    "food": ("kiwi", "lentils", "paella", "rye bread", "fennel", "trout"),
}


def turns(count: int, seed: int) -> list[ImportedTurn]:
    """One user's exchanges, some of which state facts."""
    dice, at = random.Random(seed), datetime(2026, 1, 5, 9, tzinfo=UTC)

    def said(templates: Sequence[str]) -> str:
        chosen = {name: dice.choice(words) for name, words in WORDS.items()}
        return dice.choice(templates).format(**chosen) + f" ({dice.randrange(10**6)})"

    made = []
    for number in range(count):
        at += timedelta(minutes=7 if number % SESSION else 900)
        made += [ImportedTurn(role="user", content=said(STATEMENTS), at=at)]
        made += [ImportedTurn(role="assistant", content=said(REPLIES), at=at + timedelta(seconds=20))]
    return made


async def fill(place: Installation, exchanges: int) -> float:
    """Tell a memory so much; the seconds that it took to file it."""
    async with open_memory(place.home, embedder=place.embedder, durability="process") as engine:
        for user in range(USERS):
            told = turns(exchanges // USERS, user)
            for start in range(0, len(told), 2 * SESSION):
                scope = Scope(tenant=f"t{user % 3}", user=f"u{user}", session=f"s{start}")
                await engine.import_turns(scope, told[start : start + 2 * SESSION])
        began = time.perf_counter()
        await engine.drain()
        return time.perf_counter() - began


async def measured(place: Installation, parts: Sequence[Part]) -> Row:
    """One replay."""
    began, cpu = time.perf_counter(), time.process_time()
    done = await replay(place, parts, lambda *_: None)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {
        "part": ", ".join(parts),
        "events": done.events,
        "records": done.records,
        "embedded": done.embedded,
        "seconds": seconds,
        "events a second": done.events / seconds,
        "events a CPU second": done.events / cpu,
    }


async def run(exchanges: int, embedder: str, home: Path) -> tuple[list[Row], float]:
    """Each part, then all."""
    place = Installation(home=home, spool=home / "spool", servers=Servers(), embedder=embedder)
    filed = await fill(place, exchanges)
    rows = [await measured(place, [part]) for part in PARTS]
    return [*rows, await measured(place, PARTS)], filed


def main() -> None:
    """Entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exchanges", type=int, default=4_000)
    parser.add_argument("--embedder", default="fast")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    gc.freeze()  # as the command does
    with tempfile.TemporaryDirectory() as folder:
        rows, filed = asyncio.run(run(given.exchanges, given.embedder, Path(folder)))
    title = f"Replay ({given.exchanges:,} exchanges, which the worker filed in {filed:.0f} s)"
    write(given.json, "replay", {"exchanges": given.exchanges, "embedder": given.embedder}, {title: rows})


if __name__ == "__main__":
    main()
