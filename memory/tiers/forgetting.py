"""Which facts and which words a request to forget means. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hearth.memory.extract.attributes import names, subject_key, value_key
from hearth.memory.extract.forget_words import wordings
from hearth.memory.recall.abridge import sentences
from hearth.memory.recall.lexical import occurrences
from hearth.memory.tiers.keywords import keywords
from hearth.memory.types import Asked, CandidateFact, Memory, Outdated, Page, Role


def topic_stems(about: str) -> frozenset[str]:
    """The words of a statement or a topic that tell something, as they are compared."""
    return frozenset(keywords(about))


def meant(
    kind: Asked, said: Sequence[CandidateFact], stems: frozenset[str], facts: Sequence[Memory]
) -> list[Memory]:
    """The facts that are meant: of a statement those that say the same, of a topic all that are about it."""
    if kind == "statement":
        read = [fact for fact in facts if any(_same(fact, one) for one in said)]
        if read or any(one.attribute for one in said):
            return read
        return [fact for fact in facts if stems and stems <= _words(fact)]
    fields = {name for words, named in _BY_STEM for name in named if stems and stems <= words}
    return [
        fact
        for fact in facts
        if (fact.attribute in fields and subject_key(fact.subject) == "user")
        or (stems and stems <= _words(fact))
    ]


def said_about(page: Page, stems: frozenset[str], *, request: str) -> list[Outdated]:
    """Marks of the sentences of a page that have all those words; of a reply only beside the user's own."""
    if not stems:
        return []
    known = {(one.role, one.quote) for one in page.outdated if one.until is None}
    quotes = list(_having("user", page.user_text, stems))
    quotes += _having("assistant", page.reply_text, stems) if quotes else ()
    return [
        Outdated(role=role, quote=quote, fact=request, until=None)
        for role, quote in quotes
        if (role, quote) not in known
    ]


def _having(role: Role, text: str, stems: frozenset[str]) -> Iterator[tuple[Role, str]]:
    for sentence in sentences(text):
        if stems <= set(occurrences(sentence)):
            yield role, sentence.strip()


def _same(fact: Memory, said: CandidateFact) -> bool:
    """The same subject and attribute, and one's value within the other's."""
    if (subject_key(fact.subject), fact.attribute) != (subject_key(said.subject), said.attribute):
        return False
    if not said.attribute:
        return value_key(fact.text) == value_key(said.statement)
    one, other = fact.value, said.value
    return bool(one and other) and (names(one, other) or names(other, one))


def _words(fact: Memory) -> set[str]:
    quotes = (one.quote for one in fact.evidence)
    return set(occurrences("\n".join((fact.text, fact.value, fact.subject, fact.attribute, *quotes))))


_BY_STEM: Final = tuple((frozenset(occurrences(words)), names) for names, words in wordings().topics.items())
