"""The command line's own parts: help, errors in one line, reading a stream."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from hearth.gateway import worker_service
from hearth.gateway.cli import app
from hearth.gateway.commands.chat import recalled_lines
from hearth.gateway.commands.client import GatewayError, Rest, explain, read
from hearth.gateway.commands.demo import PYTHON, demo_settings, show_snippets
from hearth.gateway.commands.output import plain
from hearth.gateway.commands.reference import commands
from hearth.gateway.starting import StartError
from hearth.memory.events.database import take_lock

NAMED = {
    "Run": [
        "serve",
        "worker",
        "migrate",
        "archive",
        "verify",
        "replay",
        "retry",
        "demo",
        "check-config",
        "tune",
        "simulate",
        "encryption",
        "key",
    ],
    "Talk": ["chat", "recall", "compare", "search", "feedback"],
    "Memory": [
        *("add", "list", "pin", "persona", "forget", "undo", "private", "erase", "erasure", "hold"),
        *("export", "import", "knowledge", "system-memory"),
    ],
    "Look": [
        "tiers",
        "evictions",
        "why",
        "timeline",
        "diff",
        "policy",
        "sessions",
        "exchanges",
        "explain",
        "events",
    ],
    "Who": ["users", "health", "spending", "switch"],
}


def test_every_command_is_there() -> None:
    """The command line has exactly the commands that its docs name."""
    assert sorted(get_command(app).commands) == sorted(name for group in NAMED.values() for name in group)  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_every_help_shows_an_example_that_parses(path: tuple[str, ...]) -> None:
    """`--help` of each command has an example, and the example's options are the command's own."""
    result = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    lines = [line.strip() for line in result.stdout.splitlines() if "Example: hearth " in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"Example: hearth {' '.join(path)}")
    for word in lines[0].split():
        assert not word.startswith("--") or word in result.stdout.replace(lines[0], "")


def test_the_version_is_said() -> None:
    """As it is installed."""
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"hearth {version('hearth')}\n")


def test_key_new_prints_json_alone() -> None:
    """With --json, stdout is one document, and the key's hash is in its YAML lines."""
    result = CliRunner().invoke(app, ["key", "new", "alice", "--json"])
    made = json.loads(result.stdout)
    assert made["name"] == "alice"
    assert made["key"].startswith("sk-")
    assert made["key"] not in made["yaml"]
    assert "sha256:" in made["yaml"]


def test_check_config_says_what_is_wrong_and_ends_with_2(tmp_path: Path) -> None:
    """A misspelt setting is named with its remedy; a sound file ends with 0."""
    bad, good = tmp_path / "bad.yaml", tmp_path / "good.yaml"
    bad.write_text("hearth: {durabilty: power}")
    good.write_text(
        "model_list: [{model_name: m, litellm_params: {model: openai/m}}]\nhearth: {keyless: true}"
    )
    refused = CliRunner().invoke(app, ["check-config", str(bad), "--json"])
    assert refused.exit_code == 2
    assert "durability" in json.loads(refused.stdout)[0]["remedy"]
    accepted = CliRunner().invoke(app, ["check-config", str(good), "--json"])
    assert (accepted.exit_code, json.loads(accepted.stdout)) == (0, [])


def test_check_config_cuts_nothing_on_a_narrow_terminal(tmp_path: Path) -> None:
    """Each problem is one line with the whole path, however long it is."""
    file = tmp_path / ("a-long-name" * 12 + ".yaml")
    file.write_text(f"hearth: {{data_dir: {tmp_path}/{file.name}/deep, keyless: true}}")
    refused = CliRunner().invoke(app, ["check-config", str(file)], env={"COLUMNS": "40"})
    assert refused.exit_code == 2
    lines = refused.stderr.splitlines()
    assert [line.split(": ")[1] for line in lines[:-1]] == [
        "hearth.data_dir",
        "hearth.capture.spool_dir",
        "model_list",
    ]
    assert f"{file}/deep can't be written" in lines[0]


def test_serve_refuses_a_taken_port_before_it_loads_anything(tmp_path: Path) -> None:
    """A port that somebody listens on is named at once, with exit code 1."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        environment = {"HEARTH_DATA_DIR": str(tmp_path)}
        result = CliRunner().invoke(app, ["serve", "--port", port], env=environment)
    assert result.exit_code == 1
    assert f"127.0.0.1:{port}" in result.stderr
    assert "--port" in result.stderr


def test_serve_refuses_a_folder_in_use_before_it_loads_anything(tmp_path: Path) -> None:
    """A data folder that another process has open is named at once, with exit code 1."""
    with take_lock(tmp_path / "log.db.lock"), socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
        probe.close()
        environment = {"HEARTH_DATA_DIR": str(tmp_path)}
        result = CliRunner().invoke(app, ["serve", "--port", port], env=environment)
    assert result.exit_code == 1
    assert "in use by" in result.stderr
    assert result.stderr.count("\n") == 1


def test_serve_refuses_the_keyless_quickstart_on_other_addresses() -> None:
    """Without keys nothing is served where other machines reach it."""
    result = CliRunner().invoke(app, ["serve", "--host", "0.0.0.0"], env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert "127.0.0.1" in result.stderr


def test_switching_everyone_needs_no_key(tmp_path: Path) -> None:
    """--everyone writes the switch into the data folder of the configuration, and shows it again."""
    environment = {"HEARTH_DATA_DIR": str(tmp_path)}
    run = CliRunner()
    assert run.invoke(app, ["switch", "off", "--everyone"], env=environment).exit_code == 0
    shown = run.invoke(app, ["switch", "--everyone", "--json"], env=environment)
    assert json.loads(shown.stdout)["everyone"] == "off"
    assert run.invoke(app, ["switch", "dim", "--everyone"], env=environment).exit_code == 2
    assert run.invoke(app, ["switch", "off", "--everyone", "--only", "x"], env=environment).exit_code == 2


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ({"detail": "limit: too large", "title": "A value can't be used"}, "limit: too large"),
        ({"error": {"message": "no such model", "code": "400"}}, "no such model"),
        ({"error": "plain"}, "plain"),
        ({"title": "Not found"}, "Not found"),
        ({"detail": [{"loc": []}]}, "the gateway answered 502 Bad Gateway"),
        (None, "the gateway answered 502 Bad Gateway"),
        ("text", "the gateway answered 502 Bad Gateway"),
    ],
)
def test_an_error_body_becomes_one_line(body: object, line: str) -> None:
    """Problem details, LiteLLM's errors and foreign pages each give one readable line."""
    assert explain(502, "Bad Gateway", body) == line


