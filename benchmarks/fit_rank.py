"""Fits the weights of recall's rank score, and measures them on dialogues that they were not fitted to.

    python benchmarks/fit_rank.py PATH/locomo-dev.json [--embedder fast|quality ...] [--without SIGNAL ...]

The file is of LoCoMo's form (Maharana et al., 2024; not part of this repository). Of all sides of the pages
that a question finds, those that hold its evidence should rank above all others: the weights are those of a
conditional logit (McFadden, 1974) with a quadratic penalty, by Newton's method. Printed are those fitted
to all dialogues, which `Weights` has, and the share of questions whose evidence stands in the block when each
dialogue is asked with the weights of the others. With several embedders, one set of weights is fitted to all
of them. `--without` leaves signals out, one after the other, to tell what each is worth.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
from asking import Asking
from locomo import Dialogue, Question, read_dialogues, recalled
from msgspec import structs
from numpy.typing import NDArray
from vectors import KeptEmbedder, of_embedder

from hearth.config.environment import bundled_token_tables
from hearth.memory.recall.pieces import pieces_of
from hearth.memory.recall.policy import RecallPolicy, Weights
from hearth.memory.recall.pool import gather
from hearth.memory.recall.query import lexical_text
from hearth.memory.recall.rank import signals
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.types import Query, Scope, SearchResult, ShortTermView

BUDGETS = (512, 1024, 2048)
UNFITTED = frozenset({"recency", "importance", "recency_days", "order"})
"""What a dialogue that has ended, of pages alone, can't tell."""
PENALTY = 0.03
"""Of the squared weights, each times its signal's deviation: the best of 0.01, 0.03 and 0.1."""
ROUNDS = 12
"""Of Newton's method; the weights stand still after eight."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question of one dialogue, and what it found."""

    dialogue: int
    asking: Asking
    question: Question
    query: Query
    found: SearchResult
    signals: Numbers
    """A row a side, a column a signal."""
    wanted: Numbers
    """Share of each side among those that hold evidence."""


def names() -> list[str]:
    """The signals whose weights are fitted."""
    return [name for name in Weights.__struct_fields__ if name not in UNFITTED]


async def ask(dialogues: Sequence[Dialogue], embedder: KeptEmbedder) -> list[Asked]:
    """Every question whose evidence was found at all."""
    counter = LocalTokenCounter(bundled_token_tables())
    asked = []
    for number, dialogue in enumerate(dialogues):
        scope = Scope(tenant="locomo", user=dialogue.user)
        asking = Asking(MemoryLongTerm(embedder), scope, counter)
        await asking.hold(dialogue.pages)
        for question in dialogue.questions:
            query = Query(text=question.text, at=dialogue.end)
            found = await asking.search(query, POLICY)
            asked.append(_asked(number, asking, question, query, found))
    return asked


def _asked(dialogue: int, asking: Asking, question: Question, query: Query, found: SearchResult) -> Asked:
    pool = gather(found, ShortTermView(), lexical_text(query, POLICY))
    pieces = pieces_of(pool.records)
    values = signals(pool, pieces, query, POLICY.weights)
    wanted = np.array([any(turn in one.text for turn in question.evidence) for one in pieces.all], np.float64)
    return Asked(
        dialogue=dialogue,
        asking=asking,
        question=question,
        query=query,
        found=found,
        signals=np.stack([values[name] for name in names()], axis=1),
        wanted=wanted / max(wanted.sum(), 1.0),
    )


def fit(asked: Sequence[Asked], used: Sequence[str]) -> dict[str, float]:
    """The weights of the signals in `used`, 0 of all others."""
    columns = [names().index(name) for name in used]
    sides = _Sides([(one.signals[:, columns], one.wanted) for one in asked if one.wanted.any()])
    weights = np.zeros(len(used))
    for _ in range(ROUNDS):
        weights = sides.better(weights)
    found = dict(zip(used, (weights / sides.deviation).tolist(), strict=True))
    return {name: round(found.get(name, 0.0), 2) for name in names()}


