"""Fits memory/recall/relevance.json: which questions a memory helps with, and which not.

    python benchmarks/fit_relevance.py PATH/locomo-dev.json [--write]

The first argument is a file of LoCoMo's form (Maharana et al., 2024; not part of this repository). Positive
examples are its questions, as they are and as the user would ask them of themselves, and short memories with
questions in several languages; negative ones are questions about other conversations, as they are, in the
first person and with this one's names, everyday requests, and questions about another short memory. Each is
searched for among 1 to all pages, so that the model knows small memories and large ones. As one relevant
candidate is enough for a block, a model is fitted to each question's best candidate, by its own measure.
Without `--write` nothing but the measurements is printed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
from everyday import FACTS, REPLIES, REQUESTS
from locomo import Dialogue, read_dialogues
from people import asked_by, mentions, renamed
from vectors import KeptEmbedder, of_embedder

from hearth.memory.ports import Embedder
from hearth.memory.recall.cues import is_small_talk
from hearth.memory.recall.lexical import analyzed
from hearth.memory.recall.pieces import pieces_of
from hearth.memory.recall.policy import Weights
from hearth.memory.recall.pool import Numbers, Pool, gather
from hearth.memory.recall.rank import combine, signals
from hearth.memory.recall.relevance import FITTED_FLOOR, Fit, Logistic, judged, relevance_signals
from hearth.memory.stores.analyzer import Analyzer
from hearth.memory.stores.telling import mean, telling_text
from hearth.memory.stores.terms import weighed
from hearth.memory.stores.words import packed_words, score_words
from hearth.memory.tiers.indexed import index_record, record_text, sides_of
from hearth.memory.types import (
    Candidate,
    Embedding,
    Memory,
    Page,
    Query,
    Record,
    Scope,
    SearchResult,
    ShortTermView,
)

TARGET = Path(__file__).parent.parent / "memory" / "recall" / "relevance.json"
NOW = datetime(2024, 1, 1, tzinfo=UTC)
SIZES = (1, 2, 3, 5, 10, 30, 100, 10**6, 10**6, 10**6)
SHARES = {
    "true": 0.12,
    "true, all pages": 0.12,
    "true, of oneself": 0.16,
    "fact": 0.15,
    "fact, all pages": 0.10,
    "foreign": 0.10,
    "foreign, all pages": 0.09,
    "foreign, of oneself": 0.02,
    "hard": 0.01,
    "everyday": 0.10,
    "everyday, all pages": 0.09,
    "other fact": 0.05,
}
"""Weight of each kind of example."""
POSITIVE = ("true", "fact")
SECOND, THIRD, SIXTH = 2, 3, 6
"""Of what there is more than enough of, one in so many is an example."""
FOLDS = 5
SIGNALS = {
    "embedder": ("cosine", "size", "coverage", "related", "personal", "speaker", "named", "named_coverage"),
    "lexical": ("size", "coverage", "lexical", "related", "personal", "speaker", "named"),
    "unknown": ("margin", "size", "coverage", "lexical", "related", "personal", "speaker", "named"),
}
NOT_NEGATIVE = frozenset(
    {"cosine", "margin", "coverage", "lexical", "related", "personal", "speaker", "named", "named_coverage"}
)
"""Signals of which more can't mean less relevance: a coefficient that comes out negative is left out."""
ROUNDS = 5
"""Of a fit and a choice of the best candidates by it; they no longer change after four."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """One question's candidates, and which are the best of them (positive: its evidence alone)."""

    kind: str
    fold: int
    question: str
    pool: Pool
    best: Sequence[int]
    """Places in the pool."""
    blind: Pool
    """The same as they are where the question has no vector."""
    best_blind: Sequence[int]

    @cached_property
    def signals(self) -> Mapping[str, Numbers]:
        """Of every candidate."""
        return relevance_signals(self.pool, self.question)

    @property
    def positive(self) -> bool:
        return self.kind.startswith(POSITIVE)


