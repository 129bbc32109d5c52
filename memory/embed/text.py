"""Texts made fit for an embedder or analyzer: no lone surrogates, no more bytes than it can take in time."""

from __future__ import annotations

import re

_LONE = re.compile("[\ud800-\udfff]")
_GAP = " … "


def clean(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD, so that it can be encoded as UTF-8."""
    return text if text.isascii() else _LONE.sub("\ufffd", text)


def shorten(text: str, limit: int) -> str:
    """`text` cleaned and, where it exceeds `limit` bytes of UTF-8, cut to its head and its tail.

    Bytes stand for tokens: about 4 a token in English, 3 in Chinese, 4 an emoji. Head and tail get half each,
    because a page opens with the user's words and the text of two pages ends with the newer one.
    Never splits a character.
    """
    text = clean(text)
    if len(text) * 4 <= limit:
        return text
    raw = text.encode()
    if len(raw) <= limit:
        return text
    half = max((limit - len(_GAP.encode())) // 2, 0)
    tail = raw[-half:] if half else b""
    return raw[:half].decode(errors="ignore") + _GAP + tail.decode(errors="ignore")
