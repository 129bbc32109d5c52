"""Relevance: the probability that a candidate helps to answer, by a logistic model fitted for each embedder.

A bare cosine tells nothing across embedders: between a question and a foreign memory it is about 0.3 for one
and 0.8 for another. `relevance.json` holds one set of coefficients an embedder, and how they were made
(benchmarks/fit_relevance.py). The signals:

    cosine          the better of both cosines
    margin          that cosine in standard deviations over the pool's mean; 0 for fewer than 5 candidates
    size            natural logarithm of the number of candidates: the best of many is less of a surprise
    coverage        share of the question's idf mass that the candidate's words hold
    lexical         natural logarithm of 1 + the lexical score
    related         how far the words of one of its sides are the question's content words or related to them
    personal        1 if the question is about the user's own affairs
    speaker         1 if the question names one of those who speak in the memory, where they have names
    named           1 if the question names somebody or something that the candidate tells of
    named_coverage  coverage where that is so: elsewhere another language may be the reason for none

A model without `cosine` serves where the question's vector is missing (`lexical`), one with `margin` in place
of `cosine` where the embedder is none of those we fitted (`unknown`): it lets through less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from hearth.memory.knowledge.records import is_everybodys, is_knowledge
from hearth.memory.recall.capitals import names_in
from hearth.memory.recall.cues import asks, concerns_self, is_small_talk, speaks_of_self
from hearth.memory.recall.function_words import FUNCTION_WORDS
from hearth.memory.recall.lexical import analyzed
from hearth.memory.recall.pool import Numbers, Pool, margins
from hearth.memory.recall.speakers import named_among
from hearth.memory.recall.unanswered import only_asks, says_nothing
from hearth.memory.tiers.indexed import record_text
from hearth.memory.types import Memory, Page, Record

FITTED_FLOOR: Final = 0.5
"""The models are fitted to classes of equal weight, so that one half parts them best."""
SMALL: Final = 40
"""Candidates up to which a memory is a new user's: too few for a cosine to stand out from."""
AMONG_MANY: Final = 0.04
"""Of the share of the best one's odds that an item must reach among few, what it needs among many, where an
answer may be in several.
"""
_FEW: Final = 5
_LEAST: Final = 0.05
"""Relevance below which nobody asks what a page says."""
_CLEAR: Final = 0.95
"""Relevance of a candidate beside which a question needs no others, but what was said after it."""
_LATER: Final = 2
"""Candidates said after a clear one that are given with it at most, for a word and for nearness each."""
_RARE: Final = 3
"""Candidates that hold a word at most, if sharing it is to tell that they speak of the same."""
_NEAREST: Final = 8
"""Candidates that a question about oneself is given at most, where none is clear."""


class Logistic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fitted model: `1 / (1 + exp(-(intercept + sum(coefficient * signal))))`."""

    intercept: float
    coefficients: dict[str, float]

    def __call__(self, signals: Mapping[str, Numbers]) -> Numbers:
        """One probability a candidate."""
        exponent = self.intercept + np.sum(
            [c * signals[name] for name, c in self.coefficients.items()], axis=0
        )
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(exponent, -60.0, 60.0))))


class Fit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file `relevance.json`."""

    made_by: str
    measured: dict[str, dict[str, float]]
    """By model: the share of each kind of question that passes a floor of one half, in cross-validation."""
    models: dict[str, Logistic]


def relevance(pool: Pool, question: str, embedder: str) -> Numbers:
    """Probability for each candidate that it helps; all 0 for a greeting or a bare yes, which ask nothing."""
    if not pool.records or is_small_talk(question):
        return np.zeros(len(pool.records))
    signals = relevance_signals(pool, question)
    known = ~np.isnan(signals["cosine"])
    dense = {name: np.where(known, numbers, 0.0) for name, numbers in signals.items()}
    by_words = np.where(
        pool.coverage > 0, model_for("lexical")(signals), 0.0
    )  # no word shared: nothing is known
    return judged(pool, question, np.where(known, model_for(embedder)(dense), by_words))


