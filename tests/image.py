"""Does what the Dockerfile does, without Docker: `python tests/image.py`; takes a few minutes.

The build stage's steps run as they are written, in a clean virtual environment, on what .dockerignore lets
through. Then the image's command serves a configuration with a key until the health check of the Dockerfile
passes. Left out are the final stage's own steps: they need a system of their own.
"""

from __future__ import annotations

import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PATIENCE = 120
"""Seconds until the health check must have passed."""
CONFIG = """
model_list:
  - {model_name: any, litellm_params: {model: openai/any, api_key: none, api_base: "http://127.0.0.1:9/v1"}}
hearth:
  keys:
    - {name: check, key: sk-check-0123456789abcdef, tenant: check, user: check}
"""


class Step(NamedTuple):
    """One instruction of the Dockerfile."""

    name: str
    text: str


def stages(dockerfile: str) -> list[list[Step]]:
    """The instructions of each stage, FROM first; comments left out, continued lines joined."""
    lines = [line for line in dockerfile.splitlines() if line.strip() and not line.startswith("#")]
    found: list[list[Step]] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, text = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append(Step(name, " ".join(text.split())))
    return found


def context(folder: Path) -> None:
    """Copy what .dockerignore lets through."""
    patterns = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for allowed in (pattern[1:] for pattern in patterns if pattern.startswith("!")):
        source = ROOT / allowed
        if source.is_dir():
            ignored = shutil.ignore_patterns(
                *(p.removeprefix("**/") for p in patterns if p.startswith("**/"))
            )
            shutil.copytree(source, folder / allowed, ignore=ignored)
        elif source.exists():
            shutil.copy(source, folder / allowed)


def build(steps: list[Step], folder: Path, venv: Path) -> None:
    """Run the build stage: COPY from the context into a working folder, RUN with `/venv` at `venv`."""
    given, work = folder / "context", folder / "src"
    given.mkdir()
    work.mkdir()
    context(given)
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    for step in steps:
        if step.name == "ENV":
            environment |= dict(pair.split("=", 1) for pair in step.text.split())
        elif step.name == "COPY":
            *sources, target = step.text.split()
            for source in sources:
                copy(given / source, work / target if target != "./" else work)
        elif step.name == "RUN":
            sys.stderr.write(f"{step.text}\n")
            command = step.text.replace("/venv", str(venv)).replace("python -m", f"{sys.executable} -m", 1)
            subprocess.run(["bash", "-euc", command], cwd=work, env=environment, check=True)


def copy(source: Path, target: Path) -> None:
    """Copy as COPY does: a folder's content to `target`, a file to or into it."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def serve(steps: list[Step], folder: Path, venv: Path) -> None:
    """Start the image's command and wait for its health check. Raises TimeoutError."""
    last = {step.name: step.text for step in steps}
    command = [*json.loads(last["ENTRYPOINT"]), *json.loads(last["CMD"])]
    config = folder / "litellm_config.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    command = [part if not fnmatch.fnmatch(part, "/etc/*.yaml") else str(config) for part in command]
    probe = json.loads(last["HEALTHCHECK"].partition(" CMD ")[2])
    bin_ = venv / "bin"
    environment = {
        **os.environ,
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "HEARTH_DATA_DIR": str(folder / "data"),
    }
    process = subprocess.Popen([str(bin_ / command[0]), *command[1:]], cwd=folder, env=environment)
    try:
        deadline = time.monotonic() + PATIENCE
        check = [str(bin_ / probe[0]), *probe[1:]]
        while subprocess.run(check, stderr=subprocess.DEVNULL, env=environment, check=False).returncode:
            if process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError("the health check did not pass")
            time.sleep(1)
    finally:
        process.terminate()
        process.wait(60)


def main() -> int:
    """Build, serve, check."""
    first, last = stages((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        folder, venv = Path(name), Path(name) / "venv"
        build(first, folder, venv)
        left = [tool for tool in ("pip", "cc", "gcc") if (venv / "bin" / tool).exists()]
        if left:
            sys.stderr.write(f"left in the image: {left}\n")
            return 1
        serve(last, folder, venv)
    sys.stderr.write("The steps work and the health check passes.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
