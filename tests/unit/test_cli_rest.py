"""What the commands make of answers that no gateway gives: a balancer's page, silence, a broken list."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
import respx
from typer.testing import CliRunner

from hearth.gateway.cli import app
from hearth.gateway.commands.client import GatewayError, Rest

URL = "http://gateway.example:4000"
LIST = f"{URL}/memory/v1/memories"


@pytest.fixture(name="wire")
def _wire() -> Iterator[respx.MockRouter]:
    """Everything that is sent must be expected."""
    with respx.mock(assert_all_called=True) as router:
        yield router


@pytest.fixture(name="rest")
def _rest() -> Iterator[Rest]:
    rest = Rest(URL, "sk-key", "alice")
    with rest.http:
        yield rest


def test_a_call_carries_key_and_user(wire: respx.MockRouter, rest: Rest) -> None:
    """The key goes as a bearer, the user in Hearth's own header, and no empty parameter goes at all."""
    asked = wire.get(LIST, params={"limit": 2}).respond(json={"items": [], "next": None})
    rest.get("/memories", limit=2, cursor=None)
    sent = asked.calls.last.request
    assert (sent.headers["authorization"], sent.headers["x-hearth-user"]) == ("Bearer sk-key", "alice")
    assert "cursor" not in sent.url.params


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (httpx.ConnectError("refused"), "no gateway answers at http://gateway.example:4000"),
        (httpx.ConnectTimeout("late"), "no gateway answers at http://gateway.example:4000"),
        (httpx.ReadTimeout("late"), "did not answer within 60 s"),
        (httpx.RemoteProtocolError("cut"), "the connection to http://gateway.example:4000 failed: cut"),
    ],
)
def test_a_broken_connection_is_one_line(
    wire: respx.MockRouter, rest: Rest, failure: httpx.HTTPError, said: str
) -> None:
    """Each way in which a gateway can't be reached says what it means, and none is a traceback."""
    wire.get(LIST).mock(side_effect=failure)
    with pytest.raises(GatewayError, match=said):
        rest.get("/memories")


@pytest.mark.parametrize(
    ("status", "said"),
    [(200, "does not answer as Hearth does; is --url right?"), (502, "the gateway answered 502 Bad Gateway")],
)
def test_a_page_of_something_else_is_told_from_an_answer(
    wire: respx.MockRouter, rest: Rest, status: int, said: str
) -> None:
    """A balancer's HTML, with whatever status, is an error that says so."""
    wire.get(LIST).respond(status, html="<h1>It works!</h1>")
    with pytest.raises(GatewayError) as error:
        rest.get("/memories")
    assert said in str(error.value)


def test_a_list_is_read_over_as_many_pages_as_it_takes(wire: respx.MockRouter, rest: Rest) -> None:
    """250 wanted of 300 are asked for as 200 and 50, by the cursor that the first page gave."""
    first = wire.get(LIST, params={"limit": 200}).respond(
        json={"items": [1] * 200, "next": "c1", "total": 300}
    )
    second = wire.get(LIST, params={"limit": 50, "cursor": "c1"}).respond(
        json={"items": [2] * 50, "next": "c2"}
    )
    page = rest.walk("/memories", 250)
    assert page["items"] == [1] * 200 + [2] * 50
    assert first.call_count == second.call_count == 1


def test_a_command_ends_with_one_line_and_the_code_of_a_failure(wire: respx.MockRouter) -> None:
    """`hearth list` behind a balancer that has no gateway left prints its status and ends with 1."""
    wire.get(url__startswith=LIST).respond(503, html="<h1>no upstream</h1>")
    done = CliRunner().invoke(app, ["list", "--url", URL, "--key", "sk-key"])
    assert done.exit_code == 1
    assert "503" in done.output
    assert "Traceback" not in done.output
