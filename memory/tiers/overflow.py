"""Which pages leave short-term memory for a segment: by count, tokens, age and importance. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

Reason: TypeAlias = Literal["pages", "session pages", "tokens", "session tokens", "age"]

BYTES_PER_TOKEN: Final = 4
"""About."""


class ShortTermPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a user's latest dialogue is short-term memory."""

    pages: int = 10
    """Of a user, over all sessions. MemoryOS's value."""
    session_pages: int = 10
    """Of one session."""
    tokens: int = 8_000
    """Of their texts, by about four bytes each."""
    session_tokens: int | None = None
    """Of one session's, likewise; None: any number within those of the user."""
    days: float = 30.0
    """Age beyond which a page is not short-term memory any more."""
    important: float = 0.7
    """Importance from which a page outlives as many others as there is room for."""
    summary_tokens: int = 400
    """Of the running summary of what left of one session, about; 0: there is none."""


class Waiting(NamedTuple):
    """A page in short-term memory."""

    id: str
    session: str
    at: datetime
    size: int
    """Bytes of its texts."""
    importance: float


class Leaving(NamedTuple):
    """A page that leaves, and the bound for which it does."""

    id: str
    reason: Reason


def overflow(pages: Sequence[Waiting], now: datetime, policy: ShortTermPolicy) -> list[Leaving]:
    """The pages that leave, in order of time; the newest one stays whatever its size.

    Of an owner's pages the trivial ones leave first, each kind oldest first, until the rest is within bounds.
    """
    ordered = sorted(pages, key=lambda page: (page.at, page.id))
    before = now - timedelta(days=policy.days)
    gone: dict[str, Reason] = {page.id: "age" for page in ordered[:-1] if page.at < before}
    left = [page for page in ordered if page.id not in gone]
    trivial_first = sorted(left[:-1], key=lambda page: page.importance >= policy.important)
    for page in trivial_first:
        if (reason := _over(left, page, policy)) is not None:
            gone[page.id] = reason
            left.remove(page)
    return [Leaving(page.id, gone[page.id]) for page in ordered if page.id in gone]


def _over(pages: Sequence[Waiting], page: Waiting, policy: ShortTermPolicy) -> Reason | None:
    """The bound that those pages exceed and that this one's leaving helps to keep."""
    if len(pages) > policy.pages:
        return "pages"
    if sum(one.size for one in pages) > policy.tokens * BYTES_PER_TOKEN:
        return "tokens"
    return _over_in_session([one for one in pages if one.session == page.session], page, policy)


def _over_in_session(pages: Sequence[Waiting], page: Waiting, policy: ShortTermPolicy) -> Reason | None:
    if not page.session:
        return None
    if len(pages) > policy.session_pages:
        return "session pages"
    most = policy.session_tokens
    if most is not None and sum(one.size for one in pages) > most * BYTES_PER_TOKEN:
        return "session tokens"
    return None
