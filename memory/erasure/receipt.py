"""The receipt of an erasure: what was asked for, what was there, what is gone where, what a scan found."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

What: TypeAlias = Literal["memory", "exchange", "session", "user", "tenant"]
"""What is erased."""
State: TypeAlias = Literal["held", "pending", "purged"]
"""`held`: a legal hold keeps it; `pending`: unreachable, and not yet gone everywhere; `purged`: gone."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One place that an erasure has to reach."""

    place: str
    done_at: datetime | None = None
    """When it was gone there; None while it is not."""
    trouble: str = ""
    """Why it is not, when that was last tried."""


class Fragment(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A few bytes of what is erased, as a keyed digest: found again by it, and not read from it."""

    start: int
    """16 bits made of its first eight bytes, by which most other bytes are passed over."""
    digest: bytes


class Scanned(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan of one place found."""

    place: str
    how: Literal["raw bytes", "content"]
    """`raw bytes`: of every file; `content`: what a server gives when it is asked."""
    size: int
    """Bytes that were read, or records that were looked for."""
    found: int
    """Of them, fragments of what was erased, or records."""


class ProviderHeld(msgspec.Struct, frozen=True, kw_only=True):
    """A response that a model's provider may keep for `previous_response_id`."""

    response: str
    model: str
    at: datetime
    gone_at: datetime | None = None
    """When it was deleted there; None while it may be kept."""


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """An erasure as it stands."""

    id: str
    what: What
    user: str = ""
    """Whose; empty for a tenant."""
    record: str = ""
    """The memory, exchange or session, where it is one."""
    by: str = ""
    """Name of the key that asked for it."""
    reason: str = ""
    state: State = "pending"
    requested_at: datetime
    unreachable_at: datetime | None = None
    """From when on nothing of it is recalled or read; None while it is held."""
    purged_at: datetime | None = None
    event: str = ""
    """The event that made it so, in the erased user's own part of the log."""
    found: dict[str, int] = {}
    """What there was, by sort."""
    records: tuple[str, ...] = ()
    """Ids of what is looked for once more in the end."""
    steps: tuple[Step, ...] = ()
    scan: tuple[Scanned, ...] = ()
    provider_held: tuple[ProviderHeld, ...] = ()
    """The latest of them."""
    salt: bytes = b""
    """Keys the fragments; goes with them once the scan is done."""
    fragments: tuple[Fragment, ...] = ()

    @property
    def left(self) -> int:
        """What the scan found of it."""
        return sum(one.found for one in self.scan)

    @property
    def pending(self) -> tuple[str, ...]:
        """Places where it is not gone yet."""
        return tuple(step.place for step in self.steps if step.done_at is None)


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """A legal hold: nothing of the user is erased or runs out while it stands."""

    user: str
    reason: str
    by: str
    at: datetime