class Collection:
    """Records with their vectors and words, of which any part can be searched as if it were all."""

    def __init__(self, records: Sequence[Record], embedder: Embedder) -> None:
        before = {record.id: record for record in records}
        indexed = [
            index_record(record, before.get(getattr(record, "previous", None) or "")) for record in records
        ]
        self._embedder, self._analyzer = embedder, Analyzer()
        self.records = records
        self._text = np.array(embedder.embed_documents([one.text for one in indexed]))
        self._context = np.array(embedder.embed_documents([one.context for one in indexed]))
        counted = [[self._analyzer.terms(side) for side in sides_of(record)] for record in records]
        self._words = [packed_words(sides) for sides in counted]
        self._terms = [frozenset[int]().union(*sides) for sides in counted]

    def search(self, question: str, vector: Numbers, places: Sequence[int]) -> SearchResult:
        """What a store that held these places' records alone would answer."""
        holding = Counter(term for place in places for term in self._terms[place])
        words = weighed(list(analyzed(question)), len(places), holding)
        if telling := telling_text(question, words.common, self._analyzer):
            vector = np.array(mean([vector.tolist(), self._embedder.embed_queries([telling])[0]]))
        scored = score_words([self._words[place] for place in places], words)
        candidates = [
            Candidate(
                record=self.records[place],
                text_score=float(self._text[place] @ vector),
                context_score=float(self._context[place] @ vector),
                **held.fields(),
            )
            for place, held in zip(places, scored, strict=True)
        ]
        best = sorted(candidates, key=lambda one: -max(one.text_score or 0, one.context_score or 0))[:100]
        worded = sorted(candidates, key=lambda one: -(one.lexical_score or 0))[:100]
        kept = {one.record.id: one for one in best + worded}
        return SearchResult(
            candidates=tuple(kept.values()), vector=Embedding(self._embedder.name, vector.tolist())
        )


