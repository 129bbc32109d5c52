"""Every route of the API gets what its schema allows and what it does not; none answers with an error."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode

from tests.api import secret
from tests.tenancy.world import World

EXAMPLES = 2
"""Of each route in each of both ways."""
KEYS = ("authorization", "x-api-key")
"""Headers that the document names too, so that a request would come with a wrong key beside the right one."""


@pytest.fixture(scope="module", name="world")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("fuzz"))
    yield world
    world.close()


def _sent(world: World, case: Case) -> tuple[int, str]:
    """The answer's status and text, of the request as a client library puts it on the wire."""
    given = case.as_transport_kwargs(base_url="http://gateway/memory")
    made_up = {
        name: value for name, value in dict(given["headers"] or {}).items() if name.lower() not in KEYS
    }
    headers = {**made_up, "authorization": f"Bearer {secret('admin')}"}
    content = json.dumps(given["json"]).encode() if "json" in given else _bytes(given.get("data") or b"")
    made = httpx.Request(
        given["method"],
        given["url"],
        params=given.get("params"),
        headers=[(_bytes(name), _bytes(value)) for name, value in headers.items()],
        content=content,
    )
    target, raw = made.url.raw_path.decode(), made.headers.raw
    answer = world.runner.run(world.send(made.method, target, headers=raw, content=content))
    return answer.status_code, f"{made.method} {made.url} {content[:200]!r}: {answer.text[:200]}"


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
def test_no_request_makes_the_api_break(world: World, mode: GenerationMode) -> None:
    """Some of what the OpenAPI document allows is taken, and nothing that it forbids breaks anything."""
    schema = schemathesis.openapi.from_dict(dict(world.document))
    statuses: Counter[int] = Counter()
    broken: list[str] = []
    for found in schema.get_all_operations():
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query or operation.headers):
            continue  # a route that takes nothing has nothing wrong

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def send(case: Case) -> None:
            status, told = _sent(world, case)
            statuses[status] += 1
            if status >= 500:
                broken.append(told)

        send()
    assert not broken
    assert min(statuses[200 if mode is GenerationMode.POSITIVE else 422], 100) > 20, statuses
