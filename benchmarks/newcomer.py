"""What a new user's questions recall among a handful of memories, and what unrelated requests do.

    python benchmarks/newcomer.py [--embedder fast|quality] [--show]

Each user of `newcomers.py` has said three or ten things, each a page with a friendly reply, and has asked no
or twelve questions that were left unanswered, each a page too. `hit` is the share of questions whose block
holds all that answers them (half of it, if about everything), `noise` the unanswered pages a block, `other`
the other items a block. Of the unrelated requests the share that got any block is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime

from asking import Asking
from everyday import REPLIES
from newcomers import (
    ANSWERED,
    ANSWERED_HELD_OUT,
    ASKED,
    ASKED_HELD_OUT,
    NEWCOMERS,
    NEWCOMERS_HELD_OUT,
    UNRELATED,
    UNRELATED_HELD_OUT,
    Newcomer,
)

from hearth.memory.embed.load import load_embedder
from hearth.memory.ports import Embedder
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.recall.unanswered import says_nothing
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.types import Page, Query, Scope

NOW = datetime(2024, 1, 1, tzinfo=UTC)
SCOPE = Scope(tenant="t", user="u")
POLICY = RecallPolicy()
SAID = 3, 10
UNANSWERED = 0, 12


def page(name: str, said: str, reply: str) -> Page:
    """A page that stands alone."""
    return Page(id=name, scope=SCOPE, generation=1, user_text=said, reply_text=reply, occurred_at=NOW)


async def items(asking: Asking, question: str) -> tuple[str, ...]:
    """Ids of the block's items."""
    query = Query(text=question, at=NOW)
    block, _ = asking.block(query, await asking.search(query, POLICY), POLICY)
    return block.items


async def memory_of(
    embedder: Embedder, said: Sequence[int], one: Newcomer, asked: Sequence[tuple[str, str]]
) -> Asking:
    """Whom to ask who has the pages of what was said at those places, and of what was asked."""
    asking = Asking(MemoryLongTerm(embedder), SCOPE, LocalTokenCounter())
    pages = [page(f"said-{i}", one.said[i], REPLIES[i % len(REPLIES)]) for i in said]
    pages += [page(f"asked-{i}", *pair) for i, pair in enumerate(asked)]
    await asking.hold(pages)
    return asking


async def questions(
    embedder: Embedder,
    newcomers: Sequence[Newcomer],
    asked: Sequence[tuple[str, str]],
    size: int,
    show: bool,
) -> None:
    """Print hits and noise of both kinds of question."""
    for kind in ("direct", "indirect"):
        hits, noise, other = [], [], []
        for one in newcomers:
            for question, answers in getattr(one, kind):
                everyone = [*answers, *[i for i in range(len(one.said)) if i not in answers]]
                said = everyone[: max(size, len(answers))] if size < len(one.said) else everyone
                unanswered = [pair for pair in asked if pair[0] != question]
                found = await items(await memory_of(embedder, said, one, unanswered), question)
                wanted = {f"said-{i}" for i in answers}
                needed = len(wanted) if len(wanted) < 5 else len(wanted) // 2
                hits.append(len(wanted & set(found)) >= needed)
                noise.append(sum(item.startswith("asked") for item in found))
                other.append(len(set(found) - wanted) - noise[-1])
                if show:
                    print("   ", "+" if hits[-1] else "-", question, found)
        print(
            f"  {size} said, {len(asked)} unanswered, {kind}: hit {100 * statistics.mean(hits):.1f} %,"
            f" noise {statistics.mean(noise):.2f}, other {statistics.mean(other):.2f}"
        )


async def unrelated(
    embedder: Embedder,
    newcomers: Sequence[Newcomer],
    asked: Sequence[tuple[str, str]],
    requests: Sequence[str],
    show: bool,
) -> None:
    """Print the share of requests that got a block."""
    blocks = []
    for one in newcomers:
        memory = await memory_of(embedder, range(len(one.said)), one, asked)
        for request in requests:
            blocks.append(bool(found := await items(memory, request)))
            if show and found:
                print("   ", request, found)
    print(f"  unrelated: {100 * statistics.mean(blocks):.1f} % got a block")


def told_apart(asked: Sequence[tuple[str, str]], answered: Sequence[tuple[str, str]], show: bool) -> None:
    """Print how many pages are seen to say nothing."""
    missed = [pair for pair in asked if not says_nothing(page("p", *pair))]
    wrong = [pair for pair in answered if says_nothing(page("p", *pair))]
    print(
        f"  seen to say nothing: {len(asked) - len(missed)} of {len(asked)} that do,"
        f" {len(wrong)} of {len(answered)} that don't"
    )
    if show:
        print("   ", missed, wrong)


async def main() -> None:
    """Read the arguments and run both parts."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--embedder", default="fast", choices=["fast", "quality"])
    arguments.add_argument("--show", action="store_true", help="print each question of the first part")
    given = arguments.parse_args()
    embedder = load_embedder(given.embedder)
    for name, newcomers, asked, answered, requests in (
        ("chosen on", NEWCOMERS, ASKED, ANSWERED, UNRELATED),
        ("held out", NEWCOMERS_HELD_OUT, ASKED_HELD_OUT, ANSWERED_HELD_OUT, UNRELATED_HELD_OUT),
    ):
        show = given.show and name == "chosen on"
        print(f"{embedder.name}, {name}")
        told_apart(asked, answered, show)
        for count in UNANSWERED:
            for size in SAID:
                await questions(embedder, newcomers, asked[:count], size, show)
            await unrelated(embedder, newcomers, asked[:count], requests, show)


if __name__ == "__main__":
    asyncio.run(main())
