"""What short-term memory knows of one user beside the texts: small, and changed without any I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b

import msgspec

from hearth.memory.events.codec import micros
from hearth.memory.tiers.short_term import (
    LATELY_KEPT,
    Bounds,
    Held,
    Leaving,
    leaving,
    text_digest,
    text_size,
)
from hearth.memory.types import Page, PlacedBlock, Scope


class HeldPage(msgspec.Struct, kw_only=True, array_like=True):
    """A page's place: the text itself stands elsewhere."""

    owner: str
    occurred: int
    """Microseconds since 1970."""
    arrival: int
    settled: bool
    size: int
    """Bytes of its texts."""


class User(msgspec.Struct, kw_only=True, array_like=True):
    """The state of one user. Its methods change it and say which texts follow; none of them does I/O."""

    generation: int = 0
    arrivals: int = 0
    pages: dict[str, HeldPage] = {}
    dropped: dict[str, str] = {}
    """Owner of each page that left unsettled, by page id."""
    lately: list[tuple[str, bytes]] = []
    """Page id and digest of the texts of what was settled lately, oldest first."""
    sessions: dict[str, list[tuple[int, str]]] = {}
    """By `session_key`: time and exchange of each of the session's blocks, oldest first."""
    filled: bool = False
    """Whether what the log has of the latest pages is held too; a push alone says nothing of that."""

    def admits(self, generation: int) -> bool:
        """False for a page of an erased generation."""
        return generation >= self.generation

    def renews(self, generation: int) -> bool:
        """Take over a first generation; True where one is newer, and what an older one left has to go."""
        self.generation = self.generation or generation
        return generation > self.generation

    def wipe(self, generation: int) -> None:
        """Hold nothing, in that generation."""
        self.generation = generation
        self.pages, self.dropped, self.lately, self.sessions = {}, {}, [], {}

    def newest(self, owner: str) -> list[tuple[str, HeldPage]]:
        """The owner's pages with their ids, newest first."""
        mine = [(id, held) for id, held in self.pages.items() if held.owner == owner]
        return sorted(mine, key=lambda one: (one[1].occurred, one[1].arrival), reverse=True)

    def put(self, page: Page) -> HeldPage:
        """Hold the page, in the place of the one of its id."""
        self.dropped.pop(page.id, None)
        before = self.pages.get(page.id)
        self.arrivals += before is None
        held = HeldPage(
            owner=page.scope.owner,
            occurred=micros(page.occurred_at),
            arrival=before.arrival if before else self.arrivals,
            settled=(page.id, text_digest(page)) in self.lately,
            size=text_size(page),
        )
        self.pages[page.id] = held
        return held

    def settle(self, pages: Sequence[Page]) -> list[Page]:
        """Long-term memory has the pages with these texts; those that are held here too. Without pages: the
        log's latest ones are all held.
        """
        self.filled |= not pages
        return [page for page in pages if self._settle_one(page)]

    def _settle_one(self, page: Page) -> bool:
        self.lately = [one for one in self.lately if one[0] != page.id]
        self.lately = [*self.lately, (page.id, text_digest(page))][-LATELY_KEPT:]
        self.dropped.pop(page.id, None)
        if (held := self.pages.get(page.id)) is None:
            return False
        held.settled, held.size = True, text_size(page)
        return True

    def restore(
        self, pages: Sequence[Page], waiting: Collection[str]
    ) -> tuple[list[tuple[str, HeldPage]], list[Page]]:
        """Hold those in place of the settled ones; returns what is held no more, and whose texts follow."""
        self.filled = True
        given = {page.id for page in pages}
        gone = [id for id, held in self.pages.items() if held.settled and id not in given]
        fresh = [page for page in pages if page.id not in waiting or page.id not in self.pages]
        left = [(id, self.pages.pop(id)) for id in gone]
        for page in fresh:
            held = self.put(page)
            held.settled = held.settled or page.id not in waiting
        return left, fresh

    def evict(self, owner: str, bounds: Bounds) -> list[tuple[str, HeldPage]]:
        """Let go what the bounds say, and return it."""
        mine = [Held(id=i, settled=h.settled, size=h.size) for i, h in self.newest(owner)]
        gone: Leaving = leaving(mine, bounds)
        self.dropped.update(dict.fromkeys(gone.dropped, owner))
        return [(id, self.pages.pop(id)) for id in gone.settled + gone.dropped]

    def forget(self, ids: Iterable[str]) -> list[tuple[str, HeldPage]]:
        """Hold none of those pages any more; returns those that were held."""
        wanted = set(ids)
        self.dropped = {id: owner for id, owner in self.dropped.items() if id not in wanted}
        self.lately = [one for one in self.lately if one[0] not in wanted]
        return [(id, self.pages.pop(id)) for id in wanted & self.pages.keys()]

    def place(self, session: str, block: PlacedBlock, bounds: Bounds) -> list[tuple[str, str]]:
        """Note a block; returns (session, exchange) of those that leave for their number or age."""
        at = micros(block.at)
        mine = [one for one in self.sessions.get(session, []) if one[1] != block.exchange]
        self.sessions[session] = sorted([*mine, (at, block.exchange)])
        horizon = at - int(bounds.block_seconds * 1e6)
        gone: list[tuple[str, str]] = []
        for key, blocks in list(self.sessions.items()):
            most = bounds.blocks if key == session else len(blocks)
            kept = [one for one in blocks if one[0] >= horizon][-most:]
            gone += [(key, exchange) for _, exchange in set(blocks) - set(kept)]
            self._keep(key, kept)
        return gone

    def unplace(self, session: str, exchanges: Sequence[str]) -> None:
        """Those blocks are gone."""
        kept = [one for one in self.sessions.get(session, []) if one[1] not in exchanges]
        self._keep(session, kept)

    def _keep(self, session: str, blocks: list[tuple[int, str]]) -> None:
        if blocks:
            self.sessions[session] = blocks
        else:
            self.sessions.pop(session, None)


def session_key(scope: Scope) -> str:
    """Names the session within its user, of all agents; 24 characters."""
    text = msgspec.json.encode((scope.owner, scope.session))
    return blake2b(text, digest_size=12).hexdigest()
