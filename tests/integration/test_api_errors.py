"""Errors over REST: always problem details, never the inside of the gateway, always what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hearth.memory import metrics
from hearth.memory.ports import MemoryFilter
from tests.api import Api, open_api

JSON = {"content-type": "application/json"}


@pytest.fixture(name="api")
async def _api(tmp_path: Path) -> AsyncIterator[Api]:
    async with open_api(tmp_path) as api:
        yield api


def _problem(answer: Any, status: int, kind: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert set(problem) == {"type", "title", "status", "detail", "errors"}
    assert (problem["type"], problem["status"]) == (f"urn:hearth:problem:{kind}", status)
    return problem


async def test_an_unknown_route_is_a_problem_that_says_where_the_routes_are_listed(api: Api) -> None:
    """404 below /memory/v1 and beside it, with and without a slash at the end."""
    async with api.client("alice") as alice:
        for path in ("/nothing", "/memories/", "/", "http://gateway/memory/else"):
            assert "openapi.json" in _problem(await alice.get(path), 404, "no-route")["detail"]


async def test_a_wrong_method_is_a_problem_that_names_the_right_ones(api: Api) -> None:
    """405 keeps the Allow header."""
    async with api.client("alice") as alice:
        answer = await alice.put("/scopes")
    assert "GET" in _problem(answer, 405, "method")["detail"]
    assert answer.headers["allow"] == "GET"


@pytest.mark.parametrize(
    "raw",
    [b"{", b'{"text": NaN}', b'{"text": "\xff"}', b"[" * 100_000, b'{"importance": 1' + b"0" * 5000 + b"}"],
)
async def test_a_body_that_is_no_json_is_refused(api: Api, raw: bytes) -> None:
    """Cut off, not finite, not UTF-8, endlessly nested and endlessly long numbers are all a 400."""
    async with api.client("alice") as alice:
        _problem(await alice.post("/memories", content=raw, headers=JSON), 400, "bad-request")


async def test_a_body_of_another_media_type_is_refused(api: Api) -> None:
    """A body that does not say that it is JSON is no JSON."""
    async with api.client("alice") as alice:
        text = await alice.post("/memories", content=b'{"text": "x"}', headers={"content-type": "text/plain"})
        _problem(text, 415, "media-type")
        _problem(
            await alice.post("/import", content=b"x", headers={"content-type": "text/csv"}), 415, "media-type"
        )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ([], "an object"),
        ({"query": 1}, "a text"),
        ({"query": "x", "budget": True}, "a whole number"),
        ({"query": "x", "budget": "many"}, "a whole number"),
        ({"query": "x", "budget": -1}, "at least 0"),
        ({"query": "x" * 9_000}, "at most 8192 characters"),
    ],
)
async def test_what_is_expected_is_said_in_words_of_the_api(api: Api, body: Any, expected: str) -> None:
    """No name of a class, nothing of how values are parsed, and no `true` for a number."""
    async with api.client("alice") as alice:
        problem = _problem(await alice.post("/recall", json=body), 422, "invalid")
    assert [error["expected"] for error in problem["errors"]] == [expected]


async def test_a_memory_of_the_future_is_refused(api: Api) -> None:
    """It would be the latest of all for ever; a clock that runs ahead a little is no reason."""
    ahead = (api.engine.clock.now() + timedelta(seconds=20)).isoformat()
    async with api.client("alice") as alice:
        late = await alice.post("/memories", json={"text": "x", "occurred_at": "2190-01-01T00:00:00Z"})
        assert _problem(late, 422, "invalid")["errors"][0]["expected"] == "a time that is not in the future"
        taken = await alice.post("/memories", json={"text": "x", "occurred_at": ahead})
    assert taken.json()["occurred_at"] <= ahead


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({}, "text"),
        ({"text": "x", "importance": 2}, "importance"),
        ({"text": "x", "importance": "0.5"}, "importance"),
        ({"text": "x", "importance": True}, "importance"),
        ({"text": "x", "pinned": "yes"}, "pinned"),
        ({"text": "x", "type": "page"}, "type"),
        ({"text": "x", "tags": "health"}, "tags"),
        ({"text": "x", "tags": ["\n"]}, "tags.0"),
        ({"text": "x", "metadata": {"a": {"b": 1}}}, "metadata"),
        ({"text": "x", "metadata": {"a": 2**70}}, "metadata"),
        ({"text": "x", "metadata": []}, "metadata"),
        ({"text": "x", "occurred_at": "yesterday"}, "occurred_at"),
        ({"text": "x", "occurred_at": "2026-01-01T00:00:00"}, "occurred_at"),
        ({"text": "x", "occurred_at": "0001-01-01T00:00:00+09:00"}, "occurred_at"),
        ({"text": "x", "expires_at": 1_700_000_000}, "expires_at"),
        ({"text": "x", "session": "s" * 200}, "session"),
        ({"text": "x", "id": "mine"}, "id"),
    ],
)
async def test_a_value_that_can_t_be_used_is_named(api: Api, body: Any, field: str) -> None:
    """The problem names the field and what was expected, and nothing is stored."""
    async with api.client("alice") as alice:
        problem = _problem(await alice.post("/memories", json=body), 422, "invalid")
        assert (await alice.get("/memories")).json()["total"] == 0
    assert [error["field"] for error in problem["errors"]] == [field]
    assert problem["errors"][0]["expected"]


@pytest.mark.parametrize(
    "cursor",
    ["x", "WyJtZW1vcmllcyJd", "💥", "eyJhIjoxfQ", "WyJzZXNzaW9ucyIsIjIwMjYtMDEtMDFUMDA6MDA6MDBaIiwiYSJd"],
)
async def test_a_cursor_of_no_list_of_ours_is_refused(api: Api, cursor: str) -> None:
    """Garbage, a part of a cursor, and another list's cursor are a 422 that says where cursors come from."""
    async with api.client("alice") as alice:
        problem = _problem(await alice.get("/memories", params={"cursor": cursor}), 422, "invalid")
    assert "next" in problem["errors"][0]["expected"]


