"""House rules that a script can check: short functions, named boundaries, no prints, no machine paths."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("config", "gateway", "memory", "testing")
LONG: dict[str, str] = {}
"""Functions of more than 60 lines, and why; none so far."""
BOUNDARIES = {
    "gateway/flow.py:_captured": "the reply goes out whatever happens; counted as lost",
    "gateway/flow.py:before": "fail-open: the call goes on without memory",
    "gateway/headroom.py:headroom": "fail-open: the provider's own count is an answer",
    "gateway/plugin.py:_logged": "LiteLLM's log events must not fail for ours",
    "gateway/plugin.py:async_logging_hook": "other callbacks get their event whatever ours does",
    "gateway/plugin.py:_remembered": "fail-open: the call goes on without memory",
    "gateway/plugin.py:_translated": "LiteLLM can't tell who keeps chains; the gateway then keeps none",
    "gateway/stock.py:_open_early": "calls go through without memory, and the next one tries again",
    "memory/engine/parts.py:_guard": "recall goes on without a store",
    "memory/events/writer.py:_commit": "the writer's thread lives on; each job gets the error",
    "memory/events/writer.py:_run": "one job's error is its own; the others of its commit go on",
    "memory/runner.py:_batch_done": "a batch that fails is handled event by event",
    "memory/runner.py:_single": "a poisonous event is tried again, then set aside",
    "memory/stores/edge_collection.py:_open": "a shard that does not open is set aside and rebuilt",
    "memory/stores/vector_child_service.py:_guarded": "one ask must not end the thread that answers others",
    "memory/stores/vector_child_turns.py:embed": "an embedder is foreign code; words alone still answer",
    "memory/erasure/errands.py:follow": "a look that fails is taken again, and stops nothing else",
    "memory/worker.py:_purge_all": "an erasure that fails is tried again, and stops nothing else",
    "memory/projecting.py:_project": "a replay goes on past an event that fails",
    "memory/parked.py:retry_all": "a parked event that fails again keeps no other from its turn",
    "testing/provider.py:_handle": "a fault of the double is the test's to see, as a 500",
}
"""Functions that may catch every exception without raising it again, and why."""


def _files() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _name(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return f"{path.relative_to(ROOT)}:{node.name}"


def _functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in _files():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def test_functions_are_short() -> None:
    """Half of all functions have at most 10 lines, nine of ten at most 35, and none more than 60."""
    lengths = {
        f"{_name(path, node)}:{node.lineno}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path, node in _functions()
    }
    assert statistics.median(lengths.values()) <= 10
    assert statistics.quantiles(lengths.values(), n=10)[-1] <= 35
    longest = {name.rpartition(":")[0] for name, length in lengths.items() if length > 60}
    assert longest == set(LONG)


def test_every_exception_is_caught_at_named_boundaries_only() -> None:
    """A broad `except` that does not raise again stands only where a failure is contained on purpose."""
    found = {_name(path, node) for path, node in _functions() for _ in _swallowed(node)}
    assert found == set(BOUNDARIES)


def _swallowed(function: ast.AST) -> Iterator[ast.ExceptHandler]:
    """Broad handlers of the function itself, not of one within it, that never raise."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.ExceptHandler) and _is_broad(node):
            ends = node.body[-1]
            if not isinstance(ends, ast.Raise):
                yield node
        yield from _swallowed(node)


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kind = handler.type
    return kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException"))


def test_nothing_prints() -> None:
    """Only benchmarks write to standard output by `print`; the command line writes by its console."""
    prints = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _files()
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not prints


def test_every_module_and_public_function_says_what_it_does() -> None:
    """Modules, public classes and public functions have a docstring."""
    silent = []
    for path in _files():
        tree = _tree(path)
        silent += [str(path.relative_to(ROOT))] if tree.body and ast.get_docstring(tree) is None else []
        for node in tree.body:
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if named and not node.name.startswith("_") and ast.get_docstring(node) is None:
                silent.append(f"{path.relative_to(ROOT)}:{node.name}")
    assert not silent


def test_every_test_says_its_behaviour() -> None:
    """Each test function has a docstring."""
    silent = [
        f"{path.relative_to(ROOT)}:{node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and ast.get_docstring(node) is None
    ]
    assert not silent


def _committed() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


TRACES = re.compile(
    "|".join(
        (
            r"pypi\.org|pythonhosted\.org|registry\.npmjs|--(?:extra-)?index-url|--find-links",
            r"(?<![\w.~])/(?:root|home|Users)/[a-z]",
            r"(?<![\w.])/(?:opt|work)/(?:hv|main|pypi|wheels|shared)\b",
        )
    )
)
"""Registries' host names and paths of one machine."""


def test_no_committed_file_names_a_registry_or_a_machines_path() -> None:
    """What is committed works anywhere: lock files say what, never from where."""
    wrong = []
    for path in _committed():
        if path == Path(__file__) or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        wrong += [f"{path.relative_to(ROOT)}: {found.group()}" for found in TRACES.finditer(text)]
    assert not wrong
