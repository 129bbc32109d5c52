"""What erasure asks of the log beyond the other ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hearth.memory.erasure.receipt import Hold, ProviderHeld, Receipt


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Some of what is to be erased, as it was said and as it is stored."""

    texts: tuple[str, ...] = ()
    stored: tuple[bytes, ...] = ()
    """Payloads, byte for byte."""
    records: tuple[str, ...] = ()
    """What they are about."""


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """What there is of a user, of some records, or of a tenant."""

    sorts: dict[str, int]
    """How many events, exchanges, memories and so on."""
    sample: Sample
    provider_held: tuple[ProviderHeld, ...]


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A user that the log ever saw."""

    tenant: str
    user: str
    generation: int


class Office(Protocol):
    """Erasures, holds, and how far the log is with either. All raise LogUnavailable.

    Where `user` may be None, it is all of a tenant's.
    """

    async def erasure(self, tenant: str, id: str) -> Receipt | None:
        """The receipt of that id, as it stands."""
        ...

    async def erasures(self, tenant: str, *, limit: int) -> list[Receipt]:
        """The tenant's latest receipts, the last changed first."""
        ...

    async def open_erasures(self, *, limit: int) -> list[tuple[str, Receipt]]:
        """Erasures that are not over, with their tenants."""
        ...

    async def holds(self, tenant: str, *, user: str | None = None) -> list[Hold]:
        """The tenant's holds, or that user's alone, by name."""
        ...

    async def inventory(self, tenant: str, user: str | None, records: Sequence[str] = ()) -> Inventory:
        """What there is, of those records alone if there are any."""
        ...

    async def of_session(self, tenant: str, user: str, session: str) -> tuple[list[str], list[str]]:
        """Ids of a session's exchanges, and of the memories that were added in it."""
        ...

    async def owners_of(self, tenant: str, user: str, session: str) -> set[str]:
        """`Scope.own_agent` of everything that a session has: several where agents call theirs the same."""
        ...

    async def ids(self, tenant: str, user: str, what: str) -> list[str]:
        """Ids of all of a user's memories, exchanges or sessions."""
        ...

    async def next_base(self, tenant: str) -> int:
        """A generation above all that users of the tenant have had."""
        ...

    async def closed_users(self, tenant: str, *, limit: int) -> list[Person]:
        """Users to whom their tenant's erasure has yet to come, by name, with the generation to come."""
        ...

    async def people(self, *, after: tuple[str, str] = ("", ""), limit: int) -> list[Person]:
        """Users of all tenants, in the order of tenant and name."""
        ...

    async def names(self, tenant: str, *, after: str = "", limit: int) -> list[str]:
        """All users of the tenant that the log ever saw, by name."""
        ...

    async def unhandled(self, consumer: str, tenant: str, user: str | None, kinds: Sequence[str]) -> int:
        """How many events of those kinds a consumer has yet to handle."""
        ...

    async def content_left(
        self, tenant: str, user: str | None, records: Sequence[str] = (), *, before: str = ""
    ) -> int:
        """How many events of older generations, or about those records and from before that event, still have
        their content.
        """
        ...

    async def keys_left(self, tenant: str, user: str | None) -> int:
        """How many data keys of older generations there still are."""
        ...

    async def truncate(self) -> bool:
        """Leave nothing of what was removed in a write-ahead log of one's own; False while that is barred."""
        ...
