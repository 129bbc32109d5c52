"""The thin client of a running gateway's REST API, for the commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import httpx

from hearth.gateway.commands.output import FAILED, MISUSED, fail

API = "/memory/v1"
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 60.0
PAGE = 200
"""Records that one request of a list may ask for."""

Answer: TypeAlias = dict[str, Any]
"""A JSON object of the API."""


class GatewayError(Exception):
    """The gateway can't be reached, or it answered that it won't do what was asked."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        self.status = status
        super().__init__(message)

    @property
    def exit_code(self) -> int:
        """2 where a value of the command is wrong, else 1."""
        return MISUSED if self.status in (400, 413, 415, 422) else FAILED


class Rest:
    """One gateway, called with one key for one user."""

    def __init__(self, url: str, key: str, user: str) -> None:
        """`url` may end in `/v1`, as the base URL of an SDK does. Raises GatewayError for what is no URL."""
        self.url = _base(url)
        headers = {"x-hearth-user": _header("user", user)} if user else {}
        if key:
            headers["authorization"] = b"Bearer " + _header("key", key)
        self.http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            trust_env=not _on_this_machine(self.url),
            verify=self.url.startswith("https:"),
        )

    def get(self, path: str, **parameters: Any) -> Answer:
        """GET below /memory/v1; parameters that are None are left out. Raises GatewayError."""
        given = {name: value for name, value in parameters.items() if value is not None}
        return self._call("GET", path, params=given)

    def post(self, path: str, body: object, *, wait: bool = False) -> Answer:
        """POST a JSON body, and `wait` for the answer however long that takes. Raises GatewayError."""
        patience = {"timeout": httpx.Timeout(None, connect=CONNECT_SECONDS)} if wait else {}
        return self._call("POST", path, json=body, **patience)

    def put(self, path: str, body: object) -> Answer:
        """PUT a JSON body. Raises GatewayError."""
        return self._call("PUT", path, json=body)

    def send(self, path: str, raw: bytes, kind: str, **parameters: str) -> Answer:
        """PUT a body of that media type. Raises GatewayError."""
        return self._call("PUT", path, content=raw, headers={"content-type": kind}, params=parameters)

    def upload(self, path: str, parts: Iterable[bytes], **parameters: Any) -> Answer:
        """POST a file, a part at a time, and wait for as long as its import takes. Raises GatewayError."""
        return self._call(
            "POST",
            path,
            content=parts,
            params={name: value for name, value in parameters.items() if value not in (None, "")},
            headers={"content-type": "application/octet-stream"},
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        )

    def download(self, path: str, **parameters: Any) -> Iterator[bytes]:
        """GET a file, a part at a time. Raises GatewayError, also where it ends before its end."""
        try:
            with self.http.stream("GET", API + path, params=parameters) as answer:
                if not answer.is_success:
                    answer.read()
                    read(answer)
                yield from answer.iter_raw()
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error

    def delete(self, path: str, **parameters: Any) -> Answer:
        """DELETE; parameters as for `get`. Raises GatewayError."""
        given = {name: value for name, value in parameters.items() if value is not None}
        return self._call("DELETE", path, params=given)

    def walk(self, path: str, limit: int, **parameters: Any) -> Answer:
        """The first `limit` records of a list, over as many pages as that takes, as one page. Raises
        GatewayError.
        """
        page = self.get(path, limit=min(limit, PAGE), **parameters)
        items = list(page["items"])
        while page["next"] and len(items) < limit:
            rest = min(limit - len(items), PAGE)
            page = self.get(path, limit=rest, cursor=page["next"], **parameters)
            items += page["items"]
        return {**page, "items": items}

    def recalled(self, headers: httpx.Headers) -> list[Answer]:
        """What was recalled for a model call, by its reply's headers: the items of its trace that went in.

        Raises GatewayError.
        """
        trace = headers.get("x-hearth-trace", "")
        if not trace or headers.get("x-hearth-recalled", "0") == "0":
            return []
        return [item for item in self.get(f"/recalls/{trace}")["items"] if item["verdict"] == "in"]

    def _call(self, method: str, path: str, **sent: Any) -> Answer:
        try:
            answer = self.http.request(method, API + path, **sent)
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error
        return read(answer)


@contextmanager
def gateway(url: str, key: str, user: str = "") -> Iterator[Rest]:
    """The gateway for one command; what goes wrong ends the command with one line and its exit code."""
    try:
        rest = Rest(url, key, user)
        with rest.http:
            yield rest
    except GatewayError as error:
        fail(error, error.exit_code)


def read(answer: httpx.Response) -> Answer:
    """The JSON object of an answer that has been read. Raises GatewayError for every other answer.

    A 503 with a body that is no problem is the health of a gateway that is down, and is returned.
    """
    try:
        body = answer.json()
    except ValueError:
        body = None
    if answer.is_success or (answer.status_code == 503 and isinstance(body, dict) and "parts" in body):
        if isinstance(body, dict):
            return body
        raise GatewayError(f"{answer.url} does not answer as Hearth does; is --url right?")
    raise GatewayError(explain(answer.status_code, answer.reason_phrase, body), status=answer.status_code)


def explain(status: int, phrase: str, body: object) -> str:
    """One line of an error answer: problem details, LiteLLM's error, or the status alone."""
    if isinstance(body, Mapping):
        nested = body.get("error")
        for text in (
            body.get("detail"),
            nested.get("message") if isinstance(nested, Mapping) else nested,
            body.get("title"),
        ):
            if isinstance(text, str) and text.strip():
                return text
    return f"the gateway answered {status} {phrase}".strip()


def unreachable(url: str, error: httpx.HTTPError) -> GatewayError:
    """What an error of the connection means for the person who typed the command."""
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return GatewayError(
                f"no gateway answers at {url}; start one with `hearth serve`, or name another with --url"
            )
        case httpx.TimeoutException():
            return GatewayError(f"{url} did not answer within {ANSWER_SECONDS:.0f} s")
    return GatewayError(f"the connection to {url} failed: {error or type(error).__name__}")


def _base(url: str) -> str:
    bare = url.strip().rstrip("/").removesuffix("/v1").rstrip("/")
    try:
        parts = urlsplit(bare)
        parts.port  # noqa: B018 - raises for what is no port
    except ValueError as error:
        raise GatewayError(f"--url {url}: {error}", status=400) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise GatewayError(f"--url {url}: expected an address such as http://127.0.0.1:4000", status=400)
    return bare


def _header(name: str, value: str) -> bytes:
    """Header bytes. Other scripts go as UTF-8, and the gateway reads them so."""
    value = value.strip()
    if not value.isprintable():
        raise GatewayError(f"--{name}: expected text without control characters", status=400)
    return value.encode("utf-8", "surrogateescape")


def _on_this_machine(url: str) -> bool:
    """A proxy of the environment is of no use for this machine's own addresses."""
    return (urlsplit(url).hostname or "") in ("127.0.0.1", "localhost", "::1")
