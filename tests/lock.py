"""Makes both lock files anew from pyproject.toml: `python tests/lock.py`; needs `uv`.

Pins that stand in a lock stay unless pyproject.toml says otherwise; `--upgrade` renews all.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = {"requirements.lock": ("demo",), "requirements-test.lock": ("demo", "quality", "test")}
"""Extras in each lock file, beside what every installation needs and what builds the project."""


def main(arguments: list[str]) -> int:
    """Compile each lock file, with hashes and for every platform, without saying where packages come from."""
    uv = Path(sys.executable).with_name("uv")
    for name, extras in EXTRAS.items():
        command = [str(uv) if uv.exists() else "uv", "pip", "compile", "pyproject.toml", "--group", "build"]
        command += [part for extra in extras for part in ("--extra", extra)]
        command += ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url"]
        command += ["--no-emit-find-links", "--custom-compile-command", "python tests/lock.py", "--quiet"]
        if subprocess.call([*command, "-o", name, *arguments], cwd=ROOT):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
