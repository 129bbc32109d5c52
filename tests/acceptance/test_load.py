"""The short form of benchmarks/load.py: each part runs on a thousand pages and reports what can be."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

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


def test_the_worker_is_compared_with_its_embedder_and_recovers(tmp_path: Path) -> None:
    """Two documents are embedded for most pages; what was captured in a pause is handled after it."""
    given = ("--pages", "60", "--pause", "2", "--patience", "60", "--rate", "10")
    tables = _run(tmp_path, "worker", *given)
    (indexing,) = tables["Indexing"]
    assert indexing["documents a second"] > indexing["pages a second"] > 0
    assert indexing["share"] > 0
    (pause,) = tables["A pause of the worker"]
    assert pause["most behind"] >= pause["events behind"] > 0
    assert pause["recovered after s"] != "not"


def test_what_a_call_costs_is_told_apart_by_process_and_store(tmp_path: Path) -> None:
    """CPU time, memory and disk of each process and part; a call goes to each store so and so often."""
    given = ("--pages", PAGES, "--count", "20", "--rate", "10", "--valkey")
    tables = _run(tmp_path, "gateway", *given)
    (calls,) = tables["Calls"]
    assert calls["calls"] == 20
    assert _in_order(calls)
    (cpu,) = tables["CPU time a call"]
    assert cpu["gateway 1, ms"] > 0
    assert cpu["gateway 1: vector child, ms"] > 0
    assert all(row["rss"] >= row["own"] > 0 for row in tables["Memory of each process, MiB"])
    assert {row["part"] for row in tables["Disk"]} == {"event log", "vectors and texts", "word statistics"}
    on_path = [row for row in tables["Calls of the stores' ports"] if row["who"] == "the call"]
    assert {(row["store"], row["verb"]): row["a call"] for row in on_path} == {
        ("log", "append"): 1,
        ("log", "open_call"): 1,
        ("log", "secret"): 1,
        ("long_term", "search"): 1,
        ("short_term", "latest"): 1,
        ("short_term", "push"): 1,
    }
    commands = {row["command"]: row["a call"] for row in tables["Redis commands a call"]}
    assert 2 <= commands["eval"] <= 4


def test_a_soak_is_written_down_and_drawn(tmp_path: Path) -> None:
    """Every sample is a line of the file, and the picture has a line a process and kind of memory."""
    given = ("--minutes", "0.05", "--pages", PAGES, "--every", "1", "--rate", "5", "--warm", "10")
    given = (*given, "--out", "soak")
    tables = _run(tmp_path, "soak", *given)
    rows = tables["Memory from the first stretch to the last, MiB"]
    assert {row["process"] for row in rows} == {"gateway", "gateway: vector child"}
    with (tmp_path / "soak.csv").open(encoding="utf-8") as file:
        samples = list(csv.DictReader(file))
    assert {row["process"] for row in samples} == {"gateway", "gateway: vector child"}
    assert int(samples[-1]["calls"]) == 10 + tables["Calls"][0]["calls"] == 10 + 15
    picture = ElementTree.parse(tmp_path / "soak.svg")
    drawn = [
        one for one in picture.iter("{http://www.w3.org/2000/svg}path") if "line" in one.get("class", "")
    ]
    assert len([one for one in drawn if "reactive" in one.get("class", "")]) == len(rows)