class _Sides:
    """The sides that each question found, one question's after another's."""

    def __init__(self, found: Sequence[tuple[Numbers, Numbers]]) -> None:
        rows = np.concatenate([rows for rows, _ in found])
        self.deviation = rows.std(axis=0) + 1e-9
        self._rows, self._wanted = rows / self.deviation, np.concatenate([wanted for _, wanted in found])
        sizes = [len(wanted) for _, wanted in found]
        self._starts = np.cumsum([0, *sizes[:-1]])
        self._question = np.repeat(np.arange(len(found)), sizes)
        self._many = len(found)

    def better(self, weights: Numbers) -> Numbers:
        """One step of Newton's method, shortened until it helps."""
        cost, chance = self._cost(weights)
        centres = np.add.reduceat(self._rows * chance[:, None], self._starts)
        slope = self._rows.T @ (chance - self._wanted) / self._many + 2 * PENALTY * weights
        curve = (self._rows * chance[:, None]).T @ self._rows - centres.T @ centres
        step = np.linalg.solve(curve / self._many + 2 * PENALTY * np.eye(len(weights)), slope)
        while self._cost(weights - step)[0] > cost and np.abs(step).max() > 1e-9:
            step = step / 2
        return np.asarray(weights - step)

    def _cost(self, weights: Numbers) -> tuple[float, Numbers]:
        """Penalised negative log likelihood a question, and each side's chance to be asked for."""
        scores = self._rows @ weights
        scores = scores - np.maximum.reduceat(scores, self._starts)[self._question]
        raised = np.exp(scores)
        chance = raised / np.add.reduceat(raised, self._starts)[self._question]
        fit = -float(self._wanted @ np.log(np.maximum(chance, 1e-300))) / self._many
        return fit + PENALTY * float(weights @ weights), chance


def shares(asked: Sequence[Asked], weights: Mapping[str, float]) -> dict[tuple[int, str], list[bool]]:
    """Whether each question's evidence stands in the block, by budget and kind."""
    policy = structs.replace(POLICY, weights=structs.replace(Weights(), **weights))
    whole: dict[tuple[int, str], list[bool]] = defaultdict(list)
    for one in asked:
        for budget in BUDGETS:
            block, _ = one.asking.block(one.query, one.found, policy, budget)
            shown = all(recalled(turn, block.text) for turn in one.question.evidence)
            whole[budget, "all"].append(shown)
            whole[budget, one.question.kind].append(shown)
    return whole


def crossed(asked: Sequence[Asked], used: Sequence[str]) -> str:
    """Shares where each dialogue is asked with the weights of the others, as a line to print."""
    whole: dict[tuple[int, str], list[bool]] = defaultdict(list)
    for dialogue in sorted({one.dialogue for one in asked}):
        weights = fit([one for one in asked if one.dialogue != dialogue], used)
        mine = [one for one in asked if one.dialogue == dialogue]
        for key, shown in shares(mine, weights).items():
            whole[key] += shown
    return line(whole)


def line(whole: Mapping[tuple[int, str], Sequence[bool]]) -> str:
    """Per cent of all at each budget, and of each kind at 1,024 tokens."""
    every = " / ".join(f"{100 * mean(whole[budget, 'all']):.1f}" for budget in BUDGETS)
    kinds = (f"{kind} {100 * mean(v):.1f}" for (budget, kind), v in sorted(whole.items()) if budget == 1024)
    return f"{every}   at 1,024: {', '.join(kinds)}"


POLICY = RecallPolicy(floor=0.0, item_floor=0.0)


def main() -> None:
    """Read the arguments and run."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--embedder", nargs="+", default=["fast"], choices=["fast", "quality"])
    arguments.add_argument("--vectors", type=Path, help="keep vectors in files of this name")
    arguments.add_argument("--without", nargs="*", default=[], choices=names())
    given = arguments.parse_args()
    dialogues = read_dialogues(given.data)
    asked = {}
    for name in given.embedder:
        with KeptEmbedder(name, of_embedder(given.vectors, name)) as embedder:
            asked[name] = asyncio.run(ask(dialogues, embedder))
    together = [one for every in asked.values() for one in every]
    weights = fit(together, names())
    print(weights)
    for name, every in asked.items():
        print(f"{name}, as they are now:      {line(shares(every, {}))}")
        print(f"{name}, fitted to the same:   {line(shares(every, weights))}")
        print(f"{name}, fitted to the others: {crossed(every, names())}")
        for left_out in given.without:
            used = [one for one in names() if one != left_out]
            print(f"{name}, without {left_out:>16}: {crossed(every, used)}")


if __name__ == "__main__":
    main()
