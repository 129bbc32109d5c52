"""Whether a reply visibly drew on what was recalled for it: by words that it can hardly have from elsewhere.

Of each clause of an item the informative words count: those that are neither in the question, nor function
words, nor the words of saying nothing. Numbers, names and long words count more; a word that several items
have counts less for each. What the reply has of the best clause is the item's share.

No model is asked and no meaning known: a reply in other words, or in another language than the item, shows by
names and numbers alone. Of scripts without spaces only Chinese and Japanese are taken apart.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from hearth.memory.recall.function_words import FUNCTION
from hearth.memory.recall.nothing_words import NOTHING

USED: Final = 0.35
"""Share of an item from which a reply counts as having drawn on it."""
_DOUBT: Final = 1.0
"""Added to what a clause weighs: one word in common may be chance, and alone gives a share of one half."""
_ENOUGH: Final = 3.0
"""Weight of a clause at most: of a long one a reply repeats a part."""
_NAME: Final = 2.0
_NUMBER: Final = 2.0
"""Of one with several digits."""
_LONG: Final = 8
"""Letters from which a word is rare."""
_RARE: Final = 1.5
_STEM: Final = 5
"""Characters by which words are held to be the same: `allergic` and `allergy`, `wohne` and `wohnst`."""
_SYLLABLES: Final = 2
"""The same of Korean, whose particles follow without a space."""

_CLAUSE_END: Final = re.compile(r"(?<!\d)[.,:;!?…\n→]+|[.,:;!?…\n→]+(?!\d)|[。、，！？；：؟،]+")
_TOKEN: Final = re.compile(
    r"(?P<number>\d+)|(?P<han>[\u3400-\u4dbf\u4e00-\u9fff]+)|(?P<kana>[\u30a0-\u30ff]+)|(?P<hangul>[\uac00-\ud7af]+)"
    r"|[\u3040-\u309f]+|(?P<word>[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+)"
)
"""Hiragana alone is grammar, in nearly every case, and is passed over."""


def drawn_shares(items: Sequence[str], question: str, reply: str) -> list[float]:
    """How much of each item the reply shows, 0 to 1; depends on nothing but the arguments."""
    asked, said = _keys(question), _keys(reply)
    told = [[_weights(clause) for clause in _CLAUSE_END.split(item)] for item in items]
    common = Counter(key for clauses in told for key in {key for clause in clauses for key in clause})
    return [
        round(max((_share(clause, asked, said, common) for clause in clauses), default=0.0), 3)
        for clauses in told
    ]


def _share(
    clause: dict[str, float], asked: frozenset[str], said: frozenset[str], common: Counter[str]
) -> float:
    weights = {key: weight / common[key] for key, weight in clause.items() if key not in asked}
    shown = sum(weight for key, weight in weights.items() if key in said)
    return min(shown / (min(sum(weights.values()), _ENOUGH) + _DOUBT), 1.0)


def _keys(text: str) -> frozenset[str]:
    return frozenset(key for key, _ in _terms(text))


def _weights(clause: str) -> dict[str, float]:
    """The clause's informative words, each with the most that it weighs in it."""
    weights: dict[str, float] = {}
    for key, weight in _terms(clause):
        weights[key] = max(weight, weights.get(key, 0.0))
    return weights


def _terms(text: str) -> Iterator[tuple[str, float]]:
    """Keys of the informative words with their weights, in order."""
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text)):
        token = match.group()
        match match.lastgroup:
            case "number":
                yield token.lstrip("0") or "0", _NUMBER if len(token) > 1 else 1.0
            case "han":
                yield from ((key, 1.0) for key in _pairs(token))
            case "kana":
                yield token, _NAME
            case "hangul":
                yield token[:_SYLLABLES], 1.0
            case "word":
                yield from _word(token, opens=not text[: match.start()].strip())
            case _:
                pass


def _word(token: str, *, opens: bool) -> Iterator[tuple[str, float]]:
    """A capital tells a name, unless the word opens the clause."""
    folded = token.casefold()
    if folded in FUNCTION or folded in NOTHING or len(folded) < 2:
        return
    named = token[0].isupper() and not opens
    yield _stem(folded), _NAME if named else _RARE if len(folded) >= _LONG else 1.0


def _stem(word: str) -> str:
    bare = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    return bare[:_STEM] if len(bare) > _STEM else bare.removesuffix("s")


def _pairs(run: str) -> Iterator[str]:
    """Overlapping pairs of characters between the frequent ones that are words by themselves."""
    for part in _FREQUENT.split(run):
        if len(part) == 1:
            yield part
        yield from (part[at : at + 2] for at in range(len(part) - 1))


_FREQUENT: Final = re.compile("[的了是在我你他她它吗呢有和也都不就说這这那個个私何誰]")
