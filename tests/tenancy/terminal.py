"""The command line before the world's gateway: commands in this process, their requests over its app."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import httpx
from typer.testing import CliRunner

from hearth.gateway.cli import app
from hearth.gateway.commands import client
from tests.tenancy.world import World

FAILED, MISUSED = 400, 500
"""Statuses that an ended command is given: refused or wrong, and broken off by an error of its own."""


class _Bridge(httpx.BaseTransport):
    def __init__(self, world: World) -> None:
        self._world = world

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        given = {"headers": request.headers.raw, "content": request.read()}
        sent = self._world.send(request.method, request.url.raw_path.decode(), **given)
        answer = self._world.runner.run(sent)
        body = httpx.ByteStream(answer.content)
        return httpx.Response(answer.status_code, headers=answer.headers.raw, stream=body)


def run(world: World, arguments: list[str]) -> httpx.Response:
    """One command; what it printed, with the status that its end stands for."""
    over = partial(httpx.Client, transport=_Bridge(world))
    with patch.object(client.httpx, "Client", over):
        done = CliRunner().invoke(app, [*arguments, "--url", "http://gateway"])
    broke = done.exception is not None and not isinstance(done.exception, SystemExit)
    status = MISUSED if broke else FAILED if done.exit_code else 200
    return httpx.Response(status, content=f"{done.output}\n{done.stderr}\n{done.exception!r}".encode())
