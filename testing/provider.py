"""A scripted provider: a server that speaks OpenAI's and Anthropic's wire formats and does as it is told.

Run as a process: `python -m hearth.testing.provider --port 9000 --latency-ms 50 --tokens 100`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import msgspec

from hearth.memory.types import Usage
from hearth.testing import checks, side, wire_responses
from hearth.testing.cache import CacheDouble
from hearth.testing.call import SSE, Call, Later, body_of, headers_for, script_of
from hearth.testing.held import Held
from hearth.testing.http import Connection, Incoming
from hearth.testing.ids import Ids
from hearth.testing.refusals import Refused
from hearth.testing.reply import Family, Reply, Request, Route, SideRoute, ToolCall
from hearth.testing.shape import plan
from hearth.testing.wire import Turn

try:
    from uvloop import new_event_loop
except ImportError:  # not made for every platform; asyncio's own loop does the same, slower
    from asyncio import new_event_loop  # type: ignore[assignment]

_log = logging.getLogger(__name__)

_ROUTES: dict[tuple[str, str], Route | SideRoute] = {
    ("POST", "/chat/completions"): "chat",
    ("POST", "/completions"): "completions",
    ("POST", "/responses"): "responses",
    ("POST", "/messages"): "messages",
    ("POST", "/embeddings"): "embeddings",
    ("POST", "/messages/count_tokens"): "count_tokens",
    ("GET", "/models"): "models",
    ("POST", "/conversations"): "conversations",
}
_MAIN: frozenset[str] = frozenset({"chat", "completions", "responses", "messages"})
_CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "chat": checks.check_chat,
    "completions": checks.check_completions,
    "responses": checks.check_responses,
    "messages": checks.check_messages,
}
_SPLIT = 7
"""Bytes of a piece where a test says only that the stream is to be split; no divisor of anything in it."""

START_SECONDS = 10.0
"""How long a start or a stop may take before it is an error."""


class ScriptedProvider:
    """A provider on 127.0.0.1 in a thread of its own, started and stopped as a context manager.

    Replies come, in this order, from `reply(…)` (each used once), from `answer` (a function of the request),
    and else from `default`. Requests that a real provider refuses are refused (`strict`), with its own error
    body; the scripted reply then stays for the next one. `embed` gives the vectors of embeddings; without it
    each text has a vector of its own that is unrelated to all others.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        seed: int = 0,
        strict: bool = True,
        keep: int | None = None,
        cache: CacheDouble | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        default: Reply | None = None,
    ) -> None:
        """`port` 0 takes a free one; `keep` bounds how many requests are remembered (None: all)."""
        self.port = port
        self.default = default or Reply()
        self.answer: Callable[[Request], Reply | str] | None = None
        self.embed: side.Embed | None = None
        self.cache = cache
        self.held = Held()
        self._strict, self._clock, self._ids = strict, clock, Ids(seed)
        self._script: deque[tuple[Route | SideRoute | None, Reply]] = deque()
        self._requests: deque[Request] = deque(maxlen=keep)
        self._side: deque[Request] = deque(maxlen=keep)
        self._lock = threading.Condition()
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # -- life ---------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start."""
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(started,), name="scripted-provider", daemon=True
        )
        self._thread.start()
        if not started.wait(START_SECONDS):
            raise TimeoutError("the scripted provider did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; connections that are open are closed."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(START_SECONDS)

    def _run(self, started: threading.Event) -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            loop = self._loop = runner.get_loop()
            server = loop.run_until_complete(self.listen())
            started.set()
            loop.run_forever()
            server.close()
            for connection in list(self._connections):
                connection.drop()
            loop.run_until_complete(asyncio.sleep(0))

    async def listen(self) -> asyncio.Server:
        """Serve in the running loop; sets `port`. For those who bring a loop of their own."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._connect, "127.0.0.1", self.port, backlog=1024)
        self.port = int(server.sockets[0].getsockname()[1])
        return server

    def _connect(self) -> Connection:
        connection = Connection(self._handle)
        self._connections.add(connection)
        return connection

    @property
    def url(self) -> str:
        """Where it listens, for Anthropic's SDK and as the base of all paths."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI's SDK."""
        return f"{self.url}/v1"

    # -- what it is told ----------------------------------------------------------------------------------

    def reply(
        self,
        text: str = "ok",
        *,
        times: int = 1,
        route: Route | SideRoute | None = None,
        split_bytes: int | bool = 0,
        tools: Iterable[ToolCall | tuple[str, Any]] = (),
        **fields: Any,
    ) -> Reply:
        """Script the next reply (`times` times), for one route only if it says so; fields as in `Reply`.

        `embeddings` and `count_tokens` take a scripted reply only where `route` names them, to fail with.
        """
        calls = tuple(
            one if isinstance(one, ToolCall) else ToolCall(name=one[0], arguments=one[1]) for one in tools
        )
        if calls and text == "ok":
            text = ""
        size = _SPLIT if split_bytes is True else int(split_bytes)
        made = Reply(text=text, tools=calls, split_bytes=size, **fields)
        with self._lock:
            self._script.extend([(route, made)] * times)
        return made

    # -- what it was asked --------------------------------------------------------------------------------

    @property
    def requests(self) -> list[Request]:
        """Every request for a model's reply so far, refused ones included, oldest first."""
        with self._lock:
            return list(self._requests)

    @property
    def side(self) -> list[Request]:
        """Every other request so far: embeddings, models, token counts, stored responses."""
        with self._lock:
            return list(self._side)

    @property
    def last(self) -> Request:
        """The newest request for a model's reply. Raises IndexError if there was none."""
        return self._requests[-1]

    def wait(self, count: int = 1, *, timeout: float = 5.0) -> list[Request]:
        """Wait until so many requests for a model's reply have come. Raises TimeoutError."""
        with self._lock:
            if not self._lock.wait_for(lambda: len(self._requests) >= count, timeout):
                raise TimeoutError(f"{len(self._requests)} requests came, {count} were expected")
        return self.requests

    def clear(self) -> None:
        """Forget all requests and scripted replies; stored responses and the prompt cache stay."""
        with self._lock:
            for kept in (self._requests, self._side, self._script):
                kept.clear()

    @staticmethod
    def sign(thinking: str) -> str:
        """The signature under which this provider takes a thinking block back."""
        return checks.sign(thinking)

    @staticmethod
    def redact(thinking: str) -> str:
        """The `data` under which this provider takes a redacted_thinking block back."""
        return checks.redact(thinking)

    # -- the server ---------------------------------------------------------------------------------------

    def _handle(self, incoming: Incoming, connection: Connection) -> Later:
        family, request_id = _family(incoming), self._ids.request()
        request = self._receive(incoming)
        self._record(request)
        call = Call(request, connection, family, request_id, headers_for(family, request_id))
        try:
            request.body = parse(incoming.body)
            return self._answer(call) if request.route in _MAIN else self._aside(call)
        except Refused as cause:
            return call.refuse(cause)
        except Exception:  # noqa: BLE001 - a fault of the double or of `answer` is the test's to see, as a 500
            _log.exception("the scripted provider failed")
            return call.fail(Reply(error={"error": {"message": "the scripted provider failed"}}, status=500))

    def _receive(self, incoming: Incoming) -> Request:
        path = incoming.target.partition("?")[0]
        short = path.removeprefix("/v1")
        route = _ROUTES.get((incoming.method, short)) or ("stored" if side.is_stored(short) else "unknown")
        return Request(
            route=route,
            method=incoming.method,
            path=path,
            headers=dict(incoming.headers),
            raw_headers=incoming.headers,
            raw=incoming.body,
            body={},
            at=self._clock(),
        )

    def _record(self, request: Request) -> None:
        with self._lock:
            (self._requests if request.route in _MAIN else self._side).append(request)
            self._lock.notify_all()

    def _scripted(self, request: Request) -> Reply | None:
        with self._lock:
            for place, (route, reply) in enumerate(self._script):
                if route == request.route or (route is None and request.route in _MAIN):
                    del self._script[place]
                    return reply
        return None

    def _next(self, request: Request) -> Reply:
        if (scripted := self._scripted(request)) is not None:
            return scripted
        said = self.answer(request) if self.answer is not None else self.default
        return Reply(text=said) if isinstance(said, str) else said

    def _answer(self, call: Call) -> Later:
        request = call.request
        self._check(request)
        reply = self._next(request)
        if reply.status != 200 or reply.error is not None:
            return call.fail(reply)
        turn, response = self._turn(request, reply), None
        if request.route == "responses":
            response = wire_responses.response(turn)
            self.held.keep(request.body, request.context, response)
        if reply.raw is not None:
            call.headers["content-type"] = SSE if request.stream else call.headers["content-type"]
            return call.plain(reply, 200, reply.raw)
        if request.stream:
            return call.stream(reply, plan(script_of(turn, response), reply))
        return call.plain(reply, 200, body_of(turn, response))

    def _check(self, request: Request) -> None:
        """Refuse what a real provider refuses, and find what it holds. Raises Refused."""
        if self._strict:
            _CHECKS[request.route](request.body)
        if request.route == "responses":
            request.context = self.held.context(request.body)
            if self._strict:
                checks.check_items(request.context)

    def _turn(self, request: Request, reply: Reply) -> Turn:
        if reply.usage is not None:
            return Turn(request=request, reply=reply, ids=self._ids, usage=reply.usage)
        output = (len(reply.pieces()) + len(reply.tools)) * int(request.body.get("n") or 1)
        if self.cache is None or request.route == "completions":
            usage = Usage(input=side.size(request), output=output)
            return Turn(request=request, reply=reply, ids=self._ids, usage=usage)
        body = {**request.body, "input": request.context} if request.route == "responses" else request.body
        charge = self.cache.charge(body, request.at)
        usage = Usage(
            input=charge.total,
            output=output,
            cached_input=charge.cache_read,
            cache_write=charge.cache_write,
        )
        return Turn(request=request, reply=reply, ids=self._ids, usage=usage, write_1h=charge.write_1h)

    def _aside(self, call: Call) -> Later:
        reply = self._scripted(call.request) or Reply()
        if reply.status != 200 or reply.error is not None:
            return call.fail(reply)
        return call.plain(
            reply, 200, msgspec.json.encode(side.respond(call.request, self.held, self._ids, self.embed))
        )


def parse(raw: bytes) -> dict[str, Any]:
    """A request's body. Lone surrogates pass, as with the real providers. Raises Refused."""
    if not raw:
        return {}
    try:
        body = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        try:
            body = json.loads(raw)
        except ValueError as cause:
            raise Refused(400, "We could not parse the JSON body of your request.") from cause
    if not isinstance(body, dict):
        raise Refused(400, "We could not parse the JSON body of your request.")
    return body


def _family(incoming: Incoming) -> Family:
    if incoming.target.startswith(("/v1/messages", "/messages")):
        return "anthropic"
    return "anthropic" if any(name == "anthropic-version" for name, _ in incoming.headers) else "openai"


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--latency-ms", type=float, default=0.0, help="before the first byte")
    parser.add_argument("--gap-ms", type=float, default=0.0, help="between the events of a stream")
    parser.add_argument("--tokens", type=int, default=1, help="words of each reply")
    parser.add_argument("--keep", type=int, default=1, help="requests to remember")
    asked = parser.parse_args()
    text = " ".join(["ok"] * asked.tokens)
    default = Reply(text=text, delay=asked.latency_ms / 1000, gap=asked.gap_ms / 1000)
    provider = ScriptedProvider(port=asked.port, default=default, keep=asked.keep, strict=False)
    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(provider))


async def _serve(provider: ScriptedProvider) -> None:
    server = await provider.listen()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    main()
