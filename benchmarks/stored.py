"""Ten thousand made-up memories of two hundred users, and questions about them that never repeat."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from hearth.memory.engine import Engine
from hearth.memory.opening import open_memory
from hearth.memory.types import ImportedTurn, Scope

USERS = 200
BEGIN = datetime(2025, 1, 6, 9, tzinfo=UTC)
NAMES = ("Anna", "Ben", "Carla", "David", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kira")
PLACES = ("Lisbon", "Oslo", "Zurich", "Kyoto", "Boston", "Cairo", "Lima", "Vienna", "Dublin")
THINGS = (
    *("bicycle", "violin", "tent", "camera", "sailing boat", "piano", "telescope", "coffee machine", "drone"),
    *("garden shed", "pottery wheel", "bread oven", "motorbike", "chess set", "kayak", "loom", "microscope"),
    *("record player", "greenhouse", "surfboard", "sewing machine", "climbing rope", "accordion", "scooter"),
)
DEEDS = ("bought", "sold", "repaired", "lost", "borrowed", "painted", "insured", "ordered", "returned")
REASONS = (
    "for the birthday of a cousin",
    "because the old one broke",
    "after a long talk with the landlord",
    "to save money for the move",
    "as a present for the neighbours",
    "before the summer holidays",
    "during the conference on soil physics",
    "while the kitchen was being rebuilt",
    "with the bonus from work",
    "against the advice of the doctor",
    "in spite of the rain",
    "on the way to the dentist",
)
SHAPES = (
    "What did {name} do with the {thing} in {place}, and why was it {deed} {reason}?",
    "Do you remember whether {name} {deed} the {thing} {reason} when we were in {place}?",
    "I need the details about the {thing} that {name} {deed} in {place} {reason}.",
    "Who besides {name} knew that the {thing} was {deed} in {place} {reason}?",
)


def user(rank: int) -> str:
    """The name of the user of that rank, 0 being the busiest."""
    return f"user-{rank:03}"


def zipf() -> list[float]:
    """Weight of each user, by rank: half as much for the second as for the first, and so on."""
    return [1 / (rank + 1) for rank in range(USERS)]


def questions(seed: int) -> Iterator[tuple[str, str]]:
    """(user, question) without end; users by Zipf's law, no question twice."""
    chance, weights, number = random.Random(seed), zipf(), 0
    while True:
        number += 1
        (rank,) = chance.choices(range(USERS), weights)
        text = chance.choice(SHAPES).format(**_words(chance))
        yield user(rank), f"{text} (note {seed}-{number})"


def prepared(cache: Path, embedder: Literal["fast", "quality"], count: int) -> Path:
    """A data folder with `count` memories, made once and kept below `cache`."""
    folder = cache / f"{embedder}-{count}"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        asyncio.run(_fill(folder / "data", embedder, count))
        (folder / "ready").touch()
    return folder / "data"


def _words(chance: random.Random) -> dict[str, str]:
    return {
        "name": chance.choice(NAMES),
        "place": chance.choice(PLACES),
        "thing": chance.choice(THINGS),
        "deed": chance.choice(DEEDS),
        "reason": chance.choice(REASONS),
    }


async def _fill(folder: Path, embedder: Literal["fast", "quality"], count: int) -> None:
    """Half of the memories are facts, half are exchanges in sessions of ten."""
    chance, total = random.Random(7), sum(zipf())
    async with open_memory(folder, embedder=embedder) as engine:
        for rank, weight in enumerate(zipf()):
            share = max(round(count * weight / total), 2)
            scope = Scope(tenant="acme", user=user(rank))
            await _facts(engine, scope, share // 2, chance)
            await engine.import_turns(scope, _dialogue(share - share // 2, chance))
        await engine.drain()


async def _facts(engine: Engine, scope: Scope, count: int, chance: random.Random) -> None:
    for start in range(0, count, 64):
        texts = [_fact(chance) for _ in range(min(64, count - start))]
        await asyncio.gather(*(engine.remember(scope, text) for text in texts))


def _fact(chance: random.Random) -> str:
    return "{name} {deed} the {thing} in {place} {reason}.".format(**_words(chance))


def _dialogue(exchanges: int, chance: random.Random) -> list[ImportedTurn]:
    turns: list[ImportedTurn] = []
    for number in range(exchanges):
        at = BEGIN + timedelta(hours=number)
        session = f"imported-{number // 10}"
        said = f"By the way, {_fact(chance)}"
        answer = (
            f"Noted. Shall I remind you to call {chance.choice(NAMES)} about the {chance.choice(THINGS)}?"
        )
        turns.append(ImportedTurn(role="user", content=said, at=at, session=session))
        later = at + timedelta(seconds=20)
        turns.append(ImportedTurn(role="assistant", content=answer, at=later, session=session))
    return turns
