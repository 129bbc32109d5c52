"""Reads what users state by rules of language alone: no model, and rather nothing than a guess."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Final

import msgspec

from hearth.memory.extract.amending import as_meant
from hearth.memory.extract.chosen import STATES, Stated
from hearth.memory.extract.doubts import is_doubtful
from hearth.memory.extract.forgetting import without_request
from hearth.memory.extract.forms import Field, fields
from hearth.memory.extract.frames import own_parts
from hearth.memory.extract.patterns import book
from hearth.memory.extract.replies import speaks_for_user
from hearth.memory.extract.spans import LOOKED_AT, Sentence, sentences, users_words
from hearth.memory.extract.statements import stated
from hearth.memory.extract.tongues import Pattern
from hearth.memory.extract.when import When, shown, start_of, times
from hearth.memory.recall.dates import local_day
from hearth.memory.types import Act, CandidateFact, Page

_IMPORTANCE: Final = {
    **dict.fromkeys(("allergy", "condition", "medication", "name", "birthday", "diet"), 0.9),
    **dict.fromkeys(("partner", "child", "residence", "employer", "occupation"), 0.8),
    **dict.fromkeys(("instruction", "form of address", "preferred language", "pronouns", ""), 0.8),
    **dict.fromkeys(("nationality", "parent", "sibling", "pet", "school", "appointment"), 0.7),
    **dict.fromkeys(("uses", "visited"), 0.4),
}
_USUAL: Final = 0.5
_SURE: Final = 0.95
_LESS_SURE: Final = 0.85
"""Of a clause that lacks its subject, or is about somebody else."""
_MOST: Final = 30
"""Facts of one message."""
_HAPPENS: Final = frozenset({"plan", "appointment", "event", "visited", "goal"})
"""What has a time at which it happens; anything else holds since then."""
_NOT_BEHIND: Final = re.compile(r"\s(?:nicht|niet)(?P<more>\s+(?:mehr|meer))?\W*\Z", re.IGNORECASE)
"""Where a verb's negation follows its object."""
_LIVED: Final = re.compile(r"\W*(?:i|we) (?:once |previously |originally )?lived\b", re.IGNORECASE)
"""The simple past, unlike `I've lived`: it is over."""
_WORKLESS: Final = re.compile(
    r"(?<!\w)(?:i|i've|i have) (?:just |recently |finally |actually )*"
    r"(?:(?:quit|lost|left) my job|(?:got|was|been) (?:laid off|fired|made redundant|let go))(?!\w)"
    r"|(?<!\w)(?:ich habe mein(?:en job|e stelle|e arbeit) (?:verloren|gekündigt|aufgegeben)"
    r"|he perdido mi trabajo|j'ai (?:perdu|quitté) mon (?:travail|emploi)|ho perso il lavoro)(?!\w)",
    re.IGNORECASE,
)
_PARTED: Final = re.compile(
    r"(?<!\w)we(?:'ve| have)? (?:just |recently |finally )*(?:got divorced|gotten divorced|divorced|broke up"
    r"|broken up|split up|separated)(?= \w+ (?:week|month|year|\w+day)| in \w+|\s*[.,!;]|\s*$)"
    r"|(?<!\w)my (?:wife|husband|girlfriend|boyfriend|partner) (?:has )?"
    r"(?:died|passed away|left me|dumped me)(?!\w)"
    r"|(?<!\w)(?:wir haben uns (?:[\w ]{0,20} )?(?:scheiden lassen|getrennt)|wir sind (?:jetzt )?geschieden"
    r"|nos (?:hemos separado|hemos divorciado|separamos|divorciamos)|on s'est séparée?s|on a divorcé"
    r"|nous nous sommes séparée?s|nous avons divorcé|ci siamo (?:separati|lasciati)|separámo-nos"
    r"|we zijn (?:uit elkaar|gescheiden))(?!\w)",
    re.IGNORECASE,
)
_ENDED: Final = {"employer": _WORKLESS, "partner": _PARTED}
"""By their attribute, ends that say no name: of whatever work or partner the user had."""
_SUPPOSED: Final = re.compile(r"\b(?:if|when|what|wish|would|could|unless|once|wenn|si|se)\b", re.IGNORECASE)
_LEAD: Final = re.compile(r"[^.!?…\n;:()。！？]{1,24}\Z")
"""The words before a clause among which a time stands that leads it in."""
_BRIEF: Final = timedelta(days=60)
"""What ends within it does not last."""
_YEAR: Final = timedelta(days=366)
"""What one was so long ago one is not today."""
_SPEAKS: Final = re.compile(
    r"\b(?:speak|parl|habl|fal[ao]|sprech|sprich|spreek|mówi|говор)\w*\b[^.!?;:]*\Z", re.IGNORECASE
)
"""Before a nationality that is then a language: `è austriaco e parla tedesco e inglese`."""
_EATEN: Final = frozenset({"allergy", "diet", "condition", "dislikes"})
"""What is told of several people at once when they are cooked for."""


