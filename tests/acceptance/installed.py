"""Real client programs from the registries, each in an environment of its own below `build/clients`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WANTED = ROOT / "tests" / "fixtures" / "installed"
CLIENTS = ROOT / "build" / "clients"
INSTALL_SECONDS = 300
NPM_OPTIONS = (
    "--no-audit",
    "--no-fund",
    "--ignore-scripts",
    "--loglevel=error",
    "--fetch-timeout=30000",
    "--fetch-retries=2",
)
NO_REGISTRY = (
    "dns error",
    "failed to lookup",
    "connection refused",
    "timed out",
    "enotfound",
    "econnrefused",
    "etimedout",
)
"""What installers say of a registry that can't be reached; any other failure, slowness too, is the test's."""


def python_environment(name: str) -> Path:
    """The Python of an environment with the packages of `name`.txt; made once for each state of that file."""
    wanted = WANTED / f"{name}.txt"

    def make(home: Path) -> None:
        uv = [sys.executable, "-m", "uv"]
        _install([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(home)])
        _install(
            [*uv, "pip", "install", "--quiet", "--python", str(home / "bin" / "python"), "-r", str(wanted)]
        )

    return _made(name, wanted, make) / "bin" / "python"


def node_environment(name: str) -> Path:
    """A folder in which Node finds the packages of `name`.json; made once for each state of that file."""
    if shutil.which("npm") is None:
        pytest.skip("there is no Node.js on this machine")
    wanted = WANTED / f"{name}.json"

    def make(home: Path) -> None:
        shutil.copy(wanted, home / "package.json")
        _install(["npm", "install", *NPM_OPTIONS, "--prefix", str(home)])

    return _made(name, wanted, make)


def run(command: list[str], *, cwd: Path, stdin: str = "", seconds: float = 120, **environment: str) -> str:
    """Run a client to its end and return what it printed. A failure is an AssertionError with its output."""
    done = subprocess.run(
        command,
        cwd=cwd,
        input=stdin,
        env={**_clean_environment(), **environment},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def _clean_environment() -> dict[str, str]:
    """This process's environment without what points a client at a provider."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "ANTHROPIC_", "LLM_", "AIDER_", "PYTHONPATH"))
    }


def _made(name: str, wanted: Path, make: Callable[[Path], None]) -> Path:
    """The folder for this state of `wanted`, in the place of any other's; it counts once it is whole."""
    home = CLIENTS / f"{name}-{hashlib.sha256(wanted.read_bytes()).hexdigest()[:12]}"
    if not (home / "done").exists():
        for old in CLIENTS.glob(f"{name}-*"):
            shutil.rmtree(old)
        home.mkdir(parents=True)
        make(home)
        (home / "done").touch()
    return home


def _install(command: list[str]) -> None:
    """Run an installer, out of reach of this project's settings; without a registry the test is skipped."""
    done = subprocess.run(
        command,
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    said = f"{done.stdout}{done.stderr}"
    if done.returncode and any(mark in said.lower() for mark in NO_REGISTRY):
        pytest.skip(f"the registry can't be reached: {said[-300:]}")
    assert done.returncode == 0, said[-3000:]
