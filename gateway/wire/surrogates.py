"""Lone surrogates in a request's JSON: LiteLLM refuses the whole body for one, which providers take.

Programs that cut text by UTF-16 units send them. Each becomes the replacement character, in as many bytes.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""One escape of a JSON string, a pair of surrogates as one."""


def without_lone_surrogates(raw: bytes) -> bytes:
    """`raw` with U+FFFD for each escaped half of a pair that stands alone; `raw` itself where none does."""
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return raw
    return _ESCAPE.sub(_kept, raw)


def _kept(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape["lone"] else escape[0]
