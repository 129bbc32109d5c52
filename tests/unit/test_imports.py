"""Who may import what, and who may read the environment."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hearth.memory

ROOT = Path(__file__).parents[2]
FOREIGN = (
    "litellm",
    "fastapi",
    "starlette",
    "uvicorn",
    "flask",
    "django",
    "aiohttp",
    "hearth.gateway",
    "hearth.config",
)
"""What the engine never imports: web frameworks, LiteLLM and what is built on the engine."""
READS_ENVIRONMENT = {
    "gateway/server.py": "entry of the process: sets what LiteLLM and tiktoken read",
    "gateway/stock.py": "entry of a process that LiteLLM starts",
    "gateway/loaded.py": "entry of the process that those of several are forked from: sets LiteLLM's",
    "gateway/model.py": "sets what LiteLLM reads where a worker loads it, to ask a model",
    "gateway/processes.py": "entry of one gateway process of several: tells its children what to read",
    "gateway/commands/settings.py": "entry of the command line: hands the environment to config",
    "gateway/commands/demo.py": "entry of the demo: starts the gateway with an environment of its own",
}
"""Files outside config/ that may touch the environment, and why."""


def _sources(*packages: str) -> list[Path]:
    found = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    assert found
    return found


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import hides where it goes"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_below(name: str, parents: tuple[str, ...]) -> bool:
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)


def test_the_engine_imports_nothing_that_faces_the_network() -> None:
    """No file of memory/ imports a web framework, LiteLLM, the gateway or the settings, not even late."""
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in _sources("memory")
        for name in _imports(path)
        if _is_below(name, FOREIGN)
    }
    assert not wrong


def test_settings_import_nothing_of_the_gateway() -> None:
    """config/ stands below the gateway and beside LiteLLM, whose environment it prepares."""
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in _sources("config")
        for name in _imports(path)
        if _is_below(name, ("litellm", "fastapi", "starlette", "hearth.gateway"))
    }
    assert not wrong


def test_the_whole_engine_loads_without_them() -> None:
    """In a fresh interpreter, importing every module of the engine brings none of them in."""
    modules = [
        "hearth." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in _sources("memory")
        if path.name not in ("__init__.py", "e5.py", "env.py")  # an extra's; Alembic's alone
    ]
    program = (
        f"import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(sorted(name for name in {FOREIGN!r} if name in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_contract_is_cheap_to_import() -> None:
    """`hearth.memory.types` brings in no store, no embedder and no numerics."""
    program = "import hearth.memory.types, sys; print(sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = ast.literal_eval(ran.stdout)
    assert "hearth.memory.types" in loaded
    heavy = ("numpy", "qdrant_edge", "tokenizers", "tiktoken", "sqlite3", "hearth.memory.engine")
    assert not [name for name in heavy if name in loaded]


@pytest.mark.parametrize("name", hearth.memory.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    """Each name of `__all__` is there, is the one that type checkers see, and is listed by dir()."""
    assert name in dir(hearth.memory)
    found = getattr(hearth.memory, name)
    assert found.__name__ == name
    tree = ast.parse(Path(str(hearth.memory.__file__)).read_text(encoding="utf-8"))
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert getattr(importlib.import_module(str(seen[name])), name) is found
    assert set(seen) == set(hearth.memory.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    """A misspelt name fails as in any module."""
    with pytest.raises(AttributeError, match="open_memroy"):
        _ = hearth.memory.open_memroy


def test_only_settings_and_entries_read_the_environment() -> None:
    """The engine reads no variable of the environment; the gateway only where its processes begin."""
    readers = {
        str(path.relative_to(ROOT))
        for path in _sources("memory", "gateway")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in ("environ", "environb"))
        or (isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node).endswith("getenv"))
    }
    assert readers == set(READS_ENVIRONMENT)


HOOKS = """
import inspect, json
from litellm.integrations.custom_logger import CustomLogger
from hearth.gateway.plugin import HearthPlugin

own = [name for name in vars(HearthPlugin) if not name.startswith("_")]
named = lambda kind, name: list(inspect.signature(getattr(kind, name, lambda: None)).parameters)
print(json.dumps({name: [named(HearthPlugin, name), named(CustomLogger, name)] for name in own}))
"""


def test_every_litellm_hook_has_its_own_name_and_parameter_names() -> None:
    """LiteLLM calls hooks by keyword: a hook or parameter of another name is never called, or fails."""
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [sys.executable, "-W", "ignore", "-c", HOOKS]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    hooks = json.loads(ran.stdout.splitlines()[-1])
    assert "async_pre_call_hook" in hooks
    assert {name: ours for name, (ours, _) in hooks.items()} == {
        name: own for name, (_, own) in hooks.items()
    }


def test_the_command_line_starts_without_litellm() -> None:
    """Neither commands nor server import LiteLLM before its environment is set: it would go online."""
    program = "import hearth.gateway.cli, hearth.gateway.server, sys; print('litellm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
