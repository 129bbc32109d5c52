"""Whether what was said in one language is found by a question in the same or another one.

    python benchmarks/languages.py [--embedder fast|quality] [--vectors FILE] [--show]

`languages.json` holds made-up things that one user has said in ten languages, each a page with a short reply,
their questions, and two hundred pages about others' dogs, flights and weddings beside them. By kind of pair:

    same             question and page in one language
    cross            in two languages
    mixed            a page that mixes languages, asked about in either
    script           the question writes the page's name in another script
    name             a rare name is all that both have in common
    name, no spaces  the same in scripts that don't part words

`first` is the share of questions whose page ranks first: by recall, by the cosine of the page's text alone
(`dense`), and by words alone. `in the block` is the share whose page is among 512 tokens: of recall, of
recall without a floor, and of the pages nearest by that cosine. No step made for one language may put another
one below plain dense search, so no difference should be negative.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from asking import Asking
from vectors import KeptEmbedder

from hearth.config.environment import bundled_token_tables
from hearth.memory.ports import TokenCounter
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.tiers.indexed import record_text
from hearth.memory.types import Candidate, Page, Query, Scope, SearchResult

DATA = Path(__file__).with_name("languages.json")
NOW = datetime(2024, 1, 1, tzinfo=UTC)
SCOPE = Scope(tenant="t", user="u")
BUDGET = 512
POLICY = RecallPolicy()
NO_FLOOR = RecallPolicy(floor=0.0, item_floor=0.0)


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question."""

    kind: str
    language: str
    text: str


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the user said, and the questions that it answers."""

    language: str
    said: str
    questions: tuple[Asked, ...] = ()


class Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file `languages.json`."""

    replies: dict[str, tuple[str, ...]]
    """By language: what the assistant says to any of it."""
    facts: tuple[Said, ...]
    others: tuple[Said, ...]

    def pages(self) -> list[Page]:
        """All pages, the facts' first."""
        return [self._page(i, one) for i, one in enumerate((*self.facts, *self.others))]

    def _page(self, number: int, one: Said) -> Page:
        replies = self.replies[one.language]
        return Page(
            id=f"page-{number:03}",
            scope=SCOPE,
            generation=1,
            user_text=one.said,
            reply_text=replies[number % len(replies)],
            occurred_at=NOW,
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Where the right page was."""

    asked: Asked
    said: str
    """Language of the page."""
    first: bool
    first_dense: bool
    first_words: bool
    block: bool
    block_no_floor: bool
    block_dense: bool


def nearest(found: SearchResult) -> list[Candidate]:
    """Candidates by the cosine of their text."""
    return sorted(found.candidates, key=lambda one: (-(one.text_score or 0.0), one.record.id))


def filled(candidates: Iterable[Candidate], counter: TokenCounter) -> Iterator[str]:
    """Ids of the first records whose texts are no more than the budget's tokens together."""
    left = BUDGET
    for one in candidates:
        left -= counter.count(record_text(one.record))
        if left < 0:
            return
        yield one.record.id


async def outcome(asking: Asking, page: str, said: str, asked: Asked, counter: TokenCounter) -> Outcome:
    """Ask one question."""
    query = Query(text=asked.text, at=NOW)
    found = await asking.search(query, POLICY)
    block, scored = asking.block(query, found, POLICY, BUDGET)
    most, _ = asking.block(query, found, NO_FLOOR, BUDGET)
    dense = nearest(found)
    worded = max(found.candidates, key=lambda one: one.lexical_score or 0.0)
    return Outcome(
        asked=asked,
        said=said,
        first=scored[0].record.id == page,
        first_dense=dense[0].record.id == page,
        first_words=worded.record.id == page and bool(worded.lexical_score),
        block=page in block.items,
        block_no_floor=page in most.items,
        block_dense=page in filled(dense, counter),
    )


async def ask_all(data: Data, embedder: KeptEmbedder) -> list[Outcome]:
    """Ask every question of a memory that holds every page."""
    counter = LocalTokenCounter(bundled_token_tables())
    asking = Asking(MemoryLongTerm(embedder), SCOPE, counter)
    pages = data.pages()
    await asking.hold(pages)
    return [
        await outcome(asking, page.id, fact.language, asked, counter)
        for page, fact in zip(pages, data.facts, strict=False)
        for asked in fact.questions
    ]


def report(outcomes: Sequence[Outcome], embedder: str) -> None:
    """Print a table by kind, by the question's language and by the page's."""
    print(embedder)
    table("kind", outcomes, lambda one: one.asked.kind)
    table("asked in", outcomes, lambda one: one.asked.language)
    table("said in", outcomes, lambda one: one.said)


def table(title: str, outcomes: Sequence[Outcome], group: Callable[[Outcome], str]) -> None:
    """Print one row a group, and one for all."""
    head = (
        "questions",
        "first",
        "dense",
        "difference",
        "words",
        "in the block",
        "no floor",
        "dense",
        "difference",
    )
    print(f"\n| {title} | {' | '.join(head)} |\n{'|---' * (len(head) + 1)}|")
    for name in sorted({group(one) for one in outcomes}):
        print(row(name, [one for one in outcomes if group(one) == name]))
    print(row("all", outcomes))


def row(name: str, outcomes: Sequence[Outcome]) -> str:
    """Shares in per cent."""
    first, first_dense, words, block, no_floor, block_dense = (
        100 * statistics.mean(float(getattr(one, field)) for one in outcomes)
        for field in ("first", "first_dense", "first_words", "block", "block_no_floor", "block_dense")
    )
    cells = (
        *(f"{first:.0f}", f"{first_dense:.0f}", f"{first - first_dense:+.0f}", f"{words:.0f}"),
        *(f"{block:.0f}", f"{no_floor:.0f}", f"{block_dense:.0f}", f"{block - block_dense:+.0f}"),
    )
    return f"| {name} | {len(outcomes)} | {' | '.join(cells)} |"


def main() -> None:
    """Read the arguments, ask and print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--embedder", default="fast", choices=["fast", "quality"])
    arguments.add_argument("--vectors", type=Path, help="keep what was embedded in this file")
    arguments.add_argument("--data", type=Path, default=DATA, help="in place of languages.json")
    arguments.add_argument(
        "--show", action="store_true", help="print each question that recall answers worse"
    )
    given = arguments.parse_args()
    data = msgspec.json.decode(given.data.read_bytes(), type=Data)
    with KeptEmbedder(given.embedder, given.vectors) as embedder:
        outcomes = asyncio.run(ask_all(data, embedder))
    report(outcomes, embedder.name)
    for one in outcomes if given.show else ():
        if (one.first, one.block) < (one.first_dense, one.block_dense):
            print(f"{one.asked.kind}, {one.said}, asked in {one.asked.language}: {one.asked.text}")


if __name__ == "__main__":
    main()
