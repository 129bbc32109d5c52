"""Calls of the load benchmark begin when they were meant to, and their time counts from then."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

from benchmarks.arrivals import Times, moments, open_loop


def test_the_moments_are_a_poisson_process_and_the_same_each_time() -> None:
    """They rise, come at the rate asked for on average, and follow from the seed alone."""
    drawn = moments(100.0, 20_000, seed=1)
    assert drawn == moments(100.0, 20_000, seed=1) != moments(100.0, 20_000, seed=2)
    assert all(one < other for one, other in pairwise(drawn))
    assert 195 < drawn[-1] < 205


async def test_a_stall_counts_for_every_call_that_was_meant_meanwhile() -> None:
    """The first call stops everything for 0.3 s; calls meant within that time count what they waited."""
    times = Times()

    async def call(number: int) -> None:
        if number == 0:
            time.sleep(0.3)  # noqa: ASYNC251 - as a busy process would

    await open_loop(call, rate=1_000.0, count=50, seed=1, times=times)
    assert times.count == 50
    assert times.at(50) > 200


async def test_calls_do_not_wait_for_one_another() -> None:
    """A call that never ends by itself keeps none of the others from beginning."""
    begun, last = [], asyncio.Event()

    async def call(number: int) -> None:
        begun.append(number)
        if number == 9:
            last.set()
        await last.wait()

    await open_loop(call, rate=1_000.0, count=10, seed=1, times=Times())
    assert begun == list(range(10))


def test_percentiles_of_no_calls_are_zero() -> None:
    """A report of a run without calls can be written."""
    assert Times().numbers() == {"calls": 0, "p50_ms": 0, "p95_ms": 0, "p99_ms": 0, "longest_ms": 0}
