"""What memory costs where the provider caches prompts: at most 1.35 times the session without it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from benchmarks.cache_cost import (
    CACHINGS,
    SESSIONS,
    THINGS,
    WRITTEN_LATE,
    Body,
    Caching,
    Session,
    charges,
    cost,
    hold,
    stripped,
)
from hearth.gateway.wire import WIRES
from hearth.testing.cache_units import canonical
from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import Request
from tests.acceptance.conftest import APP, GatewayProcess
from tests.acceptance.talk import remember_all, sent_text

CHAT, AGENT = SESSIONS
EXPLICIT, AUTOMATIC, PREFIX, IMPLICIT, IMPLICIT_RESPONSES = CACHINGS
MOST = 1.35
"""Times the input cost of the session without memory."""
Held = tuple[Session, Caching, list[Request], list[int]]
"""A whole session: what the provider received and the block tokens of each call."""
HELD = [(CHAT, caching) for caching in (EXPLICIT, AUTOMATIC, PREFIX, IMPLICIT)]
HELD += [(AGENT, caching) for caching in (EXPLICIT, AUTOMATIC, IMPLICIT_RESPONSES)]


def _name(held: tuple[Session, Caching]) -> str:
    session, caching = held
    return f"{session.name.split(',')[0]}-{caching.name}".replace(" ", "-")


@pytest.fixture(scope="module", params=HELD, ids=_name)
def held(request: pytest.FixtureRequest, gateway: GatewayProcess, _provider: ScriptedProvider) -> Held:
    """A whole session, held once: what the provider received and the block tokens of each call."""
    session, caching = request.param
    user = f"cost {session.name} {caching.name}"
    said = [texts for turn, (_, texts) in enumerate(THINGS[: session.turns]) if turn != WRITTEN_LATE]
    remember_all(gateway, user, [text for texts in said for text in texts])

    def before_turn(turn: int) -> None:
        if turn == WRITTEN_LATE:
            remember_all(gateway, user, THINGS[turn][1])

    with gateway.client(APP, **{"x-hearth-user": user}) as client:
        requests, tokens = hold(client, _provider, caching, session, before_turn)
    return session, caching, requests, tokens


def test_memory_costs_little_more(held: Held) -> None:
    """With a block in most turns the input costs at most 1.35 times that of the session without memory."""
    session, caching, requests, tokens = held
    turns = tokens[:: session.steps + 1]
    assert sum(map(bool, turns)) >= session.turns * 0.7
    assert cost(charges(requests)) <= MOST * cost(charges(requests, stripped(caching.route)))


def test_what_was_written_in_mid_session_is_recalled(
    held: Held,
) -> None:
    """The memory that was written between turns 3 and 4 is in the prompt of turn 4."""
    session, _, requests, _ = held
    fourth = requests[WRITTEN_LATE * (session.steps + 1)]
    assert any(text in sent_text(fourth.body) for text in THINGS[WRITTEN_LATE][1])


def test_case_38_each_prompt_begins_as_the_one_before(held: Held) -> None:
    """Tools, system and all before the newest user message stay as they are; no cache mark is added."""
    _, caching, requests, _ = held
    for before, after in pairwise(requests):
        assert _head(before.body) == _head(after.body)
        newest = _user_places(before.body, caching)[-1]
        assert _items(after.body, caching)[:newest] == _items(before.body, caching)[:newest]
    assert max(sent_text(request.body).count('"cache_control"') for request in requests) <= 4


@pytest.mark.parametrize("held", [(CHAT, AUTOMATIC), (CHAT, IMPLICIT)], ids=_name, indirect=True)
def test_blocks_that_stay_are_what_keeps_it_cheap(held: Held) -> None:
    """Where caching is automatic, the same session without its earlier blocks would cost more than that."""
    _, caching, requests, _ = held
    plain = cost(charges(requests, stripped(caching.route)))
    assert cost(charges(requests, _newest_alone(caching))) > MOST * plain


def _head(body: Body) -> list[str]:
    return [canonical(body.get(name)) for name in ("tools", "system", "instructions")]


def _field(caching: Caching) -> str:
    return "input" if caching.route == "responses" else "messages"


def _items(body: Body, caching: Caching) -> list[str]:
    return [canonical(item) for item in body[_field(caching)]]


def _user_places(body: Body, caching: Caching) -> list[int]:
    """Places of the user messages that have words."""
    items = enumerate(body[_field(caching)])
    return [place for place, item in items if item.get("role") == "user" and _has_words(item["content"])]


def _has_words(content: str | list[Body]) -> bool:
    return isinstance(content, str) or any("text" in part for part in content)


def _newest_alone(caching: Caching) -> Callable[[Body], Body]:
    """A change that takes out every block but the newest message's."""
    field = _field(caching)

    def change(body: Body) -> Body:
        newest, bare = _user_places(body, caching)[-1], WIRES[caching.route].strip(body)[field]
        return {**body, field: [*bare[:newest], *body[field][newest:]]}

    return change
