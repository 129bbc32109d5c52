"""How well recall tells what a memory can answer from what it can't, and stays silent beside the latter.

    python benchmarks/abstain.py PATH/locomo-dev.json [--embedder fast|quality] [--vectors FILE]

The first argument is a file of LoCoMo's form (not part of this repository). Each dialogue is one person's
memory, and `everyone's` is all of them as one person's. Asked are, by kind:

    true         the dialogue's own questions; lost are those whose block holds none of the evidence, of those
                 whose block would hold some of it if there were no floor
    adversarial  its questions without an answer, which name the wrong one of the two
    hard         another dialogue's questions, with its two names replaced by those of the memory's
    foreign      another dialogue's questions as they are, but for those that name one of the memory's two
    everyday     requests that no memory helps with (everyday.py), and the half of them that is held out

The best relevance of a recall is what the floor decides by. `AUC` is how often it is higher for a true
question than for one of that kind, and `lost at 1 %` the share of true questions that don't reach a floor
which one in a hundred of that kind passes. The other columns are those of the default floor.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from asking import Asking
from everyday import REQUESTS, REQUESTS_HELD_OUT
from locomo import Dialogue, read_dialogues, recalled
from people import mentions, renamed
from recall import index, one_users
from vectors import KeptEmbedder

from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.types import Query

POLICY = RecallPolicy()
NO_FLOOR = RecallPolicy(floor=0.0, item_floor=0.0)
EVERYDAY = {"everyday": REQUESTS, "everyday, held out": REQUESTS_HELD_OUT}
EVERYONES = "everyone's"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question put to one memory."""

    kind: str
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a memory answered."""

    kind: str
    memory: str
    relevance: float
    """Of the best candidate."""
    tokens: int
    """Of the block, 0 where there is none."""
    findable: bool
    """Some evidence would be in the block if there were no floor."""
    found: bool


def questions(dialogue: Dialogue, others: Sequence[Dialogue]) -> Iterator[Asked]:
    """What is asked of the dialogue's own memory alone."""
    yield from own(dialogue)
    yield from (Asked(kind="adversarial", text=text) for text in dialogue.adversarial)
    for other in others:
        for question in other.questions:
            if (text := renamed(question.text, other.names, dialogue.names)) != question.text:
                yield Asked(kind="hard", text=text)
            if not mentions(question.text, dialogue.names):
                yield Asked(kind="foreign", text=question.text)


def own(dialogue: Dialogue) -> Iterator[Asked]:
    """The questions that it answers."""
    for question in dialogue.questions:
        yield Asked(kind="true", text=question.text, evidence=question.evidence)


def everyday(most: int | None) -> list[Asked]:
    """What no memory helps with: `most` of each half at most."""
    return [Asked(kind=kind, text=text) for kind, texts in EVERYDAY.items() for text in texts[:most]]


async def put(asking: Asking, memory: str, at: datetime, asked: Iterable[Asked]) -> list[Told]:
    """Ask all of it of one memory."""
    told = []
    for one in asked:
        query = Query(text=one.text, at=at)
        found = await asking.search(query, POLICY)
        block, scored = asking.block(query, found, POLICY)
        most, _ = asking.block(query, found, NO_FLOOR) if one.evidence else (block, ())
        told.append(
            Told(
                kind=one.kind,
                memory=memory,
                relevance=max((candidate.relevance for candidate in scored), default=0.0),
                tokens=block.tokens if block.text else 0,
                findable=any(recalled(turn, most.text) for turn in one.evidence),
                found=any(recalled(turn, block.text) for turn in one.evidence),
            )
        )
    return told


async def ask_all(
    dialogues: Sequence[Dialogue], requests: Sequence[Asked], embedder: KeptEmbedder
) -> list[Told]:
    """Ask every memory its questions and the requests."""
    told = []
    store = MemoryLongTerm(embedder)
    for asking, dialogue in zip(await index(store, dialogues), dialogues, strict=True):
        others = [other for other in dialogues if other is not dialogue]
        asked = (*questions(dialogue, others), *requests)
        told += await put(asking, dialogue.name, dialogue.end, asked)
    together = one_users(dialogues)
    asking = (await index(store, together))[0]
    end = max(dialogue.end for dialogue in dialogues)
    for dialogue in together:
        told += await put(asking, EVERYONES, end, own(dialogue))
    return told + await put(asking, EVERYONES, end, requests)


def area(true: Sequence[Told], others: Sequence[Told]) -> float:
    """How often the relevance of one of `true` is higher than that of one of the others; a tie is half."""
    low = np.sort([one.relevance for one in others])
    high = np.array([one.relevance for one in true])
    below = np.searchsorted(low, high, "left") + np.searchsorted(low, high, "right")
    return float(below.mean() / 2 / len(low))


def lost_at(true: Sequence[Told], others: Sequence[Told], passing: float) -> float:
    """Share of `true` no better than the relevance that the share `passing` of the others exceeds."""
    least = np.quantile([one.relevance for one in others], 1 - passing, method="inverted_cdf")
    return statistics.mean(float(one.relevance <= least) for one in true)


def row(kind: str, told: Sequence[Told], true: Sequence[Told]) -> str:
    """One line of the table of kinds."""
    findable = [one for one in told if one.findable]
    lost = _percent(not one.found for one in findable) if findable else ""
    apart = (
        (f"{area(true, told):.3f}", f"{100 * lost_at(true, told, 0.01):.1f}") if told != true else ("", "")
    )
    block = _percent(one.tokens > 0 for one in told)
    tokens = f"{statistics.mean(one.tokens for one in told):.0f}"
    return f"| {' | '.join((kind, str(len(told)), block, lost, *apart, tokens))} |"


def _percent(hits: Iterable[bool]) -> str:
    return f"{100 * statistics.mean(map(float, hits)):.1f}"


def report(told: Sequence[Told], embedder: str) -> None:
    """Print both tables."""
    print(f"{embedder}\n\n| kind | asked | got a block, % | lost, % | AUC | lost at 1 %, % | tokens |")
    print("|---|---|---|---|---|---|---|")
    for title, part in (
        ("", [one for one in told if one.memory != EVERYONES]),
        (f", {EVERYONES}", [one for one in told if one.memory == EVERYONES]),
    ):
        true = [one for one in part if one.kind == "true"]
        for kind in dict.fromkeys(one.kind for one in part):
            print(row(kind + title, [one for one in part if one.kind == kind], true))
    kinds = [kind for kind in dict.fromkeys(one.kind for one in told) if kind != "true"]
    print(f"\n| AUC by memory | {' | '.join(kinds)} |\n{'|---' * (len(kinds) + 1)}|")
    for memory in dict.fromkeys(one.memory for one in told):
        part = [one for one in told if one.memory == memory]
        true = [one for one in part if one.kind == "true"]
        by_kind = ([one for one in part if one.kind == kind] for kind in kinds)
        areas = (f"{area(true, others):.3f}" if others else "" for others in by_kind)
        print(f"| {memory} | {' | '.join(areas)} |")


def main() -> None:
    """Read the arguments, ask and print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--embedder", default="fast", choices=["fast", "quality"])
    arguments.add_argument("--vectors", type=Path, help="keep what was embedded in this file")
    arguments.add_argument("--requests", type=int, help="everyday requests of each half, in place of all")
    given = arguments.parse_args()
    requests = everyday(given.requests)
    with KeptEmbedder(given.embedder, given.vectors) as embedder:
        told = asyncio.run(ask_all(read_dialogues(given.data), requests, embedder))
    report(told, embedder.name)


if __name__ == "__main__":
    main()
