"""How much of what a question needs stands in the recalled block, and what recall costs.

    python benchmarks/recall.py PATH/locomo-dev.json [--embedder fast|quality] [--vectors FILE]

The first argument is a file of LoCoMo's form (not part of this repository). No model and no judge: a turn
counts as recalled if 60 % of its word trigrams stand in the block, a question if all its evidence turns do.

`--quantization none|scalar|binary` searches with Qdrant Edge, and tells what finding candidates by quantized
vectors costs; `--one-user` makes all dialogues one person's, among whose pages there is more to miss. With
`--qdrant-url`, and QDRANT_API_KEY where it needs one, the pages are searched in that server, in a collection
of the run's own. A server quantizes only segments beyond its `storage.optimizers.indexing_threshold_kb`, so
set that to 1 for it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import msgspec
from asking import Asking
from locomo import Dialogue, read_dialogues, recalled
from quantized import QuantizedEdge
from vectors import KeptEmbedder

from hearth.config.environment import bundled_token_tables
from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.ports import Embedder, LongTerm
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.tiers.facts import Facts, Told, tell
from hearth.memory.tiers.outdated import outdated
from hearth.memory.types import Block, Memory, Page, Query, Scope

BUDGETS = (512, 1024, 2048)


@asynccontextmanager
async def opened(given: argparse.Namespace, embedder: Embedder) -> AsyncIterator[LongTerm]:
    """An empty store: exact in this process, of Qdrant Edge with that quantization, or in the server."""
    with TemporaryDirectory() as folder:
        if given.qdrant_url:
            store = VectorChild(Path(folder), given.embedder, qdrant=_server(given))
            await store.start()
        elif given.quantization:
            store = QuantizedEdge(Path(folder), embedder, given.quantization, given.oversampling)
        else:
            yield MemoryLongTerm(embedder)
            return
        try:
            yield store
        finally:
            await store.close()


def _server(given: argparse.Namespace) -> QdrantServer:
    return QdrantServer(
        url=given.qdrant_url,
        api_key=os.environ.get("QDRANT_API_KEY", ""),
        prefix=f"recall-{uuid4().hex[:8]}-",
        quantization=given.quantization or "none",
        oversampling=given.oversampling,
    )


async def index(store: LongTerm, dialogues: Sequence[Dialogue], *, facts: bool = False) -> list[Asking]:
    """Put all pages into the store, each dialogue's as its user's; whom to ask, in the dialogues' order.

    With `facts` what the user's words state stands beside them, as the worker would file it.
    """
    counter = LocalTokenCounter(bundled_token_tables())
    asked = [Asking(store, Scope(tenant="locomo", user=one.user), counter) for one in dialogues]
    for asking, dialogue in zip(asked, dialogues, strict=True):
        read = read_facts(dialogue.pages) if facts else []
        await asking.hold((_marked(page, read) for page in dialogue.pages), read)
    if isinstance(store, QuantizedEdge):
        await store.settle()
    return asked


def read_facts(pages: Sequence[Page]) -> list[Memory]:
    """The facts that the pages state, told in their order."""
    extractor = RuleExtractor()
    known: Facts = {}
    for page in pages:
        for number, said in enumerate(extractor.extract(page)):
            known = tell(known, Told(page, said, f"{page.id}-{number}"))
    return list(known.values())


def _marked(page: Page, facts: Sequence[Memory]) -> Page:
    ended = [fact for fact in facts if any(one.id == page.id for one in fact.evidence)]
    return msgspec.structs.replace(page, outdated=outdated(page, ended))


def one_users(dialogues: Sequence[Dialogue]) -> list[Dialogue]:
    """The same dialogues, all of them one person's."""
    return [replace(one, user="everyone", pages=tuple(map(_everyones, one.pages))) for one in dialogues]


def _everyones(page: Page) -> Page:
    return msgspec.structs.replace(page, scope=msgspec.structs.replace(page.scope, user="everyone"))


async def ask(asking: Asking, query: Query, policy: RecallPolicy) -> tuple[dict[int, Block], float]:
    """The block at each budget, and the milliseconds that one took after the store had answered."""
    found = await asking.search(query, policy)
    blocks, milliseconds = {}, 0.0
    for budget in BUDGETS:
        started = time.thread_time()
        blocks[budget], _ = asking.block(query, found, policy, budget)
        if budget == policy.budget_tokens:
            milliseconds = (time.thread_time() - started) * 1000
    return blocks, milliseconds


async def run(
    store: LongTerm,
    dialogues: Sequence[Dialogue],
    embedder: str,
    policy: RecallPolicy,
    *,
    facts: bool = False,
) -> list[dict[str, Any]]:
    """Ask everything, print shares and times, return every block."""
    hits: dict[tuple[int, str], list[bool]] = defaultdict(list)
    empty: dict[int, list[bool]] = defaultdict(list)
    sizes: dict[int, list[int]] = defaultdict(list)
    times, lines = [], []
    for asking, dialogue in zip(await index(store, dialogues, facts=facts), dialogues, strict=True):
        for question in dialogue.questions:
            query = Query(text=question.text, at=dialogue.end)
            blocks, milliseconds = await ask(asking, query, policy)
            times.append(milliseconds)
            for budget, block in blocks.items():
                whole = all(recalled(turn, block.text) for turn in question.evidence)
                hits[budget, question.kind].append(whole)
                hits[budget, "every kind"].append(whole)
                empty[budget].append(not block.text)
                sizes[budget].append(block.tokens)
                asked = {"sample_id": dialogue.name, "question": question.text}
                lines.append({**asked, "budget": budget, "block": block.text})
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
    dialogues = read_dialogues(given.data)
    if given.one_user:
        dialogues = one_users(dialogues)
    with KeptEmbedder(given.embedder, given.vectors) as embedder:
        async with opened(given, embedder) as store:
            return await run(store, dialogues, embedder.name, policy, facts=given.facts)


def main() -> None:
    """Read the arguments and run."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--embedder", default="fast", choices=["fast", "quality"])
    arguments.add_argument("--vectors", type=Path, help="keep what was embedded in this file")
    arguments.add_argument("--blocks", type=Path, help="write every block here, for another scorer")
    arguments.add_argument("--no-floor", action="store_true", help="recall whatever ranks best")
    arguments.add_argument("--qdrant-url", default="", help="search in this server")
    arguments.add_argument("--quantization", default="", choices=["none", "scalar", "binary"])
    arguments.add_argument("--one-user", action="store_true", help="all dialogues are one person's")
    arguments.add_argument("--facts", action="store_true", help="beside the facts that the pages state")
    arguments.add_argument("--oversampling", default=2.0, type=float)
    given = arguments.parse_args()
    lines = asyncio.run(measure(given))
    if given.blocks is not None:
        given.blocks.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
