"""Make `.venv` from the lock file and run Hearth or its tests in it; needs nothing but Python 3.11 or newer.

python3 bootstrap.py demo         the gateway with a small local model: no key, no server
python3 bootstrap.py test         every check: format, lint, types, tests
python3 bootstrap.py ARGUMENTS    any other `hearth` command, such as `serve --config litellm_config.yaml`
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
LOCKS = {"test": "requirements-test.lock", "run": "requirements.lock"}


def main(arguments: list[str]) -> int:
    """Install what the command needs, once for each state of the lock, then run it."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this file may be started by an older Python
        sys.stderr.write("Hearth needs Python 3.11 or newer.\n")
        return 2
    if not arguments:
        sys.stderr.write(__doc__ or "")
        return 2
    testing = arguments[0] == "test"
    install("test" if testing else "run")
    program = [BIN / "python", ROOT / "tests" / "run.py"] if testing else [BIN / "hearth"]
    command = [*program, *(arguments[1:] if testing else arguments)]
    # A command's own paths are the caller's: only the tests belong to this folder.
    return subprocess.call([str(part) for part in command], cwd=ROOT if testing else None)  # noqa: S603


def install(kind: str) -> None:
    """Bring `.venv` to the state of the lock; a stamp makes the next start quick."""
    lock = ROOT / LOCKS[kind]
    state = hashlib.sha256(lock.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    stamp = VENV / f".{kind}-{state[:16]}"
    if stamp.exists():
        return
    if not BIN.exists():
        sys.stderr.write("Making .venv …\n")
        venv.create(VENV, with_pip=True)
    sys.stderr.write(f"Installing from {lock.name}; the first time takes a few minutes …\n")
    pip = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.check_call([*pip, "--require-hashes", "--no-deps", "-r", str(lock)])  # noqa: S603 - our own lock
    subprocess.check_call([*pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT)])  # noqa: S603
    stamp.touch()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
