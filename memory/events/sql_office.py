"""The part of every log that answers for erasures and holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from hearth.memory.erasure.office import Inventory, Person
from hearth.memory.erasure.receipt import Hold, Receipt
from hearth.memory.events import office
from hearth.memory.events.sql import Database

T = TypeVar("T")


class SqlOffice(ABC):
    """See `Office`."""

    @abstractmethod
    async def _read(self, run: Callable[[Database], T]) -> T:
        """Run it on one state of the database."""

    async def truncate(self) -> bool:
        """See `Office.truncate`. A server's own files are its own matter."""
        return True

    async def erasure(self, tenant: str, id: str) -> Receipt | None:
        """See `Office.erasure`."""
        return await self._read(lambda db: office.erasure(db, tenant, id))

    async def erasures(self, tenant: str, *, limit: int) -> list[Receipt]:
        """See `Office.erasures`."""
        return await self._read(lambda db: office.erasures(db, tenant, limit=limit))

    async def open_erasures(self, *, limit: int) -> list[tuple[str, Receipt]]:
        """See `Office.open_erasures`."""
        return await self._read(lambda db: office.open_erasures(db, limit=limit))

    async def holds(self, tenant: str, *, user: str | None = None) -> list[Hold]:
        """See `Office.holds`."""
        return await self._read(lambda db: office.holds(db, tenant, user=user))

    async def inventory(self, tenant: str, user: str | None, records: Sequence[str] = ()) -> Inventory:
        """See `Office.inventory`."""
        return await self._read(lambda db: office.inventory(db, tenant, user, records))

    async def of_session(self, tenant: str, user: str, session: str) -> tuple[list[str], list[str]]:
        """See `Office.of_session`."""
        return await self._read(lambda db: office.of_session(db, tenant, user, session))

    async def owners_of(self, tenant: str, user: str, session: str) -> set[str]:
        """See `Office.owners_of`."""
        return await self._read(lambda db: office.owners_of(db, tenant, user, session))

    async def ids(self, tenant: str, user: str, what: str) -> list[str]:
        """See `Office.ids`."""
        return await self._read(lambda db: office.ids(db, tenant, user, what))

    async def next_base(self, tenant: str) -> int:
        """See `Office.next_base`."""
        return await self._read(lambda db: office.next_base(db, tenant))

    async def closed_users(self, tenant: str, *, limit: int) -> list[Person]:
        """See `Office.closed_users`."""
        return await self._read(lambda db: office.closed_users(db, tenant, limit=limit))

    async def people(self, *, after: tuple[str, str] = ("", ""), limit: int) -> list[Person]:
        """See `Office.people`."""
        return await self._read(lambda db: office.people(db, after=after, limit=limit))

    async def names(self, tenant: str, *, after: str = "", limit: int) -> list[str]:
        """See `Office.names`."""
        return await self._read(lambda db: office.names(db, tenant, after=after, limit=limit))

    async def unhandled(self, consumer: str, tenant: str, user: str | None, kinds: Sequence[str]) -> int:
        """See `Office.unhandled`."""
        return await self._read(lambda db: office.unhandled(db, consumer, tenant, user, kinds))

    async def keys_left(self, tenant: str, user: str | None) -> int:
        """See `Office.keys_left`."""
        return await self._read(lambda db: office.keys_left(db, tenant, user))

    async def content_left(
        self, tenant: str, user: str | None, records: Sequence[str] = (), *, before: str = ""
    ) -> int:
        """See `Office.content_left`."""
        return await self._read(lambda db: office.content_left(db, tenant, user, records, before))