class Sampler:
    """Makes examples; the same for every run."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._random = np.random.default_rng(7)

    def examples(self, dialogues: Sequence[Dialogue]) -> Iterator[Example]:
        """Examples of every kind."""
        everyday = [text for text in REQUESTS if not is_small_talk(text)]
        vectors = {d.name: self._queries([q.text for q in d.questions]) for d in dialogues}
        requests = self._queries(everyday)
        for fold, dialogue in enumerate(dialogues):
            collection = Collection(dialogue.pages, self._embedder)
            everything = len(dialogue.pages)
            for question, vector in zip(dialogue.questions, vectors[dialogue.name], strict=True):
                if question.pages:
                    places = self._some(everything, sorted(question.pages)[:3])
                    wanted = {dialogue.pages[place].id for place in question.pages}
                    yield from self._one("true", fold, collection, question.text, vector, places, wanted)
            for other in dialogues:
                picked = (
                    self._random.choice(len(other.questions), 50, replace=False)
                    if other is not dialogue
                    else ()
                )
                for i in picked:
                    text, vector = other.questions[i].text, vectors[other.name][i]
                    yield from self._one("foreign", fold, collection, text, vector, self._some(everything))
            for text, vector in zip(everyday, requests, strict=True):
                yield from self._one("everyday", fold, collection, text, vector, self._some(everything))
            yield from self._among(dialogue, fold)
            others = [other for other in dialogues if other is not dialogue]
            for kind, texts in _of_all(dialogue, others).items():
                for text, vector in zip(texts, self._queries(texts), strict=True):
                    yield from self._one(kind, fold, collection, text, vector, range(everything))
        yield from self._facts(everyday, requests)

    def _facts(self, everyday: Sequence[str], requests: Numbers) -> Iterator[Example]:
        yield from self._short(everyday, requests, [_memory(i, text) for i, (text, _) in enumerate(FACTS)])
        yield from self._short(everyday, requests, [self._mixed(i) for i in range(len(FACTS))])

    def _among(self, dialogue: Dialogue, fold: int) -> Iterator[Example]:
        """Facts about the user among all pages of a dialogue, and what is asked about them."""
        records = [*dialogue.pages, *(self._mixed(i) for i in range(len(FACTS)))]
        collection = Collection(records, self._embedder)
        for i, (_, questions) in enumerate(FACTS):
            for text, vector in zip(questions, self._queries(questions), strict=True):
                yield from self._one(
                    "fact, all pages", fold, collection, text, vector, range(len(records)), {f"fact-{i}"}
                )

    def _mixed(self, number: int) -> Page:
        """A page in which the fact stands beside another one and before a reply."""
        other = FACTS[int(self._random.choice(len(FACTS)))][0]
        said = [FACTS[number][0], other] if number % 2 else [other, FACTS[number][0]]
        return Page(
            id=f"fact-{number}",
            scope=Scope(tenant="t", user="u"),
            generation=1,
            user_text=", and ".join(said) + ".",
            reply_text=REPLIES[number % len(REPLIES)],
            occurred_at=NOW,
        )

    def _short(
        self, everyday: Sequence[str], requests: Numbers, records: Sequence[Record]
    ) -> Iterator[Example]:
        collection = Collection(records, self._embedder)
        for i, (_, questions) in enumerate(FACTS):
            answers = [fact for fact, asked in FACTS if set(questions) & set(asked)]
            others = [
                j
                for j, record in enumerate(records)
                if not any(fact in record_text(record) for fact in answers)
            ]
            for text, vector in zip(questions, self._queries(questions), strict=True):
                for _ in range(3):
                    places = self._pick(others)
                    yield from self._one("other fact", i % FOLDS, collection, text, vector, places)
                    yield from self._one(
                        "fact", i % FOLDS, collection, text, vector, [*places[1:], i], {f"fact-{i}"}
                    )
        for i, (text, vector) in enumerate(zip(everyday, requests, strict=True)):
            for _ in range(3):
                yield from self._one(
                    "everyday", i % FOLDS, collection, text, vector, self._pick(range(len(FACTS)))
                )

    def _one(
        self,
        kind: str,
        fold: int,
        collection: Collection,
        text: str,
        vector: Numbers,
        places: Sequence[int],
        wanted: set[str] | None = None,
    ) -> Iterator[Example]:
        found = collection.search(text, vector, places)
        blind = [
            msgspec.structs.replace(one, text_score=None, context_score=None) for one in found.candidates
        ]
        pool, best = _best(found, text, wanted)
        unseen, best_blind = _best(SearchResult(candidates=tuple(blind), missing=("dense",)), text, wanted)
        if best and best_blind:
            yield Example(
                kind=kind,
                fold=fold,
                question=text,
                pool=pool,
                best=best,
                blind=unseen,
                best_blind=best_blind,
            )

    def _queries(self, texts: Sequence[str]) -> Numbers:
        return np.array(self._embedder.embed_queries(list(texts)))

    def _some(self, everything: int, keep: Sequence[int] = ()) -> list[int]:
        size = min(int(self._random.choice(SIZES)), everything)
        others = self._random.choice(everything, size, replace=False).tolist()
        return sorted({*keep[:size], *[i for i in others if i not in keep][: size - len(keep[:size])]})

    def _pick(self, places: Sequence[int]) -> list[int]:
        size = min(int(self._random.choice((1, 3, 10, 30))), len(places))
        return [int(place) for place in self._random.choice(list(places), size, replace=False)]


def _best(found: SearchResult, text: str, wanted: set[str] | None) -> tuple[Pool, list[int]]:
    """The pool, and the places of the best three or of the best wanted one among the first ten."""
    pool = gather(found, ShortTermView(), text)
    pieces = pieces_of(pool.records)
    scores = combine(signals(pool, pieces, Query(text=text, at=NOW), Weights()), Weights())
    ranked = pieces.record[np.argsort(-scores, kind="stable")].tolist()
    best = list(dict.fromkeys(ranked))[:10]
    return pool, best[:3] if wanted is None else [i for i in best if pool.records[i].id in wanted][:1]


def _of_all(dialogue: Dialogue, others: Sequence[Dialogue]) -> dict[str, list[str]]:
    """What is asked of all its pages, by kind: its own questions, those of the others, requests."""
    own = [question.text for question in dialogue.questions]
    asked = [(question.text, other) for other in others for question in other.questions]
    hard = [
        renamed(text, other.names, dialogue.names) for text, other in asked if mentions(text, other.names)
    ]
    return {
        "true, all pages": own,
        "true, of oneself": _of_oneself(own, dialogue)[::SECOND],
        "foreign, all pages": [text for text, _ in asked if not mentions(text, dialogue.names)][::THIRD],
        "foreign, of oneself": [
            text
            for other in others
            for text in _of_oneself([question.text for question in other.questions], other)[::SIXTH]
        ],
        "hard": hard[::THIRD],
        "everyday, all pages": [text for text in REQUESTS if not is_small_talk(text)],
    }


def _of_oneself(texts: Sequence[str], dialogue: Dialogue) -> list[str]:
    """Those about the user alone, as the user would ask them."""
    user, other = dialogue.names
    return [asked_by(user, text) for text in texts if mentions(text, [user]) and not mentions(text, [other])]


def _memory(number: int, text: str) -> Memory:
    return Memory(
        id=f"fact-{number}",
        scope=Scope(tenant="t", user="u"),
        generation=1,
        text=text,
        occurred_at=NOW,
        created_at=NOW,
        updated_at=NOW,
    )


def fit(examples: Sequence[Example], names: Sequence[str]) -> Logistic:
    """A model of each example's best candidate, by the model's own measure; at first the best to rank."""
    model = _fitted(examples, names, [example.best[0] for example in examples])
    for _ in range(ROUNDS):
        model = _fitted(examples, names, [int(model(example.signals).argmax()) for example in examples])
    return model


def _fitted(examples: Sequence[Example], names: Sequence[str], places: Sequence[int]) -> Logistic:
    """Weighted, lightly regularised logistic regression by Newton's method, on one candidate of each."""
    rows = np.array(
        [
            [example.signals[name][place] for name in names]
            for example, place in zip(examples, places, strict=True)
        ]
    )
    labels = np.array([float(example.positive) for example in examples])
    counts = Counter(example.kind for example in examples)
    weights = np.array([SHARES[example.kind] / counts[example.kind] for example in examples]) * len(examples)
    mean, deviation = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    design = np.column_stack([np.ones(len(rows)), (rows - mean) / deviation])
    ridge = np.diag([0.0, *[1e-3 * len(rows)] * len(names)])
    beta = np.zeros(design.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-design @ beta))
        slope = design.T @ (weights * (chance - labels)) + ridge @ beta
        curve = (design.T * (weights * chance * (1 - chance))) @ design + ridge
        beta -= np.linalg.solve(curve, slope)
    coefficients = beta[1:] / deviation
    wrong = [name for name, c in zip(names, coefficients, strict=True) if c < 0 and name in NOT_NEGATIVE]
    if wrong:
        return _fitted(examples, [name for name in names if name != wrong[0]], places)
    return Logistic(
        intercept=round(float(beta[0] - coefficients @ mean), 4),
        coefficients={name: round(float(c), 4) for name, c in zip(names, coefficients, strict=True)},
    )


