"""Which parts of a message are its speaker's own plain words: no code, quotation, paste, fiction or question.

What is not is covered with a sign that no word holds, so that every place stays where it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from hearth.memory.extract.material import COVER, elements, without_material, without_outputs
from hearth.memory.extract.patterns import book
from hearth.memory.types import Page

LOOKED_AT: Final = 20_000
"""Characters of a message at most; what comes behind is a paste."""
_SENTENCE: Final = 800
"""Characters of a sentence at most: what is longer is no statement that one can rely on."""
_LONG: Final = 3_500
"""Characters of a paragraph that nobody types: about a thousand tokens."""
_HEAD: Final = 800
"""Characters of the paragraphs at both ends of a long message that may be about it."""


class Sentence(NamedTuple):
    """Where a sentence stands."""

    start: int
    end: int
    asks: bool
    """It ends with a question mark."""


def own_words(text: str) -> str:
    """The text as long as it was, with all that its speaker doesn't state covered; "" if nothing is left.

    Apostrophes become straight ones. Linear in the length.
    """
    text = text[:LOOKED_AT].translate(_STRAIGHT)
    page = elements(text)
    for cover in (_mail, _code, without_outputs, _machine_lines, _letters, _long_pastes, _quotations):
        text = cover(text)
    text = _covered(text, *page)
    if _STAGE.search(text) or book().whole.search(text):
        return ""
    text = _tasks(_fiction(without_material(text)))
    return text if any(map(str.isalnum, text)) else ""


def users_words(page: Page) -> str:
    """`own_words` of what the user said; nothing where somebody else spoke on the user's side."""
    return "" if page.by_other else own_words(page.user_text)


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences that `own_words` left, in order."""
    start = 0
    for stop in stops(text):
        yield from _sentence(text, start, stop.start(), stop.group())
        start = stop.end()
    yield from _sentence(text, start, len(text), "")


def stops(text: str) -> Iterator[re.Match[str]]:
    """The marks that end a sentence, or part one from what is covered."""
    start = 0
    for stop in _STOP.finditer(text):
        if not stop["dot"] or not _goes_on(text, max(start, stop.start() - _NAMED), stop.start()):
            yield stop
            start = stop.end()


def _goes_on(text: str, start: int, dot: int) -> bool:
    return bool(_ABBREVIATED.search(text, start, dot) or _ORDINAL.match(text, dot))


def _sentence(text: str, start: int, end: int, stop: str) -> Iterator[Sentence]:
    while start < end and not text[start].isalnum():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    end = min(end, start + _SENTENCE)
    if start < end:
        yield Sentence(start, end, any(mark in stop for mark in "?？؟"))


_STRAIGHT: Final = str.maketrans("’ʼ‘", "'''")
_STOP: Final = re.compile(
    rf"(?P<dot>\.(?=\s|\Z|{COVER}))|\.{{2,}}|[!?؟]+[\s!?]*|[。！？…؟\n{COVER}]+[？！?!]*|[।]"
)
_NAMED: Final = 24
"""Characters of a name before its initial, and more than any abbreviation has."""
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|sr|sra|jr|vs|etc|e\.g|i\.e|approx|ca|bzw|usw|z\.b|d\.h|no|nr|inc|str|ste|hr|fr)"
    r"|(?<!vitamin )(?<!vitamine )(?<!vitamina )(?<!plan )(?<!type )(?<!option )(?<!class )(?<!grade )"
    r"(?-i:\b[A-Z])"
    r")\Z",
    re.IGNORECASE,
)
"""Before a dot that ends no sentence: of an abbreviation, or an initial, which that of `vitamin D` is not."""
_ORDINAL: Final = re.compile(
    r"(?<=\d)\.\s(?:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|oct|nov|de[cz]|maj|led|úno|bře|dub|kvě|čer|srp|zář|říj|lis|pro)",
    re.IGNORECASE,
)
"""A date's dot, in languages that write one."""


def _covered(text: str, start: int, end: int) -> str:
    return text[:start] + COVER * (end - start) + text[end:]


def _cover(match: re.Match[str]) -> str:
    return COVER * len(match.group())


# What is not typed as words: code, logs, marked-up blocks

_CODE: Final = re.compile(
    r"(?:```|~~~).*?(?:```|~~~|\Z)|`[^`\n]{1,300}`|<([A-Za-z][\w-]{1,40})(?:\s[^<>]{0,200})?>.*?</\1>"
    r"|<[^<>\n]{1,200}>|\[(?:secret|personal):[a-z-]+\]|https?://\S+|\S+@\S+\.\w+",
    re.DOTALL,
)


def _code(text: str) -> str:
    """Covers code, marked-up blocks, markers of what was masked, and addresses."""
    if not any(sign in text for sign in ("`", "~~~", "<", "[secret:", "[personal:", "://", "@")):
        return text
    return _CODE.sub(_cover, _without_open_tags(text))


