"""What one language's patterns read in a sentence, clause by clause, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hearth.memory.extract.amending import sets_right
from hearth.memory.extract.attributes import is_known
from hearth.memory.extract.chosen import GENERAL, STATES, Stated, once
from hearth.memory.extract.clauses import Clause, clauses, ends_at, plainly_said, segment_end
from hearth.memory.extract.material import COVER
from hearth.memory.extract.patterns import Found, book, found
from hearth.memory.extract.persons import of_another, person
from hearth.memory.extract.spans import Sentence
from hearth.memory.extract.tongues import Pattern, Tongue
from hearth.memory.extract.values import Value, is_thing, values
from hearth.memory.types import Act

_NEXT: Final = re.compile(r"\s*([^\W\d_][\w']*)")
_DENIES: Final = re.compile(r"\w+n't\s(?!i\b|you\b|we\b|it\b|he\b|she\b|they\b)", re.IGNORECASE)
"""`and can't drive`: no question begins so."""
_BEGINNING: Final = 20
"""Characters of a clause that may be its subject."""


class Reader:
    """Tries one language's patterns on one sentence."""

    def __init__(self, text: str, sentence: Sentence, tongue: Tongue, *, goes_on: bool) -> None:
        """`goes_on`: whether a clause without a subject may be the speaker's."""
        self._text, self._sentence, self._tongue = text, sentence, tongue
        self._casual = text[sentence.start].islower()
        self._goes_on = goes_on
        self._sets_right = sets_right(text, sentence, tongue)

    def read(self, patterns: Sequence[Pattern]) -> list[Stated]:
        """What the patterns read, in the order of clauses, each attribute's value once."""
        every = self._clauses(patterns, ())
        if self._tongue.bare and (self._announced() or any(map(_personal, every))):
            # one who tells of themselves may do so from the start: `vegan, 34, based in Hove`
            every = [*self._clauses(self._with_own(patterns), self._tongue.bare), *every]
            every.sort(key=lambda one: one.pattern.place)
            every.sort(key=lambda one: one.start)
        return once([*every, *self._anywhere(patterns)])

    def _announced(self) -> bool:
        """`About me: vegan, 34`."""
        opening = next(iter(clauses(self._text, self._sentence, self._tongue)), None)
        return opening is not None and ":" in self._text[opening.whole : opening.start]

    def _with_own(self, patterns: Sequence[Pattern]) -> list[Pattern]:
        """The patterns with those that the speaker's own pronoun would have called."""
        words = f"{self._text[self._sentence.start : self._sentence.end].casefold()} {self._tongue.bare_keys}"
        language = patterns[0].language
        return [one for one in book().likely(words) if one.language == language]

    def _clauses(self, patterns: Sequence[Pattern], lacking: tuple[str, ...]) -> list[Stated]:
        every: list[Stated] = []
        reached, before = 0, self._goes_on
        loose: tuple[str, ...] = ()
        for clause in clauses(self._text, self._sentence, self._tongue):
            severed = clause.after.rpartition(" ")[2] in self._tongue.severs
            given = lacking or (loose if clause.after in self._tongue.joining else ())
            aside = clause.after.startswith(("(", "（")) and given[:1] == self._tongue.bare[:1]
            lacks = given if clause.start >= reached and not severed and not aside else ()
            if of_another(self._text, clause.start, self._sentence.end, self._tongue):
                lacking = lacks = ()  # `he's 12, mad about trains`: from here on it is told of him
                self._goes_on = False
            first = not clause.after or clause.after.startswith(":") or lacks[:1] == self._tongue.bare[:1]
            here = [one for pattern in patterns for one in self._tried(pattern, clause, lacks, first)]
            reached = max([reached, *(one.end for one in here if one.attribute not in GENERAL)])
            if clause.start >= reached or here:
                lacking = self._lacking(clause, here, lacking)
            loose = () if clause.asked else self._own(clause)
            every += here
        self._goes_on = before
        return every

    def _lacking(self, clause: Clause, here: Sequence[Stated], before: tuple[str, ...]) -> tuple[str, ...]:
        """The subjects that the next clause may lack: those of this one, if it is a statement of somebody."""
        told = [one for one in here if one.attribute not in GENERAL]
        if not told:
            return before if self._short(clause) else ()
        if told[0].subject != "user":
            return tuple(f"{told[0].who}{verb}" for verb in self._tongue.copulas) if told[0].who else ()
        if told[0].opening:
            return self._tongue.bare or before
        return self._own(clause) or before

    def _titles(self, clause: Clause) -> bool:
        """`Learning French: best apps?`"""
        end = ends_at(self._text, clause.start, self._sentence, self._tongue)
        return self._text[end : end + 1] == ":"

    def _own(self, clause: Clause) -> tuple[str, ...]:
        """What a clause joined to this one may lack: the speaker, or somebody of theirs, if it begins so."""
        who = self._tongue.kin.match(self._text, clause.start, self._sentence.end)
        if who is not None:
            return tuple(f"{who.group()}{verb}" for verb in self._tongue.copulas)
        begins = self._text[clause.start : clause.start + _BEGINNING].casefold()
        return next((lacks for begin, lacks in self._tongue.subjects if begins.startswith(begin)), ())

    def _short(self, clause: Clause) -> bool:
        """So short that it is one more thing told of the same: `she's 9, left-handed and vegan`."""
        return ends_at(self._text, clause.start, self._sentence, self._tongue) - clause.start <= _BEGINNING

    def _tried(
        self, pattern: Pattern, clause: Clause, lacking: tuple[str, ...], first: bool
    ) -> Iterator[Stated]:
        for match, left_out in self._matches(pattern, clause, lacking, first):
            yield from self._said(pattern, clause, match, left_out)

    def _matches(
        self, pattern: Pattern, clause: Clause, lacking: tuple[str, ...], first: bool
    ) -> Iterator[tuple[Found, str]]:
        """Where the pattern matches, with the subject that the clause lacks there."""
        text, end, words = self._text, self._sentence.end, pattern.text.pattern
        if pattern.order:
            match = words.match(text, clause.whole, end) or words.match(text, clause.start, end)
            opens = pattern.kind != "rest" and self._opens()
            if match is not None and not opens and (not self._sentence.asks or self._recalls(clause)):
                yield found(match), ""
        elif pattern.anywhere:
            return
        elif clause.asked:  # `my sister lives in Oslo, is vegan`
            told = lacking[:1] != self._tongue.bare[:1] or _DENIES.match(text, clause.start)
            if clause.after and not self._sentence.asks and told:
                yield from self._without_subject(words, clause, lacking)
        elif (match := words.match(text, clause.start, end)) is not None:
            if self._is_somebodys(clause, match):
                yield found(match), ""
        elif not pattern.full:
            if pattern.attribute == "occupation" and self._is_object(clause):
                return
            of_first = self._tongue.firsts.match(text, clause.start, end)
            lacks_it = first and (of_first or (pattern.bare and self._goes_on))
            bare = self._tongue.bare if lacks_it and not self._titles(clause) else ()
            yield from self._without_subject(words, clause, (*lacking, *bare))

    def _is_somebodys(self, clause: Clause, match: re.Match[str]) -> bool:
        """Whether the clause says whose it is, or goes on with what the speaker says of themselves."""
        owns = self._tongue.owns
        named = owns.search(self._text, clause.whole, match.end()) or owns.match(self._text, clause.start)
        return self._goes_on or named is not None or match.groupdict().get("who") is not None

    def _is_object(self, clause: Clause) -> bool:
        """`and a mixer` may go on with what is bought, where the speaker is not said to be a thing."""
        word = _NEXT.match(self._text, clause.start)
        if clause.after not in self._tongue.joining or word is None:
            return False
        goes_on = word[1].casefold() in self._tongue.articles
        before = self._tongue.chained.search(self._text, self._sentence.start, clause.start)
        return goes_on and before is None

    def _opens(self) -> bool:
        """`Answer in German:` before a text is no order for good."""
        end = self._sentence.end
        return self._text[end - 1] in ":：" and self._text[end : end + 2].lstrip(" \n")[:1] == COVER

    def _recalls(self, clause: Clause) -> bool:
        """`can you remember that I park on level 3?` is asked, and told."""
        return self._tongue.recalls.match(self._text, clause.whole, self._sentence.end) is not None

    def _without_subject(
        self, words: re.Pattern[str], clause: Clause, lacking: tuple[str, ...]
    ) -> Iterator[tuple[Found, str]]:
        """The match with the clause behind each subject that it may lack; the first."""
        for subject in lacking:
            match = words.match(subject + self._text[clause.start : self._sentence.end])
            if match is not None and _is_behind(match, len(subject)):
                yield found(match, clause.start - len(subject)), subject
                return

    def _anywhere(self, patterns: Sequence[Pattern]) -> Iterator[Stated]:
        """What holds though it is told in passing, in a question too: `a gift for my son Theo`."""
        start, end = self._sentence.start, self._sentence.end
        for pattern in patterns:
            for match in pattern.text.pattern.finditer(self._text, start, end) if pattern.anywhere else ():
                yield from self._said(pattern, Clause(match.start(), match.start()), found(match), "")

    def _said(self, pattern: Pattern, clause: Clause, match: Found, left_out: str) -> Iterator[Stated]:
        """What the match states: one fact a value, none where a value or its subject is none."""
        spans, said = match.groups, dict(match.said)
        attribute = self._attribute(pattern, said)
        subject = person(said.get("who", ""), self._text, clause.start, self._tongue)
        if not attribute or not subject:
            return
        read = self._values(pattern, spans.get("value") or (match.end, 0)) if not pattern.constant else []
        if not read and not pattern.constant:
            return
        last = max(read[-1].end if read else match.end, spans.get("value", (0, 0))[1])
        if attribute in STATES and self._tongue.twists.match(self._text, last, self._sentence.end):
            return
        end = last if pattern.kind == "rest" else self._behind(last, said)
        if not self._plain(pattern, clause, match.start if pattern.anywhere else end):
            return
        start = clause.start if left_out else self._start(pattern, clause, match, read)
        who = said.get("who", "")
        pronoun = who.casefold() in self._tongue.her | self._tongue.him and not left_out
        stated = Stated(
            pattern=pattern,
            attribute="" if attribute == "@none" else attribute,
            value=pattern.constant,
            act=self._act(pattern, said),
            start=start,
            end=end,
            subject=subject,
            wrong=said.get("wrong", ""),
            who=who,
            opening=subject if pronoun else left_out.replace(who, subject, 1) if who else left_out,
            rest=spans["who"][1] if pronoun else start,
        )
        yield from (replace(stated, value=value.text) for value in read) if read else [stated]

    def _start(self, pattern: Pattern, clause: Clause, match: Found, read: Sequence[Value]) -> int:
        """Where the statement begins: behind what leads it in, unless that turns its verb round."""
        if pattern.kind == "rest":
            return read[0].start
        tongue, text = self._tongue, self._text
        led_by_time = tongue.inverted.match(text, clause.start, self._sentence.end) or (
            pattern.ahead is not None and tongue.dates.search(text, clause.whole, clause.start)
        )
        return clause.whole if led_by_time else max(clause.whole, min(clause.start, match.start))

    def _values(self, pattern: Pattern, span: tuple[int, int]) -> list[Value]:
        """The values within the span, or from its start on where it has no end."""
        start, end = span
        rest = pattern.kind == "rest"
        end = end or (self._sentence.end if rest else segment_end(self._text, start, self._sentence))
        read = values(self._text, start, end, pattern.kind, self._tongue, casual=self._casual)
        if pattern.attribute not in GENERAL and pattern.attribute != "@none":
            read = [value for value in read if is_thing(value)]
        if not span[1] and read and self._is_subject(read[-1].end):
            return []
        if pattern.only is None:
            return read
        only = pattern.only.pattern
        fit = [one for one in read if only.fullmatch(one.text) or is_known(one.text, pattern.attribute)]
        return fit if fit[:1] == read[:1] else []

    def _is_subject(self, end: int) -> bool:
        """A verb behind a value that should end the clause: it was the subject of something else."""
        after = _NEXT.match(self._text, end, self._sentence.end)
        return after is not None and after[1].casefold() in self._tongue.verbs

    def _attribute(self, pattern: Pattern, said: Mapping[str, str]) -> str:
        if "of" in said:
            return pattern.attribute.replace("@of", said["of"].casefold())
        if pattern.attribute != "@rel":
            return pattern.attribute
        relation = said.get("rel", "")
        return next((name for name, words in self._tongue.relations if words.fullmatch(relation)), "")

    def _behind(self, last: int, said: dict[str, str]) -> int:
        """Where the clause ends whose value ends at `last`; what the words there add comes into `said`."""
        end = self._sentence.end
        instead = self._tongue.instead.match(self._text, last, end)
        if instead is not None and instead["wrong"].split()[0].casefold() not in self._tongue.articles:
            said["wrong"] = instead["wrong"]
            return instead.end()
        for name, words in (("also", self._tongue.also), ("more", self._tongue.more)):
            if (behind := words.match(self._text, last, end)) is not None:
                said[name] = behind.group()
        return ends_at(self._text, last, self._sentence, self._tongue)

    def _act(self, pattern: Pattern, said: Mapping[str, str]) -> Act:
        if "ends" in said or ("not" in said and "more" in said):
            return "ends"
        if "wrong" in said and "not" not in said:
            return "corrects"
        if "not" in said:
            return "denies"
        if pattern.act != "asserts":
            return pattern.act
        if self._sets_right:
            return "corrects"
        return "adds" if "also" in said else "asserts"

    def _plain(self, pattern: Pattern, clause: Clause, end: int) -> bool:
        if pattern.kind == "rest":  # what is to be remembered or done may have any mood, but no hole
            if COVER in self._text[end : end + 2]:
                return False
            return self._tongue.governs.search(self._text, self._sentence.start, clause.start) is None
        return plainly_said(self._text, self._sentence, clause, end, self._tongue)


def _is_behind(match: re.Match[str], place: int) -> bool:
    """Whether the match goes on behind `place`, and its value stands there."""
    valued = match.groupdict().get("value") is not None
    return match.end() >= place and (not valued or match.start("value") >= place)


def _personal(one: Stated) -> bool:
    return one.subject == "user" and one.attribute not in GENERAL
