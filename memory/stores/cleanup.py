"""When the files of a store are written anew, so that what was removed leaves them too."""

from __future__ import annotations

import time

AFTER_REMOVAL = 3_600.0
"""Seconds from the first single removal or change: many of them then go by one rewriting."""
AFTER_ERASURE = 5.0
"""Seconds from the erasure of a user, which several of a bulk erasure share."""
AFTER_START = 30.0
"""Seconds from the start of a process that finds something left by the one before."""


class Cleanup:
    """The due time, on CLOCK_MONOTONIC. `longest` caps each wait, in seconds."""

    def __init__(self, *, waiting: bool, longest: float = AFTER_REMOVAL) -> None:
        self._longest = longest
        self._due: float | None = None
        if waiting:
            self._by(AFTER_START)

    @property
    def waiting(self) -> bool:
        """True while files hold what was removed."""
        return self._due is not None

    def removed(self) -> None:
        """A record was removed or replaced."""
        self._by(AFTER_REMOVAL)

    def erased(self) -> None:
        """All of a user was removed."""
        self._by(AFTER_ERASURE)

    def done(self) -> None:
        """The files are clean."""
        self._due = None

    def failed(self) -> None:
        """They are not; another try comes as late as after a removal."""
        self._due = None
        self._by(AFTER_REMOVAL)

    def left(self) -> float | None:
        """Seconds until it is due, 0 where it is overdue; None where there is nothing to do."""
        return None if self._due is None else max(self._due - time.monotonic(), 0.0)

    def _by(self, seconds: float) -> None:
        due = time.monotonic() + min(seconds, self._longest)
        self._due = due if self._due is None else min(self._due, due)