def probability(example: Example, model: Logistic) -> Numbers:
    """The model's, of each candidate; 0 where no vector and no word tells anything."""
    nothing = np.isnan(example.pool.cosine) & (example.pool.coverage == 0)
    return np.where(nothing, 0.0, model(example.signals))


def passes(examples: Sequence[Example], names: Sequence[str]) -> dict[str, float]:
    """Share of each kind that reaches the floor, each fold by a model that has not seen it."""
    reached: dict[str, list[bool]] = {kind: [] for kind in SHARES}
    for fold in range(FOLDS):
        model = fit([example for example in examples if example.fold % FOLDS != fold], names)
        for example in examples:
            if example.fold % FOLDS == fold:
                chances = judged(example.pool, example.question, probability(example, model))
                reached[example.kind].append(bool(chances.max() >= FITTED_FLOOR))
    return {kind: round(sum(hits) / len(hits), 3) for kind, hits in reached.items()}


def main() -> None:
    """Fit, print, and with `--write` replace the package's file."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--write", action="store_true")
    arguments.add_argument(
        "--vectors", type=Path, help="keep vectors in files of this name and the embedder's"
    )
    given = arguments.parse_args()
    dialogues = read_dialogues(given.data)
    models: dict[str, Logistic] = {}
    measured: dict[str, dict[str, float]] = {}
    together: list[Example] = []
    for spec in ("fast", "quality"):
        with KeptEmbedder(spec, of_embedder(given.vectors, spec)) as embedder:
            examples = list(Sampler(embedder).examples(dialogues))
        together += examples
        models[embedder.name] = fit(examples, SIGNALS["embedder"])
        measured[embedder.name] = passes(examples, SIGNALS["embedder"])
        print(embedder.name, models[embedder.name], measured[embedder.name], flush=True)
    blind = [replace(one, pool=one.blind, best=one.best_blind) for one in together]
    for name, examples in (("lexical", blind), ("unknown", together)):
        models[name] = fit(examples, SIGNALS[name])
        measured[name] = passes(examples, SIGNALS[name])
        print(name, models[name], measured[name], flush=True)
    if given.write:
        made = Fit(made_by="benchmarks/fit_relevance.py", measured=measured, models=models)
        TARGET.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")


if __name__ == "__main__":
    main()
