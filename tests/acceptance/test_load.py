"""The short form of benchmarks/load.py: recall over a few pages, against the store's own answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.qdrant_shim import QdrantShim

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "load.py"
PAGES, SERVER_PAGES = "1000", "300"
"""The stand-in for a server looks at every page for every query."""
COUNT = 2
Tables = dict[str, list[dict[str, Any]]]


def _run(folder: Path, *arguments: str, url: str = "", key: str = "") -> Tables:
    report = folder / "report.json"
    command = [sys.executable, str(BENCHMARK), "--json", str(report), *arguments]
    whole = {**os.environ, "QDRANT_URL": url, "QDRANT_API_KEY": key}
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=folder, env=whole)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["benchmark"] == arguments[0]
    assert all(f"\n{title}\n" in done.stdout for title in found["tables"])
    tables: Tables = found["tables"]
    return tables


def _in_order(row: dict[str, Any]) -> bool:
    """Whether the percentiles are some, and none is below the one before."""
    return 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["longest_ms"]


def test_recall_is_compared_with_the_stores_own_answer(tmp_path: Path) -> None:
    """Each kind of owner is asked in each way, as often as was said, and what is stored is recalled."""
    tables = _run(tmp_path, "recall", "--pages", PAGES, "--count", "5", "--rounds", "1", "--rate", "50")
    rows = tables["Recall against the store's own answer"]
    assert len({(row["whose"], row["way"]) for row in rows}) == len(rows) == 3 * 4
    assert all(row["calls"] == 5 and _in_order(row) for row in rows)
    assert all(row["mean"] > 0 for row in tables["Records in a block"])


def _batches(shim: QdrantShim, payload: list[str] | bool | None) -> list[list[Any]]:
    """What each search is for, of the batches whose searches all say just that of the payload."""
    return [
        [[one[part] for part in ("using", "query", "filter", "limit")] for one in request.body["searches"]]
        for request in shim.did("query")
        if all(one.get("with_payload") == payload for one in request.body["searches"])
    ]


def test_recall_is_compared_with_a_servers_own_answer(tmp_path: Path) -> None:
    """Where QDRANT_URL names a server, the same batch is asked of it alone as recalls begin with, everything
    that is stored in it is recalled, and nothing of it stays behind.
    """
    given = ("--pages", SERVER_PAGES, "--count", str(COUNT), "--rounds", "1", "--rate", "50")
    with QdrantShim(api_key="a-key").running() as shim:
        tables = _run(tmp_path, "recall", *given, url=shim.url, key="a-key")
    rows = tables["Recall against the store's own answer"]
    assert len({(row["whose"], row["way"]) for row in rows}) == len(rows) == 2 * 4
    assert all(row["calls"] == COUNT and _in_order(row) for row in rows)
    assert all(row["mean"] > 0 for row in tables["Records in a block"])
    whole, bare, recalled = (_batches(shim, payload) for payload in (["record"], False, None))
    assert (len(whole), len(bare)) == (2 * 2 * COUNT, 2 * COUNT)
    assert all(len(batch) == 3 and batch in recalled for batch in (*whole, *bare))
    assert [len(shim.did(name)) for name in ("create", "drop")] == [1, 1]
    assert not shim.client.get_collections().collections
