"""The commands that look into a memory, against the real API over HTTP: tiers, why, timeline, policy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from hearth.gateway.cli import app
from hearth.gateway.commands import output
from tests.api import secret, served

Run = Callable[..., Result]
SETTINGS = {"life": {"short_term": {"pages": 2, "important": 1.0}, "limits": {"segments": 30}}}
SAID = (
    ("2025-01-05T10:00:00Z", "I live in Chur."),
    ("2025-01-06T10:00:00Z", "My leek soup needs salt."),
    ("2025-02-06T10:00:00Z", "I live in Bern now."),
    ("2025-02-07T10:00:00Z", "The leek soup needs more salt."),
    ("2025-02-08T10:00:00Z", "So it is."),
)
LATER = (("2025-02-08T11:00:00Z", "All right then."),)
"""By then all that was said before stands in the index, and can move."""


@pytest.fixture(name="url", scope="module")
def _url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the API, with a short short-term memory; alice has said something, bob has not."""
    home = tmp_path_factory.mktemp("look")
    with served(home / "api", settings=SETTINGS) as (url, drain):
        for said in (SAID, LATER):
            turns = home / "turns.jsonl"
            lines = [
                {"role": role, "content": text if role == "user" else "I see.", "at": at, "session": "s1"}
                for at, text in said
                for role in ("user", "assistant")
            ]
            turns.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
            environment = {"HEARTH_URL": url, "HEARTH_API_KEY": secret("alice")}
            done = CliRunner().invoke(app, ["import", str(turns)], env=environment)
            assert done.exit_code == 0, done.output
            drain()
        yield url


@pytest.fixture(name="run")
def _run(url: str) -> Run:
    """Runs `hearth` with a key, alice's unless another is named."""

    def run(*arguments: str, key: str = "alice") -> Result:
        environment = {"HEARTH_URL": url, "HEARTH_API_KEY": secret(key), "COLUMNS": "240", "TZ": "UTC"}
        return CliRunner().invoke(app, list(arguments), env=environment)

    return run


