"""What the docs show is run: Python and shell examples against a keyless gateway, tables against the code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from hearth.gateway.commands.reference import commands, renewed
from hearth.gateway.commands.script import LINES
from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import GatewayProcess, start, stop
from tests.forks import run as forked
from tests.forks import shim

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTED_URL = "http://127.0.0.1:4000"


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """(language, text) of the page's fenced blocks in these languages, in order."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(language, text) for language, text in found if language in languages]


@pytest.fixture(name="quickstart", scope="module")
def _quickstart(
    _provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    """A gateway without keys, in front of the scripted provider."""
    home = tmp_path_factory.mktemp("docs") / "data"
    openai = {"model": "openai/gpt-4o-mini", "api_base": _provider.openai_url, "api_key": "k"}
    anthropic = {"model": "anthropic/claude-sonnet-4-5", "api_base": _provider.url, "api_key": "k"}
    models = [
        {"model_name": "gpt-4o-mini", "litellm_params": openai},
        {"model_name": "claude-sonnet-4-5", "litellm_params": anthropic},
    ]
    recall = {"deadline_ms": 10_000}  # beside other tests, 150 ms are not enough for each call
    hearth = {"keyless": True, "data_dir": str(home), "recall": recall}
    running = start({"model_list": models, "hearth": hearth}, home)
    yield running
    assert stop(running) == 0


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python", "sh")], ids=lambda page: page.name
)
def test_every_example_of_a_page_runs(
    quickstart: GatewayProcess, provider: ScriptedProvider, page: Path, tmp_path: Path
) -> None:
    """The page's Python and shell examples end without an error, in their order and from nothing.

    Those of the quickstart do so a second time as well: whoever tries them has often tried something before.
    """
    path = f"{shim(tmp_path)}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HEARTH_URL": quickstart.url}
    for user in ("me", "alice"):
        httpx.delete(f"{quickstart.url}/memory/v1/users/{user}").raise_for_status()
    for language, text in blocks(page, "python", "sh") * (2 if page.name == "quickstart.md" else 1):
        code = text.replace(DOCUMENTED_URL, quickstart.url)
        if language == "python":
            done = forked("code", code, folder=tmp_path, environment=environment)
        else:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", code],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_shown_command_exists(page: Path) -> None:
    """Commands that install or serve, and so are not run, have the names and options shown."""
    known = {" ".join(path): command for path, command in commands()}
    for _, text in blocks(page, "console", ""):
        for line in text.splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True) if is_ours(line) else []
            words = words[2:] if words[:1] == ["python3"] else words[1:]
            if not words or words == ["test"]:
                continue
            name = next((one for one in (" ".join(words[:2]), words[0]) if one in known), line)
            assert name in known, line
            options = {option for parameter in known[name].params for option in parameter.opts}
            assert {word for word in words if word.startswith("-") and word != "-"} <= options, line


def is_ours(line: str) -> bool:
    """True for a line that starts this project's program."""
    return line.removeprefix("$ ").startswith(("hearth ", "python3 bootstrap.py "))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_are_the_programs_own(page: Path) -> None:
    """The table of routes and the page of commands are what the code says now."""
    text = page.read_text(encoding="utf-8")
    assert renewed(text) == text, f"renew it: python -m hearth.gateway.commands.reference {page.name}"


def test_the_marks_of_generated_parts_are_there() -> None:
    """README has the routes and docs/cli.md the commands; without their marks nothing would be compared."""
    assert "<!-- generated: routes -->" in PAGES[0].read_text(encoding="utf-8")
    assert "<!-- generated: commands -->" in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_the_minute_in_the_readme_is_the_demos() -> None:
    """The output in README is of the script that the demo plays now."""
    text = PAGES[0].read_text(encoding="utf-8")
    for line in LINES:
        assert f"POST {line.path} ({line.api}'s format)" in text
        assert f"user      {line.text}" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    """Relative links name files that exist."""
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
