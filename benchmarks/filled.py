"""Data folders with a whole population in them, made once and kept: the index and the log behind it.

    python benchmarks/filled.py PAGES      make one ahead of time; a million pages take some half an hour

Pages go into the index without being embedded (their vectors come with them), and into the log as the two
events that a live exchange leaves, with the worker's cursors behind them.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
from filelock import FileLock
from population import CACHE, Population, Progress

from hearth.memory.clock import SystemClock
from hearth.memory.deciders import PageDecider
from hearth.memory.events.kinds import Event, PageClosed, StepCaptured
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.projectors import IndexProjector
from hearth.memory.stores.edge_index import EdgeIndex
from hearth.memory.stores.vector_index import Embedded, VectorIndex
from hearth.memory.tiers.indexed import index_record
from hearth.memory.types import Page, Step

NAME, DIMENSION = "use-m3", 512
"""The default embedder's, whose weights need not be loaded for this."""
TOGETHER = 1_000
"""Events of one append, pages of one commit."""
FORM = 1
"""Raise it when a population of as many pages is to hold something else, so that kept ones are made anew."""


def filled(pages: int, cache: Path = CACHE) -> Path:
    """The data folder of a population of so many pages, made if it is not there."""
    folder = cache / f"population-{FORM}-{pages}"
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"{folder.name}.lock"):
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            population = Population(pages)
            directory = folder / "data" / "long_term"
            with closing(EdgeIndex(directory, embedder=NAME, dimension=DIMENSION)) as index:
                fill(index, population, together=TOGETHER)
            asyncio.run(_fill_log(folder / "data" / "log.db", population))
            (folder / "ready").touch()
    return folder / "data"


def fill(index: VectorIndex, population: Population, *, together: int) -> None:
    """Put every page into the index, so many at once, which then holds what the log says."""
    progress = Progress("pages in the index", population.pages)
    batch: list[Embedded] = []
    for number, (page, topic) in enumerate(population.all(), 1):
        chance = np.random.default_rng((18, number))
        text, context = population.language.vectors(chance, topic, 2).tolist()
        batch.append(Embedded(item=index_record(page, None), text=text, context=context))
        if len(batch) == together or number == population.pages:
            index.put(batch)
            index.commit()
            progress.at(number)
            batch = []
    index.mark_rebuilt(index.unfilled)


async def _fill_log(path: Path, population: Population) -> None:
    log = SqliteLog(path, durability="process", clock=SystemClock())
    await log.start()
    progress = Progress("pages in the log", population.pages)
    events: list[Event] = []
    for number, (page, _) in enumerate(population.all(), 1):
        events += _events(page)
        if len(events) >= TOGETHER or number == population.pages:
            await log.append(events)
            events = []
            progress.at(number)
    await _pass_by(log, population.pages * 2)
    await log.close()


def _events(page: Page) -> list[Event]:
    """The exchange as it was captured, and the page that was made of it."""
    step = Step(
        exchange=page.id,
        user_text=page.user_text,
        reply_text=page.reply_text,
        outcome="complete",
        closes=True,
        route="chat",
        model="gpt",
        started_at=page.occurred_at,
        finished_at=page.occurred_at,
    )
    return [
        Event(
            id=f"{page.id[:-1]}{place}",
            tenant=page.scope.tenant,
            user=page.scope.user,
            session=page.scope.session,
            generation=1,
            occurred_at=page.occurred_at,
            parent=page.previous,
            payload=payload,
        )
        for place, payload in enumerate((StepCaptured(step=step), PageClosed(page=page)))
    ]


async def _pass_by(log: SqliteLog, seq: int) -> None:
    """Move both consumers' cursors behind the last event: all of it stands in the index."""
    for consumer in (PageDecider, IndexProjector):
        for partition in range(log.partitions):
            lease = await log.lease(consumer.name, partition, owner="embedded", seconds=1)
            if lease is not None:
                await log.advance(lease, seq=seq)


if __name__ == "__main__":
    print(filled(int(sys.argv[1])))
