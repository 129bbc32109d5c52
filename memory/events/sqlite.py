"""SQLite as the database of the log's shared queries."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from hearth.memory.events.archive import NO_ARCHIVE
from hearth.memory.events.data_keys import NO_KEYS
from hearth.memory.events.database import VIEWS_VERSION, run_script
from hearth.memory.events.sql import Archive, Condition, DataKeys
from hearth.memory.ports import Clock


class SqlitePlaces:
    """One position after the other: a file has one writer."""

    def __init__(self, last: int, now: datetime) -> None:
        self._last = last
        self.now = now

    def following(self, tenant: str, user: str) -> int:
        """See `Places.following`."""
        self._last += 1
        return self._last


class SqlitePastPlaces:
    """See `PastPlaces`: one partition, and positions that tell no time."""

    def __init__(self, last: int) -> None:
        self.ends = {0: last}

    def following(self, tenant: str, user: str, recorded: int) -> int:
        """See `PastPlaces.following`."""
        self.ends[0] += 1
        return self.ends[0]


class SqliteDatabase:
    """See `Database`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Clock,
        archive: Archive = NO_ARCHIVE,
        keys: DataKeys = NO_KEYS,
    ) -> None:
        self.execute = connection.execute
        self.archive = archive
        self.keys = keys
        self._clock = clock

    def now(self) -> datetime:
        """See `Database.now`."""
        return self._clock.now()

    def places(self, users: set[tuple[str, str]]) -> SqlitePlaces:
        """See `Database.places`. The open transaction is the only one that writes."""
        return SqlitePlaces(self._last(), self.now())

    def past_places(self) -> SqlitePastPlaces:
        """See `Database.past_places`."""
        return SqlitePastPlaces(self._last())

    def trim_step_keys(self, before: int) -> None:
        """See `Database.trim_step_keys`.

        Two a step, oldest first: the table stays at its length and no append pays for a long clean-up.
        """
        oldest = "SELECT seq FROM step_keys ORDER BY seq LIMIT 2"
        self.execute(f"DELETE FROM step_keys WHERE seq IN ({oldest}) AND at < ?", (before,))

    def has_tag(self, column: str, tag: str) -> Condition:
        """See `Database.has_tag`."""
        return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE value = ?)", [tag]

    def has_entry(self, column: str, key: str, value: str | float | bool | None) -> Condition:
        """See `Database.has_entry`."""
        entry = f"EXISTS (SELECT 1 FROM json_each({column}) WHERE key = ? AND type"
        match value:
            case None | True | False:
                return f"{entry} = ?)", [key, {None: "null", True: "true", False: "false"}[value]]
            case str():
                return f"{entry} = 'text' AND value = ?)", [key, value]
            case _:
                number = value if isinstance(value, float) or abs(value) < 1 << 63 else float(value)
                return f"{entry} IN ('integer', 'real') AND value = ?)", [key, number]

    def reset_views(self, views: Sequence[str]) -> None:
        """See `Database.reset_views`."""
        for view in views:
            self.execute(f"DROP TABLE IF EXISTS {view}")
        run_script(self, "views.sql")
        self.execute("INSERT OR REPLACE INTO meta VALUES ('views', ?)", (VIEWS_VERSION,))

    def _last(self) -> int:
        (last,) = self.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()
        return int(last)
