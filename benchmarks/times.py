"""Whether questions about a time recall the page of that time, in a diary where only time tells pages apart.

    python benchmarks/times.py [--embedder fast|quality] [--daily] [--show]

The diary and its questions are made up (`diary.py`). A question counts if all of its right pages stand in a
block of 512 tokens; `with` is recall as it is, `without` recall that reads no time, and `block` the share of
right pages among the block's.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import patch

from asking import Asking
from diary import NOW, SCOPE, TIMEZONE, Question, diary, questions

from hearth.config.environment import bundled_token_tables
from hearth.memory.embed.load import load_embedder
from hearth.memory.recall import time_search, time_signals
from hearth.memory.recall.asked_time import asked_time
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.time_words import time_words
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.types import Query

BUDGET = 512
POLICY = RecallPolicy()


async def shown(asking: Asking, question: Question) -> tuple[tuple[str, ...], float]:
    """Ids of the block's items, and the milliseconds that it took after the store had answered."""
    query = Query(text=question.text, at=NOW, timezone=TIMEZONE)
    found = await asking.search(query, POLICY)
    started = time.thread_time()
    block, _ = asking.block(query, found, POLICY, BUDGET)
    return block.items, (time.thread_time() - started) * 1000


@contextmanager
def unread() -> Iterator[None]:
    """No question names a time while this lasts."""
    with (
        patch.object(time_signals, "asked_time", return_value=None),
        patch.object(time_search, "asked_time", return_value=None),
    ):
        yield


def reading(asked: list[str]) -> None:
    """Print what it takes to find the asked time of questions never seen before."""
    time_words()
    took = []
    for text in asked:
        started = time.thread_time()
        asked_time(text, NOW + timedelta(seconds=1), TIMEZONE)
        took.append((time.thread_time() - started) * 1e6)
    p50, p99 = statistics.median(took), statistics.quantiles(took, n=100)[98]
    print(f"  {len(asked)} texts read: p50 {p50:.0f} µs, p99 {p99:.0f} µs")


async def main() -> None:
    """Read the arguments and run."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--embedder", default="fast", choices=["fast", "quality"])
    arguments.add_argument("--daily", action="store_true", help="4,000 pages in place of 400")
    arguments.add_argument("--show", action="store_true", help="print each question that is missed")
    given = arguments.parse_args()
    embedder = load_embedder(given.embedder)
    counter = LocalTokenCounter(bundled_token_tables())
    asking = Asking(MemoryLongTerm(embedder), SCOPE, counter)
    entries = diary(given.daily)
    await asking.hold(entry.page for entry in entries)
    hits: dict[tuple[str, str], list[bool]] = defaultdict(list)
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    took: list[float] = []
    asked = questions(entries)
    for question in asked:
        with unread():
            without, _ = await shown(asking, question)
        timely, milliseconds = await shown(asking, question)
        took.append(milliseconds)
        blocks = {"without": without, "with": timely}
        for name, items in blocks.items():
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
            for name in ("without", "with")
        ]
        print(f"  {kind} ({len(hits['with', kind])}): {', '.join(cells)}")
    p50, p99 = statistics.median(took), statistics.quantiles(took, n=100)[98]
    print(f"  rank, floor, assemble: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    reading([question.text for question in asked])
    reading([entry.page.user_text.removeprefix("Today ") for entry in entries])


if __name__ == "__main__":
    asyncio.run(main())
