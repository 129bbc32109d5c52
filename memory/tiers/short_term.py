"""Which pages of a user leave short-term memory, as a pure function of what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from hearth.memory.types import Page

LATELY_KEPT = 64
"""Settlements remembered of one user; the push that may come after one is milliseconds away."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much short-term memory keeps of one owner."""

    capacity: int = 10
    """Pages that stay however settled they are. MemoryOS's default."""
    hard_pages: int = 500
    """Pages beyond which the oldest leave even if long-term memory does not have them yet."""
    hard_bytes: int = 8 * 1024 * 1024
    """The same for the bytes of their texts."""
    blocks: int = 50
    """Blocks kept of one session."""
    block_seconds: float = 24 * 3600
    """Age behind the newest block at which one is dropped; far beyond any provider's cache."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What the decision needs of one page."""

    id: str
    settled: bool
    size: int
    """Bytes."""


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """Pages that leave: `settled` ones may, `dropped` ones must although long-term memory lacks them."""

    settled: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def text_size(page: Page) -> int:
    """Bytes of a page's texts."""
    return len(page.user_text.encode()) + len(page.reply_text.encode())


def text_digest(page: Page) -> bytes:
    """16 bytes that tell a page's texts from others of the same page. Never leaves the user's own records."""
    return blake2b(msgspec.json.encode((page.user_text, page.reply_text)), digest_size=16).digest()


def leaving(held: Sequence[Held], bounds: Bounds) -> Leaving:
    """Decide for one owner's pages, given newest first.

    A page beyond capacity leaves once it is settled. An unsettled one leaves only past a hard bound, and the
    newest page never does.
    """
    settled = [page.id for page in held[bounds.capacity :] if page.settled]
    staying = [page for at, page in enumerate(held) if at < bounds.capacity or not page.settled]
    total = 0
    dropped: list[str] = []
    for at, page in enumerate(staying):
        total += page.size
        if at and (at >= bounds.hard_pages or total > bounds.hard_bytes):
            (settled if page.settled else dropped).append(page.id)
    return Leaving(settled=tuple(settled), dropped=tuple(dropped))
