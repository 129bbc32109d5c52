"""The whole of recall after the stores have answered, as one pure call: gather, rank, floor, assemble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from msgspec import structs

from hearth.memory.knowledge.records import is_everybodys
from hearth.memory.ports import TokenCounter
from hearth.memory.recall.assemble import Assembled, assemble
from hearth.memory.recall.compact import Form, forms, parted
from hearth.memory.recall.eligible import Gate, Present
from hearth.memory.recall.pieces import Piece, Pieces, pieces_of
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.pool import Numbers, Pool, gather
from hearth.memory.recall.query import about_the_past, lexical_text, shorten, told_part
from hearth.memory.recall.rank import combine, signals
from hearth.memory.recall.relevance import AMONG_MANY, FITTED_FLOOR, SMALL, own_size, relevance
from hearth.memory.recall.running import context
from hearth.memory.recall.succeeding import succeeding
from hearth.memory.recall.time_signals import timely
from hearth.memory.tiers.outdated import as_of
from hearth.memory.types import Block, Page, Query, Scope, Scored, SearchResult, Shelf, ShortTermView

Verdict = Literal["in", "below floor", "already present", "duplicate", "over budget", "stale", "filtered"]


def recall_block(
    query: Query,
    result: SearchResult,
    view: ShortTermView,
    *,
    scope: Scope,
    generation: int,
    policy: RecallPolicy,
    counter: TokenCounter,
    model: str = "",
    budget: int | None = None,
    shelf: Shelf | None = None,
    compact: bool = True,
) -> tuple[Block, tuple[Scored, ...]]:
    """The block for `query`, and every candidate with what became of it, with its best side's signals.

    `generation` is the user's current one, `budget` in tokens (None: the policy's), `shelf` the documents
    that may be shown (None: none), `compact` whether concepts may take the place of what they sum up. Time is
    the query's `at`. Pure, and deterministic for equal arguments.
    """
    result, concepts = parted(result)
    pool = _as_of(gather(result, view, lexical_text(query, policy)), query)
    query = structs.replace(query, text=shorten(query.text, policy.lexical_characters))
    pieces = pieces_of(pool.records)
    values = signals(pool, pieces, query, policy.weights)
    scores = combine(values, policy.weights)
    dates = np.zeros(len(pool.records))
    dates[pieces.record] = values["date"]
    chances = succeeding(
        pool.records, relevance(pool, query.text, result.vector.by if result.vector else ""), query
    )
    chances = timely(chances, dates, query)
    ranked = _ranked(pieces, scores)
    best = _best(pieces, ranked)
    order = list(best)
    gate, present = Gate(query, scope, generation, shelf), Present((*query.present, told_part(query.text)))
    verdicts = _verdicts(pool, order, chances, gate, present, policy)
    shorter = forms(concepts, pool.records, query, gate, present) if compact else []
    fit = [record for record, verdict in zip(pool.records, verdicts, strict=True) if verdict == "in"]
    before = context(view, fit, query, scope, generation, gate, present, policy)
    made = assemble(
        [pieces.all[i] for i in ranked if verdicts[pieces.record[i]] == "in"],
        timezone=query.timezone,
        budget=policy.budget_tokens if budget is None else budget,
        policy=policy,
        counter=counter,
        model=model,
        asked=query.text,
        forms=shorter,
        context=before,
    )
    _settle(pool, verdicts, made)
    own = np.array(list(best.values()), dtype=np.intp)
    named = {name: numbers[own] for name, numbers in values.items()}
    named |= {"cosine": pool.cosine[order], "coverage": pool.coverage[order]}
    scored = _scored(pool, order, scores[own], chances[order], named, verdicts, made.tokens)
    told = _told_before(before, tuple(named), made)
    others = (one for one in scored if one.record.id not in told)
    return made.block, (*others, *told.values(), *_stands_for(shorter, scored, made))


def _as_of(pool: Pool, query: Query) -> Pool:
    """The pool without what pages say that holds no more, unless the past is asked for."""
    past = about_the_past(query)
    records = [
        as_of(record, query.at, past=past, timezone=query.timezone) if isinstance(record, Page) else record
        for record in pool.records
    ]
    return replace(pool, records=records)


def _ranked(pieces: Pieces, scores: Numbers) -> list[int]:
    """Best first; equal scores by id, so that the order in which stores answered never shows."""
    rounded = np.round(scores, 9).tolist()
    return sorted(
        range(len(rounded)), key=lambda i: (-rounded[i], pieces.all[i].record.id, pieces.all[i].side)
    )


def _best(pieces: Pieces, ranked: Sequence[int]) -> dict[int, int]:
    """The best piece of each record, best first; by the record's place."""
    best: dict[int, int] = {}
    records = pieces.record.tolist()
    for i in ranked:
        best.setdefault(records[i], i)
    return best


