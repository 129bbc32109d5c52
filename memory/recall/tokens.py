"""Counts tokens locally: by o200k_base where its table is on disk, else by an estimate that errs high."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final

import tiktoken

TABLE: Final = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""File name under which tiktoken keeps o200k_base: SHA-1 of the address that it would load it from."""
TABLE_SHA256: Final = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""Of that file's content; stated in tiktoken_ext/openai_public.py."""
CACHED_TEXTS: Final = 8192
"""Counts kept in memory; an item of a block is a few hundred bytes, so this is a few megabytes."""
CACHED_LENGTH: Final = 4096
"""Characters above which a count is not kept."""
_SIGN: Final = re.compile(r"[!-/:-@\[-`{-~]")


class LocalTokenCounter:
    """Exact for models that use o200k_base, near for others, whatever `model` says; loads in about a second.

    `tables` is the folder where tiktoken looks for its tables; None means TIKTOKEN_CACHE_DIR, which tiktoken
    reads itself. Where the table is missing or damaged there, tiktoken would load it from the network:
    then it is not asked.
    """

    def __init__(self, tables: Path | None = None) -> None:
        named = os.environ.get("TIKTOKEN_CACHE_DIR")
        folder = tables or (Path(named) if named else None)
        self.exact = folder is not None and str(folder) == named and _intact(folder / TABLE)
        """False where counts are estimates that err high."""
        self._fresh = _encoded() if self.exact else estimate
        self._kept = lru_cache(maxsize=CACHED_TEXTS)(self._fresh)

    def count(self, text: str, model: str = "") -> int:
        """Tokens of `text`."""
        return self._kept(text) if len(text) <= CACHED_LENGTH else self._fresh(text)


def estimate(text: str) -> int:
    """Three tokens for four ASCII signs, one for three other ASCII characters, one for two bytes of all else:
    more than o200k_base counts for code and for prose in any language we tried (English has 4.5 bytes a
    token, Chinese 4, Thai 5), so that no budget is overrun.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    ascii_characters = len(text.encode("ascii", "ignore"))
    signs = len(_SIGN.findall(text))
    return math.ceil(signs * 0.75 + (ascii_characters - signs) / 3 + (size - ascii_characters) / 2)


def _encoded() -> Callable[[str], int]:
    encode = tiktoken.get_encoding("o200k_base").encode_ordinary
    return lambda text: len(encode(text))


def _intact(table: Path) -> bool:
    return table.is_file() and hashlib.sha256(table.read_bytes()).hexdigest() == TABLE_SHA256
