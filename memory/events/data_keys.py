"""The data keys of users: each one's payloads are encrypted by keys of that user alone.

They stand in the log's database, wrapped by a master key that does not. Without its row a key is gone, and
with it what it encrypted, in every copy and backup that has no older copy of the row.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import NamedTuple

from hearth.memory.encryption.box import Box, DecryptionError, new_key
from hearth.memory.encryption.master import NAME_CHARACTERS, MasterKeyMissing, MasterKeys
from hearth.memory.events.sql import Database, DataKeys, Encrypts, Owner, Row, marks, number_of

MARK = b"\0E"
"""No JSON, no compressed frame and no place in an archive begins so."""
HELD = 10_000
"""Keys of users that a process holds unwrapped: those asked for last."""
HELD_SECONDS = 3_600.0
"""And for how long, so that one destroyed by another process is gone from this one too."""

SECRET_BYTES = 32
"""Of a tenant's secret where it is not wrapped."""

_NUMBER_BYTES = 8
_HEAD = len(MARK) + _NUMBER_BYTES
_KEYS = (
    "SELECT k.number, k.user_id, u.tenant, u.name, k.master, k.wrapped"
    " FROM data_keys k JOIN users u ON u.id = k.user_id"
)


_WRAPPED_SECRETS = f"SELECT tenant, secret FROM secrets WHERE length(secret) <> {SECRET_BYTES}"


def is_encrypted(body: bytes) -> bool:
    """Whether a stored body is encrypted."""
    return body.startswith(MARK)


class DataKey(NamedTuple):
    """One key of a user."""

    number: int
    user: int
    """The user's row in this log."""
    who: tuple[str, str]
    """Tenant and user: what it encrypts can be read as theirs alone, in any log."""
    box: Box

    def encrypt(self, content: bytes, *place: str, same: bool = False) -> bytes:
        """The content encrypted for that place, with this key's number; `same` as `Box.encrypt` has it."""
        return b"".join(
            (
                MARK,
                self.number.to_bytes(_NUMBER_BYTES, "big"),
                self.box.encrypt(content, (*self.who, *place), same=same),
            )
        )

    def decrypt(self, encrypted: bytes, *place: str) -> bytes:
        """The inverse of `encrypt`. Raises DecryptionError."""
        return self.box.decrypt(encrypted[_HEAD:], (*self.who, *place))


def key_of(db: Database, user: int, who: tuple[str, str]) -> Encrypts:
    """The newest key of the user of that row, made where there is none."""
    known = db.keys.newest(db, [who])().get(who)
    if known is not None:
        return known
    generation = number_of(db.execute("SELECT generation FROM users WHERE id = ?", (user,)))
    return db.keys.made(db, user, who, generation)


class NoKeys:
    """Stands for the keys where nothing is to be encrypted."""

    on = False

    def newest(
        self, db: Database, users: Collection[tuple[str, str]]
    ) -> Callable[[], dict[tuple[str, str], DataKey]]:
        """See `DataKeys.newest`."""
        return dict

    def made(self, db: Database, user: int, who: tuple[str, str], generation: int) -> DataKey:
        """See `DataKeys.made`."""
        raise _no_master()

    def decrypt(self, db: Database, whose: Owner, encrypted: bytes, *place: str) -> bytes:
        """See `DataKeys.decrypt`."""
        raise _no_master()

    def wrap_secret(self, tenant: str, secret: bytes) -> bytes:
        """See `DataKeys.wrap_secret`: as it is."""
        return secret

    def unwrap_secret(self, tenant: str, stored: bytes) -> bytes:
        """See `DataKeys.unwrap_secret`."""
        if len(stored) != SECRET_BYTES:
            raise _no_master()
        return stored

    def destroy(self, db: Database, user: int) -> None:
        """See `DataKeys.destroy`."""
        db.execute("DELETE FROM data_keys WHERE user_id = ?", (user,))

    def check(self, db: Database) -> None:
        """See `DataKeys.check`."""
        for known in ("SELECT 1 FROM data_keys LIMIT 1", f"{_WRAPPED_SECRETS} LIMIT 1"):
            if db.execute(known).fetchone() is not None:
                raise _no_master()


