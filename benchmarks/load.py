"""How Hearth bears load: up to a hundred thousand users in a thousand tenants, with a million pages.

python benchmarks/load.py recall [--pages 10000 100000 1000000]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import load_gateway
import load_recall
import load_soak
import load_worker
import yaml
from report import Row, write

Tables = Mapping[str, Sequence[Row]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments, run one part, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", type=Path, help="write what was found here too")
    parts = parser.add_subparsers(dest="part", required=True)
    for add in (_recall, _worker, _gateway, _soak):
        add(parts)
    given = vars(parser.parse_args(arguments))
    run: Callable[..., Tables] = given.pop("run")
    path, part = given.pop("json"), given.pop("part")
    write(path, part, given, run(**given))


def _recall(parts: Any) -> None:
    part = parts.add_parser("recall", help="recall against the store's own answer, by the number of pages")
    part.add_argument("--pages", dest="sizes", type=int, nargs="+", default=(10_000, 100_000, 1_000_000))
    part.add_argument("--rate", type=float, default=20.0, help="questions a second")
    part.add_argument("--count", type=int, default=200, help="of questions, of each kind, way and round")
    part.add_argument("--rounds", type=int, default=3)
    part.add_argument(
        "--qdrant-url",
        default=os.environ.get("QDRANT_URL", ""),
        help="of a server in place of Qdrant Edge (QDRANT_URL); its key comes from QDRANT_API_KEY",
    )
    part.set_defaults(run=load_recall.run)


def _worker(parts: Any) -> None:
    part = parts.add_parser("worker", help="indexing beside the embedder alone, and recovery from a pause")
    part.add_argument("--pages", type=int, default=2_000, help="of the backlog")
    part.add_argument("--embedder", choices=("fast", "quality"), default="fast")
    part.add_argument("--rate", type=float, default=5.0, help="captures a second around the pause")
    part.add_argument("--pause", type=float, default=600.0, help="seconds for which the worker stands still")
    part.add_argument("--patience", type=float, default=900.0, help="seconds for the recovery at most")
    part.set_defaults(run=load_worker.run)


def _gateway(parts: Any) -> None:
    part = parts.add_parser(
        "gateway", help="CPU, memory, disk and round trips a call, by the number of pages"
    )
    part.add_argument("--pages", dest="sizes", type=int, nargs="+", default=(10_000, 100_000))
    part.add_argument("--rate", type=float, default=10.0, help="calls a second")
    part.add_argument("--count", type=int, default=600, help="of calls")
    part.add_argument("--gateways", type=int, default=1, help="more than one over shared servers alone")
    part.add_argument("--workers", type=int, default=0, help="in processes of their own, in place of theirs")
    part.add_argument("--section", type=yaml.safe_load, default={}, help="more of each hearth: section, YAML")
    part.add_argument("--valkey", action="store_true", help="short-term memory in a server started for it")
    part.set_defaults(run=load_gateway.run)


def _soak(parts: Any) -> None:
    part = parts.add_parser("soak", help="memory of a gateway's processes under steady traffic")
    part.add_argument("--minutes", type=float, default=30.0)
    part.add_argument("--rate", type=float, default=5.0, help="calls a second")
    part.add_argument("--warm", type=int, default=10_500, help="calls before, three times as fast")
    part.add_argument("--pages", type=int, default=10_000, help="stored at the start")
    part.add_argument("--embedder", choices=("fast", "quality"), default="fast")
    part.add_argument("--every", type=float, default=5.0, help="seconds between two samples")
    part.add_argument("--out", type=Path, default=Path("docs") / "soak", help="of the .csv and the .svg")
    part.set_defaults(run=load_soak.run)


if __name__ == "__main__":
    main()
