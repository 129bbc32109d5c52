"""The capacity table: what the page shows is what the function computes, and it adds up."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.capacity import SITES, Measured, Site, plan, replaced, table

PAGE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")


def test_the_table_on_the_page_is_the_functions_own() -> None:
    """A measured number that changes wants `python benchmarks/capacity.py docs/operate.md`."""
    (shown,) = re.findall(r"<!-- generated: capacity -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL)
    assert shown == table()
    assert replaced(PAGE) == PAGE


def test_the_table_reaches_a_billion_pages() -> None:
    """From one person on."""
    assert SITES[0].users == 1
    assert SITES[-1].pages >= 1e9


def test_what_a_site_needs_follows_from_its_pages_and_calls() -> None:
    """A million exchanges of 1 kB make a gigabyte; 40 calls a second of 30 ms take two cores at 60 %."""
    site = Site(users=1_000, exchanges=10, days=100)
    needed = plan(site, replace(Measured(), log_bytes=1_000, index_bytes=4_000))
    assert (needed.log, needed.index) == (pytest.approx(1), pytest.approx(4))
    busy = Site(users=86_400, exchanges=10, peak=4)
    assert busy.calls_a_second == pytest.approx(40)
    assert plan(busy, replace(Measured(), call_ms=30)).gateways == 2


@pytest.mark.parametrize(
    "field", ["call_ms", "search_ms", "page_ms", "log_bytes", "index_bytes", "words_bytes"]
)
def test_every_measured_number_counts(field: str) -> None:
    """Were it a hundred times as large, the largest site would need more."""
    measured = Measured()
    dearer = replace(measured, **{field: getattr(measured, field) * 100})
    assert plan(SITES[-1], dearer) != plan(SITES[-1], measured)
