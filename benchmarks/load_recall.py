"""Recall's time by the number of stored records, against the vector store's own answer to the same query."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from arrivals import Times, open_loop
from population import EMBEDDER, Made, Population, importable
from raw_asks import Search
from raw_edge import in_files
from raw_server import in_server
from raw_store import Place, RawStore

from hearth.config.environment import bundled_token_tables
from hearth.memory import open_memory
from hearth.memory.engine import Engine
from hearth.memory.opening import Servers
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.types import Scope

MIXED = "as traffic comes"
DEADLINE = 5.0
"""Seconds for a recall, so that each is whole; the time alone is asked for."""
WAYS = ("store, ids alone", "store, with records", "recall, cached vector", "recall, new question")


@dataclass(frozen=True)
class Asked:
    """One question and whose memory it is put to."""

    scope: Scope
    text: str


def questions(population: Population, kind: str | int, count: int) -> list[Asked]:
    """So many of one kind: of callers as they come, or of owners with just so many pages."""
    chance = np.random.default_rng((31, 0 if kind == MIXED else int(kind)))
    if kind == MIXED:
        users = population.draw(chance, count).tolist()
    else:
        users = chance.choice(population.probe(int(kind)), count).tolist()
    first = (0 if kind == MIXED else int(kind)) * 1_000_000
    return [
        Asked(population.scope(user), population.question(first + at, user)) for at, user in enumerate(users)
    ]


class Bench:
    """One population, its questions by kind, and the times of each way to answer them."""

    def __init__(self, pages: int, *, rate: float, count: int) -> None:
        self.pages, self._rate, self._count = pages, rate, count
        population = Population(pages)
        kinds: tuple[str | int, ...] = (MIXED, *population.probes)
        self._asked = {str(kind): questions(population, kind, count) for kind in kinds}
        self._embedder = Made()
        self.times: dict[tuple[str, str], Times] = defaultdict(Times)
        self.shown: dict[str, list[int]] = defaultdict(list)

    async def store(self, place: Place) -> None:
        """Ask the store alone, in a process of its own."""
        async with RawStore(place) as raw:
            for kind, asked in self._asked.items():
                ready = [await self._ready(raw, one) for one in asked]
                for one in ready:
                    await raw.search(one)
                for way, records in ((WAYS[0], False), (WAYS[1], True)):

                    async def search(at: int, ready: list[Search] = ready, records: bool = records) -> None:
                        one = ready[at]
                        await raw.search(Search(one.owner, one.vector, one.terms, one.weights, records))

                    await self._measure(kind, way, search)

    async def recall(self, place: Place, round_: int) -> None:
        """Ask memory, each question twice: the second time its vector is known."""
        async with open_memory(
            place.data,
            embedder=EMBEDDER,
            durability="process",
            worker="external",  # what a recall has the worker do is measured apart
            token_tables=bundled_token_tables(),
            servers=Servers(qdrant=place.qdrant),
            policy=RecallPolicy(floor=0.0, item_floor=0.0),  # whatever ranks best: every block is full
        ) as engine:
            await self._warm(engine)
            for kind, asked in self._asked.items():
                fresh = [Asked(one.scope, f"{one.text} ({round_})") for one in asked]
                for way in (WAYS[3], WAYS[2]):
                    await self._measure(kind, way, self._recalling(engine, kind, fresh))

    def rows(self) -> list[dict[str, Any]]:
        """One row for each kind and way."""
        return [
            {
                "pages": self.pages,
                "whose": kind if kind == MIXED else f"owner of {int(kind):,}",
                "way": way,
                **self.times[kind, way].numbers(),
                "times the store's p50": round(self._median(kind, way) / self._median(kind, WAYS[1]), 2),
            }
            for kind in self._asked
            for way in WAYS
        ]

    def _median(self, kind: str, way: str) -> float:
        return self.times[kind, way].at(50)

    async def _warm(self, engine: Engine) -> None:
        """Ask each owner once, so that what a search reads is in memory however long ago that was."""
        for asked in self._asked.values():
            for one in asked:
                await engine.recall(one.scope, one.text, deadline=DEADLINE)

    def _recalling(
        self, engine: Engine, kind: str, asked: Sequence[Asked]
    ) -> Callable[[int], Awaitable[None]]:
        async def recall(at: int) -> None:
            found = await engine.recall(asked[at].scope, asked[at].text, deadline=DEADLINE)
            if found.status != "ok":
                raise RuntimeError(f"a recall was not whole: {found.reasons}")
            self.shown[kind].append(len(found.block.items))

        return recall

    async def _ready(self, raw: RawStore, asked: Asked) -> Search:
        owner = asked.scope.owner
        terms, weights = await raw.words(owner, asked.text)
        (vector,) = self._embedder.embed_queries([asked.text])
        return Search(owner, vector, terms, weights, records=True)

    async def _measure(self, kind: str, way: str, call: Callable[[int], Awaitable[None]]) -> None:
        await open_loop(
            call,
            rate=self._rate,
            count=self._count,
            seed=self.pages,
            times=self.times[kind, way],
        )


def run(
    sizes: Sequence[int], *, rate: float, count: int, rounds: int, qdrant_url: str
) -> Mapping[str, list[dict[str, Any]]]:
    """Each population in turn, in that server or in files; store and memory alternate, since of files one
    process at a time has the collection.
    """
    importable()
    place_of = _place_of(qdrant_url)
    benches = []
    for pages in sizes:
        bench = Bench(pages, rate=rate, count=count)
        with place_of(pages) as place:
            for round_ in range(rounds):
                asyncio.run(bench.store(place))
                asyncio.run(bench.recall(place, round_))
        benches.append(bench)
    return {
        "Recall against the store's own answer": [row for bench in benches for row in bench.rows()],
        "Records in a block": _shown(benches),
    } | ({"Growth of the median": _growth(benches)} if len(benches) > 1 else {})


def _place_of(qdrant_url: str) -> Callable[[int], AbstractContextManager[Place]]:
    """What holds so many pages for as long as they are asked for."""
    if not qdrant_url:
        return in_files
    return partial(in_server, QdrantServer(url=qdrant_url, api_key=os.environ.get("QDRANT_API_KEY", "")))


def _growth(benches: Sequence[Bench]) -> list[dict[str, Any]]:
    first, last = benches[0], benches[-1]
    common = [kind for kind in first.shown if kind in last.shown]
    return [
        {
            "whose": kind,
            "way": way,
            "from pages": first.pages,
            "to pages": last.pages,
            "times": round(last.times[kind, way].at(50) / first.times[kind, way].at(50), 2),
        }
        for kind in common
        for way in WAYS
    ]


def _shown(benches: Sequence[Bench]) -> list[dict[str, Any]]:
    return [
        {"pages": bench.pages, "whose": kind, "mean": round(float(np.mean(shown)), 2)}
        for bench in benches
        for kind, shown in bench.shown.items()
    ]
