"""A part of the failure matrix with few calls; the whole of it is a program (see `failures`)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import Reply
from tests.acceptance.conftest import ADMIN, APP, wait_until
from tests.acceptance.failures import FAULTS, REPLY, WAYS, Fault, Trial, World, measure, merged, sound, world
from tests.acceptance.reader import CLIENTS, MEMORYS, READ
from tests.acceptance.talk import ask, exchanges

CHOSEN = (
    "redis hung",
    "postgres stopped",
    "qdrant wrong key (401)",
    "embedder raises",
    "extraction model hung",
)


@pytest.fixture(scope="module", name="made")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("failures")
    with (
        ScriptedProvider(default=Reply(text=REPLY)) as provider,
        world(provider, folder, deadline_ms=2000) as made,
    ):
        yield made


@pytest.mark.parametrize("fault", [one for one in FAULTS if str(one) in CHOSEN], ids=str)
def test_case_44_a_part_that_fails_costs_no_call_and_no_exchange(made: World, fault: Fault) -> None:
    """Each call is answered on each route, streamed and not; each exchange is in the log once; health and
    counters name the part; and afterwards what was told before and meanwhile is recalled.
    """
    baseline = dict.fromkeys(WAYS, 0.0)
    outcome = Trial(made, fault, baseline).run(calls=len(WAYS), at_once=2)
    assert sound(outcome), outcome


def test_case_56_what_memory_asks_for_itself_is_no_part_of_a_client_s_usage(made: World) -> None:
    """Each client has the counts of its own answer, on every route; the model's are rows of their own."""
    user, before = "usage", _spent(made)
    for route, stream in WAYS:
        text = f"Parcel number 1 came by {route}{stream}."
        answer = ask(made.gateway, user, text, route=route, stream=stream, key=READ)
        assert answer.status == 200
        if not stream:
            told = json.loads(answer.raw)["usage"]
            names = (
                ("prompt_tokens", "completion_tokens")
                if route == "chat"
                else ("input_tokens", "output_tokens")
            )
            assert tuple(told[name] for name in names) == (CLIENTS.input, CLIENTS.output)
    wait_until(lambda: _facts(made, user) == len(WAYS))
    wait_until(lambda: all(one["usage"] for one in exchanges(made.gateway, user)))
    assert {(one["usage"]["input"], one["usage"]["output"]) for one in exchanges(made.gateway, user)} == {
        (CLIENTS.input, CLIENTS.output)
    }
    calls, *tokens = (now - then for now, then in zip(_spent(made), before, strict=True))
    assert 1 <= calls <= len(WAYS)
    assert tokens == [calls * MEMORYS.input, calls * MEMORYS.output]


def _facts(made: World, user: str) -> int:
    with made.gateway.client(APP, **{"x-hearth-user": user}) as client:
        return int(client.get("/memory/v1/memories", params={"types": "fact"}).json()["total"])


def _spent(made: World) -> tuple[int, int, int]:
    """Calls and tokens of the tenant's memory until now."""
    with made.gateway.client(ADMIN) as client:
        rows = client.get("/memory/v1/spending").json()["items"]
    assert all(row["purpose"] == "memory" for row in rows)
    calls, read, written = (sum(row[name] for row in rows) for name in ("calls", "input", "output"))
    return calls, read, written


def test_every_part_fails_in_every_way_in_the_matrix(made: World) -> None:
    """The parts are tried stopped, hung, slow and refusing, and those that may be emptied come back empty."""
    ways: dict[str, set[str]] = {}
    for fault in FAULTS:
        ways.setdefault(fault.part, set()).add(fault.way)
    assert set(ways) == {"redis", "postgres", "qdrant", "embedder", "extraction model"}
    assert all("hung" in one and "slow (2 s)" in one and len(one) >= 4 for one in ways.values())
    assert all("restarted empty" in ways[part] for part in ("redis", "qdrant"))
    assert set(measure(made, rounds=1)) == set(WAYS)


def test_the_table_of_some_faults_keeps_the_rows_of_others() -> None:
    """In the order of the matrix, what was tried anew in place of what stood there."""
    head = "| part | fault | answered |\n|---|---|---|"
    old = f"{head}\n| redis | stopped | 1 of 2 |\n| redis | was once | 2 of 2 |\n| redis | hung | 2 of 2 |"
    new = f"{head}\n| embedder | hung | 2 of 2 |\n| redis | stopped | 2 of 2 |"
    assert merged(old, new).splitlines()[2:] == [
        "| redis | stopped | 2 of 2 |",
        "| redis | hung | 2 of 2 |",
        "| embedder | hung | 2 of 2 |",
    ]
