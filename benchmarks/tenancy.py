"""Attempts to reach another tenant or user: `python benchmarks/tenancy.py [--attempts N] [--seed S]`.

Two tenants whose every text has a mark, one gateway in this process. Random requests by keys of one of them,
to every route of the API and of models and by the command line, name users, ids, sessions, cursors, responses
and files of everybody. No reply and no prompt may hold another's mark, no event be written for another. Ends
with status 1 if one did. Interrupted, it tells of those that were made.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from report import write

from tests.tenancy.judge import Tally, attack
from tests.tenancy.world import World


def main() -> int:
    """Run, print, and say by the exit status whether any attempt got through."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--attempts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        before, started = world.runner.run(world.kept()), time.process_time()
        tally = Tally()
        with suppress(KeyboardInterrupt):
            attack(world, given.seed, given.attempts, tally)
        seconds = time.process_time() - started
        same = world.runner.run(world.kept()) == before
        world.close()
    row = {
        "attempts": tally.attempts,
        "answered with 2xx": sum(n for status, n in tally.statuses.items() if status < 300),
        "refused": sum(n for status, n in tally.statuses.items() if status >= 400),
        "shown something of their own": tally.showed,
        "followed by events": tally.wrote,
        "faults": len(tally.faults),
        "other tenant as before": same,
        "CPU seconds": seconds,
    }
    write(given.json, "tenancy", {"attempts": given.attempts, "seed": given.seed}, {"Attempts": [row]})
    for fault in tally.faults[:20]:
        print(fault[:1_000])
    return 1 if tally.faults or not same else 0


if __name__ == "__main__":
    sys.exit(main())