NO_KEYS: DataKeys = NoKeys()


def _no_master() -> MasterKeyMissing:
    return MasterKeyMissing("the log's payloads are encrypted: name its master key in hearth.encryption.keys")


class Keyring:
    """See `DataKeys`. Use it from any thread, for one log."""

    on = True

    def __init__(self, masters: MasterKeys) -> None:
        self.masters = masters
        self._held: OrderedDict[int, tuple[DataKey, float]] = OrderedDict()
        self._mutex = threading.Lock()

    def newest(
        self, db: Database, users: Collection[tuple[str, str]]
    ) -> Callable[[], dict[tuple[str, str], DataKey]]:
        """See `DataKeys.newest`."""
        if not users:
            return dict
        named = ", ".join(["(?, ?)"] * len(users))
        rows = db.execute(
            f"{_KEYS} WHERE (u.tenant, u.name) IN (VALUES {named}) ORDER BY k.version",
            [part for who in users for part in who],
        )

        def read() -> dict[tuple[str, str], DataKey]:
            latest = {(row[2], row[3]): row for row in rows.fetchall()}
            return {who: self._key(row) for who, row in latest.items()}

        return read

    def made(self, db: Database, user: int, who: tuple[str, str], generation: int) -> DataKey:
        """See `DataKeys.made`. It is not held before its transaction is over: that may be undone."""
        number, key = secrets.randbits(8 * _NUMBER_BYTES - 1), new_key()
        db.execute(
            "INSERT INTO data_keys (number, user_id, generation, version, master, wrapped)"
            " VALUES (?1, ?2, ?3,"
            " (SELECT coalesce(max(version), 0) + 1 FROM data_keys WHERE user_id = ?2), ?4, ?5)",
            (number, user, generation, self.masters.newest, self.masters.wrap(key, _place(number, who))),
        )
        return DataKey(number, user, who, Box(key))

    def wrap_secret(self, tenant: str, secret: bytes) -> bytes:
        """See `DataKeys.wrap_secret`: encrypted by the newest master key, behind its name."""
        return self.masters.newest.encode() + self.masters.wrap(secret, ("tenant's secret", tenant))

    def unwrap_secret(self, tenant: str, stored: bytes) -> bytes:
        """See `DataKeys.unwrap_secret`."""
        if len(stored) == SECRET_BYTES:
            return stored
        master, wrapped = stored[:NAME_CHARACTERS].decode(), stored[NAME_CHARACTERS:]
        return self.masters.unwrap(master, wrapped, ("tenant's secret", tenant))

    def decrypt(self, db: Database, whose: Owner, encrypted: bytes, *place: str) -> bytes:
        """See `DataKeys.decrypt`."""
        key = self._of_number(db, number_of_key(encrypted))
        if key is None:
            raise DecryptionError("its key was destroyed, or is of another log")
        if whose not in (key.user, key.who):
            raise DecryptionError("it is another user's")
        return key.decrypt(encrypted, *place)

    def has(self, key: DataKey) -> bool:
        """Whether that key is in memory, and so not destroyed by this process."""
        held = self._held.get(key.number)
        return held is not None and held[1] > time.monotonic()

    def held(self, numbers: Collection[int]) -> dict[int, DataKey]:
        """The keys of those numbers that are in memory."""
        now = time.monotonic()
        found = ((number, self._held.get(number)) for number in numbers)
        return {number: held[0] for number, held in found if held is not None and held[1] > now}

    def fetched(self, db: Database, numbers: Collection[int]) -> dict[int, DataKey]:
        """The keys of those numbers that there still are; they are in memory from now on."""
        found = {number: self._of_number(db, number) for number in numbers}
        return {number: key for number, key in found.items() if key is not None}

    def destroy(self, db: Database, user: int) -> None:
        """See `DataKeys.destroy`."""
        db.execute("DELETE FROM data_keys WHERE user_id = ?", (user,))
        with self._mutex:
            for number in [number for number, (key, _) in self._held.items() if key.user == user]:
                del self._held[number]

    def check(self, db: Database) -> None:
        """See `DataKeys.check`. One key of each master key is unwrapped."""
        some = "k.number IN (SELECT min(number) FROM data_keys GROUP BY master)"
        try:
            for row in db.execute(f"{_KEYS} WHERE {some}").fetchall():
                self._unwrapped(row)
            for tenant, stored in db.execute(_WRAPPED_SECRETS).fetchall():
                self.unwrap_secret(tenant, bytes(stored))
        except DecryptionError as error:
            raise MasterKeyMissing(f"a key in the log can't be unwrapped: {error}") from error

    def rewrap(self, db: Database, *, limit: int) -> int:
        """Wrap so many data keys by the newest master key that are wrapped by another; how many that were."""
        rows = db.execute(f"{_KEYS} WHERE k.master <> ? LIMIT ?", (self.masters.newest, limit)).fetchall()
        for number, _, tenant, name, master, wrapped in rows:
            place = _place(number, (tenant, name))
            key = self.masters.unwrap(master, bytes(wrapped), place)
            db.execute(
                "UPDATE data_keys SET master = ?, wrapped = ? WHERE number = ?",
                (self.masters.newest, self.masters.wrap(key, place), number),
            )
        if len(rows) < limit:
            self._rewrap_secrets(db)
        return len(rows)

    def _rewrap_secrets(self, db: Database) -> None:
        for tenant, stored in db.execute("SELECT tenant, secret FROM secrets").fetchall():
            if not bytes(stored).startswith(self.masters.newest.encode()):
                secret = self.unwrap_secret(tenant, bytes(stored))
                db.execute(
                    "UPDATE secrets SET secret = ? WHERE tenant = ?",
                    (self.wrap_secret(tenant, secret), tenant),
                )

    def renew(self, db: Database, users: Collection[int]) -> None:
        """Make new data keys for those users' rows, for what is written from then on."""
        if users:
            found = db.execute(
                f"SELECT id, tenant, name, generation FROM users WHERE id IN ({marks(users)})", [*users]
            )
            for user, tenant, name, generation in found.fetchall():
                self.made(db, user, (tenant, name), generation)

    def _of_number(self, db: Database, number: int) -> DataKey | None:
        held = self._held.get(number)
        if held is not None and held[1] > time.monotonic():
            return held[0]
        with self._mutex:
            self._held.pop(number, None)
        if not 0 <= number < 1 << 63:
            return None
        row = db.execute(f"{_KEYS} WHERE k.number = ?", (number,)).fetchone()
        return None if row is None else self._key(row)

    def _key(self, row: Row) -> DataKey:
        """The key of a row of `_KEYS`, held from now on. Raises MasterKeyMissing, DecryptionError."""
        held = self._held.get(row[0])
        key = self._unwrapped(row) if held is None else held[0]
        with self._mutex:
            self._held[key.number] = (key, time.monotonic() + HELD_SECONDS)
            if len(self._held) > HELD:
                self._held.popitem(last=False)
        return key

    def _unwrapped(self, row: Row) -> DataKey:
        number, user, tenant, name, master, wrapped = row
        key = self.masters.unwrap(master, bytes(wrapped), _place(number, (tenant, name)))
        return DataKey(number, user, (tenant, name), Box(key))


def number_of_key(encrypted: bytes) -> int:
    """The number of the key by which it is encrypted."""
    return int.from_bytes(encrypted[len(MARK) : _HEAD], "big")


def _place(number: int, who: tuple[str, str]) -> tuple[str, ...]:
    return ("data key", *who, str(number))
