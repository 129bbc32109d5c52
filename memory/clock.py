"""The system's clock."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """The `Clock` port over the machine's own clock."""

    def now(self) -> datetime:
        """The current moment in UTC."""
        return datetime.now(UTC)
