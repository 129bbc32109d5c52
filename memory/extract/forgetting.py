"""What users ask to be forgotten, read by rules of language alone: rather nothing than a guess."""

from __future__ import annotations

from typing import Final

import msgspec

from hearth.memory.extract.forget_words import Wording, wordings
from hearth.memory.extract.material import COVER
from hearth.memory.extract.spans import Sentence, own_words, sentences
from hearth.memory.types import Asked

_LONGEST: Final = 240
"""Characters of a sentence that asks to forget: what is longer tells something else too."""


class ForgetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence that asks to forget, and what it means."""

    kind: Asked
    start: int
    end: int
    """Where the sentence stands in the user's text."""
    about: str = ""
    """The statement (`I live in Bern`) or the topic (`my job`), as said."""
    alone: bool
    """The message says nothing else."""
    language: str


def forget_request(text: str) -> ForgetRequest | None:
    """The first request of a message to forget something; None of nearly all messages. Pure and linear."""
    if not any(wording.likely.search(text) for wording in wordings().languages.values()):
        return None
    own = own_words(text)
    found = [one for one in sentences(own) if any(map(str.isalnum, own[one.start : one.end]))]
    for place, sentence in enumerate(found):
        before, after = found[:place], found[place + 1 :]
        for language, wording in wordings().languages.items():
            if (request := _read(own, text, sentence, language, wording, before, after)) is not None:
                return request
    return None


def without_request(text: str) -> str:
    """The text with the sentence that asks to forget covered: it states nothing."""
    request = forget_request(text)
    if request is None:
        return text
    return text[: request.start] + COVER * (request.end - request.start) + text[request.end :]


def _read(
    text: str,
    raw: str,
    sentence: Sentence,
    language: str,
    wording: Wording,
    before: list[Sentence],
    after: list[Sentence],
) -> ForgetRequest | None:
    said = text[sentence.start : sentence.end]
    if len(said) > _LONGEST or not wording.likely.search(said) or wordings().idioms.search(said):
        return None
    for kind, pattern in wording.patterns:
        match = pattern.fullmatch(said)
        if match is None:
            continue
        groups = match.groupdict()
        firm = bool(groups.get("firm"))
        alone = not (before or after) and not _says_more(raw, sentence)
        if sentence.asks and not groups.get("asks"):
            return None
        about = (groups.get("about") or "").strip(" ,;:")
        if not _means_it(text, kind, about, after, firm=firm, alone=alone):
            return None
        rest = (groups.get("rest") or "").strip()
        told = "before" if kind == "this" and alone and not rest else kind
        return ForgetRequest(
            kind=told, start=sentence.start, end=sentence.end, about=about, alone=alone, language=language
        )
    return None


def _says_more(raw: str, sentence: Sentence) -> bool:
    """Whether anything stands beside the sentence, quoted or pasted text too."""
    return any(map(str.isalnum, raw[: sentence.start] + raw[sentence.end :]))


def _means_it(text: str, kind: str, about: str, after: list[Sentence], *, firm: bool, alone: bool) -> bool:
    """False for `forget that I'm a doctor and explain it`, and for `forget that` before something else."""
    if wordings().goes_on.search(about):
        return False
    if kind == "before":
        return firm or alone
    if kind == "statement" and not firm:
        return not any(
            one.asks or wordings().goes_on.match(f", {text[one.start : one.end]}") for one in after
        )
    return True
