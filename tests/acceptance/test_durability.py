"""The short form of benchmarks/durability.py: the gateway killed amid concurrent calls."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import await_answer, run_hearth
from tests.servers import free_port

ROUNDS, CALLS = 2, 60
SPREAD = 0.03
"""Seconds, so that few calls end at the same moment, and a kill always comes amid them."""
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_no_reply_received_whole_is_missing_or_doubled_after_kill_9(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two kills amid 60 calls each: what clients received completely is in the log, once."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    durability, gateways = map(import_module, ("durability", "gateways"))

    def hearth(folder: Path, provider: str, **section: Any) -> Any:
        port = free_port()
        config = gateways.document(provider, hearth=section)
        process, log = run_hearth(folder / "data", config, "serve", "--port", str(port))
        url = f"http://127.0.0.1:{port}"
        await_answer(process, f"{url}/memory/v1/health/ready", log)
        return gateways.Served(url=url, process=process, output=log)

    monkeypatch.setattr(durability, "hearth", hearth)
    found = durability.run(tmp_path, rounds=ROUNDS, calls=CALLS, seed=5, spread=SPREAD)
    assert (found.missing, found.doubled, found.parked) == ([], [], 0)
    assert found.complete > 0
    assert sum(one.cut for one in found.rounds) > 0, "a kill amid the calls cuts some of them"
