"""Checksums of events: of the envelope, which stays for ever, and of the content, which goes with that.

Both are keyed by the tenant's secret, since a plain digest of what somebody said can be guessed.
"""

from __future__ import annotations

import hmac
from typing import NamedTuple

import msgspec

SIZE = 16
"""Bytes of a checksum."""


class Envelope(NamedTuple):
    """What of an envelope never changes, a redaction included; times in microseconds."""

    id: str
    tenant: str
    user: str
    kind: str
    agent: str
    generation: int
    occurred: int
    recorded: int


class Content(NamedTuple):
    """What goes when an event is redacted, but for the payload itself."""

    id: str
    kind: str
    version: int
    session: str
    parent: str | None
    subject: str


def seal_envelope(secret: bytes, envelope: Envelope) -> bytes:
    """The checksum of an envelope."""
    return hmac.digest(secret, msgspec.msgpack.encode(envelope), "sha256")[:SIZE]


def seal_content(secret: bytes, content: Content, raw: bytes) -> bytes:
    """The checksum of a payload as `raw` JSON, however it is compressed, and of what it belongs to."""
    made = hmac.new(secret, msgspec.msgpack.encode(content), "sha256")
    made.update(raw)
    return made.digest()[:SIZE]
