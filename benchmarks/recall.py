"""How much of what a question needs stands in the recalled block, and what recall costs.

    python benchmarks/recall.py PATH/locomo-dev.json [--embedder fast|quality] [--blocks OUT.jsonl]

The first argument is a file of LoCoMo's form (not part of this repository). No model and no judge: a turn
counts as recalled if 60 % of its word trigrams stand in the block, a question if all its evidence turns do.

With `--qdrant-url`, and QDRANT_API_KEY where it needs one, the pages are searched in that server, in a
collection of the run's own: `--quantization scalar|binary` tells what that costs. A server quantizes only
segments beyond its `storage.optimizers.indexing_threshold_kb`, so set that to 1 for it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from locomo import Dialogue, Question, read_dialogues, recalled

from hearth.config.environment import bundled_token_tables
from hearth.memory.embed.load import load_embedder
from hearth.memory.ports import LongTerm
from hearth.memory.recall.pipeline import recall_block
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.query import search_request
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.tiers.indexed import index_record
from hearth.memory.types import Query, Scope, ShortTermView

BUDGETS = (512, 1024, 2048)


@asynccontextmanager
async def opened(spec: str, server: QdrantServer | None) -> AsyncIterator[LongTerm]:
    """An empty store: exact in this process, or in the server."""
    if server is None:
        yield MemoryLongTerm(load_embedder(spec))
        return
    with TemporaryDirectory() as folder:
        child = VectorChild(Path(folder), spec, qdrant=server)
        await child.start()
        try:
            yield child
        finally:
            await child.close()


async def index(store: LongTerm, dialogue: Dialogue) -> None:
    """Put the dialogue's pages into the store, as its own user's."""
    before = {page.id: page for page in dialogue.pages}
    await store.upsert([index_record(page, before.get(page.previous or "")) for page in dialogue.pages])


async def ask(
    store: LongTerm,
    dialogue: Dialogue,
    question: Question,
    policy: RecallPolicy,
    embedder: str,
    counter: Any,
) -> tuple[dict[int, str], float]:
    """The block at each budget, and the milliseconds that one took after the store had answered."""
    scope = Scope(tenant="locomo", user=dialogue.name)
    query = Query(text=question.text, at=dialogue.end)
    found = await store.search(search_request(query, owners=(scope.owner,), deadline=5.0, policy=policy))
    blocks, milliseconds = {}, 0.0
    for budget in BUDGETS:
        started = time.thread_time()
        block, _ = recall_block(
            query,
            found,
            ShortTermView(),
            scope=scope,
            generation=1,
            policy=policy,
            embedder=embedder,
            counter=counter,
            budget=budget,
        )
        blocks[budget] = block.text
        if budget == policy.budget_tokens:
            milliseconds = (time.thread_time() - started) * 1000
    return blocks, milliseconds


async def run(store: LongTerm, data: Path, embedder: str, policy: RecallPolicy) -> list[dict[str, Any]]:
    """Ask everything, print shares and times, return every block."""
    counter = LocalTokenCounter(bundled_token_tables())
    hits: dict[tuple[int, str], list[bool]] = defaultdict(list)
    empty: dict[int, list[bool]] = defaultdict(list)
    sizes: dict[int, list[int]] = defaultdict(list)
    times, lines = [], []
    for dialogue in read_dialogues(data):
        await index(store, dialogue)
        for question in dialogue.questions:
            blocks, milliseconds = await ask(store, dialogue, question, policy, embedder, counter)
            times.append(milliseconds)
            for budget, block in blocks.items():
                whole = all(recalled(turn, block) for turn in question.evidence)
                hits[budget, question.kind].append(whole)
                hits[budget, "every kind"].append(whole)
                empty[budget].append(not block)
                sizes[budget].append(counter.count(block))
                lines.append(
                    {"sample_id": dialogue.name, "question": question.text, "budget": budget, "block": block}
                )
    print(f"{embedder}, {len(times)} questions")
    for budget in BUDGETS:
        kinds = {
            kind: f"{100 * statistics.mean(v):.1f}" for (b, kind), v in sorted(hits.items()) if b == budget
        }
        print(
            f"{budget:>5} tokens: {kinds}, {statistics.mean(sizes[budget]):.0f} tokens,"
            f" {100 * statistics.mean(empty[budget]):.1f} % empty"
        )
    p50, p99 = statistics.median(times), statistics.quantiles(times, n=100)[98]
    print(f"rank, floor, assemble: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    return lines


async def measure(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Open the store that was asked for and ask everything."""
    policy = RecallPolicy(floor=0.0, item_floor=0.0) if given.no_floor else RecallPolicy()
    server = given.qdrant_url and QdrantServer(
        url=given.qdrant_url,
        api_key=os.environ.get("QDRANT_API_KEY", ""),
        prefix=f"recall-{uuid4().hex[:8]}-",
        quantization=given.quantization,
        oversampling=given.oversampling,
    )
    async with opened(given.embedder, server or None) as store:
        return await run(store, given.data, load_embedder(given.embedder).name, policy)


def main() -> None:
    """Read the arguments and run."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--embedder", default="fast", choices=["fast", "quality"])
    arguments.add_argument("--blocks", type=Path, help="write every block here, for another scorer")
    arguments.add_argument("--no-floor", action="store_true", help="recall whatever ranks best")
    arguments.add_argument("--qdrant-url", default="", help="search in this server")
    arguments.add_argument("--quantization", default="none", choices=["none", "scalar", "binary"])
    arguments.add_argument("--oversampling", default=2.0, type=float)
    given = arguments.parse_args()
    lines = asyncio.run(measure(given))
    if given.blocks is not None:
        given.blocks.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
