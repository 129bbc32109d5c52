"""Calls of a Qdrant server: each within its time, tried again where there is some left, errors translated."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import httpx
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from hearth.memory.errors import StoreUnavailable
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.vector_index import PART

_log = logging.getLogger(__name__)

T = TypeVar("T")

CONNECT_SECONDS = 1.0
ATTEMPTS = 3
PAUSE = 0.05
"""Seconds before the second attempt at most; the pauses after it may be twice as long each."""
SPARE = 4
"""Connections beside those of the searches: for the writer and for looking after the collection."""
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same call may succeed. Every call of ours may be made twice."""
_REFUSED = (401, 403)
_MEANING = {401: "it refuses the API key", 403: "the API key has no right to this", 413: "too much at once"}


class CollectionMissingError(Exception):
    """The server has no such collection."""


class QdrantCalls:
    """A client of one server, and what every call through it keeps to. Any thread may call."""

    def __init__(self, server: QdrantServer) -> None:
        self._server = server
        self._limits = threading.local()
        self._closing = threading.Event()
        most = server.connections + SPARE
        self._client = QdrantClient(
            url=server.url,
            # as a header: with `api_key` the client prints a warning of http://, which Hearth gives itself
            headers={"api-key": server.api_key} if server.api_key else None,
            check_compatibility=False,
            timeout=math.ceil(CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
        )
        self._client.http.client.add_middleware(self._limited)

    def __call__(self, work: Callable[[QdrantClient, int], T], *, by: float) -> T:
        """What `work` returns, which gets the client and the whole seconds that the server may take.

        Work that fails for a while is done again until `by` (CLOCK_MONOTONIC). Raises CollectionMissingError,
        StoreUnavailable with a cause that names the server.
        """
        retrying = Retrying(
            stop=lambda state: stop_after_attempt(ATTEMPTS)(state) or self._too_late(state, by),
            wait=wait_random_exponential(multiplier=PAUSE, max=1.0),
            retry=retry_if_exception(_passes),
            sleep=self._pause,
            reraise=True,
        )
        with self._translated():
            result: T = retrying(self._once, work, by)
            return result

    def close(self) -> None:
        """Hang up; calls under way fail, and pauses between attempts end."""
        self._closing.set()
        self._client.close()

    def _once(self, work: Callable[[QdrantClient, int], T], by: float) -> T:
        self._limits.by = by
        left = by - time.monotonic()
        if left <= 0.0 or self._closing.is_set():
            raise ResponseHandlingException(httpx.ReadTimeout("no time is left"))
        return work(self._client, max(math.ceil(left), 1))

    def _limited(
        self, request: httpx.Request, send: Callable[[httpx.Request], httpx.Response]
    ) -> httpx.Response:
        # The client's own timeouts are whole seconds, and the same for every thread.
        left = max(self._limits.by - time.monotonic(), 0.001)
        timeout = httpx.Timeout(left, connect=min(left, CONNECT_SECONDS))
        request.extensions["timeout"] = timeout.as_dict()
        return send(request)

    def _pause(self, seconds: float) -> None:
        self._closing.wait(seconds)

    def _too_late(self, state: RetryCallState, by: float) -> bool:
        pause = state.upcoming_sleep
        return self._closing.is_set() or time.monotonic() + pause >= by

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except UnexpectedResponse as error:
            if error.status_code == 404 and b"ollection" in error.content:
                raise CollectionMissingError from error
            raise self._unavailable(_said(error), error, refused=error.status_code in _REFUSED) from error
        except ResourceExhaustedResponse as error:
            raise self._unavailable("it asks for fewer calls (429)", error) from error
        except ResponseHandlingException as error:
            raise self._unavailable(_happened(error.source), error) from error
        except ApiException as error:
            raise self._unavailable(str(error), error) from error

    def _unavailable(self, cause: str, error: Exception, *, refused: bool = False) -> StoreUnavailable:
        _log.debug("%s: %s", self._server.address, cause, exc_info=error)
        return StoreUnavailable(PART, f"{self._server.address}: {cause}", refused=refused)


def _passes(error: BaseException) -> bool:
    if isinstance(error, UnexpectedResponse):
        return error.status_code in _PASSING
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, httpx.TransportError)
    return isinstance(error, ResourceExhaustedResponse)


def _said(error: UnexpectedResponse) -> str:
    return f"{_MEANING.get(error.status_code or 0, 'it answers')} ({error.status_code}): {_words(error)}"


def _words(error: UnexpectedResponse) -> str:
    return error.content[:200].decode(errors="replace")


def _happened(source: Exception) -> str:
    if isinstance(source, httpx.TimeoutException):
        return "no answer in time"
    # What the client could not read may hold people's texts.
    return f"{type(source).__name__}: {source}" if isinstance(source, httpx.HTTPError) else "no such answer"
