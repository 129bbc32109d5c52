"""Whether a model's claim rests on what the user said, by a quote from the user's own words. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Final, NamedTuple

from hearth.memory.extract.answer import Claim
from hearth.memory.extract.material import COVER
from hearth.memory.extract.secrets import mask_secrets
from hearth.memory.extract.spans import sentences, users_words
from hearth.memory.extract.when import start_of
from hearth.memory.recall.dates import local_day
from hearth.memory.types import CandidateFact, Page

_CONFIDENCE: Final = 0.9
"""Of what a model reads: below an explicit statement that a rule reads."""
_WORD: Final = re.compile(r"\w{3,}")
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts that write words without spaces, or in few signs."""
_STRAIGHT: Final = str.maketrans("’ʼ‘", "'''")
_AROUND: Final = " \"'“”„«».,;:!?…"
_TO_THE_END: Final = re.compile(r"[\s.,;:!)…]*")


class Shown(NamedTuple):
    """A page as the model is shown it."""

    page: Page
    words: str
    """The user's own words: as long as the user's text, what is quoted, pasted, code or a secret covered."""
    before: str = ""
    """What the assistant said before them: by it one understands them, and it states nothing."""

    @property
    def day(self) -> date:
        """The speaker's own day on which they were said."""
        return local_day(self.page.occurred_at, self.page.timezone)


def shown(page: Page, before: str = "") -> Shown:
    """The page as the model may see it; `words` is empty where nothing of it is the user's own."""
    return Shown(page, users_words(page), before)


class Grounded(NamedTuple):
    """A claim that holds, and where."""

    shown: Shown
    said: CandidateFact


def grounded(claim: Claim, pages: Sequence[Shown]) -> Grounded | str:
    """The claim as a candidate with the words that it rests on; or why it is refused, in two or three words.

    `pages` are in the order of their numbers in the question, from 1.
    """
    said = claim.statement + claim.value
    if mask_secrets(claim.statement) != claim.statement or "[secret:" in said or "[personal:" in said:
        return "secret"
    named = pages[claim.page - 1 : claim.page] if claim.page > 0 else []
    reasons: list[str] = []
    for one in dict.fromkeys([*named, *pages]):
        found = _place(claim.quote, one.words)
        if found is None:
            reasons.append("not the user's own" if _place(claim.quote, one.page.user_text) else "not said")
        elif _asks(one.words, *found):
            reasons.append("a question")
        else:
            quote = one.page.user_text[found[0] : found[1]]
            if not _rests_on(claim, quote, one):
                return "not in the quote"
            return Grounded(one, _candidate(claim, quote, one))
    return min(reasons, key=_REASONS.index, default="not said")


_REASONS: Final = ("a question", "not the user's own", "not said")
"""The nearest to the truth first."""


def _place(quote: str, text: str) -> tuple[int, int] | None:
    """Where the quote stands, whatever its case and blanks."""
    words = quote.translate(_STRAIGHT).strip(_AROUND).split()
    if not any(map(str.isalnum, "".join(words))) or COVER in quote:
        return None
    pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, words))
    if not _UNSPACED.search(quote):
        pattern += r"(?!\w)"
    else:
        pattern = pattern.removeprefix(r"(?<!\w)")
    found = re.search(pattern, text.translate(_STRAIGHT), re.IGNORECASE)
    return None if found is None else found.span()


def _asks(words: str, start: int, end: int) -> bool:
    """Whether the quote runs to the end of a question: `Do I live in Bern?` states nothing."""
    for sentence in sentences(words):
        if sentence.start <= start < sentence.end:
            rest = words[end : sentence.end]
            return sentence.asks and _TO_THE_END.fullmatch(rest) is not None
    return False


def _rests_on(claim: Claim, quote: str, one: Shown) -> bool:
    """Whether statement and quote have a word in common, in scripts that have words; or the quote has the
    value. A confirmation (`Yes, that's right`) may say what stood in the assistant's words before it.
    """
    if _UNSPACED.search(quote) or _UNSPACED.search(claim.statement):
        return bool({*_UNSPACED.findall(quote)} & {*_UNSPACED.findall(claim.statement + claim.value)})
    said = {*_WORD.findall(quote.casefold())} or {*quote.casefold().split()}
    stated = f"{claim.statement} {claim.value}".casefold()
    if said & {*_WORD.findall(stated)} or said & {*stated.split()}:
        return True
    return bool(claim.value) and _place(claim.value, one.before) is not None


def _candidate(claim: Claim, quote: str, one: Shown) -> CandidateFact:
    zone = one.page.timezone
    return CandidateFact(
        statement=_dated(claim),
        quote=quote,
        subject=_subject(claim.subject),
        attribute=claim.attribute,
        value=claim.value,
        act=_act(claim),  # type: ignore[arg-type]
        wrong=claim.wrong,
        confidence=_CONFIDENCE,
        importance=claim.importance,
        valid_from=_start(claim.valid_from, zone),
        valid_to=_start(claim.valid_to, zone),
        happens_at=_start(claim.happens_at, zone),
    )


def _act(claim: Claim) -> str:
    """What has no attribute can only be stated: nothing else says what its end or correction is about."""
    return claim.act if claim.attribute else "asserts"


def _subject(name: str) -> str:
    return "user" if name.casefold() in ("user", "the user", "me", "i", "myself", "speaker") else name


def _start(day: date | None, zone: str) -> datetime | None:
    if day is None:
        return None
    try:
        return start_of(day, zone)
    except OverflowError:  # a day at the calendar's end that begins outside it in UTC
        return None


def _dated(claim: Claim) -> str:
    """The statement as a sentence, with the day on which it happens where it does not say that itself."""
    text, day = claim.statement.rstrip(" .。"), claim.happens_at
    if day is not None and not (str(day.year) in text and str(day.day) in text):
        text = f"{text} ({day.isoformat()})"
    end = "" if text.endswith(("!", "?", "！", "？")) else "。" if _UNSPACED.search(text[-1:]) else "."
    return f"{text[:1].upper()}{text[1:]}{end}"


def counted(refused: Sequence[str]) -> Mapping[str, int]:
    """How many were refused for each reason."""
    return {reason: refused.count(reason) for reason in dict.fromkeys(refused)}
