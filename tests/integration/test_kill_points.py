"""The short form of benchmarks/kills.py: a memory killed at each kind of point of its life."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "kills.py"


def test_a_kill_at_any_sort_of_point_changes_nothing_that_stands_in_the_end(tmp_path: Path) -> None:
    """Before each sort of write, commit and step on files, and in every stage of a memory's life: what was
    acknowledged is there once, what was erased is gone, and all else is as without the kill.
    """
    path = tmp_path / "kills.json"
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--each-once", "--json", path],
        capture_output=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process that forks has no threads
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (stages,) = json.loads(path.read_text())["tables"].values()
    assert len(stages) > 10
    assert all(stage["killed"] == stage["all the same"] > 0 for stage in stages), stages