class RuleExtractor:
    """An extractor that knows a few hundred ways of saying things, in a dozen languages and more."""

    @property
    def name(self) -> str:
        """Stands with what it found."""
        return "rules-1"

    def extract(self, page: Page) -> list[CandidateFact]:
        """What the user states, in order; nothing of most messages. Pure, and linear in the text's length."""
        words = without_request(users_words(page))
        if is_doubtful(words):
            return []
        text = own_parts(words, page.user_text)
        found: dict[tuple[str, ...], CandidateFact] = {}
        for sentence in sentences(text):
            for one in stated(text, sentence, words):
                fact = _fact(page, text, one)
                if fact is not None:
                    found.setdefault(
                        (fact.subject, fact.attribute, fact.value or fact.statement, fact.act), fact
                    )
            for attribute in _ENDED:
                left = any(fact.attribute == attribute and fact.act == "ends" for fact in found.values())
                if not left and (ended := _without_name(page, text, sentence, attribute)) is not None:
                    found.setdefault(("user", attribute, ended.statement, ended.act), ended)
        for field in fields(page.user_text[:LOOKED_AT]) if text else ():
            found.setdefault(("user", field.attribute, field.value, "asserts"), _of_form(page, field))
        facts = _of_known_people(list(found.values()))[:_MOST]
        return [] if speaks_for_user(page.reply_text, facts) else facts


def _of_form(page: Page, field: Field) -> CandidateFact:
    """A form's line; the statement is the line itself."""
    quote = page.user_text[field.start : field.end]
    return CandidateFact(
        statement=f"{quote[:1].upper()}{quote[1:]}.",
        quote=quote,
        attribute=field.attribute,
        value=field.value,
        confidence=_LESS_SURE,
        importance=_IMPORTANCE.get(field.attribute, _USUAL),
    )


def _without_name(page: Page, text: str, sentence: Sentence, attribute: str) -> CandidateFact | None:
    """The end of whatever the user had, of which such words say no name."""
    said = _ENDED[attribute].search(text, sentence.start, sentence.end)
    if (
        said is None
        or "?" in text[said.end() : sentence.end + 1]
        or _SUPPOSED.search(text, sentence.start, said.start())
    ):
        return None
    quote = page.user_text[said.start() : said.end()]
    return CandidateFact(
        statement=f"{quote[:1].upper()}{quote[1:]}.", quote=quote, attribute=attribute, act="ends"
    )


def _of_known_people(facts: Sequence[CandidateFact]) -> list[CandidateFact]:
    """The facts without what several people are who are but names: that is a riddle, or a list of others."""
    names = {fact.subject for fact in facts if fact.subject[:1].isupper()}
    return [fact for fact in facts if len(names) < 2 or fact.subject not in names or fact.attribute in _EATEN]


def _fact(page: Page, text: str, one: Stated) -> CandidateFact | None:
    """The statement as a candidate; None where it needs a time and has none."""
    pattern, day = one.pattern, local_day(page.occurred_at, page.timezone)
    named = times(text, one.start, one.end, pattern.language, day, pattern.ahead)
    if pattern.dated and not any(_fits(pattern, when, day) for when in named):
        return None
    if (
        one.attribute == "nationality"
        and one.opening
        and _SPEAKS.search(text, max(0, one.start - 60), one.start)
    ):
        return None
    act, meant = _act(text, one), as_meant(text, one)
    leading = _LEAD.search(text, max(0, one.start - 24), one.start)
    begins = leading.start() if leading else one.start
    if (
        act is None
        or meant is None
        or _passes(one, times(text, begins, one.end, pattern.language, day, pattern.ahead), day)
    ):
        return None
    fact = CandidateFact(
        statement=_statement(page.user_text, one, named).replace(one.value, meant.value),
        quote=page.user_text[one.start : meant.end],
        subject=one.subject,
        attribute=one.attribute,
        value=_value(text, one, named).replace(one.value, meant.value),
        act=act,
        wrong=one.wrong,
        language=pattern.language,
        confidence=_LESS_SURE if one.opening or one.subject != "user" else _SURE,
        importance=_IMPORTANCE.get(one.attribute, _USUAL),
    )
    return _timed(fact, named, day, page.timezone, moved=pattern.ahead is False)


