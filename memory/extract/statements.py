"""From a sentence to the facts that it states, in the language in which it states most."""

from __future__ import annotations

from hearth.memory.extract.amending import contrasted
from hearth.memory.extract.chosen import KIN, Stated
from hearth.memory.extract.patterns import book
from hearth.memory.extract.persons import of_speaker, of_unnamed
from hearth.memory.extract.reading import Reader
from hearth.memory.extract.spans import Sentence
from hearth.memory.extract.tongues import Pattern, Tongue


def stated(text: str, sentence: Sentence, whole: str) -> list[Stated]:
    """What the sentence states, in order, in the language in which it states most.

    `whole` is the message with what is covered in `text`: that tells whom it may be about.
    """
    if book().jokes.search(text, sentence.start, sentence.end):
        return []
    words = text[sentence.start : sentence.end].casefold()
    by_language: dict[str, list[Pattern]] = {}
    for pattern in book().likely(words):
        by_language.setdefault(pattern.language, []).append(pattern)
    if not by_language:
        return []
    goes_on = of_speaker(text, sentence.start)
    best: tuple[tuple[int, int], list[Stated]] = ((0, 0), [])
    for language, patterns in by_language.items():
        tongue = book().tongues[language]
        own = goes_on and not of_unnamed(whole, tongue)
        read = Reader(text, sentence, tongue, goes_on=own).read(patterns)
        best = max(best, ((len(read), _known(words, tongue)), read), key=lambda one: one[0])
    read = contrasted(text, sentence, best[1])
    if book().dead.search(text, sentence.start, sentence.end):
        return [one for one in read if one.act == "ends" or _of_speaker_alone(one)]
    return read


def _of_speaker_alone(one: Stated) -> bool:
    """It says nothing of anybody else, who may be dead."""
    return one.subject == "user" and one.attribute not in KIN


def _known(words: str, tongue: Tongue) -> int:
    """How many of the words are the language's own small ones."""
    return sum(word in tongue.bad or word in tongue.soft or word in tongue.stop for word in words.split())
