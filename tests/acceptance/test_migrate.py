"""A memory that moves from a folder to servers, with a gateway over each."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import APP, document, start, stop
from tests.acceptance.shared import Servers, shared_servers
from tests.acceptance.talk import ask, exchanges, remember, sent_text

ROOT = Path(__file__).parents[2]
COMMAND = "hearth migrate files.yaml servers.yaml"
SAID = "I keep my bicycle in the cellar of the library."
QUESTION = "Where do I keep my bicycle?"


@pytest.fixture(scope="module", name="servers")
def _servers() -> Iterator[Servers]:
    with shared_servers() as servers:
        yield servers


def migrate(source: dict[str, Any], target: dict[str, Any], folder: Path) -> tuple[dict[str, Any], str]:
    """Run the command of the docs as on a terminal; its document, and what it showed."""
    words = shlex.split(COMMAND)
    assert COMMAND in (ROOT / "docs" / "operate.md").read_text(encoding="utf-8").splitlines()
    for name, config in zip(words[2:], (source, target), strict=True):
        (folder / name).write_text(yaml.safe_dump(config))
    environment = {**os.environ, "FORCE_COLOR": "1"}
    command = [
        sys.executable,
        "-m",
        "hearth.gateway.cli",
        *words[1:],
        "--json",
    ]  # it looks for colors as it loads
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found, done.stderr


def test_a_memory_moves_to_servers(
    provider: ScriptedProvider, servers: Servers, tmp_path: Path, user: str
) -> None:
    """What was told in a folder is recalled over servers, in the same session; what was forgotten is not."""
    files = document(provider, tmp_path / "files")
    over = servers.config(provider, tmp_path / "over", worker="embedded")
    turns: list[dict[str, str]] = []

    def say(gateway: Any, text: str) -> Any:
        turns.append({"role": "user", "content": text})
        answer = ask(gateway, user, turns)
        turns.append(
            {"role": "assistant", "content": json.loads(answer.raw)["choices"][0]["message"]["content"]}
        )
        return answer

    gateway = start(files, tmp_path / "files")
    session = say(gateway, SAID).session
    forgotten = remember(gateway, user, "My rowing boat is in the shed.")
    with gateway.client(APP, **{"x-hearth-user": user}) as client:
        client.delete(f"/memory/v1/memories/{forgotten}").raise_for_status()
    assert stop(gateway) == 0

    there, shown = migrate(files, over, tmp_path)
    assert there["differences"] == []
    assert "Comparing" in shown
    gateway = start(over, tmp_path / "over")
    assert ask(gateway, user, QUESTION).recalled >= 1
    assert say(gateway, "And what did I just tell you?").session == session
    assert ask(gateway, user, "Where is my rowing boat?").status == 200
    assert "in the shed" not in sent_text(provider.last.body)
    gateway.drain()
    assert len(exchanges(gateway, user)) == 4
    assert stop(gateway) == 0
