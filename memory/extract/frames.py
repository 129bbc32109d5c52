"""Whose words a message's parts are, by its form alone: play, a post, a template, a text that is announced.

An order may name its text in any words of any language, but it stands before it: at the message's start, up
to a colon, an arrow, a full stop or the line's end. So what follows an opening is the user's own only where
that opening is the user's own too, or is known to introduce what they say of themselves. Rather too much is
covered than too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from hearth.memory.extract.material import COVER
from hearth.memory.extract.patterns import book
from hearth.memory.extract.spans import stops

_STAGED: Final = re.compile(
    r"(?:^|(?<=[\n.!?…\"”»]))[ \t]*"
    r"(?:(?P<sign>[*_~])(?=[^\W_])(?=[^*_~\n]*\s)[^*_~\n]{2,300}(?P=sign)(?![*_~\w])"
    r"|\*\w{3,40}\*(?=\s+\S)|\(+\s?ooc\b|/me\b"
    r"|[\[【](?=[^\]】\n]{0,200}[^\W\d_]{2})[^\]】\n]{2,200}[\]】](?!\())",
    re.IGNORECASE,
)
"""An utterance that begins with what is done, not said: `*draws a sword*`, `[Scene: a roof, night]`."""
_PLACEHOLDER: Final = re.compile(
    r"\[(?=[^\]\n]{0,30}[^\W\d_]{2})[^\W\d_][^\]\n:]{1,30}\](?!\()|\{\{?\s?[^\W\d][\w .-]{0,30}\}|_{3,}"
)
"""What is to be filled in: the text is a template."""
_POSTED: Final = re.compile(
    r"(?<![\w#&/])#[^\W\d_]\w{2,}|\(\s?(?:\d\d ?[mfwd]|[mfwd] ?\d\d)\s?\)|(?<!\w)r/\w{3,}|\baita\b",
    re.IGNORECASE,
)
"""Only who writes to everybody writes so: a hashtag, `(32F)`."""
_OPENS: Final = re.compile(
    r"(?:[:：](?![)(/\\|\]\[dp3*-](?!\w)|//|\d)|(?<!\w):\w+:|(?P<arrow>-+>|=+>|→|➡|>>|»))[\s\"'*_-]*",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(r"\s[-–—]{1,2}\s|[–—]|,\s|[，、]")
_OPENING: Final = 60
"""Characters of a message's opening at most, where a dash or comma ends it."""
_IS: Final = re.compile(
    r"\b(?:is|are|was|were|ist|sind|war|est|était|es|está|son|è|é|são|jest|zijn)\b|'s\b", re.I
)
"""In an opening: it states something, and is no order."""
_SEVERAL: Final = 3
"""Words of it at least where a comma ends it: fewer are a name or a `honestly`."""
_FEW: Final = 4
"""Words of a last line that says nothing of its own: `too formal?`"""


class _Part(NamedTuple):
    """A sentence, or a part between covered ones."""

    start: int
    end: int
    stop: str


def own_parts(text: str, raw: str) -> str:
    """The text as long as it was, with all covered that may be another's by its place; "" for play and posts.

    `text` is what `own_words` left of `raw`. Linear in the length.
    """
    if any(sign.search(text) for sign in (_STAGED, _PLACEHOLDER, _POSTED)) or book().roles.search(text):
        return ""
    cut = min(_announced(text), _lines_of_others(text), _keyed(text, raw))
    return text[:cut] + "".join(sign if sign == "\n" else COVER for sign in text[cut:])


def is_staged(text: str) -> bool:
    """Whether an utterance of it begins with what is done, not said."""
    return _STAGED.search(text) is not None


def _parts(text: str) -> Iterator[_Part]:
    start = 0
    for stop in stops(text):
        yield _Part(start, stop.start(), stop.group())
        start = stop.end()
    yield _Part(start, len(text), "")


def _announced(text: str) -> int:
    """Where the first text begins that is announced; the end of `text` where none is."""
    first = True
    for part in _parts(text):
        words = text[part.start : part.end]
        if not any(map(str.isalnum, words)):
            continue
        for opens in _OPENS.finditer(text, part.start, part.end):
            if opens["arrow"] or not _is_own(text, part, opens):
                return opens.end()
        if first and (aside := _aside(words)):
            return part.start + aside
        if _hands_over(words, part.stop, first=first):
            return part.end + len(part.stop)
        first = first and (_introduces(words) or len(words.split()) < 3)
    return len(text)


def _is_own(text: str, part: _Part, opens: re.Match[str]) -> bool:
    """Whether what follows the colon goes on with what the user says of themselves."""
    if text[opens.end() : opens.end() + 1] == COVER or (opens.end() == part.end and COVER in part.stop):
        return True  # what it announces is covered by now
    opening = text[part.start : opens.start()]
    if _introduces(opening):
        return True
    goes_on = book().speaker.search(text, opens.end(), part.end)
    return book().speaker.match(opening) is not None and goes_on is None and opens.end() < part.end


def _introduces(opening: str) -> bool:
    return bool(book().introduces.search(opening) or book().refutes.search(opening))


def _aside(words: str) -> int:
    """Behind a dash or comma that ends an opening without the user, where they seem to speak behind it."""
    ends = _ASIDE.search(words, 0, _OPENING)
    if ends is None or not book().speaker.match(words, ends.end()):
        return 0
    opening = words[: ends.start()]
    own = book().speaker.search(opening) or book().whose.search(opening) or _introduces(opening)
    aside = ends.group()[0] == "," and (len(opening.split()) < _SEVERAL or _IS.search(opening))
    return 0 if own or aside else ends.end()


def _hands_over(words: str, stop: str, *, first: bool) -> bool:
    """Whether a text follows: the first sentence says nothing of the user nor asks, or one reports."""
    if any(mark in stop for mark in f"?？؟{COVER}") or book().speaker.search(words) or _introduces(words):
        return False
    return (first and book().whose.search(words) is None) or book().reports.search(words) is not None


def _lines_of_others(text: str) -> int:
    """Where the lines begin that may be a text: all behind one that is no statement of the user's.

    If the last says nothing itself, it may ask about all of them.
    """
    lines = [line for line in _LINE.finditer(text) if any(map(str.isalnum, line.group()))]
    if len(lines) < 2:
        return len(text)
    last = lines[-1].group()
    if len(last.split()) <= _FEW and not book().speaker.search(last):
        return 0
    other = next((place for place, line in enumerate(lines[:-1]) if not _states(line.group())), None)
    return len(text) if other is None else lines[other + 1].start()


_LINE: Final = re.compile(r"[^\n]+")
_KEY: Final = re.compile(r"^[ \t]*[^\W\d_][^\n:：]{0,60}[:：][ \t]*\n\s*(?=\S)", re.MULTILINE)


def _keyed(text: str, raw: str) -> int:
    """Where words begin under a line that is covered as a key is, but has no value: `shorter:`."""
    for key in _KEY.finditer(raw[: len(text)]):
        if text[key.start()] == COVER != text[key.end()] and not _introduces(key.group()):
            return key.end()
    return len(text)


def _states(line: str) -> bool:
    """A line that says something of the user, and asks nothing; or introduces that, or is no text."""
    if COVER in line:
        return True
    if _OPENS.search(line):
        return book().introduces.search(line) is not None
    return book().speaker.search(line, 0, _OPENING) is not None and not line.rstrip().endswith(
        ("?", "？", "؟")
    )