def _verdicts(
    pool: Pool, order: Sequence[int], chances: Numbers, gate: Gate, present: Present, policy: RecallPolicy
) -> list[Verdict]:
    """`in` for what may be shown: nothing, unless one of them reaches the floor that the request lacks.

    Of documents one must do so itself: that a question is about the user speaks for none of them.
    """
    floor = FITTED_FLOOR if policy.floor is None else policy.floor
    least = _least(own_size(pool.records), float(chances.max(initial=0.0)), policy)
    verdicts: list[Verdict] = ["below floor"] * len(pool.records)
    reached: set[bool] = set()
    for i in order:
        record = pool.records[i]
        if refusal := gate.refuses(record):
            verdicts[i] = refusal
        elif chances[i] >= least:
            verdicts[i] = "already present" if present.has(record) else "in"
            if verdicts[i] == "in" and chances[i] >= floor:
                reached.add(is_everybodys(record))
    for i, record in enumerate(pool.records):
        grounded = True in reached if is_everybodys(record) else bool(reached)
        if verdicts[i] == "in" and not grounded:
            verdicts[i] = "below floor"
    return verdicts


def _least(own: int, best: float, policy: RecallPolicy) -> float:
    """Relevance that every item must reach beside the best one's; `own` candidates are of the user's memory.

    By odds: what speaks for all of them, as a question about oneself does, cancels out. Without a floor for
    items there is none.
    """
    if not policy.item_floor:
        return 0.0
    share = policy.item_share if own <= SMALL else policy.item_share * AMONG_MANY
    odds = share * best / max(1.0 - best, 1e-6)
    return max(policy.item_floor, min(odds / (1.0 + odds), FITTED_FLOOR))


def _settle(pool: Pool, verdicts: list[Verdict], made: Assembled) -> None:
    """Tell those that the block shows from those that repeat or found no room."""
    shown = frozenset(made.block.items)
    for i, record in enumerate(pool.records):
        if verdicts[i] == "in" and record.id not in shown:
            verdicts[i] = "duplicate" if record.id in made.repeated else "over budget"


def _stands_for(shorter: Sequence[Form], scored: Sequence[Scored], made: Assembled) -> Iterator[Scored]:
    """The concepts that the block shows, each as relevant as the best of what it sums up."""
    for form in shorter:
        if form.piece.record.id in made.block.items:
            best = next(one for one in scored if one.record.id in form.members)
            tokens = made.tokens[form.piece.record.id]
            yield structs.replace(best, record=form.piece.record, verdict="in", tokens=tokens)


def _told_before(before: Sequence[Piece], names: Sequence[str], made: Assembled) -> dict[str, Scored]:
    """The exchanges of which the block has the running summary's words: nothing ranked these."""
    ids = [piece.record.id for piece in before]
    return {
        id: Scored(
            record=piece.record,
            score=0.0,
            relevance=0.0,
            signals=dict.fromkeys(names, 0.0),
            verdict="in",
            tokens=made.tokens[id],
        )
        for id, piece in zip(ids, before, strict=True)
        if id in made.block.items
    }


def _scored(
    pool: Pool,
    order: Sequence[int],
    scores: Numbers,
    chances: Numbers,
    named: dict[str, Numbers],
    verdicts: Sequence[Verdict],
    tokens: dict[str, int],
) -> tuple[Scored, ...]:
    names = tuple(named)
    rows = np.nan_to_num(np.stack(list(named.values()), axis=1), nan=-1.0).round(4).tolist()
    scored, relevant = scores.round(6).tolist(), chances.round(6).tolist()
    return tuple(
        Scored(
            record=pool.records[i],
            score=scored[at],
            relevance=relevant[at],
            signals=dict(zip(names, rows[at], strict=True)),
            verdict=verdicts[i],
            tokens=tokens.get(pool.records[i].id, 0),
        )
        for at, i in enumerate(order)
    )
