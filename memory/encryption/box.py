"""Bytes encrypted by one key: AES-256-GCM, bound to the place where they stand."""

from __future__ import annotations

import hmac
import os

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12
"""Random for each encryption: safe for some four billion of them by one key."""


class DecryptionError(ValueError):
    """Encrypted bytes that were altered, moved from their place, or are of another key."""


class Box:
    """Encrypts and decrypts by one key. Use it from any thread."""

    def __init__(self, key: bytes) -> None:
        """A key of `KEY_BYTES`."""
        self._cipher = AESGCM(key)
        self._nonces = hmac.digest(key, b"nonces", "sha256")

    def encrypt(self, content: bytes, place: tuple[str, ...], *, same: bool = False) -> bytes:
        """The content encrypted: 28 bytes longer, and readable nowhere but in that place.

        `same`: equal content in one place gives equal bytes, which tells that much of it.
        """
        bound = _bound(place)
        nonce = self._nonce(content, bound) if same else os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, content, bound)

    def _nonce(self, content: bytes, bound: bytes) -> bytes:
        """Another one for other content, as far as a keyed digest of its length tells."""
        return hmac.digest(self._nonces, len(bound).to_bytes(8, "big") + bound + content, "sha256")[
            :NONCE_BYTES
        ]

    def decrypt(self, encrypted: bytes, place: tuple[str, ...]) -> bytes:
        """The inverse of `encrypt`. Raises DecryptionError."""
        try:
            return self._cipher.decrypt(encrypted[:NONCE_BYTES], encrypted[NONCE_BYTES:], _bound(place))
        except (InvalidTag, ValueError) as error:
            raise DecryptionError("it was altered, is of another place, or its key is another one") from error


def new_key() -> bytes:
    """A new random key."""
    return os.urandom(KEY_BYTES)


def _bound(place: tuple[str, ...]) -> bytes:
    """A place as bytes that no other place has, lone surrogates included."""
    return msgspec.msgpack.encode([part.encode(errors="surrogatepass") for part in place])
