"""Fills the token budget: each group up to its share in order of rank, then the best of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from hearth.memory.ports import TokenCounter
from hearth.memory.recall import block as form
from hearth.memory.recall.eligible import Shown
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.render import TITLES, Group, Item, body, day_line, group_of, item
from hearth.memory.types import Block, Record

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
    """Of each item that was rendered, shown or not, by record id."""
    repeated: frozenset[str]
    """Ids of records left out because an item says the same."""


def assemble(
    ranked: Sequence[Record],
    *,
    timezone: str,
    budget: int,
    policy: RecallPolicy,
    counter: TokenCounter,
    model: str = "",
) -> Assembled:
    """The block of the records that fit into `budget` tokens; `ranked` has the best first.

    Depends on nothing but its arguments. Groups keep their fixed order, items within one the order of time.
    """
    filling = _Filling(timezone, budget, policy, counter, model)
    shares = {group: int(getattr(policy.shares, group) * filling.left) for group in TITLES}
    rest = filling.take(ranked, shares)
    filling.take(rest, dict.fromkeys(TITLES, budget))
    return filling.assembled({record.id: (record.occurred_at, i) for i, record in enumerate(ranked)})


class _Filling:
    """A block being filled. Each line is counted with its line break, across which no token reaches, so that
    the sum is the whole block's count.
    """

    def __init__(
        self, timezone: str, budget: int, policy: RecallPolicy, counter: TokenCounter, model: str
    ) -> None:
        self._timezone, self._policy = timezone, policy
        self._counter, self._model = counter, model
        self._used = _ID_TOKENS + sum(map(self._count, form.FRAME))
        self._budget = budget
        self._items: dict[str, Item] = {}
        self._taken: list[Item] = []
        self._headings: set[tuple[Group, date | None]] = set()
        self._shown = Shown()
        self._repeated: set[str] = set()

    @property
    def left(self) -> int:
        """Tokens that may still be filled."""
        return max(self._budget - self._used, 0)

    def take(self, records: Sequence[Record], shares: dict[Group, int]) -> list[Record]:
        """Take what fits, in order, each group up to its share; return the others."""
        others: list[Record] = []
        tries = dict.fromkeys(TITLES, _MISFITS)
        for record in records:
            group = group_of(record)
            room = min(self.left, shares[group])
            if room < _SMALLEST or not tries[group] or len(self._taken) >= self._policy.max_items:
                others.append(record)
            elif (cost := self._cost(record)) > room:
                others.append(record)
                tries[group] -= 1
            elif self._shown.admits(record):
                shares[group] -= cost
                self._add(record, cost)
            else:
                self._repeated.add(record.id)
        return others

    def assembled(self, order: dict[str, tuple[object, int]]) -> Assembled:
        """The whole, items sorted by `order`. What was reserved for the id gives way to what it takes."""
        taken = sorted(self._taken, key=lambda one: order[one.id])
        text = form.wrap(body(taken))
        block = Block()
        if text:
            opening = self._count(text[: text.index("\n") + 1])
            tokens = self._used - _ID_TOKENS - self._count(form.FRAME[0]) + opening
            shown = tuple(one.id for group in TITLES for one in taken if one.group == group)
            block = Block(text=text, tokens=tokens, items=shown)
        tokens_by_id = {one.id: one.tokens for one in self._items.values()}
        return Assembled(block=block, tokens=tokens_by_id, repeated=frozenset(self._repeated))

    def _cost(self, record: Record) -> int:
        one = self._items.get(record.id)
        if one is None:
            one = item(record, self._timezone, self._policy.item_tokens, self._counter, self._model)
            self._items[record.id] = one
        cost = one.tokens
        if (one.group, None) not in self._headings:
            cost += self._count(f"{TITLES[one.group]}\n")
        if (one.group, one.day) not in self._headings:
            cost += self._count(day_line(one.day))
        return cost

    def _add(self, record: Record, cost: int) -> None:
        one = self._items[record.id]
        self._used += cost
        self._headings |= {(one.group, None), (one.group, one.day)}
        self._taken.append(one)

    def _count(self, text: str) -> int:
        return self._counter.count(text, self._model)