def _fits(pattern: Pattern, when: When, day: date) -> bool:
    """Whether that can be the time of what is dated: what is ahead is not over, nor goes on for long."""
    return not pattern.ahead or (when.bound != "since" and when.last >= day)


def _passes(one: Stated, named: Sequence[When], day: date) -> bool:
    """Whether it holds for a few days alone, or will be so: `a widow this weekend`, `in 10 years I'm 50`."""
    if one.attribute == "age":
        return any(when.first > day or day - when.last > _YEAR for when in named)
    lasting = one.attribute in STATES or one.attribute in ("residence", "employer")
    return (
        lasting
        and one.pattern.ahead is None
        and one.act != "ends"
        and any(
            (when.bound == "at" and when.last >= day) or (when.bound == "until" and when.last - day < _BRIEF)
            for when in named
        )
    )


def _act(text: str, one: Stated) -> Act | None:
    """What the statement does, by what stands behind it too; None where that takes it back, or it is past."""
    if one.attribute == "residence" and one.act == "asserts" and _LIVED.match(text, one.rest):
        return None
    behind = _NOT_BEHIND.search(text[one.start : one.end]) if one.act == "asserts" else None
    if behind is None:
        return one.act
    return "ends" if behind["more"] else None


def _value(text: str, one: Stated, named: Sequence[When]) -> str:
    """The value as said; of what happens without when it does. A free statement has none."""
    if one.attribute not in _HAPPENS or one.pattern.kind != "phrase" or not named:
        return one.value if one.attribute or one.act == "corrects" else ""
    tongue = book().tongues[one.pattern.language]
    before, _, _ = one.value.partition(text[named[0].start : named[0].end])
    words = before.split()
    while words and words[-1].casefold() in tongue.soft | tongue.articles:
        words.pop()
    return before[: before.rfind(words[-1]) + len(words[-1])] if len(words) > 1 else one.value


def _statement(text: str, one: Stated, named: Sequence[When]) -> str:
    """The clause as a sentence of its own, each relative time with its days in brackets behind it."""
    parts, place = [one.opening], one.rest
    for when in named:
        if not when.whole and when.start >= place:
            parts += [text[place : when.end], f" ({shown(when, one.pattern.language)})"]
            place = when.end
    said = "".join([*parts, text[place : one.end]]).strip()
    return (
        said[:1].upper()
        + said[1:]
        + ("" if said.endswith((".", "!", "。", "！")) else _DOTS.get(one.pattern.language, "."))
    )


_DOTS: Final = {"zh": "。", "ja": "。"}


def _timed(
    fact: CandidateFact, named: Sequence[When], day: date, timezone: str, *, moved: bool
) -> CandidateFact:
    """The fact with its times: when it happens, or since and until when it holds."""
    moments: dict[str, datetime] = {}
    for when in named:
        try:
            field, moment = _moment(fact, when, timezone, moved=moved)
        except OverflowError:  # a day at the calendar's end that begins outside it in UTC
            continue
        if field:
            moments.setdefault(field, moment)
    return msgspec.structs.replace(fact, **moments) if moments else fact


def _moment(fact: CandidateFact, when: When, timezone: str, *, moved: bool) -> tuple[str, datetime]:
    first = start_of(when.first, timezone)
    if when.bound == "until":
        return "valid_to", start_of(when.last, timezone)
    if when.bound == "since":
        return "valid_from", first
    if fact.attribute in _HAPPENS or not fact.attribute:
        return "happens_at", first
    if fact.act == "ends":
        return "valid_to", first
    return ("valid_from" if moved else ""), first