def _without_open_tags(text: str) -> str:
    """Covers tags that nothing closes, so that looking for their ends stays linear."""
    closed = {tag[1]: tag.start() for tag in _CLOSES.finditer(text)}
    return _OPENS.sub(lambda tag: tag.group() if tag.start() < closed.get(tag[1], 0) else _cover(tag), text)


_CLOSES: Final = re.compile(r"</([A-Za-z][\w-]{1,40})>")
_OPENS: Final = re.compile(r"<([A-Za-z][\w-]{1,40})(?:\s[^<>]{0,200})?>")
_MACHINE_LINE: Final = re.compile(
    r"^(?:[ \t]*>.*|\t.*|[ ]{4,}\S.*|[ \t]*[\[{}\]].*|.*[{};][ \t]*|[ \t]*[\"'][\w -]+[\"'][ \t]*:.*"
    r"|[ \t]*\|.*|[ \t]*(?:\$|#!|//|/\*|--|@@|\+\+\+|>>>|#).*"
    r"|.*\b(?-i:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE|Traceback|[A-Z]\w+(?:Error|Exception))\b.*"
    r"|[ \t]*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*|[ \t]*\[?\d\d?:\d\d(?::\d\d)?\]?[ \t].*"
    r"|[ \t]*(?-i:def|class|import|from|return|public|private|const|let|var|function|SELECT|INSERT|UPDATE)"
    r"\b.*[(;=*{].*"
    r"|[ \t]*[\w.-]{1,40}[ \t]*=(?!=).*|[ \t]*(?-i:[a-z_])[\w.-]{0,30}:(?:[ \t]\S+)?[ \t]*)$"
    r"|^[ \t]*(?:user|assistant|human|system|ai|bot|customer|client|agent|interviewer|q|a|speaker \d)[ \t]?:"
    r".*$"
    r"|(?:^[ \t]*[^\W\d][\w ]{0,24}:[ \t].{0,500}(?:\n|\Z)){2,}",
    re.MULTILINE | re.IGNORECASE,
)
"""Quoted lines, code, logs, tables, and what a program or a form has written as `key: value`."""


def _machine_lines(text: str) -> str:
    return _MACHINE_LINE.sub(_cover_lines, text)


def _cover_lines(match: re.Match[str]) -> str:
    """Line breaks stay: they end sentences."""
    return _UNBROKEN.sub(_cover, match.group())


_UNBROKEN: Final = re.compile(r"[^\n]+")


# What others wrote


def _mail(text: str) -> str:
    """Covers a mail's headers and all behind them."""
    match = book().headers.search(text)
    return _covered(text, match.start(), len(text)) if match else text


_GREETING: Final = re.compile(
    r"^[ \t]*(?:dear|hi|hello|hey|hallo|liebe[rs]?|lieber|sehr geehrte[rs]?|guten tag|cher|chère|bonjour"
    r"|madame|monsieur|querid[oa]|estimad[oa]s?|hola|car[oa]|gentile|egregio|prezad[oa]|olá|beste|geachte"
    r"|szanown[iay]\w*|уважаем\w+|sayın)\b[^\n.!?]{1,60}[,:!]?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSING: Final = re.compile(
    r"^[ \t]*(?:(?:best|kind|warm|many)?\s?(?:regards|wishes)|sincerely|yours\b|cheers,|love,|thanks,"
    r"|thank you,|best,|(?:mit )?(?:freundlichen|besten|lieben|viele|liebe|beste|herzliche)n? grü(?:ß|ss)en?"
    r"|cordialement|bien à vous|(?:un )?(?:saludos?|abrazo)|atentamente|atenciosamente|abraços?"
    r"|cordiali saluti|distinti saluti|met vriendelijke groet\w*|groetjes|с уважением|pozdrawiam"
    r"|saygılarımla)[^\n]{0,40}$",
    re.IGNORECASE | re.MULTILINE,
)


def _letters(text: str) -> str:
    """Covers a letter: from its greeting, or from the top, to what stands under its closing."""
    closing = _CLOSING.search(text)
    if closing is None or not text[: closing.start()].strip():
        return text
    greeting = _GREETING.search(text, 0, closing.start())
    return _covered(text, greeting.start() if greeting else 0, len(text))


_PARAGRAPH: Final = re.compile(r"(?:[^\n]+\n?)+")


def _long_pastes(text: str) -> str:
    """Covers paragraphs that are too long to be typed; of a long message all but short ones at its ends."""
    if len(text) <= _LONG:
        return text
    last = text.rstrip().rfind("\n") + 1

    def cover(paragraph: re.Match[str]) -> str:
        at_end = paragraph.start() == 0 or paragraph.end() > last
        return paragraph.group() if at_end and len(paragraph.group()) <= _HEAD else _cover(paragraph)

    return _PARAGRAPH.sub(cover, text)


