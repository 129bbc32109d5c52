"""The master keys: what an operator keeps outside of all stores, and what data keys are wrapped by."""

from __future__ import annotations

import hmac
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence

from hearth.memory.encryption.box import KEY_BYTES, Box, new_key
from hearth.memory.errors import BadInput, LogUnavailable

NAME_CHARACTERS = 16
"""Of a master key's name."""
EXPECTED = f"{KEY_BYTES} bytes in URL-safe base64, as `hearth encryption new-key` prints them"


class MasterKeyMissing(LogUnavailable):
    """A master key that is needed is not among those that are configured."""


def new_master_key() -> str:
    """A new master key, as it is written in the environment."""
    return urlsafe_b64encode(new_key()).decode()


def read_master_key(text: str) -> bytes:
    """The key of that text. Raises BadInput, which does not show it."""
    try:
        key = b64decode(text.strip(), altchars=b"-_", validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadInput("master key", "a value that is not shown", EXPECTED)
    return key


class MasterKeys:
    """The first one encrypts; what any of them has encrypted can be read. A key's name is made out of it."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """One key at least."""
        named = [(name_of(key), Box(key)) for key in keys]
        self.newest = named[0][0]
        """The name of the key that encrypts."""
        self._boxes = dict(named)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all keys, in their order."""
        return tuple(self._boxes)

    def wrap(self, content: bytes, place: tuple[str, ...]) -> bytes:
        """The content encrypted by the newest key, for that place alone."""
        return self._boxes[self.newest].encrypt(content, place)

    def unwrap(self, master: str, wrapped: bytes, place: tuple[str, ...]) -> bytes:
        """What the key of that name has wrapped. Raises MasterKeyMissing, DecryptionError."""
        box = self._boxes.get(master)
        if box is None:
            raise MasterKeyMissing(
                f"the master key {master} is not configured, by which something is encrypted (there are:"
                f" {', '.join(self._boxes)}): add it to hearth.encryption.keys"
            )
        return box.decrypt(wrapped, place)


def name_of(key: bytes) -> str:
    """Tells a master key from others and says nothing of it."""
    return hmac.digest(key, b"hearth master key", "sha256").hex()[:NAME_CHARACTERS]
