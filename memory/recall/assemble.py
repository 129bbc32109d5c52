"""Fills the token budget: each group up to its share in order of rank, then the best of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

from hearth.memory.ports import TokenCounter
from hearth.memory.recall import block as form
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.render import TITLES, Group, Item, body, day_line, item
from hearth.memory.types import Block, Record

_SMALLEST: Final = 12
"""Tokens below which no further item is worth trying."""


def assemble(
    ranked: Sequence[Record],
    *,
    timezone: str,
    budget: int,
    policy: RecallPolicy,
    counter: TokenCounter,
    model: str,
) -> tuple[Block, dict[str, int]]:
    """The block of the records that fit into `budget` tokens, best first in `ranked`, and each one's tokens.

    Depends on nothing but its arguments. Groups keep their order, items within one the order of time.
    """
    filling = _Filling(budget, counter, model)
    items = [
        item(record, timezone, policy.item_tokens, counter, model) for record in ranked[: policy.max_items]
    ]
    shares = {group: int(getattr(policy.shares, group) * filling.left) for group in TITLES}
    rest = filling.take(items, shares, policy.max_items)
    filling.take(rest, None, policy.max_items)
    order = {record.id: (record.occurred_at, i) for i, record in enumerate(ranked)}
    taken = sorted(filling.taken, key=lambda one: order[one.id])
    text = form.wrap(body(taken))
    shown = tuple(one.id for group in TITLES for one in taken if one.group == group)
    return Block(text=text, tokens=filling.used if taken else 0, items=shown), {
        one.id: one.tokens for one in items
    }


class _Filling:
    """A block being filled. Every line is counted with its line break, at which no token spans, so that the
    sum is the whole block's count.
    """

    def __init__(self, budget: int, counter: TokenCounter, model: str) -> None:
        self._counter, self._model = counter, model
        self._budget = budget
        self.used = self._count(form.wrap("-")) - self._count("-")
        self.taken: list[Item] = []
        self._days: set[tuple[Group, date]] = set()
        self._groups: set[Group] = set()

    def _count(self, text: str) -> int:
        return self._counter.count(text, self._model)

    @property
    def left(self) -> int:
        return max(self._budget - self.used, 0)

    def take(self, items: Iterable[Item], shares: dict[Group, int] | None, most: int) -> list[Item]:
        """Take what fits, in order; return the others. `shares` bounds each group, None bounds none."""
        others = []
        spent = dict.fromkeys(TITLES, 0)
        for one in items:
            cost = self._cost(one)
            bounded = shares is not None and spent[one.group] + cost > shares[one.group]
            if bounded or cost > self.left or len(self.taken) >= most or self.left < _SMALLEST:
                others.append(one)
                continue
            spent[one.group] += cost
            self._add(one, cost)
        return others

    def _cost(self, one: Item) -> int:
        cost = one.tokens
        if one.group not in self._groups:
            cost += self._count(f"{TITLES[one.group]}\n")
        if (one.group, one.day) not in self._days:
            cost += self._count(day_line(one.day))
        return cost

    def _add(self, one: Item, cost: int) -> None:
        self.used += cost
        self._groups.add(one.group)
        self._days.add((one.group, one.day))
        self.taken.append(one)
