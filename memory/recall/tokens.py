"""Counts tokens locally: by o200k_base where its table is on disk, else by an estimate that errs high."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final

import tiktoken

TABLE: Final = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""File name under which tiktoken keeps o200k_base: SHA-1 of the address that it would load it from."""
TABLE_SHA256: Final = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""Of that file's content; stated in tiktoken_ext/openai_public.py, as is `PATTERN`."""
PATTERN: Final = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
"""Where o200k_base may part a text before it looks for tokens."""
CACHED_TEXTS: Final = 8192
"""Counts kept in memory; an item of a block is a few hundred bytes, so this is a few megabytes."""
CACHED_LENGTH: Final = 4096
"""Characters above which a count is not kept."""
_SIGN: Final = re.compile(r"[!-/:-@\[-`{-~]")


class LocalTokenCounter:
    """Exact for models that use o200k_base, near for others, whatever `model` says; loads in about a second.

    `tables` is a folder with tiktoken's tables under tiktoken's names. Where there is none, or the table in
    it is damaged, counts are estimates: the table is never loaded from the network.
    """

    def __init__(self, tables: Path | None = None) -> None:
        ranks = _ranks(tables / TABLE) if tables is not None else None
        self.exact = ranks is not None
        """False where counts are estimates that err high."""
        self._fresh = _encoded(ranks) if ranks is not None else estimate
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


def _encoded(ranks: dict[bytes, int]) -> Callable[[str], int]:
    """Built here, for tiktoken's registry asks the environment for the folder, and then the network."""
    encoding = tiktoken.Encoding("o200k_base", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def _ranks(table: Path) -> dict[bytes, int] | None:
    """The table, a line a token: its bytes in base 64 and its rank; None where it is absent or damaged."""
    content = table.read_bytes() if table.is_file() else b""
    if hashlib.sha256(content).hexdigest() != TABLE_SHA256:
        return None
    parts = (line.split() for line in content.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in parts}
