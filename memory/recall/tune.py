"""Weights of the rank score, learnt from what was said of earlier recalls and what replies drew on.

A pairwise logistic loss on the differences of scores within one recall, drawn towards the weights in force. A
third of the recalls is held back, exchange by exchange: what is learnt from the others is proposed only if it
orders more of those pairs rightly, and by more than chance does. Signals that are made of scores themselves
are taken as they were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from hearth.memory.recall.lessons import Lesson, Numbers

NEEDED: Final = 50
"""Recalls below which a held-back third tells nothing."""
_HELD_BACK: Final = 3
"""One in so many."""
_CLEAR: Final = 2.0
"""Logit of what the old weights make of a pair, in the mean: their scale tells how clear a difference is."""
_STIFFNESS: Final = 0.02
"""What it costs to move a weight by `_STEP`, beside a loss of 0.7 for not knowing; less the more recalls tell
than are needed.
"""
_STEP: Final = 0.4
"""Of the mean weight."""
_LEAST: Final = 0.001
"""Of a weight, whose sign stays: what speaks against a candidate speaks against it for every tenant."""
_ROUNDS: Final = 3_000
_DIGITS: Final = 3
_WORTH: Final = 0.01
"""Gain below which a change is not worth its trouble."""
_DRAWS: Final = 2_000
"""Samples of the held-back recalls, by which the gain's lower end is told."""
_LOW: Final = 5.0
"""Per cent of the samples below it."""


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """What was learnt."""

    recalls: int
    judged: int
    """Of them by somebody; of the others only the reply tells."""
    held_back: int
    old: dict[str, float]
    new: dict[str, float]
    """The same as `old` where nothing better was found."""
    right_before: float
    """Share of the held-back pairs that the old weights order rightly, ties half."""
    right_after: float
    """The same of the weights that were learnt, proposed or not."""
    gain_low: float
    """What nineteen of twenty samples of the held-back recalls gain at least."""

    @property
    def better(self) -> bool:
        """Whether new weights are proposed."""
        return self.new != self.old


class TooFew(Exception):  # noqa: N818 - an answer, no fault
    """There are too few recalls to learn from."""

    def __init__(self, recalls: int) -> None:
        self.recalls = recalls
        super().__init__(
            f"{recalls} recalls tell which of their items were of use; at least {NEEDED} are needed"
        )


def tune(lessons: Sequence[Lesson], weights: Mapping[str, float]) -> Tuned:
    """Learn from the lessons, whose signals are in the order of `weights`. Deterministic. Raises TooFew."""
    told = len({lesson.key for lesson in lessons})
    if told < NEEDED:
        raise TooFew(told)
    old = np.array(list(weights.values()))
    held = [lesson for lesson in lessons if _is_held_back(lesson)]
    learnt = _fitted([lesson for lesson in lessons if not _is_held_back(lesson)], old)
    before, after = _right(held, old), _right(held, learnt)
    mass = np.array([lesson.weights.sum() for lesson in held])
    low = _low_end(after - before, mass)
    gain = _mean(after, mass) - _mean(before, mass)
    proposed = learnt if low > 0 and gain >= _WORTH else old
    return Tuned(
        recalls=len(lessons),
        judged=sum(lesson.judged for lesson in lessons),
        held_back=len(held),
        old=dict(weights),
        new=dict(zip(weights, proposed.tolist(), strict=True)),
        right_before=_mean(before, mass),
        right_after=_mean(after, mass),
        gain_low=round(low, 4),
    )


def _is_held_back(lesson: Lesson) -> bool:
    return hashlib.sha256(lesson.key.encode()).digest()[0] % _HELD_BACK == 0


def _fitted(lessons: Sequence[Lesson], old: Numbers) -> Numbers:
    """The weights of the least loss, of the old ones' signs and size, by accelerated projected descent."""
    mass = np.concatenate([lesson.weights for lesson in lessons])
    mass /= mass.sum()
    rows = np.concatenate([lesson.differences for lesson in lessons])
    rows = rows * (_CLEAR / max(float(np.average(np.abs(rows @ old), weights=mass)), _LEAST))
    stiff = _STIFFNESS / (_STEP * np.abs(old).mean()) ** 2 * NEEDED / len(lessons)
    curved = np.linalg.norm(rows * np.sqrt(mass)[:, None], 2) ** 2 / 4 + stiff
    now, ahead, pace = old, old, 1.0
    for _ in range(_ROUNDS):
        wrong = 1.0 / (1.0 + np.exp(np.clip(rows @ ahead, -60.0, 60.0)))
        slope = -(rows.T @ (mass * wrong)) + stiff * (ahead - old)
        then = _of_signs(ahead - slope / curved, old)
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        ahead, pace = then + (pace - 1) / faster * (then - now), faster
        if np.abs(then - now).max() < 1e-7:
            break
        now = then
    return _of_signs(np.round(then * np.abs(old).sum() / np.abs(then).sum(), _DIGITS), old)


def _of_signs(weights: Numbers, old: Numbers) -> Numbers:
    """The weights, those that have left the old ones' side of zero at the least that there is of it."""
    return np.asarray(np.where(old < 0, np.minimum(weights, -_LEAST), np.maximum(weights, _LEAST)))


def _right(lessons: Sequence[Lesson], weights: Numbers) -> Numbers:
    """Of each lesson the share of its pairs that the weights order rightly, ties half."""
    return np.array(
        [
            np.average((np.sign(np.round(lesson.differences @ weights, 9)) + 1) / 2, weights=lesson.weights)
            for lesson in lessons
        ]
    )


def _mean(values: Numbers, mass: Numbers) -> float:
    return round(float(np.average(values, weights=mass)), 4)


def _low_end(gains: Numbers, mass: Numbers) -> float:
    """The gain's lower end over samples of the lessons with replacement, always the same ones."""
    drawn = np.random.default_rng(0).integers(0, len(gains), (_DRAWS, len(gains)))
    means = (gains * mass)[drawn].sum(axis=1) / mass[drawn].sum(axis=1)
    return float(np.percentile(means, _LOW))
