"""Latin words without their accents, as many people type them."""

from __future__ import annotations

import unicodedata
from typing import Final

_STROKED: Final = {"ł": "l", "Ł": "L", "ı": "i", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D"}
"""Letters that Unicode does not take apart."""


class _Bare(dict[int, str]):
    """Maps each character to itself, a Latin letter to it without its accents."""

    def __missing__(self, code: int) -> str:
        one = chr(code)
        base = unicodedata.normalize("NFD", one)[0]
        self[code] = _STROKED.get(one) or (base if base.isascii() else one)
        return self[code]


_bare: Final = _Bare()


def without_accents(text: str) -> str:
    """The text, as long as it was; other scripts are left alone, whose signs tell letters apart."""
    return text if text.isascii() else text.translate(_bare)
