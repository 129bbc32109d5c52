"""The capacity table of docs/operate.md, computed from what was measured.

    python benchmarks/capacity.py docs/operate.md      write it there, between its marks

When a number of `Measured` changes, this is run again; a test compares the page with it.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

GB = 1e9
DAY = 86_400.0


@dataclass(frozen=True)
class Measured:
    """What a call and a page take. The defaults are `benchmarks/load.py`'s, with the default embedder."""

    call_ms: float = 30.0
    """CPU time of the gateway's process for a call, half of them streamed; LiteLLM's own share is 18."""
    search_ms: float = 6.0
    """CPU time of the vector child for one recall: the question embedded and looked up."""
    page_ms: float = 12.0
    """CPU time of the vector child for one new page: two texts embedded, stored."""
    log_bytes: float = 2_200.0
    """On disk for one exchange of 70 words, views and indexes in it."""
    index_bytes: float = 6_300.0
    """On disk for one page of many: two vectors of 512 numbers, the text twice, its words."""
    words_bytes: float = 1_500.0
    """On disk for one page's share of the word statistics."""
    index_resident: float = 2_000.0
    """Of the vector child's own memory for one page: the filters' and the words' indexes."""
    vectors_resident: float = 5_400.0
    """Of the page cache for one page whose owner is asked: vectors and words, which a search reads."""
    short_term_bytes: float = 50_000.0
    """For one user who was there lately: twenty pages, with the vectors of the latest."""
    gateway_gb: float = 0.5
    """One gateway's own memory."""
    child_gb: float = 0.2
    """The vector child's, with an empty index."""


@dataclass(frozen=True)
class Site:
    """How much is asked of an installation."""

    users: int
    """All that have a memory."""
    exchanges: float
    """A day, of an average user."""
    days: int = 365
    """For which pages are kept."""
    active: float = 0.1
    """Share of the users who are there on one day."""
    peak: float = 3.0
    """The busiest hour, as a multiple of the average one."""
    busy: float = 0.6
    """Share of a core that may be taken in that hour."""

    @property
    def pages(self) -> float:
        """Kept in the end."""
        return self.users * self.exchanges * self.days

    @property
    def calls_a_second(self) -> float:
        """In the busiest hour."""
        return self.users * self.exchanges / DAY * self.peak


@dataclass(frozen=True)
class Plan:
    """What a site needs: cores, and gigabytes of memory and of disk."""

    gateways: int
    """Processes, a core each."""
    children: int
    """Cores for embedding and searching."""
    memory: float
    """Of all processes together, with what of the index a search must find in memory."""
    log: float
    index: float
    words: float
    short_term: float


def plan(site: Site, measured: Measured) -> Plan:
    """What the site needs at its end, when all its pages are there. Cores and bytes add up; nothing is spare.

    Memory is for the whole of the filters' indexes, and for the vectors of the users who are there on a day.
    """
    calls, pages = site.calls_a_second, site.pages
    gateways = _cores(calls * measured.call_ms, site.busy)
    children = _cores(calls * (measured.search_ms + measured.page_ms), site.busy)
    resident = pages * (measured.index_resident + site.active * measured.vectors_resident) / GB
    short_term = site.users * site.active * measured.short_term_bytes / GB
    processes = gateways * measured.gateway_gb + children * measured.child_gb
    return Plan(
        gateways=gateways,
        children=children,
        memory=processes + resident + short_term,
        log=pages * measured.log_bytes / GB,
        index=pages * measured.index_bytes / GB,
        words=pages * measured.words_bytes / GB,
        short_term=short_term,
    )


def _cores(milliseconds_a_second: float, busy: float) -> int:
    return max(math.ceil(milliseconds_a_second / 1e3 / busy), 1)


SITES = (
    Site(users=1, exchanges=50, active=1.0),
    Site(users=100, exchanges=10, active=0.5),
    Site(users=1_000, exchanges=10),
    Site(users=10_000, exchanges=3),
    Site(users=100_000, exchanges=3),
    Site(users=1_000_000, exchanges=3),
)
"""From one person to a billion pages, each with a year of pages."""
FORMS = (
    (5e5, 1, "nothing: the embedded form, one process and its child"),
    (5e6, 4, "gateways, over Redis, PostgreSQL and Qdrant, one of each"),
    (2e8, 64, "the index, by owner, over several Qdrant nodes; a replica for reads of the log"),
    (math.inf, math.inf, "the log as well, by tenant, over several databases; Redis as a cluster"),
)
"""Up to so many pages and gateways: what is taken apart next."""


def shard_first(site: Site, needed: Plan) -> str:
    """What has to be spread over machines first."""
    return next(what for pages, cores, what in FORMS if site.pages <= pages and needed.gateways <= cores)


def table(sites: Sequence[Site] = SITES, measured: Measured | None = None) -> str:
    """Markdown: a row a site."""
    heads = (
        "users",
        "exchanges a day",
        "pages in a year",
        "calls/s at the peak",
        "cores: gateways + index",
        "memory, GB",
        "log, GB",
        "index, GB",
        "words, GB",
        "latest pages, GB",
        "what to take apart first",
    )
    rows = [_row(site, plan(site, measured or Measured())) for site in sites]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, *rows)).replace(
        "|\n", "|\n" + "|---" * len(heads) + "|\n", 1
    )


def _row(site: Site, needed: Plan) -> tuple[str, ...]:
    sizes = (needed.memory, needed.log, needed.index, needed.words, needed.short_term)
    return (
        f"{site.users:,}",
        f"{site.users * site.exchanges:,.0f}",
        f"{_round(site.pages):,.0f}",
        f"{_round(site.calls_a_second):,g}",
        f"{needed.gateways:,} + {needed.children:,}",
        *(f"{_round(size):,g}" if size >= 0.01 else "< 0.01" for size in sizes),
        shard_first(site, needed),
    )


def _round(value: float) -> float:
    """To two digits: the table is an estimate."""
    return float(f"{value:.2g}")


def replaced(page: str) -> str:
    """The page with the table anew between its marks."""
    return re.sub(
        r"(<!-- generated: capacity -->\n).*?(\n<!-- end -->)",
        lambda found: f"{found[1]}{table()}{found[2]}",
        page,
        count=1,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(replaced(path.read_text(encoding="utf-8")), encoding="utf-8")
