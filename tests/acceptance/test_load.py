"""The short form of benchmarks/load.py: recall over a thousand pages, against the store's own answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "load.py"
PAGES = "1000"
Tables = dict[str, list[dict[str, Any]]]


def _run(folder: Path, *arguments: str) -> Tables:
    report = folder / "report.json"
    command = [sys.executable, str(BENCHMARK), "--json", str(report), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=folder)
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