@pytest.fixture(name="terminal")
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output goes to a terminal of 240 columns."""
    monkeypatch.setattr(output.out, "_force_terminal", True)
    monkeypatch.setattr(output.out, "_width", 240)


def parsed(result: Result) -> dict[str, Any]:
    """Stdout as the one JSON document that it must be."""
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_tiers_are_plain_on_a_pipe(run: Run) -> None:
    """Each tier in a line, each segment in one, by heat and with its words; no bars."""
    done = run("tiers")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["tier", "short-term", "mid-term", "long-term", "7"]
    assert "1 of 2 pages, of 1 session," in lines[1]
    assert "of 30 segments, of 5 pages" in lines[2]
    assert any("salt" in line and "soup" in line for line in lines[7:])
    assert not set("█▏▎▍▌▋▊▉") & set(done.stdout)
    assert "summed up from a heat of 5 on" in done.stderr
    found = parsed(run("tiers", "--limit", "1", "--json"))
    assert len(found["mid_term"]["items"]) == 1
    assert "segment" not in run("tiers", key="bob").stdout.partition("\n\n")[2]


def test_a_terminal_is_drawn_on(run: Run, terminal: None) -> None:
    """Bars, curves and spans stand beside the numbers."""
    assert run("tiers").exit_code == 0
    drawn = run("timeline").stdout
    assert drawn.count("over time") == 2
    assert "━" in drawn
    assert "▁" in drawn


def test_why_tells_a_story(run: Run) -> None:
    """When, what, with which record and how, and in how many prompts it stood."""
    facts = parsed(run("list", "--superseded", "--json"))["items"]
    chur = next(one for one in facts if one["value"] == "Chur")
    done = run("why", chur["id"])
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    happened = [line[2] for line in lines[1:]]
    assert happened[:2] == ["said", "read"]
    assert {"moved", "replaced"} <= set(happened)
    assert "“I live in Bern now" in done.stdout
    assert "shown in 0 prompts; 0 replies drew on it" in done.stderr
    assert parsed(run("why", chur["id"], "--json"))["subject"] == "memory"


def test_why_of_nothing_is_one_line(run: Run) -> None:
    """An unknown id ends with 1, what is no id with 2."""
    unknown, wrong = run("why", "0" * 32), run("why", "../users")
    assert (unknown.exit_code, wrong.exit_code) == (1, 2)
    assert unknown.stderr.startswith("error: ")
    assert "expected an id" in wrong.stderr


def test_a_timeline_shows_heat_and_facts(run: Run, tmp_path: Path) -> None:
    """Of a user both; of a segment its points, of a memory its values over time; and all of it as SVG."""
    picture = tmp_path / "alice.svg"
    done = run("timeline", "--svg", str(picture))
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines()]
    homes = [row for row in rows if row[-1:] in (["Chur"], ["Bern"])]
    assert [row[-1] for row in homes] == ["Chur", "Bern"]
    assert homes[0][1:5] == ["2025-01-05", "10:00", "2025-02-06", "10:00"]
    assert "holds" in homes[1]
    drawn = ElementTree.parse(picture).getroot()
    texts = [one.text or "" for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert any("soup" in text for text in texts)
    assert "Chur" in texts
    segments = parsed(run("tiers", "--json"))["mid_term"]["items"]
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}polyline"))) == len(segments) > 1
    segment = segments[0]["id"]
    of_segment = run("timeline", segment)
    assert [line.split()[3] for line in of_segment.stdout.splitlines()[1:]][-1] == "now"
    fact = homes and parsed(run("list", "--json"))["items"][0]["id"]
    assert {one["id"] for one in parsed(run("timeline", fact, "--json"))["facts"]} >= {fact}
    assert run("timeline", "0" * 32).exit_code == 1
    assert "nothing is known yet" in run("timeline", key="bob").stderr


def test_a_policy_is_the_tenants_or_the_files(run: Run, tmp_path: Path) -> None:
    """By the gateway for the key's tenant; by a file for any, without a gateway."""
    done = run("policy")
    assert done.exit_code == 0, done.output
    assert ["limits.segments", "30", "hearth.life"] in [line.split() for line in done.stdout.splitlines()]
    assert ["limits.days", "any", "Hearth"] in [line.split() for line in done.stdout.splitlines()]
    assert "of tenant acme" in done.stderr
    file = tmp_path / "hearth.yaml"
    file.write_text("hearth: {keyless: true, tenants: {lab: {life: {heat: {fade_hours: 12.0}}}}}")
    values = {
        one["name"]: one
        for one in parsed(run("policy", "--tenant", "lab", "--config", str(file), "--json"))["items"]
    }
    assert (values["heat.fade_hours"]["value"], values["heat.fade_hours"]["source"]) == (12.0, "tenant")
    assert values["segments.unrelated"]["value"] == 0.34
    unknown = run("policy", "--tenant", "labs", "--config", str(file))
    assert (unknown.exit_code, "no such tenant; it has lab" in unknown.stderr) == (2, True)
    everyone = run("policy", "--config", str(file))
    assert "every tenant without values of its own" in everyone.stderr
    file.write_text("hearth: {life: {heat: {fade: 1}}}")
    assert run("policy", "--config", str(file)).exit_code == 2


def test_a_policy_is_set_and_lifted_without_a_restart(run: Run) -> None:
    """With who and when, by an admin key, for its own tenant alone."""
    done = run("policy", "set", "heat.visit", "2", "--tenant", "acme", key="admin")
    assert done.exit_code == 0, done.output
    row = next(line.split() for line in done.stdout.splitlines() if "heat.visit" in line)
    assert (row[:3], row[-2:]) == (["heat.visit", "2", "tenant"], ["by", "admin"])
    done = run("policy", "set", "facts", "off", "--agent", "quiz", key="admin")
    assert "of tenant acme agent quiz" in done.stderr
    assert ["agent", "quiz", "facts", "off"] in [
        line.split()[:4] for line in run("policy", key="admin").stdout.splitlines()
    ]
    wrong = run("policy", "set", "limits.segments", "2", "--agent", "quiz", key="admin")
    assert (wrong.exit_code, "not for one agent" in wrong.stderr) == (2, True)
    foreign = run("policy", "set", "heat.visit", "2", "--tenant", "rivals", key="admin")
    assert (foreign.exit_code, "the key is of the tenant acme" in foreign.stderr) == (2, True)
    assert run("policy", "set", "heat.visit", "2").exit_code == 1
    for name, whose in (("heat.visit", ()), ("facts", ("--agent", "quiz"))):
        assert run("policy", "unset", name, *whose, key="admin").exit_code == 0
    assert parsed(run("policy", "--json", key="admin"))["set"] == []


@pytest.mark.parametrize(
    ("given", "told"),
    [(("--follow", "--latest"), "in its order"), (("--stats", "--kind", "page.closed"), "no filter but")],
)
def test_what_does_not_go_together_is_refused(run: Run, given: tuple[str, ...], told: str) -> None:
    """Before anything is asked: a look that never ends, and a count of something else than was meant."""
    done = run("events", *given)
    assert (done.exit_code, told in done.output) == (2, True)
