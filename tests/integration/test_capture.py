"""Capture: durable before the reply's end, whatever the log does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from hearth.memory import metrics
from hearth.memory.capture import Capture
from hearth.memory.errors import LogUnavailable
from hearth.memory.events.kinds import Event
from hearth.memory.events.spool import Spool
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.stores.memory_short_term import InMemoryShortTerm
from hearth.memory.types import Embedding
from tests.events import erase, page, step


class TroubledLog:
    """A real log whose appends wait, or fail, as long as a test says so."""

    def __init__(self, log: SqliteLog) -> None:
        self.log = log
        self.open = asyncio.Event()
        self.open.set()
        self.broken = False

    async def append(self, events: Sequence[Event], *, unless_held: bool = False) -> None:
        """The log's append, after the trouble."""
        await self.open.wait()
        if self.broken:
            raise LogUnavailable("the disk is gone")
        await self.log.append(events, unless_held=unless_held)


@pytest.fixture(name="troubled")
def _troubled(sqlite_log: SqliteLog) -> TroubledLog:
    return TroubledLog(sqlite_log)


@pytest.fixture(name="spool")
def _spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(tmp_path / "spool")
    yield spool
    spool.close()


def capture_over(log: TroubledLog, spool: Spool, *, appended: Callable[[], None] = lambda: None) -> Capture:
    """A capture that waits 50 ms for the log."""
    return Capture(
        log=log,  # type: ignore[arg-type]
        spool=spool,
        short_term=InMemoryShortTerm(),
        ack_seconds=0.05,
        appended=appended,
    )


async def captured(log: SqliteLog) -> list[str]:
    """Ids of the steps in the log."""
    return [event.id for event in await log.read(kinds=["step.captured"])]


async def test_an_acknowledged_capture_stands_in_the_log(troubled: TroubledLog, spool: Spool) -> None:
    """The receipt `log` means that the event can be read from the log."""
    capture = capture_over(troubled, spool)
    receipt = await capture.write(step(id="1" * 32), page=None, vector=None, block=None)
    assert receipt.place == "log"
    assert await captured(troubled.log) == ["1" * 32]


async def test_a_slow_log_sends_the_capture_to_the_spool_and_it_arrives_once(
    troubled: TroubledLog, spool: Spool
) -> None:
    """Past the limit the spool has the event; when log and spool both deliver it, it is there once."""
    capture = capture_over(troubled, spool)
    troubled.open.clear()
    receipt = await capture.write(step(id="2" * 32), page=None, vector=None, block=None)
    assert receipt.place == "spool"
    assert spool.pending() == 1
    troubled.open.set()
    await capture.drain()
    await spool.drain(troubled.log)
    assert await captured(troubled.log) == ["2" * 32]
    assert spool.pending() == 0


async def test_a_broken_log_sends_the_capture_to_the_spool_at_once(
    troubled: TroubledLog, spool: Spool
) -> None:
    """A refusing log is not waited for, and the exchange waits on disk."""
    capture = capture_over(troubled, spool)
    troubled.broken = True
    receipt = await capture.write(step(), page=None, vector=None, block=None)
    assert receipt.place == "spool"
    assert spool.pending() == 1


async def test_steps_are_known_as_unwritten_until_the_log_has_them(
    troubled: TroubledLog, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a slow log, or in the spool for a broken one, is named in its order, and no longer."""
    monkeypatch.setattr("hearth.memory.capture.SPOOL_SECONDS", 0.01)
    emptied = asyncio.Event()
    capture = capture_over(troubled, spool, appended=emptied.set)
    sent = [step("slow"), step("broken"), step("written")]
    troubled.open.clear()
    await capture.write(sent[0], page=None, vector=None, block=None)
    assert capture.unwritten() == (sent[0],)
    troubled.broken = True
    troubled.open.set()
    await capture.write(sent[1], page=None, vector=None, block=None)
    assert capture.unwritten() == tuple(sent[:2])
    troubled.broken = False
    await capture.write(sent[2], page=None, vector=None, block=None)
    assert capture.unwritten() == tuple(sent[:2])
    emptied.clear()
    emptying = asyncio.create_task(capture.empty_spool())
    await asyncio.wait_for(emptied.wait(), 20)
    emptying.cancel()
    assert capture.unwritten() == ()
    assert sorted(await captured(troubled.log)) == sorted(event.id for event in sent)


async def test_what_neither_log_nor_spool_takes_is_counted_as_lost(
    troubled: TroubledLog, tmp_path: Path
) -> None:
    """The one hole is visible: the receipt says so and the counter rises."""
    (tmp_path / "file").write_text("no folder can be made below this")
    capture = capture_over(troubled, Spool(tmp_path / "file" / "spool"))
    troubled.broken = True
    before = metrics.REGISTRY.get_sample_value("hearth_capture_lost_total") or 0
    receipt = await capture.write(step(), page=None, vector=None, block=None)
    assert receipt.place == "lost"
    assert metrics.REGISTRY.get_sample_value("hearth_capture_lost_total") == before + 1


async def test_a_capture_of_an_erased_user_is_refused(troubled: TroubledLog, spool: Spool) -> None:
    """A reply that ends after its user was erased leaves nothing, in the log or in the spool."""
    await troubled.log.append([erase(generation=2)])
    receipt = await capture_over(troubled, spool).write(step(), page=None, vector=None, block=None)
    assert receipt.place == "stale"
    assert await captured(troubled.log) == []
    assert spool.pending() == 0


async def test_a_cancelled_request_does_not_cancel_its_capture(troubled: TroubledLog, spool: Spool) -> None:
    """The client is gone in the middle of the append, and the exchange is written all the same."""
    capture = capture_over(troubled, spool)
    troubled.open.clear()
    request = asyncio.create_task(capture.write(step(id="3" * 32), page=None, vector=None, block=None))
    await asyncio.sleep(0.01)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    troubled.open.set()
    await capture.drain()
    assert await captured(troubled.log) == ["3" * 32]


async def test_the_page_stands_in_short_term_memory_with_its_vector(
    troubled: TroubledLog, spool: Spool
) -> None:
    """What was said can be recalled at once, with the vector that recall had computed."""
    short_term = InMemoryShortTerm()
    capture = Capture(
        log=troubled,  # type: ignore[arg-type]
        spool=spool,
        short_term=short_term,
        ack_seconds=1.0,
        appended=lambda: None,
    )
    said = page("a" * 32).payload.page
    await capture.write(step("a" * 32), page=said, vector=Embedding("e", [0.6, 0.8]), block=None)
    view = await short_term.latest(said.scope, limit=10)
    assert [one.id for one in view.pages] == ["a" * 32]
    assert view.vectors["a" * 32].numbers == pytest.approx([0.6, 0.8])


async def test_what_can_wait_is_appended_together_and_drain_waits_for_it(
    troubled: TroubledLog, spool: Spool
) -> None:
    """Late events are not in the log at once, but all are after a drain; one of an erased user is refused."""
    capture = capture_over(troubled, spool)
    await troubled.log.append([erase(2, user="bob")])
    late = [step(f"e{number}") for number in range(3)]
    for event in (*late, step("gone", user="bob")):
        capture.later(event)
    assert await captured(troubled.log) == []
    await capture.drain()
    assert await captured(troubled.log) == [event.id for event in late]
