"""Makes remembered text harmless in the block: it can't close it, open another or speak for a role."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from hearth.memory.recall.block import NAME

_IGNORED: Final = "\x00"
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_BREAKS: Final = re.compile("[\r\n\x0b\x0c\x85\u2028\u2029]+")

_LOOK_ALIKES: Final = {
    **dict.fromkeys("‹〈⟨❮❰⟪《«˂ᐸ﹤≺⧼", "<"),
    **dict.fromkeys("›〉⟩❯❱⟫》»˃ᐳ﹥≻⧽", ">"),
    **dict.fromkeys("⁄∕╱⧸", "/"),
    **dict.fromkeys("∶ː։˸꞉︰﹕", ":"),
    **dict(zip("аеоһнрстуухімԁѕꮪвкɑɡıαεηοιρτυν", "aeohhpctyyximdssbkagiaehoiptuv", strict=True)),
}
"""What a model may read as ASCII: brackets, strokes, colons, and Cyrillic and Greek letters of Latin shape
(a choice from Unicode's confusables, those that the words below need)."""

_FILL: Final = rf"[\s{_IGNORED}_.\-‐-―]*"


def _spread(word: str) -> str:
    return _FILL.join(re.escape(letter) for letter in word if letter.isalnum())


_TAG: Final = re.compile(
    rf"<(?=[\s{_IGNORED}/\\!|]*{_spread(NAME)})|<(?={_FILL}\|)|\[(?=/?inst\])|<(?=/?s>|<sys>|/sys>)"
)
_ROLES: Final = "|".join(map(_spread, ("system", "developer", "human", "user", "assistant", "tool")))
_ROLE: Final = re.compile(
    rf"^[\s{_IGNORED}#>*_\-\[(]*((?:{_ROLES})"
    rf"(?:[\s{_IGNORED}]*(?:message|prompt|note))?)(?=[\s{_IGNORED}\])*_]*:)"
)


class _Skeleton(dict[int, str]):
    """Maps each character to the one ASCII-like character that it can be read as, so that offsets stay."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = unicodedata.normalize("NFKD", character).casefold()[:1] or character
        shape = _LOOK_ALIKES.get(character) or _LOOK_ALIKES.get(folded) or folded
        if unicodedata.category(character) in ("Cf", "Mn", "Cc", "Cn", "Co") and not character.isspace():
            shape = _IGNORED
        self[code] = shape
        return shape


_skeleton: Final = _Skeleton()


def escape_lines(text: str) -> list[str]:
    """The lines of `text` that have content, with nothing in them that could be taken for the block's own
    tags, a chat template's marks or another speaker's label. Plain text comes back unchanged.
    """
    clean = _CONTROL.sub("", text if text.isascii() else _INVISIBLE.sub("", text))
    lines = (" ".join(line.split()) if "\t" in line else line.strip() for line in _BREAKS.split(clean))
    return [_escape(line) for line in lines if line]


def _escape(line: str) -> str:
    shape = line.translate(_skeleton)
    if "<" in shape or "[" in shape:
        for found in _TAG.finditer(shape):
            line = f"{line[: found.start()]}({line[found.start() + 1 :]}"
    if ":" in shape and (role := _ROLE.match(shape)):
        line = f"{line[: role.start(1)]}'{line[role.start(1) : role.end(1)]}'{line[role.end(1) :]}"
    return line
