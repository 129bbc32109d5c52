"""The whole of recall after the stores have answered, as one pure call: gather, rank, floor, assemble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hearth.memory.ports import TokenCounter
from hearth.memory.recall.assemble import assemble
from hearth.memory.recall.eligible import Gate, Repetitions
from hearth.memory.recall.lexical import analyzed
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.pool import Analyze, Numbers, Pool, gather
from hearth.memory.recall.query import lexical_text
from hearth.memory.recall.rank import combine, signals
from hearth.memory.recall.relevance import FITTED_FLOOR, relevance
from hearth.memory.types import Block, Query, Record, Scope, Scored, SearchResult, ShortTermView

Verdict = Literal["in", "below floor", "already present", "duplicate", "over budget", "stale", "filtered"]


def recall_block(
    query: Query,
    result: SearchResult,
    view: ShortTermView,
    *,
    scope: Scope,
    generation: int,
    policy: RecallPolicy,
    embedder: str,
    counter: TokenCounter,
    model: str = "",
    budget: int | None = None,
    analyze: Analyze = analyzed,
) -> tuple[Block, tuple[Scored, ...]]:
    """The block for `query`, and every candidate with what became of it, best first.

    `generation` is the user's current one, `embedder` the name of the one that made the vectors, `budget` in
    tokens (None: the policy's). Time is the query's `at`. Pure, and deterministic for equal arguments.
    """
    pool = gather(result, view, lexical_text(query, policy), analyze)
    values = signals(pool, query, policy.weights)
    scores = combine(values, policy.weights)
    chances = relevance(pool, query.text, embedder)
    order = _order(pool, scores)
    verdicts = _verdicts(pool, order, chances, Gate(query, scope, generation), policy)
    ranked = [pool.records[i] for i in order if verdicts[i] == "in"]
    block, sizes = assemble(
        ranked,
        timezone=query.timezone,
        budget=policy.budget_tokens if budget is None else budget,
        policy=policy,
        counter=counter,
        model=model,
    )
    shown = frozenset(block.items)
    for i in order:
        if verdicts[i] == "in" and pool.records[i].id not in shown:
            verdicts[i] = "over budget"
    named = {**values, "cosine": pool.cosine, "coverage": pool.coverage}
    return block, _scored(pool, order, scores, chances, named, verdicts, sizes)


def _order(pool: Pool, scores: Numbers) -> list[int]:
    """Best first; equal scores by time, newest first, then by id."""
    records: Sequence[Record] = pool.records
    return sorted(
        range(len(records)),
        key=lambda i: (-round(float(scores[i]), 9), -records[i].occurred_at.timestamp(), records[i].id),
    )


def _verdicts(
    pool: Pool,
    order: Sequence[int],
    chances: Numbers,
    gate: Gate,
    policy: RecallPolicy,
) -> list[Verdict]:
    """`in` for what may be shown: nothing unless the best such reaches the floor."""
    verdicts: list[Verdict] = ["below floor"] * len(order)
    repetitions = Repetitions(gate.query.present)
    best = 0.0
    for i in order:
        record = pool.records[i]
        if reason := gate.refuses(record):
            verdicts[i] = reason
        elif chances[i] >= policy.item_floor:
            verdicts[i] = repetitions.check(record) or "in"
            best = max(best, chances[i]) if verdicts[i] == "in" else best
    if best >= (FITTED_FLOOR if policy.floor is None else policy.floor):
        return verdicts
    return ["below floor" if verdict == "in" else verdict for verdict in verdicts]


def _scored(
    pool: Pool,
    order: Sequence[int],
    scores: Numbers,
    chances: Numbers,
    named: dict[str, Numbers],
    verdicts: Sequence[Verdict],
    sizes: dict[str, int],
) -> tuple[Scored, ...]:
    names = tuple(named)
    rows = np.nan_to_num(np.stack(list(named.values()), axis=1), nan=-1.0).round(4).tolist() if order else []
    return tuple(
        Scored(
            record=pool.records[i],
            score=round(float(scores[i]), 6),
            relevance=round(float(chances[i]), 6),
            signals=dict(zip(names, rows[i], strict=True)),
            verdict=verdicts[i],
            tokens=sizes.get(pool.records[i].id, 0),
        )
        for i in order
    )
