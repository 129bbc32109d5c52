"""Short-term memory in this process's own memory: for programs whose memory may end with them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from hearth.memory.tiers.short_term import Bounds, Held, leaving, text_digest, text_size
from hearth.memory.types import Page, PlacedBlock, Scope, ShortTermView, Vector

LATELY_KEPT = 64
"""Settlements remembered of one user; the push that may come after one is milliseconds away."""


class _Held(msgspec.Struct, kw_only=True):
    page: Page
    vector: Vector | None
    arrival: int
    settled: bool


class _Subject(msgspec.Struct, kw_only=True):
    """All that is held of one user."""

    generation: int = 0
    pages: dict[str, _Held] = {}
    blocks: dict[tuple[str, str, str], PlacedBlock] = {}
    """By (owner, session, exchange)."""
    dropped: dict[str, str] = {}
    """Owner of each page that left unsettled, by page id."""
    lately: dict[str, bytes] = {}
    """Digest of the texts of each page settled lately, by page id, oldest first."""


class InMemoryShortTerm:
    """The `ShortTerm` port over dictionaries. Nothing survives the process; the log rebuilds it."""

    def __init__(self, *, capacity: int = 10, hard_cap: int = 500) -> None:
        self._bounds = Bounds(capacity=capacity, hard_pages=hard_cap)
        self._subjects: dict[tuple[str, str], _Subject] = {}
        self._arrivals = 0

    async def start(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Forget everything."""
        self._subjects.clear()

    async def push(self, page: Page, *, vector: Vector | None, block: PlacedBlock | None) -> None:
        """Add or replace the page; one without texts brings its block alone. A stale one is ignored."""
        subject = self._admit(page.scope, page.generation)
        if subject is None:
            return
        if page.user_text or page.reply_text:
            self._put(subject, page, vector)
            self._evict(subject, page.scope.owner)
        if block is not None:
            subject.blocks[page.scope.owner, page.scope.session, block.exchange] = block
            self._trim_blocks(subject, page.scope, block)

    async def latest(self, scope: Scope, *, limit: int) -> ShortTermView:
        """The owner's latest pages, oldest first, and the blocks of `scope.session`."""
        subject = self._subjects.get((scope.tenant, scope.user))
        if subject is None:
            return ShortTermView(known=False)
        held = self._newest_first(subject, scope.owner)[:limit][::-1]
        return ShortTermView(
            pages=tuple(one.page for one in held),
            vectors={one.page.id: one.vector for one in held if one.vector is not None},
            blocks=tuple(_session_blocks(subject, scope)),
            lagging=scope.owner in subject.dropped.values(),
        )

    async def settle(self, scope: Scope, pages: Sequence[Page]) -> None:
        """Mark those pages as safe in long-term memory, with the texts given; beyond capacity they leave."""
        subject = self._subject(scope)
        for page in pages:
            subject.lately.pop(page.id, None)
            subject.lately[page.id] = text_digest(page)
            subject.dropped.pop(page.id, None)
            if held := subject.pages.get(page.id):
                held.page, held.settled = page, True
        for old in list(subject.lately)[:-LATELY_KEPT]:
            del subject.lately[old]
        for owner in {held.page.scope.owner for held in subject.pages.values()}:
            self._evict(subject, owner)

    async def drop(self, scope: Scope, records: Sequence[str]) -> None:
        """Remove those pages of the user, whichever agent's, and all blocks that are theirs or show them."""
        subject, gone = self._subject(scope), set(records)
        for page in gone:
            subject.pages.pop(page, None)
            subject.dropped.pop(page, None)
            subject.lately.pop(page, None)
        subject.blocks = {
            key: block
            for key, block in subject.blocks.items()
            if key[2] not in gone and gone.isdisjoint(block.items)
        }

    async def clear(self, tenant: str, user: str, *, before: int | None = None) -> None:
        """Remove everything of the user, of all agents; with `before` only what is of an older generation,
        and refuse such pages from now on.
        """
        scope = Scope(tenant=tenant, user=user)
        if before is None:
            self._subjects[tenant, user] = _Subject(generation=self._subject(scope).generation)
        else:
            self._admit(scope, before)

    def _subject(self, scope: Scope) -> _Subject:
        return self._subjects.setdefault((scope.tenant, scope.user), _Subject())

    def _admit(self, scope: Scope, generation: int) -> _Subject | None:
        """None for an erased generation; a newer one than any before sweeps out what is left of those."""
        subject = self._subject(scope)
        if generation < subject.generation:
            return None
        if not subject.generation:
            subject.generation = generation
        elif generation > subject.generation:
            subject = self._subjects[scope.tenant, scope.user] = _Subject(generation=generation)
        return subject

    def _put(self, subject: _Subject, page: Page, vector: Vector | None) -> None:
        self._arrivals += 1
        subject.dropped.pop(page.id, None)
        before = subject.pages.get(page.id)
        subject.pages[page.id] = _Held(
            page=page,
            vector=before.vector if vector is None and before else vector,
            arrival=before.arrival if before else self._arrivals,
            settled=subject.lately.get(page.id) == text_digest(page),
        )

    def _newest_first(self, subject: _Subject, owner: str) -> list[_Held]:
        held = [one for one in subject.pages.values() if one.page.scope.owner == owner]
        return sorted(held, key=lambda one: (one.page.occurred_at, one.arrival), reverse=True)

    def _evict(self, subject: _Subject, owner: str) -> None:
        held = self._newest_first(subject, owner)
        gone = leaving(
            [Held(id=one.page.id, settled=one.settled, size=text_size(one.page)) for one in held],
            self._bounds,
        )
        for page in gone.settled + gone.dropped:
            del subject.pages[page]
        subject.dropped.update(dict.fromkeys(gone.dropped, owner))

    def _trim_blocks(self, subject: _Subject, scope: Scope, newest: PlacedBlock) -> None:
        horizon = newest.at - timedelta(seconds=self._bounds.block_seconds)
        subject.blocks = {key: block for key, block in subject.blocks.items() if block.at >= horizon}
        for block in _session_blocks(subject, scope)[: -self._bounds.blocks]:
            del subject.blocks[scope.owner, scope.session, block.exchange]


def _session_blocks(subject: _Subject, scope: Scope) -> list[PlacedBlock]:
    mine = [
        block
        for (owner, session, _), block in subject.blocks.items()
        if (owner, session) == (scope.owner, scope.session)
    ]
    return sorted(mine, key=lambda block: (block.at, block.exchange))
