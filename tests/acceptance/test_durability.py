"""The short form of benchmarks/durability.py: the gateway killed amid concurrent calls."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SPREAD = ("--spread-ms", "30")
"""So that few calls end at the same moment, and a kill always comes amid them."""
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "durability.py"


def test_no_reply_received_whole_is_missing_or_doubled_after_kill_9() -> None:
    """Two kills amid 100 calls each: what clients received completely is in the log, once."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--rounds", "2", "--calls", "100", "--seed", "5", *SPREAD],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = re.search(r"(\d+) complete replies, 0 of them missing, 0 markers doubled", done.stdout)
    assert found is not None, done.stdout
    assert int(found[1]) > 0
    assert re.search(r"[1-9]\d* cut", done.stdout), "a kill amid the calls cuts some of them"
