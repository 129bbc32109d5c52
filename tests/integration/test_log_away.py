"""Calls while the event log can't be asked: they are captured, and find their place when it is back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hearth.config.switches import Mode
from hearth.gateway.call import response_headers
from hearth.gateway.flow import Flow
from hearth.gateway.switchboard import FileSwitchboard
from hearth.gateway.wire.types import WireReply
from hearth.memory import metrics
from hearth.memory.errors import LogUnavailable
from hearth.memory.types import Exchange, ToolUse
from hearth.testing.embedder import ScriptedEmbedder
from tests.api import open_engine
from tests.events import ManualClock
from tests.flow import Talker, identity


@pytest.fixture(name="flow")
async def _flow(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Flow]:
    async with open_engine(tmp_path, clock, ScriptedEmbedder()) as engine:
        yield Flow(engine)


@asynccontextmanager
async def away(flow: Flow) -> AsyncIterator[None]:
    """The log is closed, and open again at the end; what waits stays in the spool."""
    await flow.engine.log.close()  # type: ignore[attr-defined]
    yield
    await flow.engine.log.start()  # type: ignore[attr-defined]


async def arrived(flow: Flow) -> list[Exchange]:
    """Alice's exchanges, oldest first, once the spool is empty and all is filed."""
    await flow.engine.capture_path._empty_spool()
    assert flow.engine.capture_path.spooled() == 0
    await flow.engine.drain()
    return (await flow.engine.exchanges("acme", "alice"))[::-1]


async def test_a_conversation_goes_on_through_an_outage_in_its_session(
    flow: Flow, clock: ManualClock
) -> None:
    """Turns before, while and after the log is away are one session in their order, each once."""
    talker = Talker(flow, clock)
    before = await talker.say("I live in Bern.", "Nice.")
    async with away(flow):
        for text in ("I have a dog.", "It is called Rex."):
            call = await talker.say(text, f"About {text}")
            assert talker.prompt().endswith(text)
            headers = response_headers(call)
            assert (headers["x-hearth-status"], headers["x-hearth-reason"]) == ("failed", "log")
            assert "x-hearth-session" not in headers
    await arrived(flow)
    await talker.say("Thanks.")
    found = await arrived(flow)
    assert [one.user_text for one in found] == [
        "I live in Bern.",
        "I have a dog.",
        "It is called Rex.",
        "Thanks.",
    ]
    assert before.opened is not None
    assert {one.scope.session for one in found} == {before.opened.scope.session}
    assert {one.state for one in found} == {"closed"}


async def test_conversations_begun_meanwhile_are_sessions_of_their_own(
    flow: Flow, clock: ManualClock
) -> None:
    """Two conversations that begin with the same words are two, and each stays together."""
    await flow.engine.secret("acme")
    one, other = Talker(flow, clock), Talker(flow, clock)
    async with away(flow):
        await one.say("Hi", "Hello!")
        await other.say("Hi", "Hello!")
        await one.say("I am Ana.", "Welcome, Ana.")
        await other.say("I am Bo.", "Welcome, Bo.")
    found = await arrived(flow)
    assert [one.user_text for one in found] == ["Hi", "Hi", "I am Ana.", "I am Bo."]
    assert len({one.id for one in found}) == 4
    await one.say("What is my name?")
    sessions = {x.user_text: x.scope.session for x in await arrived(flow)}
    assert sessions["I am Ana."] == sessions["What is my name?"]


