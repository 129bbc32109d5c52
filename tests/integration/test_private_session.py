"""Private sessions: nothing of one is captured, by any gateway, until it is switched back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hearth.gateway.flow import Flow
from hearth.gateway.identity import GivenHeaders, IdentityError, _session_mode
from hearth.memory.errors import LogUnavailable, PrivateSession
from hearth.memory.events.kinds import UNKNOWN, SessionSwitched
from hearth.memory.types import Scope, Tails
from tests.api import Api, open_api
from tests.events import START, ManualClock, event, step
from tests.flow import Talker, exchanges, identity

ALICE = Scope(tenant="acme", user="alice")


@pytest.fixture(name="api")
async def _api(tmp_path: Path) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=ManualClock()) as api:
        yield api


def talker(api: Api, named: str = "", **policy: object) -> Talker:
    who = identity(**policy)
    who = type(who)(scope=Scope(tenant="acme", user="alice", session=named), policy=who.policy, key=who.key)
    return Talker(Flow(api.engine), api.engine.clock, who)  # type: ignore[arg-type]


async def held(api: Api) -> str:
    """All that the log and short-term memory hold of alice, as text."""
    await api.engine.drain()
    events = await api.engine.log.read(tenant="acme", user="alice")
    view = await api.engine.short_term.latest(ALICE, limit=100)
    return "\n".join(map(str, [*(one.payload for one in events), *view.pages]))


@pytest.mark.parametrize("session", ["named", ""])
async def test_a_session_stays_private_for_every_gateway_until_it_is_switched_back(
    api: Api, session: str
) -> None:
    """One call switches it; later ones need no header, whoever serves them, named or found by words."""
    client = talker(api, session)
    await client.say("I live in Bern.")
    client.who = talker(api, session, session="read").who
    first = await client.say("My secret is a zebra.", "A zebra?")
    client.who, client.flow = talker(api, session).who, Flow(api.engine)
    second = await client.say("And a second zebra.", "Two zebras.")
    assert (first.status, second.status) == ("ok", "ok")
    assert second.recall is not None
    assert "zebra" not in await held(api)
    client.who = talker(api, session, session="on").who
    await client.say("I like tea.")
    client.who = talker(api, session).who
    await client.say("I like cake.")
    assert [said for said, _, _ in await exchanges(client.flow)] == [
        *("I live in Bern.", "I like tea.", "I like cake."),
    ]
    assert "zebra" not in await held(api)


async def test_off_recalls_nothing_either(api: Api) -> None:
    """The call goes through without memory, and says why; so does the next one."""
    client = talker(api, "s", session="off")
    first = await client.say("I live in Bern.")
    client.who = talker(api, "s").who
    second = await client.say("Where do I live?")
    for call in (first, second):
        assert (call.status, call.reason, call.recall) == ("off", "private session", None)
    assert "Bern" not in await held(api)


async def test_it_is_switched_by_rest_and_survives_a_restart(tmp_path: Path) -> None:
    """A session that no call has named yet can be private from its first word on."""
    async with open_api(tmp_path, clock=ManualClock()) as api, api.client("alice") as alice:
        assert (await alice.put("/sessions/s/memory", json={"memory": "read"})).json() == {"memory": "read"}
        assert (await alice.put("/sessions/s/memory", json={"memory": "no"})).status_code == 422
    async with open_api(tmp_path, clock=ManualClock()) as api, api.client("alice") as alice:
        assert (await alice.get("/sessions/s/memory")).json() == {"memory": "read"}
        assert (await alice.get("/sessions/other/memory")).json() == {"memory": "on"}
        await talker(api, "s").say("My secret is a zebra.")
        assert "zebra" not in await held(api)
        async with api.client("bob") as bob:
            assert (await bob.get("/sessions/s/memory")).json() == {"memory": "on"}


async def test_a_switch_while_a_reply_is_under_way_holds_for_it(api: Api) -> None:
    """The log refuses what was begun before; short-term memory gives it back."""
    opened = await api.engine._next_in_session(Scope(tenant="acme", user="alice", session="s"), "zebra")
    await api.engine.switch_session(opened.scope, "off")
    begun = step(opened.exchange, user_text="zebra").payload.step  # type: ignore[union-attr]
    receipt = await api.engine.capture_step(opened, begun, event_id="e" * 32, page_reply="A zebra.")
    assert receipt.place == "private"
    assert "zebra" not in await held(api)
    with pytest.raises(PrivateSession):
        await api.engine.capture(opened.scope, "zebra", "A zebra.")


async def test_what_waited_for_the_log_is_refused_when_it_arrives(api: Api, tmp_path: Path) -> None:
    """A call that could not be asked about waits in the spool; of a private session it is dropped."""
    tails = Tails(last_pair="1" * 64)
    switched = SessionSwitched(mode="off", exchange="x", tails=tails)
    await api.engine.log.append([event(switched, session="s", at=START)])
    late = step("y", session="fresh", user_text="zebra", generation=UNKNOWN, tails_before=tails)
    named = step("z", session="s", user_text="zebra", generation=UNKNOWN)
    other = step("w", session="free", user_text="tea", generation=UNKNOWN)
    spool = api.engine.capture_path._spool
    spool.write([late, named, other])
    await spool.drain(api.engine.log)
    assert spool.pending() == 0
    seen = await held(api)
    assert "zebra" not in seen
    assert "tea" in seen


async def test_where_the_log_can_not_be_asked_a_switch_holds_too(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The switch waits in the spool with its tails: the next call is found to be private by itself."""

    async def away(*_: object, **__: object) -> None:
        raise LogUnavailable

    client = talker(api, session="off")
    with monkeypatch.context() as patched:
        patched.setattr(api.engine.log, "open_call", away)
        await client.say("My secret is a zebra.", "A zebra?")
        client.who = talker(api).who
        await client.say("And a second zebra.")
    await api.engine.capture_path._empty_spool()
    await client.say("A third zebra.")
    assert "zebra" not in await held(api)
    assert not await exchanges(client.flow)


def test_a_wrong_word_in_the_header_is_refused() -> None:
    """The message names the header and what it takes."""
    with pytest.raises(IdentityError, match=r"x-hearth-session-memory.*on, read, off"):
        _session_mode(GivenHeaders([("x-hearth-session-memory", "private")]))
