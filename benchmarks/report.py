"""What a benchmark has found, as tables for people and as JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


def table(rows: Sequence[Row]) -> str:
    """Markdown; the first row's keys head the columns."""
    heads = list(rows[0])
    lines = [heads, ["---"] * len(heads), *([_cell(row.get(head, "")) for head in heads] for row in rows)]
    return "\n".join(
        f"| {' | '.join(line)} |" if line[0] != "---" else "|---" * len(heads) + "|" for line in lines
    )


def write(
    path: Path | None, name: str, given: Mapping[str, Any], tables: Mapping[str, Sequence[Row]]
) -> None:
    """Print each table under its name; with a path write the same, and on what it was measured, as JSON."""
    for title, rows in tables.items():
        print(f"\n{title}\n\n{table(rows)}" if rows else f"\n{title}: nothing")
    if path is not None:
        found = {"benchmark": name, "machine": machine(), "given": given, "tables": tables}
        path.write_text(json.dumps(found, indent=1, default=str) + "\n", encoding="utf-8")


def machine() -> Row:
    """What it was measured on, and how busy that was."""
    names = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(": ")[2] for line in names.splitlines() if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