async def test_a_tool_loop_meanwhile_is_one_exchange(flow: Flow, clock: ManualClock) -> None:
    """Its steps are found among those that wait."""
    talker = Talker(flow, clock)
    tool = ToolUse(name="clock", arguments="{}")
    async with away(flow):
        talker.messages.append({"role": "user", "content": "What time is it?"})
        await talker.send(WireReply(text="", tools=(tool,)))
        asked = {"id": "t1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
        talker.messages.append({"role": "assistant", "content": None, "tool_calls": [asked]})
        talker.messages.append({"role": "tool", "tool_call_id": "t1", "content": "12:00"})
        await talker.send("It is noon.")
    (found,) = await arrived(flow)
    assert (found.steps, found.user_text, found.reply_text) == (2, "What time is it?", "It is noon.")


async def test_case_21_what_was_said_before_an_erasure_does_not_arrive_after_it(
    flow: Flow, clock: ManualClock
) -> None:
    """A capture that waited while its user was erased is refused; one from after the erasure is taken."""
    talker = Talker(flow, clock)
    await talker.say("I keep bees.")
    async with away(flow):
        await talker.say("They are called Maja and Willi.")
    await flow.engine.erase("acme", "alice")
    assert await arrived(flow) == []
    clock.advance(seconds=10)
    async with away(flow):
        await Talker(flow, clock).say("I keep goats.")
    assert [one.user_text for one in await arrived(flow)] == ["I keep goats."]


async def test_nothing_is_recalled_while_it_is_not_known_who_was_erased(
    flow: Flow, clock: ManualClock
) -> None:
    """Without the log nobody knows the user's generation, so no block is made, whatever the stores hold; the
    counters, by which alerts go, have it as a recall that failed for want of the log.
    """
    counted = (
        ("hearth_recalls_total", {"status": "failed"}),
        ("hearth_recall_missing_total", {"part": "log"}),
    )
    before = [metrics.REGISTRY.get_sample_value(*one) or 0 for one in counted]
    await Talker(flow, clock).say("My dog is called Zebedee.")
    await flow.engine.drain()
    async with away(flow):
        asker = Talker(flow, clock)
        call = await asker.say("What is my dog called?")
        assert asker.prompt() == "What is my dog called?"
        assert call.recall is None
    assert [metrics.REGISTRY.get_sample_value(*one) for one in counted] == [one + 1 for one in before]


async def test_a_first_call_without_its_log_is_captured_too(flow: Flow, clock: ManualClock) -> None:
    """A process that never reached its log, and so knows no secret, loses no exchange."""
    async with away(flow):
        talker = Talker(flow, clock)
        await talker.say("One.")
        await talker.say("Two.")
    found = await arrived(flow)
    assert [one.user_text for one in found] == ["One.", "Two."]
    assert len({one.scope.session for one in found}) == 1


async def test_calls_stop_waiting_for_a_log_that_does_not_answer(
    flow: Flow, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After five that waited in vain the next ones are captured without asking it."""
    asked = 0

    async def hang(*_: object, **__: object) -> None:
        nonlocal asked
        asked += 1
        await asyncio.Event().wait()

    await Talker(flow, clock).say("The tenant's secret is known from now on.")
    monkeypatch.setattr(flow.engine.log, "open_call", hang)
    for number in range(9):
        await Talker(flow, clock).say(f"Number {number}.")
    assert asked == 5
    monkeypatch.undo()
    assert len(await arrived(flow)) == 10


async def test_what_is_captured_before_the_switches_are_known_waits_for_them(
    flow: Flow, clock: ManualClock, tmp_path: Path
) -> None:
    """Though the log takes it by then: what is off when they are read is dropped, what is on arrives."""
    wait = {"waits": True, "reason": "switches not read"}
    board = FileSwitchboard(tmp_path / "switches.json")
    talker = Talker(flow, clock, identity(Mode.CAPTURE, **wait))
    call = await talker.say("I live in Bern.")
    headers = response_headers(call)
    assert (headers["x-hearth-status"], headers["x-hearth-reason"]) == ("failed", "switches not read")
    assert await flow.engine.exchanges("acme", "alice") == []
    assert [one.user_text for one in await arrived(flow)] == ["I live in Bern."]
    await talker.say("I live in Rome.")
    await board.set("read", key="laptop")
    assert [one.user_text for one in await arrived(flow)] == ["I live in Bern."]
    await board.set("on", key="laptop")
    await talker.say("I live in Oslo.")
    assert [one.user_text for one in await arrived(flow)] == ["I live in Bern.", "I live in Oslo."]


async def test_the_spool_waits_for_switches_that_can_not_be_read(
    flow: Flow, clock: ManualClock, tmp_path: Path
) -> None:
    """What may be off is not stored, and what may be on is not dropped."""
    async with away(flow):
        await Talker(flow, clock).say("I live in Bern.")
    (tmp_path / "switches.json").write_text("{broken")
    with pytest.raises(LogUnavailable, match="switches"):
        await arrived(flow)
    assert flow.engine.capture_path.spooled() == 1
    (tmp_path / "switches.json").write_text("{}")
    assert [one.user_text for one in await arrived(flow)] == ["I live in Bern."]


async def test_what_waited_is_masked_as_is_set_when_it_arrives(flow: Flow, clock: ManualClock) -> None:
    """While the log is away nobody knows what was set for the key."""
    kept = "My mail is [personal:email]"
    async with away(flow):
        await Talker(flow, clock).say("My mail is anna@example.com", "Noted: anna@example.com")
    await flow.engine.policies.change(
        "acme", {"capture.redact": "email"}, level="key", whose="laptop", by="admin"
    )
    (found,) = await arrived(flow)
    assert (found.user_text, found.reply_text) == (kept, "Noted: [personal:email]")
