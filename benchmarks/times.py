"""Whether questions about a time recall the page of that time, in a diary where only time tells pages apart.

    python benchmarks/times.py [--embedder fast|quality] [--show]

The diary and its questions are made up (`diary.py`). A question counts if all of its right pages stand in a
block of 512 tokens; `with` is recall as it is, `without` the same without the signals of time, and `block`
the share of right pages among the block's.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections import defaultdict

from diary import NOW, SCOPE, TIMEZONE, Question, diary, questions
from msgspec.structs import replace

from hearth.config.environment import bundled_token_tables
from hearth.memory.embed.load import load_embedder
from hearth.memory.recall.asked_time import asked_time
from hearth.memory.recall.pipeline import recall_block
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.query import search_request
from hearth.memory.recall.time_words import time_words
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.tiers.indexed import index_record
from hearth.memory.types import Query, SearchResult, ShortTermView

BUDGET = 512
POLICIES = {
    "without": RecallPolicy(weights=replace(RecallPolicy().weights, date=0.0, order=0.0)),
    "with": RecallPolicy(),
}


def shown(
    question: Question, found: SearchResult, policy: RecallPolicy, embedder: str, counter: LocalTokenCounter
) -> tuple[str, ...]:
    """Ids of the block's items."""
    block, _ = recall_block(
        Query(text=question.text, at=NOW, timezone=TIMEZONE),
        found,
        ShortTermView(),
        scope=SCOPE,
        generation=1,
        policy=policy,
        embedder=embedder,
        counter=counter,
        budget=BUDGET,
    )
    return block.items


def reading(asked: list[str]) -> None:
    """Print what it takes to find the asked time of questions never seen before."""
    time_words()
    took = []
    for text in asked:
        started = time.thread_time()
        asked_time.__wrapped__(text, NOW, TIMEZONE)
        took.append((time.thread_time() - started) * 1e6)
    p50, p99 = statistics.median(took), statistics.quantiles(took, n=100)[98]
    print(f"  {len(asked)} texts read: p50 {p50:.0f} µs, p99 {p99:.0f} µs")


async def main() -> None:
    """Read the arguments and run."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--embedder", default="fast", choices=["fast", "quality"])
    arguments.add_argument("--show", action="store_true", help="print each question that is missed")
    given = arguments.parse_args()
    embedder = load_embedder(given.embedder)
    store, counter = MemoryLongTerm(embedder), LocalTokenCounter(bundled_token_tables())
    entries = diary()
    await store.upsert([index_record(entry.page, None) for entry in entries])
    hits: dict[tuple[str, str], list[bool]] = defaultdict(list)
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    asked = questions(entries)
    for question in asked:
        request = search_request(
            Query(text=question.text, at=NOW, timezone=TIMEZONE),
            owners=(SCOPE.owner,),
            deadline=5.0,
            policy=RecallPolicy(),
        )
        found = await store.search(request)
        for name, policy in POLICIES.items():
            items = shown(question, found, policy, embedder.name, counter)
            for kind in (question.kind, "all"):
                hits[name, kind].append(question.right <= set(items))
                shares[name, kind].append(len(question.right & set(items)) / max(len(items), 1))
            if given.show and name == "with" and not hits[name, "all"][-1]:
                print("   ", question.kind, question.text, sorted(question.right), items[:4], len(items))
    print(f"{embedder.name}, {len(entries)} pages, {len(asked)} questions, {BUDGET} tokens")
    for kind in dict.fromkeys(["all", *(question.kind for question in asked)]):
        cells = [
            f"{name} {100 * statistics.mean(hits[name, kind]):.1f} %"
            f" (block {100 * statistics.mean(shares[name, kind]):.1f} %)"
            for name in POLICIES
        ]
        print(f"  {kind} ({len(hits['with', kind])}): {', '.join(cells)}")
    reading([question.text for question in asked])
    reading([entry.page.user_text.removeprefix("Today ") for entry in entries])


if __name__ == "__main__":
    asyncio.run(main())
