"""A part of the failure matrix with few calls; the whole of it is a program (see `failures`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import Reply
from tests.acceptance.failures import FAULTS, REPLY, WAYS, Fault, Trial, World, measure, sound, world

CHOSEN = ("redis hung", "postgres stopped", "qdrant wrong key (401)", "embedder raises")


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


def test_every_part_fails_in_every_way_in_the_matrix(made: World) -> None:
    """The parts are tried stopped, hung, slow and refusing, and those that may be emptied come back empty."""
    ways: dict[str, set[str]] = {}
    for fault in FAULTS:
        ways.setdefault(fault.part, set()).add(fault.way)
    assert set(ways) == {"redis", "postgres", "qdrant", "embedder"}
    assert all("hung" in one and "slow (2 s)" in one and len(one) >= 4 for one in ways.values())
    assert all("restarted empty" in ways[part] for part in ("redis", "qdrant"))
    assert set(measure(made, rounds=1)) == set(WAYS)