def judged(pool: Pool, question: str, chances: Numbers) -> Numbers:
    """A model's probabilities with what no fitted number tells.

    A page that says nothing has none. A question about oneself, among few candidates, gives the nearest that
    tell of the user one half: what one is allergic to bears on what to cook, and no vector and no word says
    so. Where a candidate is clear only some that were said after it count, for one of them may have replaced
    it: `I left Acme` is far from `Where do I work?`, and `I work at Acme` is near.
    """
    made = chances.copy()
    for i in np.flatnonzero(chances >= _LEAST).tolist():
        if says_nothing(pool.records[i]):
            made[i] = 0.0
    if own_size(pool.records) > SMALL or not (asks(question) and concerns_self(question)):
        return made
    order = [i for i in np.argsort(-made, kind="stable").tolist() if not is_everybodys(pool.records[i])]
    clear = [i for i in order if made[i] >= _CLEAR]
    others = [i for i in order[len(clear) :] if made[i] > 0]
    if clear:
        lifted = later(pool.records, question, clear, others)
    else:
        lifted = list(islice((i for i in others if _tells(pool.records[i])), _NEAREST))
    made[lifted] = np.maximum(made[lifted], FITTED_FLOOR)
    return made


def own_size(records: Sequence[Record]) -> int:
    """How many candidates are of the user's own memory: a tenant's documents make no new user an old one."""
    return sum(not is_everybodys(record) for record in records)


def later(records: Sequence[Record], question: str, clear: Sequence[int], others: Sequence[int]) -> list[int]:
    """Those of `others` (places in `records`, best first) that may have replaced one of `clear`.

    Said after the first of the clear ones: the best that share a rare word with what the user said in one of
    them, and which the question lacks (`Acme`), and the best that tell of the user. The first counts, since
    the question itself, once asked and answered, is a clear candidate and a late one.
    """
    since = min(records[i].occurred_at for i in clear)
    after = [i for i in others if records[i].occurred_at > since]
    if not after:
        return []
    words = [analyzed(record_text(record)) for record in records]
    told = frozenset[int]().union(*(analyzed(_said(records[i])) for i in clear))
    named = told - analyzed(question) - analyzed(FUNCTION_WORDS)
    rare = {word for word in named if sum(word in held for held in words) <= _RARE}
    same = (i for i in after if not rare.isdisjoint(words[i]) and _states(records[i]))
    lifted = list(islice(same, _LATER))
    near = (i for i in after if i not in lifted and _tells(records[i]))
    return [*lifted, *islice(near, _LATER)]


def _said(record: Record) -> str:
    """The user's own words."""
    return record.text if isinstance(record, Memory) else record.user_text


def _states(record: Record) -> bool:
    """True if the record is the user's and says something, rather than asks."""
    if isinstance(record, Memory):
        return not is_knowledge(record)
    return not only_asks(record.user_text)


def _tells(record: Record) -> bool:
    """True if the record tells something about the user, rather than asks."""
    return _states(record) and (isinstance(record, Memory) or speaks_of_self(record.user_text))


def relevance_signals(pool: Pool, question: str) -> Mapping[str, Numbers]:
    """The signals by name; `cosine` is NaN where there is none."""
    count = len(pool.records)
    named = _named(pool.records, question)
    return {
        "cosine": pool.cosine,
        "margin": margins(pool.cosine, few=_FEW),
        "size": np.full(count, np.log(max(count, 1))),
        "coverage": pool.coverage,
        "lexical": np.log1p(pool.lexical),
        "related": pool.related.max(axis=0),
        "personal": np.full(count, float(concerns_self(question))),
        "speaker": np.full(count, float(bool(named_among(pool.speakers, question)))),
        "named": named,
        "named_coverage": named * pool.coverage,
    }


def _named(records: Sequence[Record], question: str) -> Numbers:
    """1 for the records that tell of somebody or something that the question names."""
    function = analyzed(FUNCTION_WORDS)
    names = [name for name in names_in(question) or () if not function.issuperset(analyzed(name))]
    if not names:
        return np.zeros(len(records))
    return np.array([float(any(_tells_of(record, name) for name in names)) for record in records])


def _tells_of(record: Record, name: str) -> bool:
    if isinstance(record, Page) and (
        name in record.user_text or name in (record.user_name, record.reply_name)
    ):
        return True  # in most cases, and without the whole text
    return name.casefold() in record_text(record).casefold()


def model_for(name: str) -> Logistic:
    """The model of that embedder; `unknown`'s where there is none of that name."""
    models = _models()
    return models.get(name, models["unknown"])


@cache
def _models() -> dict[str, Logistic]:
    text = files("hearth.memory.recall").joinpath("relevance.json").read_bytes()
    return msgspec.json.decode(text, type=Fit).models
