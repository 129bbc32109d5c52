"""How fast the worker indexes beside what the embedder can do alone, and how it recovers from a pause.

python benchmarks/load_worker.py      embed what comes by standard input (used by `alone` below)
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from arrivals import Times, open_loop
from population import Population

from hearth.config.environment import bundled_token_tables
from hearth.memory import open_memory
from hearth.memory.embed.load import load_embedder
from hearth.memory.engine import Engine
from hearth.memory.tiers.indexed import index_record
from hearth.memory.types import Page

SAMPLE_SECONDS = 0.5
BATCH = 32
"""Texts at once, for the embedder's other rate."""


def run(
    *, pages: int, embedder: str, rate: float, pause: float, patience: float
) -> Mapping[str, list[dict[str, Any]]]:
    """Index a backlog of so many pages, and recover from a pause of so many seconds amid arrivals."""
    population = Population(max(pages, 100))
    written = [page for page, _ in population.all()][:pages]
    before = alone(embedder, written)
    with tempfile.TemporaryDirectory(prefix="hearth-load-") as name:
        seconds = asyncio.run(_backlog(Path(name), embedder, written))
    after = alone(embedder, written)
    with tempfile.TemporaryDirectory(prefix="hearth-load-") as name:
        pausing = _Pause(population, rate=rate, pause=pause, patience=patience)
        recovery = asyncio.run(pausing.run(Path(name), embedder))
    own = {way: (before[way] + after[way]) / 2 for way in before}
    documents = len(_documents(written)) / seconds
    indexing = {
        "embedder": embedder,
        "pages": pages,
        "pages a second": round(pages / seconds, 1),
        "documents a second": round(documents, 1),
        "embedder alone": round(own["one"], 1),
        "share": round(documents / own["one"], 3),
        f"alone, {BATCH} at once": round(own["batch"], 1),
    }
    return {"Indexing": [indexing], "A pause of the worker": recovery}


def alone(embedder: str, pages: Sequence[Page]) -> dict[str, float]:
    """Documents a second that the embedder makes of the pages in a process with nothing else to do.

    `one` at a time, as indexing does it so that a search waits for no more than one; `batch`: many at once.
    """
    order = json.dumps({"embedder": embedder, "texts": _documents(pages)})
    done = subprocess.run([sys.executable, __file__], input=order, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _documents(pages: Sequence[Page]) -> list[str]:
    """What is embedded of them: each text, and each text with the page before it."""
    by_id = {page.id: page for page in pages}
    items = [index_record(page, by_id.get(page.previous or "")) for page in pages]
    return [text for item in items for text in dict.fromkeys((item.text, item.context))]


async def _backlog(folder: Path, embedder: str, pages: Sequence[Page]) -> float:
    """Seconds from the worker's start until all of the pages stand in the index."""
    async with _memory(folder, embedder) as engine:
        await engine.worker.stop()
        for page in pages:
            await _capture(engine, page)
        await engine.capture_path.drain()
        began = time.perf_counter()
        await engine.worker.start()
        await engine.worker.drain()
        return time.perf_counter() - began


def _memory(folder: Path, embedder: str) -> Any:
    return open_memory(folder, embedder=embedder, token_tables=bundled_token_tables())


async def _capture(engine: Engine, page: Page) -> None:
    """In one session a user, so that the page before it is the one that `_documents` takes."""
    scope = msgspec.structs.replace(page.scope, session=page.scope.user)
    await engine.capture(scope, page.user_text, page.reply_text)


class _Pause:
    """Arrivals at a steady rate; the worker stands still for a while and then catches up."""

    def __init__(self, population: Population, *, rate: float, pause: float, patience: float) -> None:
        self._pages = [page for page, _ in population.all()]
        self._rate, self._pause, self._patience = rate, pause, patience

    async def run(self, folder: Path, embedder: str) -> list[dict[str, Any]]:
        async with _memory(folder, embedder) as engine:
            await _capture(engine, self._pages[-1])
            await engine.drain()  # a consumer that has never worked has no lag either
            times = Times()
            whole = self._pause + self._patience
            arriving = asyncio.create_task(
                open_loop(
                    lambda at: _capture(engine, self._pages[at % len(self._pages)]),
                    rate=self._rate,
                    count=round(self._rate * whole),
                    seed=1,
                    times=times,
                )
            )
            try:
                return await self._paused(engine, times)
            finally:
                arriving.cancel()
                with suppress(asyncio.CancelledError):
                    await arriving

    async def _paused(self, engine: Engine, times: Times) -> list[dict[str, Any]]:
        await engine.worker.stop()
        await asyncio.sleep(self._pause)
        behind, stored = await _lag(engine), times.count
        await engine.worker.start()
        began, most = time.perf_counter(), behind
        while (left := await _lag(engine)) > self._rate and time.perf_counter() - began < self._patience:
            most = max(most, left)
            await asyncio.sleep(SAMPLE_SECONDS)
        seconds = time.perf_counter() - began
        return [
            {
                "paused s": self._pause,
                "captures a second": self._rate,
                "captures meanwhile": stored,
                "events behind": behind,
                "most behind": most,
                "recovered after s": round(seconds, 1) if left <= self._rate else "not",
                "captures in recovery": times.count - stored,
                "capture p50 ms": round(times.at(50), 2),
                "capture p99 ms": round(times.at(99), 2),
            }
        ]


async def _lag(engine: Engine) -> int:
    return sum((await engine.worker.health()).lag.values())


def _embed() -> None:
    order = json.loads(sys.stdin.read())
    embedder, texts = load_embedder(order["embedder"]), order["texts"]
    rates = {}
    for way, size in (("one", 1), ("batch", BATCH)):
        began = time.perf_counter()
        for at in range(0, len(texts), size):
            embedder.embed_documents(texts[at : at + size])
        rates[way] = len(texts) / (time.perf_counter() - began)
    print(json.dumps(rates))


if __name__ == "__main__":
    _embed()
