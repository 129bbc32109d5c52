"""What the pages on threats and guarantees promise is shown by tests that there are."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("threats.md", "guarantees.md")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@cache
def _tests(path: Path) -> frozenset[str]:
    """Names of the file's tests that pytest collects."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def _rows(page: str) -> list[str]:
    """Lines of its tables, without heads and rules."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("| ") and " shown by |" not in line]


@pytest.mark.parametrize("page", PAGES)
def test_every_promise_names_tests_that_there_are(page: str) -> None:
    """Each row of each table names at least one, and every named one stands in its file."""
    rows = _rows(page)
    assert len(rows) > 15
    for row in rows:
        named = TEST.findall(row)
        assert named, row
        for path, name in named:
            assert name in _tests(ROOT / path), f"{page}: {path}::{name}"


@pytest.mark.parametrize("page", PAGES)
def test_nothing_else_is_called_a_test(page: str) -> None:
    """A name that begins like a test's is given with its file."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert "test_" not in TEST.sub("", text)


def test_the_readme_leads_to_both_pages() -> None:
    """Whoever wonders what is promised finds it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"(docs/{page})" in readme for page in PAGES)
