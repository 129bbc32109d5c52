"""Every check of the project, in the order in which a mistake is cheapest to see."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("config", "gateway", "memory", "testing")
TYPED = ("hearth.memory", "hearth.config")
WORKERS = str(min(8, (os.cpu_count() or 2) + 1))
"""Processes of pytest, each with a file at a time: one more than cores, since much of it is waiting."""
ORDER = ("--no-loadscope-reorder",)
"""As they stand: files of acceptance tests, which have few tests and take longest, begin first."""


def main(arguments: list[str]) -> int:
    """Format, lint and types of everything, then pytest with `arguments`; stops at the first that fails."""
    python = sys.executable
    checks = [
        [python, "-m", "ruff", "format", "--check", "."],
        [python, "-m", "ruff", "check", "."],
    ]
    for check in checks:
        if subprocess.call(check, cwd=ROOT):
            return 1
    if types():
        return 1
    tests = [python, "-m", "pytest", "--tb", "short", "-n", WORKERS, "--dist", "loadfile", *ORDER, *arguments]
    # What is imported by many short programs is compiled once.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return min(subprocess.call(tests, cwd=ROOT, env=environment), 1)


def types() -> int:
    """Mypy over a tree of links in which the packages stand under their import name."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "hearth"
        home.mkdir()
        for package in PACKAGES:
            (home / package).symlink_to(ROOT / package)
        named = [part for package in TYPED for part in ("-p", package)]
        cache = ["--cache-dir", str(ROOT / ".mypy_cache"), "--config-file", str(ROOT / "pyproject.toml")]
        environment = {**os.environ, "MYPYPATH": folder}
        return subprocess.call([sys.executable, "-m", "mypy", *cache, *named], cwd=folder, env=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
