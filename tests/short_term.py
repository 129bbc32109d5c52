"""Pages and blocks by number: what tests of short-term memory speak of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hearth.memory.types import Page, PlacedBlock, Scope

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALICE = Scope(tenant="acme", user="alice", session="s1")


def page(number: int, *, scope: Scope = ALICE, generation: int = 1, text: str = "") -> Page:
    """Page of that number, a minute after the one before."""
    return Page(
        id=f"{number:032x}",
        scope=scope,
        generation=generation,
        user_text=text or f"t{number}",
        reply_text=f"r{number}",
        occurred_at=NOON + timedelta(minutes=number),
    )


def block(number: int, *, at: datetime | None = None) -> PlacedBlock:
    """The block of the page of that number."""
    return PlacedBlock(exchange=f"{number:032x}", text=f"block {number}", tokens=7, at=at or NOON)
