"""What processes cost: CPU time, memory, and the disk below a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

MIB = 1 << 20
ROLES = {"vector_child_main": "vector child"}
"""The role of a child by a word of its command line."""


@dataclass(frozen=True)
class Memory:
    """Of one process, in MiB."""

    rss: float
    """All that is resident, the pages of mapped files among it."""
    pss: float
    """The same, what several processes share counted in parts."""
    own: float
    """Resident without mapped files: what the program itself has allocated."""


def processes(roots: Mapping[str, int]) -> dict[str, psutil.Process]:
    """By role: those of the roots (role to pid) and their living children, named after their root."""
    found: dict[str, psutil.Process] = {}
    for role, pid in roots.items():
        root = psutil.Process(pid)
        found[role] = root
        for child in root.children(recursive=True):
            name = next((one for word, one in ROLES.items() if word in " ".join(child.cmdline())), None)
            if name is not None:
                found[f"{role}: {name}"] = child
    return found


def memory(process: psutil.Process) -> Memory:
    """What it has now."""
    full = process.memory_full_info()
    own = full.rss - full.shared
    return Memory(rss=full.rss / MIB, pss=full.pss / MIB, own=own / MIB)


def memory_by_role(found: Mapping[str, psutil.Process]) -> dict[str, dict[str, float]]:
    """For a report."""
    return {
        role: {name: round(value, 1) for name, value in asdict(memory(process)).items()}
        for role, process in found.items()
    }


def cpu(found: Mapping[str, psutil.Process]) -> dict[str, float]:
    """Seconds of CPU time so far, user and system, by role."""
    times = {role: process.cpu_times() for role, process in found.items()}
    return {role: one.user + one.system for role, one in times.items()}


def spent(before: Mapping[str, float], after: Mapping[str, float], calls: int) -> dict[str, float]:
    """Milliseconds of CPU time a call between two answers of `cpu`, by role."""
    return {role: round((after[role] - before.get(role, 0.0)) * 1e3 / calls, 3) for role in after}


def disk(data: Path) -> dict[str, int]:
    """Bytes on the disk of each part of a data folder; a sparse file counts with what it has."""
    parts = {
        "event log": data.glob("log.db*"),
        "short-term memory": data.glob("short_term.db*"),
        "vectors and texts": data.glob("long_term/*/shard"),
        "word statistics": data.glob("long_term/*/terms.sqlite*"),
    }
    return {part: sum(map(_bytes, paths)) for part, paths in parts.items()}


def _bytes(path: Path) -> int:
    files: Iterable[Path] = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.stat().st_blocks * 512 for file in files if file.is_file())