async def test_a_body_over_the_limit_is_refused_whether_or_not_it_says_its_length(api: Api) -> None:
    """More than 10 MB are a 413, declared or streamed."""

    def stream() -> Iterator[bytes]:
        for _ in range(11):
            yield b" " * 1_000_000

    async def pieces() -> AsyncIterator[bytes]:
        for piece in stream():
            yield piece

    async with api.client("alice") as alice:
        declared = await alice.post("/memories", content=b"".join(stream()), headers=JSON)
        streamed = await alice.post("/memories", content=pieces(), headers=JSON)
        for answer in (declared, streamed):
            assert "10 MB" in _problem(answer, 413, "too-large")["detail"]


async def test_an_unexpected_error_is_counted_and_keeps_its_secret(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug is a 500 without its text, one more failure in the metrics, and whole in the log."""

    async def broken(tenant: str, user: str, *, where: MemoryFilter) -> int:
        raise KeyError("/etc/secret")

    monkeypatch.setattr(api.engine, "count_memories", broken)
    counted = {"place": "api"}
    before = metrics.REGISTRY.get_sample_value("hearth_failures_total", counted) or 0
    async with api.client("alice") as alice:
        answer = await alice.get("/memories")
    _problem(answer, 500, "internal")
    assert "secret" not in answer.text
    assert metrics.REGISTRY.get_sample_value("hearth_failures_total", counted) == before + 1
    assert "/etc/secret" in caplog.text


async def test_the_openapi_document_has_an_example_and_a_problem_for_every_route(api: Api) -> None:
    """Every body has an example, every route its errors as problem details, and no route FastAPI's own."""
    async with api.client(None) as nobody:
        document = (await nobody.get("/openapi.json")).json()
    assert document["servers"] == [{"url": "/memory"}]
    assert "HTTPValidationError" not in document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            content = operation["responses"]["default"]["content"]
            assert list(content) == ["application/problem+json"], (path, method)
            body = operation.get("requestBody", {}).get("content", {})
            for media, described in body.items():
                assert _has_example(document, described), (path, method, media)


def _has_example(document: dict[str, Any], described: dict[str, Any]) -> bool:
    schema = described["schema"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    turns = schema.get("properties", {}).get("turns", {}).get("items", {})
    return "example" in described or "examples" in schema or "examples" in turns
