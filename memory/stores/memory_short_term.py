"""Short-term memory in this process's own memory: for programs whose memory may end with them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence

import msgspec

from hearth.memory.tiers.short_term import Bounds
from hearth.memory.tiers.short_term_user import HeldPage, User, session_key
from hearth.memory.types import Embedding, Page, PlacedBlock, Scope, ShortTermView, scope_of


class _Subject(msgspec.Struct, kw_only=True):
    """All that is held of one user."""

    user: User
    pages: dict[str, Page] = {}
    vectors: dict[str, Embedding] = {}
    blocks: dict[tuple[str, str], PlacedBlock] = {}
    """By (session, exchange)."""

    def remove(self, gone: Sequence[tuple[str, HeldPage]]) -> None:
        """Drop the texts of pages that the user's state has let go."""
        for id, _ in gone:
            del self.pages[id]
            self.vectors.pop(id, None)


class InMemoryShortTerm:
    """The `ShortTerm` port over dictionaries. Nothing survives the process; the log rebuilds it."""

    def __init__(self, *, capacity: int = 10, hard_cap: int = 500) -> None:
        self._bounds = Bounds(capacity=capacity, hard_pages=hard_cap)
        self._subjects: dict[str, _Subject] = {}

    async def start(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Forget everything."""
        self._subjects.clear()

    async def push(self, page: Page, *, vector: Embedding | None, block: PlacedBlock | None) -> None:
        """Add or replace the page; one without texts brings its block alone. A stale one is ignored."""
        subject = self._admit(page.scope, page.generation)
        if subject is None:
            return
        if page.user_text or page.reply_text:
            subject.pages[page.id] = page
            if vector is not None:
                subject.vectors[page.id] = vector
            held = subject.user.put(page)
            subject.remove(subject.user.evict(held.owner, self._bounds))
        if block is not None:
            session = session_key(page.scope)
            subject.blocks[session, block.exchange] = block
            for key in subject.user.place(session, block, self._bounds):
                del subject.blocks[key]

    async def latest(self, scope: Scope, *, limit: int) -> ShortTermView:
        """The owner's latest pages, oldest first, and the blocks of `scope.session`."""
        subject = self._subjects.get(scope.person) or _Subject(user=User())
        ids = [id for id, _ in subject.user.newest(scope.owner)[:limit]][::-1]
        session = session_key(scope)
        placed = subject.user.sessions.get(session, [])
        return ShortTermView(
            pages=tuple(subject.pages[id] for id in ids),
            vectors={id: subject.vectors[id] for id in ids if id in subject.vectors},
            blocks=tuple(subject.blocks[session, exchange] for _, exchange in placed),
            lagging=scope.owner in subject.user.dropped.values(),
            known=subject.user.filled,
        )

    async def settle(self, scope: Scope, pages: Sequence[Page]) -> None:
        """Mark those pages as safe in long-term memory, with the texts given; beyond capacity they leave."""
        subject = self._subject(scope)
        held = {page.id: page for page in subject.user.settle(pages)}
        subject.pages |= held
        for owner in {subject.user.pages[id].owner for id in held}:
            subject.remove(subject.user.evict(owner, self._bounds))

    async def restore(
        self, scope: Scope, generation: int, pages: Sequence[Page], *, waiting: Collection[str]
    ) -> None:
        """See ShortTerm."""
        subject = self._admit(scope, generation)
        if subject is None:
            return
        gone, fresh = subject.user.restore(pages, waiting)
        subject.remove(gone)
        subject.pages |= {page.id: page for page in fresh}
        for owner in {held.owner for held in subject.user.pages.values()}:
            subject.remove(subject.user.evict(owner, self._bounds))

    async def drop(self, scope: Scope, records: Sequence[str]) -> None:
        """Remove those pages of the user, whichever agent's, and all blocks that are theirs or show them."""
        subject, gone = self._subject(scope), frozenset(records)
        subject.remove(subject.user.forget(gone))
        for (session, exchange), block in list(subject.blocks.items()):
            if exchange in gone or not gone.isdisjoint(block.items):
                del subject.blocks[session, exchange]
                subject.user.unplace(session, [exchange])

    async def clear(self, tenant: str, user: str, *, before: int | None = None) -> None:
        """Remove everything of the user, of all agents; with `before` only what is of an older generation,
        and refuse such pages from now on.
        """
        scope = Scope(tenant=tenant, user=user)
        if before is None:
            self._renew(scope, self._subject(scope).user.generation)
        else:
            self._admit(scope, before)

    async def people(self) -> AsyncIterator[Scope]:
        """Everybody of whom something is known here."""
        for person in list(self._subjects):
            yield scope_of(person)

    def _subject(self, scope: Scope) -> _Subject:
        return self._subjects.setdefault(scope.person, _Subject(user=User()))

    def _admit(self, scope: Scope, generation: int) -> _Subject | None:
        """None for an erased generation; a newer one than any before sweeps out what is left of those."""
        subject = self._subject(scope)
        if not subject.user.admits(generation):
            return None
        return self._renew(scope, generation) if subject.user.renews(generation) else subject

    def _renew(self, scope: Scope, generation: int) -> _Subject:
        filled = self._subject(scope).user.filled
        subject = self._subjects[scope.person] = _Subject(user=User(generation=generation, filled=filled))
        return subject
