"""Texts in the columns of the views: as they are, or encrypted where users' payloads are."""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable

from hearth.memory.events.data_keys import SECRET_BYTES, key_of
from hearth.memory.events.sql import Database

MARK = "~"
"""What is encrypted, or a digest, begins so: no JSON does, and no form in which values are compared."""

VALUE_CHARACTERS = 40
"""A longer value of a fact may be a sentence, and somebody's words: it is counted for nobody."""
_DIGEST_BYTES = 16


def writing(db: Database, user: int, who: tuple[str, str]) -> Callable[..., str]:
    """Makes the stored form of a text for a place, in the rows of that user."""
    if not db.keys.on:
        return lambda text, *place: text
    key = key_of(db, user, who)
    return lambda text, *place: MARK + b64encode(key.encrypt(text.encode(), *place)).decode()


def read(db: Database, who: tuple[str, str], stored: str, *place: str) -> str:
    """The text of a stored form. Raises ValueError where it can't be decrypted, LogUnavailable."""
    if not stored.startswith(MARK):
        return stored
    return db.keys.decrypt(db, who, b64decode(stored[len(MARK) :]), *place).decode()


def digest(db: Database, tenant: str, text: str) -> str:
    """What tells a text from others of the tenant and says nothing of it to who lacks the tenant's secret."""
    made = hmac.digest(known_secret(db, tenant), b"text\0" + text.encode(errors="surrogatepass"), "sha256")
    return MARK + made[:_DIGEST_BYTES].hex()


def secret_of(db: Database, tenant: str) -> bytes:
    """The tenant's secret, made at first use."""
    if not (secret := known_secret(db, tenant)):
        db.execute(
            "INSERT INTO secrets VALUES (?, ?) ON CONFLICT (tenant) DO NOTHING",
            (tenant, db.keys.wrap_secret(tenant, secrets.token_bytes(SECRET_BYTES))),
        )
        secret = known_secret(db, tenant)
    return secret


def known_secret(db: Database, tenant: str) -> bytes:
    """The tenant's secret; empty where there is none."""
    row = db.execute("SELECT secret FROM secrets WHERE tenant = ?", (tenant,)).fetchone()
    return db.keys.unwrap_secret(tenant, bytes(row[0])) if row else b""
