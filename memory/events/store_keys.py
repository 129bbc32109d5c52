"""The data keys of a log, for stores beside it: asked for now and then, held in between."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Sequence

from hearth.memory.encryption.box import DecryptionError
from hearth.memory.errors import LogUnavailable, StoreUnavailable
from hearth.memory.events.data_keys import HELD, DataKey, Keyring, key_of, number_of_key
from hearth.memory.events.rows import user_row
from hearth.memory.events.sql import Database
from hearth.memory.events.sql_log import SqlLog

_PART = "the log's keys"


class LogKeys:
    """See `StoreKeys`, over a log that encrypts."""

    def __init__(self, log: SqlLog, keyring: Keyring) -> None:
        self._log = log
        self._keyring = keyring
        self._newest: OrderedDict[tuple[str, str], tuple[DataKey, int]] = OrderedDict()
        """With the generation that asked for it."""

    async def newest(self, tenant: str, user: str, generation: int) -> DataKey:
        """See `StoreKeys.newest`."""
        who = (tenant, user)
        held = self._newest.get(who)
        if held is not None and held[1] >= generation and self._keyring.has(held[0]):
            return held[0]
        try:
            key: DataKey | None = await self._log.ask(lambda db: self._keyring.newest(db, [who])().get(who))
            if key is None:
                key = await self._log.change(lambda db: self._made(db, who), relaxed=False)
        except LogUnavailable as error:
            raise StoreUnavailable(_PART, str(error)) from error
        self._newest[who] = (key, generation)
        if len(self._newest) > HELD:
            self._newest.popitem(last=False)
        return key

    async def digest_key(self, tenant: str, user: str) -> bytes:
        """See `StoreKeys.digest_key`: made of the tenant's secret."""
        try:
            secret = await self._log.secret(tenant)
        except LogUnavailable as error:
            raise StoreUnavailable(_PART, str(error)) from error
        return hmac.digest(secret, b"texts in stores\0" + user.encode(errors="surrogatepass"), "sha256")

    async def decrypted(
        self, stored: Sequence[tuple[bytes, tuple[str, ...]]], *, whose: tuple[str, str] | None
    ) -> list[bytes | None]:
        """See `StoreKeys.decrypted`."""
        numbers = [number_of_key(one) for one, _ in stored]
        wanted = set(numbers)
        keys = self._keyring.held(wanted)
        if missing := wanted - keys.keys():
            try:
                keys |= await self._log.ask(lambda db: self._keyring.fetched(db, missing))
            except LogUnavailable as error:
                raise StoreUnavailable(_PART, str(error)) from error
        return [
            _decrypted(keys.get(number), one, place, whose)
            for number, (one, place) in zip(numbers, stored, strict=True)
        ]

    def _made(self, db: Database, who: tuple[str, str]) -> DataKey:
        """Raises LogUnavailable for a user that the log does not know."""
        row = user_row(db, *who)
        if row is None:
            raise LogUnavailable(f"it does not know user {who[1]} of tenant {who[0]} yet")
        db.places({who})  # an erasure comes before or after, not in between
        key = key_of(db, row[0], who)
        if not isinstance(key, DataKey):
            raise TypeError("another keyring's key")
        return key


def _decrypted(
    key: DataKey | None, encrypted: bytes, place: tuple[str, ...], whose: tuple[str, str] | None
) -> bytes | None:
    if key is None or whose not in (None, key.who):
        return None
    try:
        return key.decrypt(encrypted, *place)
    except DecryptionError:
        return None