_QUOTED: Final = re.compile(
    r"(?<!\w)\"[^\"]{1,2000}\"(?!\w)|\"[^\"\n]{1,2000}\"|(?:^|\n)[ \t]*\"[^\"]{1,2000}\Z|“[^“”]{1,2000}”"
    r"|„[^„“”\"]{1,2000}[“”\"]|«[^«»]{1,2000}»|»[^«»]{1,2000}«|‹[^‹›]{1,2000}›"
    r"|「[^「」]{1,2000}」|『[^『』]{1,2000}』|《[^《》]{1,2000}》"
    r"|(?<![\w'])'(?=\w)[^'\n]{1,300}(?:'\w[^'\n]{0,300}){0,9}'(?!\w)"
)
_TITLE: Final = re.compile(r"\W?[^\W_]+(?:[ '&.-]{1,2}[^\W_]+){0,3}\W?")
_SPEECH: Final = re.compile(
    r"\b(?:i|i'm|my|you|me|ich|mein|je|mon|yo|mi|soy|tengo|io|sono|eu|meu|ik|mijn|я|ben|am|is|are)\b|[我私僕]",
    re.IGNORECASE,
)
_SAYS: Final = re.compile(
    r"(?::|\b(?:says?|said|told|writes?|wrote|reads?|word|phrase|sentence|sagt|sagte|schrieb|dice|dijo|dit|disse"
    r"|zegt|zei|translate|übersetze?|traduce|traduis|traduci|traduza|vertaal|mean|means|bedeutet|significa))"
    r"\s*,?\s*\Z",
    re.IGNORECASE,
)


def _quotations(text: str) -> str:
    """Covers what is quoted; a short title or name keeps its words."""

    def cover(match: re.Match[str]) -> str:
        quoted = match.group()
        title = _TITLE.fullmatch(quoted) and not _SPEECH.search(quoted)
        if title and not _SAYS.search(text, max(0, match.start() - 20), match.start()):
            return quoted
        return COVER * len(quoted)

    return _QUOTED.sub(cover, text)


# What is invented, or there to be worked on

_STAGE: Final = re.compile(r"(?<![*\w])\*(?:[a-z]+ly )?[a-z]{3,}s [^*\n]{2,200}\*(?!\*)")
"""`*draws a sword*`: a player's stage direction."""


def _fiction(text: str) -> str:
    """Covers the sentence that begins an invention, and all behind it up to where reality is named."""
    match = book().onward.search(text)
    if match is None:
        return text
    start = max([0, *(stop.end() for stop in _STOP.finditer(text, 0, match.start()))])
    real = book().real.search(text, match.end())
    return _covered(text, start, real.start() if real else len(text))


_SHORTEST: Final = 12
"""Characters that a text to be worked on has at least."""


def _is_asked_how(text: str, match: re.Match[str], end: int) -> bool:
    """`how do I convert this?` is no order to do it, where it is no wording that is looked for."""
    work = _WORK.match(text, match.start(), match.end()) is not None
    asked = work and _HOW.search(text, max(0, match.start() - _HEAD), match.start())
    return bool(asked) and ":" not in text[match.start() : end]


_WORK: Final = re.compile(
    r"(?:convert|turn|classify|analy[sz]e|extract|expand|complete|parse|tag|label)", re.I
)
_HOW: Final = re.compile(
    r"(?:\A|[.!?\n])\W*(?:how|what|why|where|wie|warum|cómo|comment|pourquoi|como|come|hoe)\b[^.!?\n:]{0,60}\Z",
    re.IGNORECASE,
)
_AMENDS: Final = re.compile(
    r"\W*(?:no|non|nope|nein|nee|não|falsch|wrong|actually|update|correction|small mistake|quick update|sorry"
    r"|hai capito male|je me suis trompée?|me equivoqué|scratch)\b",
    re.IGNORECASE,
)
"""Who begins so sets a text right that the assistant wrote: it is no text that comes before the order."""


def _tasks(text: str) -> str:
    """Covers an order to work on a text, and the text: what follows it, or else what stands before.

    An order that quotes its text, which is covered by now, has no other.
    """
    position = 0
    while (match := book().tasks.search(text, position)) is not None:
        stop = _STOP.search(text, match.end())
        end = stop.start() if stop else len(text)
        position = end
        if (
            _HOW.search(text, max(0, match.start() - _HEAD), match.start())
            and ":" not in text[match.start() : end]
        ):
            continue
        if COVER in text[match.start() : end] or (stop and COVER in stop.group()):
            text = _covered(text, match.start(), end)
            continue
        if len(text[end:].strip(" \n.?!")) < _SHORTEST and ":" not in text[match.start() : end]:
            start = match.start() if _AMENDS.match(text) else 0
            return _covered(text, start, len(text))
        return _covered(text, match.start(), len(text))
    return text
