"""A load generator in a process of its own: one JSON order a line in, one JSON outcome a line out.

An order names url, key, stream, concurrency, seconds and seed. Each of `concurrency` clients sends its next
request when the last one's reply is complete.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import aiohttp
import uvloop
from stored import questions

SYSTEM = "You are a helpful assistant. Answer briefly."
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


def body(route: str, text: str, *, stream: bool) -> dict[str, Any]:
    """A request of the route with one system text and one question."""
    if route == "messages":
        asked = {"model": "claude", "max_tokens": 200, "system": SYSTEM}
        return {**asked, "messages": [{"role": "user", "content": text}], "stream": stream}
    if route == "responses":
        return {"model": "gpt", "instructions": SYSTEM, "input": text, "stream": stream}
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
    return {"model": "gpt", "messages": messages, "stream": stream}


class Generator:
    """The other process, as the benchmark sees it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, **order: Any) -> dict[str, Any]:
        """Carry out one order and return its outcome."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        outcome: dict[str, Any] = json.loads(self._process.stdout.readline())
        return outcome

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


class _Run:
    """One order under way."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.first: list[float] = []
        self.whole: list[float] = []
        self.hooks: list[float] = []
        self.status: Counter[str] = Counter()
        self._asked: Iterator[tuple[str, str]] = questions(order["seed"])

    async def outcome(self) -> dict[str, Any]:
        began, cpu = time.perf_counter(), time.process_time()
        self._until = began + self.order["seconds"]
        limit = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=limit, auto_decompress=False) as session:
            await asyncio.gather(*(self._client(session) for _ in range(self.order["concurrency"])))
        return {
            "seconds": time.perf_counter() - began,
            "cpu": time.process_time() - cpu,
            "first": self.first,
            "whole": self.whole,
            "hooks": self.hooks,
            "status": self.status,
        }

    async def _client(self, session: aiohttp.ClientSession) -> None:
        while time.perf_counter() < self._until:
            user, text = next(self._asked)
            await self._call(session, user, json.dumps(body("chat", text, stream=self.order["stream"])))

    async def _call(self, session: aiohttp.ClientSession, user: str, data: str) -> None:
        headers = {
            "authorization": f"Bearer {self.order['key']}",
            "content-type": "application/json",
            "x-hearth-user": user,
        }
        began = time.perf_counter()
        async with session.post(self.order["url"] + PATHS["chat"], data=data, headers=headers) as reply:
            first = 0.0
            async for _ in reply.content.iter_any():
                first = first or time.perf_counter()
        ended = time.perf_counter()
        self.first.append((first - began) * 1e3)
        self.whole.append((ended - began) * 1e3)
        self._account(reply)

    def _account(self, reply: aiohttp.ClientResponse) -> None:
        if reply.status != 200:
            self.status[f"HTTP {reply.status}"] += 1
            return
        self.status[reply.headers.get("x-hearth-status", "bare")] += 1
        self.status["recalled"] += int(reply.headers.get("x-hearth-recalled", "0")) > 0
        if "x-hearth-ms" in reply.headers:
            self.hooks.append(float(reply.headers["x-hearth-ms"]))


async def _main() -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await _Run(json.loads(line)).outcome()), flush=True)


if __name__ == "__main__":
    uvloop.run(_main())
