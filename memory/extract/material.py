"""What a message holds for a request to work on: somebody's ad, profile, letter or list, whatever its person.

A message of several lines, one of which asks about a text, states nothing in its other lines; nor does a line
that opens another's words: a heading, a lettered list, a greeting after the first line, `she wrote:`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from hearth.memory.extract.patterns import book

COVER: Final = "\ufffc"
"""Stands for each covered character."""


class _Line(NamedTuple):
    text: str
    start: int
    end: int


_LINE: Final = re.compile(r"[^\n]+")
_HEADING: Final = re.compile(
    r"[#*_\s]*(?-i:[A-ZÀ-ÖØ-ÞА-Я])[\w'&/.-]*"
    r"(?:,? (?!(?:i|is|are|was|ich|bin|ist|soy|es|est|suis|sono|sou|ben)\b)[\w'&/.-]+){0,4}[*_:\s]*",
    re.IGNORECASE,
)
"""A few words without an end."""
_TITLE: Final = re.compile(r"\s*#{1,6}\s+\S")
_GREETS: Final = re.compile(
    r"\W*(?:dear|hi|hello|hey|hallo|liebe[rs]?|sehr geehrte\w*|guten (?:tag|morgen|abend)|cher|chère|bonjour"
    r"|salut|madame|monsieur|querid[oa]s?|estimad[oa]s?|hola|buen[oa]s (?:días|tardes)|car[oaie]|gentile|ciao"
    r"|buongiorno|salve|prezad[oa]s?|olá|oi|bom dia|beste|geachte|hoi|goedemorgen|to whom it may concern"
    r"|szanown\w+|cześć|witam|здравствуйте|привет|уважаем\w+|merhaba|sayın)(?!\w)",
    re.IGNORECASE,
)
_ITEM: Final = re.compile(
    r"\s*(?:\(?[A-H][).:]|(?:option|version|text|variante?|opción|opzione) \w+[:.)])\s", re.IGNORECASE
)
_COLUMNS: Final = re.compile(r"[^|\n]+\|[^|\n]+\|[^\n]+")
_PROMPT: Final = re.compile(r"\s*(?:\$|>>>|PS .*>|C:\\[^>]*>|\w+@\w+:\S*[$#])\s")
_ELEMENT: Final = re.compile(
    r"</?(?:p|div|span|li|ul|ol|td|tr|table|h[1-6]|a|section|article|header|footer|body|html|button|label|title)"
    r"(?:\s[^<>\n]*)?>",
    re.IGNORECASE,
)
"""A page's tag; what only makes words bold is no page."""
_ASKS: Final = re.compile(r"[?？؟:：]\W*\Z")
_OPEN: Final = re.compile(r"[:：]\W*\Z")
_ENDS: Final = re.compile(r"(?<=[.!?…])\s+")
_SHORT: Final = 300
"""Characters of a line that asks: what is longer is told or pasted."""


def without_material(text: str) -> str:
    """The text with such lines covered."""
    lines = [line for line in _lines(text) if any(map(str.isalnum, line.text))]
    if not lines:
        return text
    kept = _asking(lines)
    spans = [line for line in lines if kept is not None and line is not kept]
    return _without(text, [*spans, *_opened(text, lines), *_said(text, lines)])


def elements(text: str) -> tuple[int, int]:
    """Where a page's part stands, from its first tag to its last; an empty span where there is none."""
    tags = list(_ELEMENT.finditer(text))
    return (tags[0].start(), tags[-1].end()) if len(tags) > 1 else (0, 0)


def without_outputs(text: str) -> str:
    """The text with what a shell has answered covered, and tables."""
    return _without(text, list(_outputs(text)))


def _without(text: str, spans: Sequence[_Line]) -> str:
    """Line breaks stay: they end sentences."""
    signs = list(text)
    for _, start, end in spans:
        for place in range(start, end):
            if signs[place] != "\n":
                signs[place] = COVER
    return "".join(signs)


def _lines(text: str) -> Iterator[_Line]:
    return (_Line(one.group(), one.start(), one.end()) for one in _LINE.finditer(text))


def _asking(lines: Sequence[_Line]) -> _Line | None:
    """The line that asks about the others, if one does: the first or the last, else any."""
    if len(lines) < 2:
        return None
    if _OPEN.search(lines[0].text) and not book().introduces.search(lines[0].text):
        return lines[0]
    about = [line for line in lines if len(line.text) <= _SHORT and book().about.search(line.text)]
    if not about:
        return None
    ends = [line for line in (lines[0], lines[-1]) if line in about]
    asking = [line for line in ends if _ASKS.search(line.text) and not _GREETS.match(line.text)]
    return (asking or ends or about)[0]


def _outputs(text: str) -> Iterator[_Line]:
    """What a shell has answered: the lines behind a prompt, up to an empty one."""
    if "$ " not in text and ">" not in text:
        return
    place, shell = 0, False
    for line in text.split("\n"):
        shell = bool(_PROMPT.match(line)) or (shell and bool(line.strip()))
        if shell or _COLUMNS.fullmatch(line):
            yield _Line(line, place, place + len(line))
        place += len(line) + 1


def _opened(text: str, lines: Sequence[_Line]) -> Iterator[_Line]:
    """From the first line on that opens another's words; all of the message where its first line is one."""
    items = [line for line in lines if _ITEM.match(line.text)]
    opening = [items[0]] if len(items) > 1 else []
    for line, after in pairwise(lines):
        greets = _GREETS.match(line.text) is not None
        heads = not greets and _heads(line, after)
        if line is lines[0]:
            if heads and any(_heads(*pair) for pair in pairwise(lines[1:])):
                opening.append(line)
        elif heads or greets:
            opening.append(line)
    if len(lines) > 1 and _GREETS.match(lines[-1].text):
        opening.append(lines[-1])
    if opening:
        yield _Line("", min(line.start for line in opening), len(text))


def _heads(line: _Line, after: _Line) -> bool:
    """A title with text under it."""
    if _TITLE.match(line.text):
        return True
    heads = _HEADING.fullmatch(line.text) or _COLUMNS.fullmatch(line.text)
    states = book().speaker.search(line.text) is not None
    return heads is not None and not states and len(after.text) > len(line.text)


def _said(text: str, lines: Sequence[_Line]) -> Iterator[_Line]:
    """What stands behind a colon that another's words or a text open, and the lines after it."""
    for line in lines:
        match = book().quotes.search(line.text)
        if match is None:
            continue
        rest = line.text[match.end() :].strip()
        if not rest.startswith(COVER):  # what is quoted is covered by now
            yield _Line("", line.start + match.end(), line.end if rest else len(text))
    if len(lines) == 1 and (judged := book().judged.search(text)) is not None:
        yield from _judged(lines[0], judged)


def _judged(line: _Line, judged: re.Match[str]) -> Iterator[_Line]:
    """Of a message of one line: what follows the sentence that asks how a text is, or precedes it."""
    ends = [end.end() for end in _ENDS.finditer(line.text)]
    behind = next((end for end in ends if end >= judged.end() - line.start), None)
    if behind is not None and book().opens.match(line.text, behind):
        yield _Line("", line.start + behind, line.end)
    elif behind is None and ends and line.text.rstrip().endswith("?"):
        yield _Line("", line.start, line.start + ends[-1])
