"""Fills the token budget: each group up to its share in order of rank, then the best of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from hearth.memory.ports import TokenCounter
from hearth.memory.recall import block, compact, running
from hearth.memory.recall.eligible import Shown, asks_the_same
from hearth.memory.recall.pieces import Piece
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.render import (
    PER_TOKEN,
    TITLES,
    Form,
    Group,
    Item,
    body,
    day_line,
    group_of,
    item,
    year_line,
)
from hearth.memory.recall.told import Told
from hearth.memory.types import Block

_SMALLEST: Final = 12
"""Tokens below which no further item is worth trying."""
_MISFITS: Final = 5
"""Items too long for what is left to their group after which no further one of it is tried."""
_ID_TOKENS: Final = 6
"""Tokens that the block's id takes at most: one a digit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A block and what became of the records that were tried for it."""

    block: Block
    tokens: dict[str, int]
    """Of each record of which something was rendered, shown or not, by id."""
    repeated: frozenset[str]
    """Ids of records with a side that was left out because an item says the same."""


def assemble(
    ranked: Sequence[Piece],
    *,
    timezone: str,
    budget: int,
    policy: RecallPolicy,
    counter: TokenCounter,
    model: str = "",
    asked: str = "",
    forms: Sequence[compact.Form] = (),
    context: Sequence[Piece] = (),
) -> Assembled:
    """The block of the pieces that fit into `budget` tokens; `ranked` has the best first.

    Depends on nothing but its arguments. Groups keep their fixed order, items within one the order of time.
    Where not all can fit, sentences that say little are left out. What asks the same as `asked`, the
    question, is left out: only the reply to it can help. One of `forms` takes the place of items that it sums
    up where there are several and it takes fewer tokens than they do; what then has room comes in.
    `context`, the best first, has a part of the conversation's share and no more.
    """
    short = sum(len(piece.text) for piece in ranked) > budget * PER_TOKEN
    form = Form(timezone=timezone, limit=policy.item_tokens, counter=counter, model=model, short=short)
    filling = _Filling(form, budget, policy.max_items, asked)
    shares = {group: int(getattr(policy.shares, group, 0.0) * filling.left) for group in TITLES}
    most = int(running.SHARE * shares["conversation"]) if context else 0
    shares["conversation"] -= most
    rest = filling.take(ranked, shares)
    filling.take(context, {**dict.fromkeys(TITLES, 0), "conversation": most})
    rest = filling.take(rest, dict.fromkeys(TITLES, budget))
    compacted = reduce(_Filling.compacted, forms, filling)
    if compacted is not filling:
        compacted.take(rest, dict.fromkeys(TITLES, budget))
        filling = compacted
    order: dict[str, tuple[object, int]] = {}
    for place, piece in enumerate([*ranked, *context, *(form.piece for form in forms)]):
        order.setdefault(piece.record.id, (piece.record.occurred_at, place))
    return filling.assembled(order)


class _Filling:
    """A block being filled. Each line is counted with its line break, across which no token reaches, so that
    the sum is the whole block's count.
    """

    def __init__(self, form: Form, budget: int, most: int, asked: str) -> None:
        self._form, self._budget, self._most = form, budget, most
        self._pieces: list[Piece] = []
        self._used = _ID_TOKENS + sum(map(self._count, block.FRAME))
        self._items: dict[tuple[str, int], Item] = {}
        self._taken: list[Item] = []
        self._records: set[str] = set()
        self._headings: set[tuple[Group, object]] = set()
        self._shown, self._told, self._asked = Shown(), Told(), asked
        self._repeated: set[str] = set()

    @property
    def left(self) -> int:
        """Tokens that may still be filled."""
        return max(self._budget - self._used, 0)

    def take(self, pieces: Sequence[Piece], shares: dict[Group, int]) -> list[Piece]:
        """Take what fits, in order, each group up to its share; return the others."""
        others: list[Piece] = []
        tries, closed = dict.fromkeys(TITLES, _MISFITS), set[Group]()
        for piece in pieces:
            group = group_of(piece.record)
            if group in closed or self._full(piece.record.id):
                others.append(piece)
            elif (room := min(self.left, shares[group])) < _SMALLEST:
                others.append(piece)
                closed.add(group)
            elif (cost := self._cost(piece)) > room:
                others.append(piece)
                tries[group] -= 1
                if not tries[group]:
                    closed.add(group)
            elif self._is_new(piece):
                shares[group] -= cost
                self._add(piece, cost)
            else:
                self._repeated.add(piece.record.id)
        return others

    def compacted(self, form: compact.Form) -> _Filling:
        """The block with a concept in place of the items that it sums up; the same where that is no gain."""
        told = [piece for piece in self._pieces if piece.record.id in form.members]
        if len({piece.record.id for piece in told}) < compact.LEAST:
            return self
        other = _Filling(self._form, self._budget, self._most, self._asked)
        other._items = dict(self._items)
        others = [piece for piece in self._pieces if piece not in told]
        left = other.take([*others, form.piece], dict.fromkeys(TITLES, self._budget))
        if left or form.piece.record.id not in other._records or other._used >= self._used:
            return self
        for piece in told:
            other._told.add(piece, "")
        other._repeated |= self._repeated | {piece.record.id for piece in told}
        return other

    def assembled(self, order: Mapping[str, tuple[object, int]]) -> Assembled:
        """The whole, items sorted by `order`. What was reserved for the id gives way to what it takes."""
        taken = sorted(self._taken, key=lambda one: (order[one.id], one.side))
        text = block.wrap(body(taken))
        made = Block()
        if text:
            opening = self._count(text[: text.index("\n") + 1])
            tokens = self._used - _ID_TOKENS - self._count(block.FRAME[0]) + opening
            shown = (one.id for group in TITLES for one in taken if one.group == group)
            made = Block(text=text, tokens=tokens, items=tuple(dict.fromkeys(shown)))
        tokens_by_id = Counter[str]()
        for one in self._items.values():
            tokens_by_id[one.id] += one.tokens
        return Assembled(block=made, tokens=dict(tokens_by_id), repeated=frozenset(self._repeated))

    def _is_new(self, piece: Piece) -> bool:
        """False for what the block says already, in the same words or as the fact read from them."""
        if asks_the_same(piece.text, self._asked) or self._told.has(piece):
            return False
        return self._shown.admits(piece.text)

    def _full(self, record: str) -> bool:
        return len(self._records) >= self._most and record not in self._records

    def _cost(self, piece: Piece) -> int:
        key = (piece.record.id, piece.side)
        one = self._items.get(key)
        if one is None:
            one = self._items[key] = item(piece, self._form)
        return one.tokens + sum(
            self._count(line) for heading, line in _headings(one) if heading not in self._headings
        )

    def _add(self, piece: Piece, cost: int) -> None:
        one = self._items[piece.record.id, piece.side]
        self._used += cost
        self._headings.update(heading for heading, _ in _headings(one))
        self._records.add(one.id)
        self._taken.append(one)
        self._pieces.append(piece)
        self._told.add(piece, one.text)

    def _count(self, text: str) -> int:
        return self._form.counter.count(text, self._form.model)


def _headings(one: Item) -> tuple[tuple[tuple[Group, object], str], ...]:
    """What stands above the item, unless another has it already: its group's title, its year and its day."""
    group, day = one.group, one.day
    return (
        ((group, None), f"{TITLES[group]}\n"),
        ((group, day.year), year_line(day)),
        ((group, day), day_line(day)),
    )