def test_an_answer_that_is_not_hearths_is_an_error() -> None:
    """A page of HTML with status 200 is no answer."""
    request = httpx.Request("GET", "http://x/")
    with pytest.raises(GatewayError, match="--url"):
        read(httpx.Response(200, text="<html>", request=request))


@pytest.mark.parametrize(
    "given", ["http://h:4000", "http://h:4000/", "http://h:4000/v1", " http://h:4000/v1/ "]
)
def test_the_base_url_of_an_sdk_is_the_gateways(given: str) -> None:
    """What is pasted from an SDK's settings names the gateway too."""
    assert Rest(given, "", "").url == "http://h:4000"


def test_plain_text_keeps_lines_and_letters() -> None:
    """Line breaks, tabs and every script stay; control characters don't."""
    assert plain("a\tb\nü漢🍵\x1b[1m\x07\x9b") == "a\tb\nü漢🍵\ufffd[1m\ufffd\ufffd"


def test_recalled_lines_say_why_there_is_no_memory() -> None:
    """A call without memory says so with its reason; a partial one says what was missing."""
    off = httpx.Headers({"x-hearth-status": "off", "x-hearth-reason": "no user"})
    assert list(recalled_lines(off, [])) == ["memory off: no user"]
    partial = httpx.Headers({"x-hearth-status": "partial", "x-hearth-reason": "dense", "x-hearth-ms": "9.6"})
    assert list(recalled_lines(partial, [])) == ["recalled 0 (0 tokens, 10 ms, partial: dense)"]


def test_the_demo_is_keyless_and_any_model_name_reaches_its_model(tmp_path: Path) -> None:
    """The demo's configuration parses, has no key, and keeps its data in the folder it is given."""
    settings = demo_settings("http://127.0.0.1:9", tmp_path)
    assert settings.hearth.keyless
    assert settings.hearth.data_dir == tmp_path
    assert [entry["model_name"] for entry in settings.litellm["model_list"]] == ["smollm2", "*"]


def test_the_snippets_name_the_demos_own_address(capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed can be pasted: address filled in, Python that compiles, JSON that parses."""
    show_snippets("http://127.0.0.1:4321")
    printed = capsys.readouterr().out
    assert "http://127.0.0.1:4321/v1/chat/completions" in printed
    compile(PYTHON.format(url="http://h", model="m"), "snippet", "exec")
    body = printed.split("-d '")[1].split("'\n")[0]
    assert json.loads(body)["model"] == "smollm2"


def test_the_environment_names_gateway_and_key() -> None:
    """Every command that calls a gateway takes its address and key from the environment."""
    for path, command in commands():
        options = {parameter.name: parameter for parameter in command.params}
        if "url" in options:
            assert options["url"].envvar == "HEARTH_URL", path
            assert options["key"].envvar == "HEARTH_API_KEY", path


def test_an_exit_code_says_whose_fault_it_is() -> None:
    """Wrong values are 2, all else is 1."""
    codes = {status: GatewayError("", status=status).exit_code for status in (0, 400, 401, 404, 422, 503)}
    assert codes == {0: 1, 400: 2, 401: 1, 404: 1, 422: 2, 503: 1}


def test_a_worker_that_can_not_start_does_not_say_that_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That comes once it does; before it stores are opened and perhaps models loaded."""
    started: list[str] = []

    def work(settings: object, *, ready: Callable[[], None], **_: object) -> None:
        if started:
            ready()
        raise StartError("no disk")

    monkeypatch.setattr(worker_service, "work", work)
    file = tmp_path / "hearth.yaml"
    servers = (
        "redis_url: redis://cache",
        "qdrant_url: http://127.0.0.1",
        "postgres_url: postgresql://h@db/h",
    )
    file.write_text("hearth:\n  worker: external\n" + "".join(f"  {one}\n" for one in servers))
    before = CliRunner().invoke(app, ["worker", "--config", str(file)])
    started.append("it")
    after = CliRunner().invoke(app, ["worker", "--config", str(file)])
    assert [(one.exit_code, "Hearth works" in one.output) for one in (before, after)] == [
        (1, False),
        (1, True),
    ]
