"""What the parts' numbers mean for the health of the whole."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from hearth.memory.events.sqlite_log import LogHealth
from hearth.memory.health import (
    REFUSES,
    Part,
    child_part,
    log_part,
    overall,
    recall_part,
    spool_part,
    worker_part,
)
from hearth.memory.stores.vector_child import ChildHealth
from hearth.memory.stores.vector_child_wire import State
from hearth.memory.working import WorkerHealth

WELL = LogHealth(wal_bytes=0, fsync_p50_ms=1.0, writable=True, events=3, last_error="")


def _child(**given: Any) -> ChildHealth:
    counts = dict.fromkeys(("restarts", "in_flight", "late", "refused", "lexical_only", "failed"), 0)
    return ChildHealth(**{"running": True, "state": None, "search_milliseconds": 2.0, **counts, **given})


def _worker(**given: Any) -> WorkerHealth:
    well: dict[str, Any] = {"running": True, "lag": {"pages": 0}, "parked": 0, "stopped": {}, "errors": {}}
    return WorkerHealth(**{**well, **given})


def test_a_log_that_can_t_be_written_is_down_and_takes_the_whole_down() -> None:
    """Its error, which may hold a path, is not among the reasons."""
    broken = LogHealth(
        wal_bytes=0, fsync_p50_ms=1.0, writable=False, events=3, last_error="/data/x: disk full"
    )
    whole = overall({"log": log_part(broken), "worker": worker_part(_worker())})
    assert whole.state == "down"
    assert "/data" not in str(whole)


def test_a_slow_disk_degrades_the_log() -> None:
    """A commit of over 20 ms is named with its time."""
    slow = LogHealth(wal_bytes=0, fsync_p50_ms=31.2, writable=True, events=3, last_error="")
    assert (log_part(WELL).state, log_part(slow).state) == ("ok", "degraded")
    assert "31 ms" in log_part(slow).reasons[0]


def test_a_child_that_is_restarted_degrades_long_term_memory() -> None:
    """Recall then uses short-term memory, which the reason says."""
    assert child_part(_child()).state == "ok"
    part = child_part(_child(running=False, restarts=2))
    assert (part.state, part.numbers["restarts"]) == ("degraded", 2)


def test_a_server_that_is_down_or_empty_degrades_long_term_memory() -> None:
    """Neither its address nor what it said is among the reasons."""
    given = {
        "pid": 1,
        "embedder": "x",
        "dimension": 4,
        "readers": 8,
        "points": 0,
        "set_aside": "",
    }
    well = State(unfilled="", unclean=False, problem="", answering="x", **given)
    down = child_part(_child(state=replace(well, problem="http://qdrant.internal: down")))
    refusing = child_part(_child(state=replace(well, problem="http://qdrant.internal: 401", refused=True)))
    assert refusing.reasons == (f"its server {REFUSES}",)
    assert child_part(_child(state=well)).state == "ok"
    assert down.state == "degraded"
    assert "qdrant.internal" not in str(down)
    assert child_part(_child(state=replace(well, unfilled="a"))).state == "degraded"
    filling = replace(well, unfilled="a", points=340, wanted=1_000, seconds_left=660.0, answering="use-m3")
    assert child_part(_child(state=filling)).reasons[0] == (
        "is being filled from the log, 340 of 1000 records, 11 minutes left; "
        "the collection of use-m3 answers meanwhile"
    )


def test_a_worker_s_every_trouble_is_a_reason() -> None:
    """Standing, lagging, parked, stopped and failing are told apart."""
    assert worker_part(_worker()).reasons == ()
    assert worker_part(_worker(lag={"pages": 1_000})).state == "ok"
    troubled = _worker(
        running=False, lag={"index": 1_001}, parked=2, stopped={"index": "newer"}, errors={"pages": "x"}
    )
    assert len(worker_part(troubled).reasons) == 5


def test_waiting_and_lost_captures_degrade_the_spool() -> None:
    """Each is a reason of its own."""
    states = [spool_part(waiting, lost).state for waiting, lost in ((0, 0), (1, 0), (0, 1))]
    assert states == ["ok", "degraded", "degraded"]


def test_recall_is_degraded_when_over_a_fifth_failed() -> None:
    """A fifth exactly, and a few recalls, say nothing yet."""
    assert recall_part(["failed"] * 4).state == "ok"
    assert recall_part(["failed"] * 2 + ["ok"] * 8).state == "ok"
    assert recall_part(["failed"] * 3 + ["ok"] * 7).state == "degraded"


@pytest.mark.parametrize(
    ("part", "how"),
    [("dense", "by words alone"), ("long_term", "without long-term"), ("short_term", "without short-term")],
)
def test_recall_is_degraded_when_over_a_fifth_went_without_a_part(part: str, how: str) -> None:
    """A store that is too slow for recalls may be well by its own account, and is seen all the same."""
    assert recall_part(["partial"] * 4, missing={part: 4}).state == "ok"
    assert recall_part(["ok"] * 8 + ["partial"] * 2, missing={part: 2}).state == "ok"
    (reason,) = recall_part(["ok"] * 7 + ["partial"] * 3, missing={part: 3}).reasons
    assert reason.startswith(f"3 of 10 went {how}")


def test_any_part_that_is_not_well_degrades_the_whole_with_its_name() -> None:
    """Reasons name their part."""
    whole = overall({"log": log_part(WELL), "worker": Part(state="degraded", reasons=("does not run",))})
    assert (whole.state, whole.reasons) == ("degraded", ("worker: does not run",))
