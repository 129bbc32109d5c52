"""The user's own calendar: the local day of a moment, by the zone that a client names."""

from __future__ import annotations

from datetime import date, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo


def local_day(moment: datetime, timezone: str) -> date:
    """The user's calendar day at `moment`; UTC's where the zone is unknown."""
    return moment.astimezone(zone(timezone)).date()


@lru_cache(maxsize=256)
def zone(name: str) -> ZoneInfo:
    """The IANA zone of that name, else UTC: a client may send any string."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError on some versions
        return ZoneInfo("UTC")
    except KeyError:
        return ZoneInfo("UTC")
