"""What an operator does with keys: wraps data keys anew, makes new ones, encrypts what is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from hearth.memory.events.archive import in_archive, is_place
from hearth.memory.events.archiving import Archiving
from hearth.memory.events.codec import pack
from hearth.memory.events.data_keys import Keyring, is_encrypted, key_of
from hearth.memory.events.sql import Database, number_of
from hearth.memory.events.sql_log import SqlLog

_ROWS = 400
"""Of a transaction, which appends wait for."""


class Rotated(msgspec.Struct, frozen=True, kw_only=True):
    """What a rotation did."""

    wrapped: int = 0
    """Data keys that are wrapped by the newest master key now, and were not."""
    made: int = 0
    """New data keys."""


class KeysHeld(msgspec.Struct, frozen=True, kw_only=True):
    """What of the log is encrypted, and by what."""

    masters: dict[str, int]
    """Data keys by the name of the master key that wraps them."""
    payloads: int
    """Payloads, of which `readable` are not encrypted."""
    readable: int


async def rotate(log: SqlLog, keyring: Keyring, *, renew: bool) -> Rotated:
    """Wrap every data key by the newest master key; `renew` makes a new one for each user who has any.

    Payloads stay as they are. Raises LogUnavailable; called again it goes on.
    """
    done = Rotated()
    while wrapped := await log.change(partial(keyring.rewrap, limit=_ROWS), relaxed=False):
        done = msgspec.structs.replace(done, wrapped=done.wrapped + wrapped)
    after = 0
    while renew and (users := await log.ask(partial(_users, after=after))):
        await log.change(partial(keyring.renew, users=users), relaxed=False)
        done = msgspec.structs.replace(done, made=done.made + len(users))
        after = users[-1]
    return done


async def encrypt_rest(
    log: SqlLog, archiving: Archiving, watch: Callable[[int], None] = lambda _: None
) -> int:
    """Encrypt the payloads that are not, those in archives too, and fold the views again; how many that were.

    `watch` is told so in between. Raises LogUnavailable; called again it goes on.
    """
    done, after = 0, 0
    while True:
        encrypted, last = await log.change(partial(_encrypt_some, after=after))
        done += encrypted
        watch(done)
        if last is None:
            break
        after = last
    await log.rebuild_views()
    try:
        await archiving.purge()
    finally:
        await archiving.release()
    await log.compact()
    return done


async def keys_held(log: SqlLog) -> KeysHeld:
    """How the log is encrypted. Reads through it. Raises LogUnavailable."""
    masters: dict[str, int] = await log.ask(
        lambda db: dict(db.execute("SELECT master, count(*) FROM data_keys GROUP BY master").fetchall())
    )
    payloads = await log.ask(lambda db: number_of(db.execute("SELECT count(*) FROM payloads")))
    readable, after = 0, 0
    while True:
        found, last = await log.ask(partial(_readable, after=after))
        readable += len(found)
        if last is None:
            return KeysHeld(masters=masters, payloads=payloads, readable=readable)
        after = last


def _users(db: Database, *, after: int) -> list[int]:
    found = db.execute(
        "SELECT DISTINCT user_id FROM data_keys WHERE user_id > ? ORDER BY user_id LIMIT ?", (after, _ROWS)
    )
    return [int(row[0]) for row in found]


def _readable(db: Database, *, after: int) -> tuple[list[tuple[int, bytes, bytes]], int | None]:
    """Payloads behind a position that are not encrypted: place, stored body, content; and where to go on."""
    rows = db.execute(
        "SELECT seq, body FROM payloads WHERE seq > ? ORDER BY seq LIMIT ?", (after, _ROWS)
    ).fetchall()
    found = [(int(seq), bytes(body), in_archive(db, bytes(body))) for seq, body in rows]
    last = int(rows[-1][0]) if len(rows) == _ROWS else None
    return [one for one in found if not is_encrypted(one[2])], last


def _encrypt_some(db: Database, *, after: int) -> tuple[int, int | None]:
    found, last = _readable(db, after=after)
    for seq, body, held in found:
        user, tenant, name, id = db.execute(
            "SELECT u.id, u.tenant, u.name, e.id FROM events e JOIN users u ON u.id = e.user_id"
            " WHERE e.seq = ?",
            (seq,),
        ).fetchall()[0]
        content = pack(held) if is_place(body) else held
        encrypted = key_of(db, user, (tenant, name)).encrypt(content, "event", id)
        db.execute(
            "UPDATE payloads SET body = ?, archive = NULL WHERE seq = ? AND body = ?", (encrypted, seq, body)
        )
    return len(found), last
