"""How long a search through the vector child takes, and what it costs the gateway's own process.

    python benchmarks/vector_child.py --embedder fast --pages 10000

Fills a temporary collection with made-up pages (one owner with a fifth of them, the others with 100 each)
by way of the index itself, without embedding them: their vectors are noise around a few topics. Then it
searches, one at a time, with queries not seen before and with cached ones.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import numpy as np

from hearth.memory.embed.load import load_embedder
from hearth.memory.ports import Indexed, SearchRequest
from hearth.memory.stores.edge_index import EdgeIndex
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.stores.vector_index import Embedded
from hearth.memory.types import Page, Scope

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = [f"w{number}" for number in range(20_000)]
QUESTION = "What did I say about the trip with {} and the hotel near {} last summer?"


def sentence(chance: random.Random, length: int) -> str:
    """Words by Zipf's law, as real text has them."""
    return " ".join(WORDS[min(int(chance.paretovariate(0.7)) - 1, len(WORDS) - 1)] for _ in range(length))


def scope(number: int, pages: int) -> Scope:
    """The first fifth belongs to one user, then 100 pages each."""
    return Scope(tenant="t", user="big" if number < pages // 5 else f"u{number // 100}", session=uuid4().hex)


def fill(directory: Path, spec: str, pages: int) -> None:
    """Write the made-up pages."""
    embedder = load_embedder(spec)
    index = EdgeIndex(directory, embedder=embedder.name, dimension=embedder.dimension)
    chance, noise = random.Random(1), np.random.default_rng(1)
    topics = noise.standard_normal((50, embedder.dimension))
    for number in range(pages):
        user, reply = sentence(chance, 20), sentence(chance, 60)
        page = Page(
            id=uuid4().hex,
            scope=scope(number, pages),
            generation=1,
            user_text=user,
            reply_text=reply,
            occurred_at=NOW,
            previous=uuid4().hex,
        )
        text, context = topics[number % 50] + noise.standard_normal((2, embedder.dimension))
        item = Indexed(record=page, text=f"{user}\n{reply}", context="")
        index.put([Embedded(item=item, text=text.tolist(), context=context.tolist())])
    index.close()


async def measure(child: VectorChild, owner: str, questions: list[str], *, label: str) -> None:
    """Print percentiles of the searches, and what they cost this process."""
    times, found = [], 0
    cpu = time.process_time()
    for question in questions:
        began = time.perf_counter()
        result = await child.search(SearchRequest(owners=(owner,), text=question, deadline=5.0))
        times.append((time.perf_counter() - began) * 1e3)
        found += len(result.candidates)
    cpu = (time.process_time() - cpu) / len(questions) * 1e3
    p50, p95 = np.percentile(times, (50, 95))
    records = found // len(times)
    print(f"{label:36} p50 {p50:6.2f} ms  p95 {p95:6.2f} ms  parent CPU {cpu:.2f} ms  {records} records")


async def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--embedder", default="fast")
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--searches", type=int, default=200)
    given = parser.parse_args()
    chance = random.Random(2)
    questions = [
        QUESTION.format(sentence(chance, 2), sentence(chance, 1)) + str(number)
        for number in range(given.searches)
    ]
    with tempfile.TemporaryDirectory() as folder:
        await asyncio.to_thread(fill, Path(folder), given.embedder, given.pages)
        child = VectorChild(Path(folder), given.embedder)
        began = time.perf_counter()
        await child.start()
        print(
            f"{given.embedder}, {given.pages} pages; the child started in {time.perf_counter() - began:.1f} s"
        )
        await child.search(SearchRequest(owners=("t/nobody",), text="warm", deadline=5.0))
        await measure(child, "t/nobody", questions, label="nothing to find: the embedding")
        for owner, pages in (("t/u99", 100), ("t/big", given.pages // 5)):
            fresh = [f"{question} {pages}" for question in questions]
            await measure(child, owner, fresh, label=f"{pages} pages of the owner's, new query")
            await measure(child, owner, fresh, label=f"{pages} pages of the owner's, cached")
        await child.close()


if __name__ == "__main__":
    asyncio.run(main())
