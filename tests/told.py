"""Made-up recalls of which replies and people tell what was of use, by weights that are known."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from hearth.memory.events.kinds import Event, RecallDrawn
from hearth.memory.recall.policy import Weights
from hearth.memory.types import DrawnItem, Ranked, Ranking
from tests.events import event

IN_FORCE = {
    name: getattr(Weights(), name) for name in Weights.__struct_fields__ if not name.endswith("_days")
}
"""The weights of a tenant that has none of its own, those of signals alone."""
FIRST, *_, LAST = IN_FORCE
SHIFTED = {**IN_FORCE, FIRST: 0.02, LAST: 2 * max(IN_FORCE.values())}
"""By which one signal tells next to nothing, and another nearly all."""
ITEMS = 8
USED = 2
"""Of the items that a recall showed, those that its reply drew on."""


def drawn(count: int, weights: Mapping[str, float], *, noise: float, tenant: str = "acme") -> Iterator[Event]:
    """Recalls in which the reply drew on the items that score best by those weights, and chance.

    `noise` is its share, of the mean weight.
    """
    spread = noise * sum(map(abs, weights.values())) / len(weights)
    chance = random.Random(7)
    for number in range(count):
        rows = [[round(chance.random(), 3) for _ in weights] for _ in range(ITEMS)]
        scores = [
            sum(w * v for w, v in zip(weights.values(), row, strict=True)) + chance.gauss(0, spread)
            for row in rows
        ]
        used = sorted(range(ITEMS), key=lambda i: -scores[i])[:USED]
        payload = RecallDrawn(
            trace=f"t{number}",
            exchange=f"x{number}",
            items=tuple(DrawnItem(id=f"{number}-{i}", share=0.5, used=i in used) for i in range(ITEMS)),
            ranking=Ranking(
                signals=tuple(weights),
                items=tuple(
                    Ranked(id=f"{number}-{i}", shown=True, values=tuple(row)) for i, row in enumerate(rows)
                ),
            ),
        )
        yield event(payload, tenant=tenant)
