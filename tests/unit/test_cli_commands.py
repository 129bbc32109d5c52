"""The memory commands against the real API over HTTP, in this process and without LiteLLM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hearth.gateway.cli import app
from hearth.gateway.commands import client
from tests.api import secret, served

Run = Callable[..., Result]


@pytest.fixture(name="url", scope="module")
def _url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the API; its users keep the tests apart."""
    with served(tmp_path_factory.mktemp("api")) as (url, _):
        yield url


@pytest.fixture(name="run")
def _run(url: str, request: pytest.FixtureRequest) -> Run:
    """Runs `hearth` with an app's key, as a user of this test alone unless another is named."""

    def run(*arguments: str, key: str = "app", user: str | None = None, input: str | None = None) -> Result:
        named = [] if user == "" else ["--user", user or request.node.name]
        environment = {"HEARTH_URL": url, "HEARTH_API_KEY": secret(key), "COLUMNS": "200"}
        return CliRunner().invoke(app, [arguments[0], *named, *arguments[1:]], env=environment, input=input)

    return run


def parsed(result: Result) -> dict[str, Any]:
    """Stdout as the one JSON document that it must be."""
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def texts(result: Result) -> list[str]:
    """The texts of a list of memories."""
    items = parsed(result)["items"]
    assert isinstance(items, list)
    return [item["text"] for item in items]


def test_add_prints_the_id_that_list_shows(run: Run) -> None:
    """What `add` prints is the new memory's id, and `list` has it with its text."""
    added = run("add", "Alice is allergic to kiwi.", "--tag", "health")
    listed = run("list", "--tag", "health")
    assert added.exit_code == listed.exit_code == 0
    assert added.stdout.strip() in listed.stdout
    assert "Alice is allergic to kiwi." in listed.stdout
    assert "1 of 1" in listed.stderr


def test_add_takes_every_field_and_standard_input(run: Run) -> None:
    """Options become fields of the memory; `-` reads the text from standard input."""
    options = ("--type", "persona", "--meta", "form=7", "--importance", "0.9", "--pin", "--json")
    added = parsed(run("add", "-", *options, "--at", "2025-05-24T10:00:00Z", input="likes\nGrüntee 🍵\n"))
    assert added["text"] == "likes\nGrüntee 🍵"
    assert added["metadata"] == {"form": "7"}
    assert (added["type"], added["importance"], added["pinned"]) == ("persona", 0.9, True)
    assert added["occurred_at"] == "2025-05-24T10:00:00Z"


def test_case_61_list_walks_over_the_pages(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit beyond one page gives all records once; a smaller one says how many there are."""
    monkeypatch.setattr(client, "PAGE", 10)
    for number in range(25):
        assert run("add", f"fact {number}").exit_code == 0
    found = parsed(run("list", "--limit", "1000", "--json"))
    assert (len({item["id"] for item in found["items"]}), found["total"]) == (25, 25)
    listed = run("list", "--limit", "13")
    assert len(listed.stdout.splitlines()) == 1 + 13
    assert "13 of 25" in listed.stderr


def test_search_and_recall_find_what_was_added(run: Run) -> None:
    """`search` lists the memory; `recall` prints the block that holds it and, asked to, the verdicts."""
    run("add", "My dog is called Zebedee.")
    query = "Is my dog called Zebedee?"
    assert "Zebedee" in until(lambda: run("search", query), "Zebedee").stdout
    recalled = run("recall", query, "--explain")
    assert "<hearth-memory" in recalled.stdout
    assert "in  " in recalled.stdout
    assert "1 recalled" in recalled.stderr
    assert parsed(run("recall", query, "--json"))["status"] == "ok"


def test_a_recall_is_explained_at_once_and_later(run: Run) -> None:
    """How the question was read, each candidate with every signal, what was left out; the same by its id."""
    run("add", "My dog is called Zebedee.")
    query = "Is my dog called Zebedee?"
    until(lambda: run("search", query), "Zebedee")
    found = parsed(run("recall", query, "--json"))
    shown = run("recall", query, "--explain").stdout
    for said in ("looked up", "1024 tokens, by settings", "0.50, by embedder", "left out: nothing"):
        assert said in shown
    for name in found["items"][0]["signals"]:
        assert name in shown
    later = run("explain", found["id"])
    assert "not known: no exchange was captured with it" in later.stdout
    assert "Zebedee" in later.stdout
    assert parsed(run("explain", found["id"], "--json"))["items"] == found["items"]
    assert run("explain", "0" * 32).exit_code == 1
    assert run("explain", "../users").exit_code == 2


def test_feedback_is_kept_for_a_whole_recall_or_an_item(run: Run, request: pytest.FixtureRequest) -> None:
    """What was said is printed and stands in the log; another word is refused in one line."""
    run("add", "My dog is called Zebedee.")
    query = "Is my dog called Zebedee?"
    until(lambda: run("search", query), "Zebedee")
    found = parsed(run("recall", query, "--json"))
    trace, item = found["id"], found["items"][0]["id"]
    assert run("feedback", trace, "useful", "--note", "just so").stdout == f"useful: recall {trace}\n"
    assert run("feedback", trace, "wrong", "--item", item).stdout == f"wrong: 1 items of recall {trace}\n"
    assert parsed(run("feedback", trace, "useful", "--json"))["recall"] == trace
    events = parsed(run("events", "--kind", "recall.judged", "--json", key="admin", user=request.node.name))
    assert [event["payload"]["items"] for event in events["items"]] == [{}, {item: "wrong"}, {}]
    refused = run("feedback", trace, "nice")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert run("feedback", "0" * 32, "useful").exit_code == 1


def test_forget_removes_memories_and_exchanges(run: Run) -> None:
    """An id of either kind is forgotten; an unknown one is one line on stderr and exit code 1."""
    memory = run("add", "My dog is called Zebedee.").stdout.strip()
    run("import", "-", input=turn("I moved to Paris.", 0))
    exchange = parsed(run("exchanges", "--json"))["items"][0]["id"]
    assert run("forget", memory, exchange).exit_code == 0
    assert texts(run("list", "--json")) == []
    assert parsed(run("exchanges", "--json"))["items"] == []
    again = run("forget", memory)
    assert again.exit_code == 1
    assert again.stderr == f"error: {memory}: there is no such memory or exchange\n"
    assert run("forget", "../users/alice").exit_code == 2


def test_import_twice_changes_nothing(run: Run, tmp_path: Path) -> None:
    """A dialogue comes in as exchanges of its sessions, and a second time it is as it was."""
    file = tmp_path / "dialogue.jsonl"
    file.write_text("\n".join(turn(f"said {number}", number) for number in range(10)))
    for _ in range(2):
        assert parsed(run("import", str(file), "--json"))["exchanges"] == 5
        assert len(parsed(run("exchanges", "--json"))["items"]) == 5
    assert "s1" in run("sessions").stdout


def test_a_bad_line_is_named_and_nothing_is_imported(run: Run) -> None:
    """One line that can't be used refuses the whole file before anything is sent."""
    refused = run("import", "-", input=turn("fine", 0) + '\n{"role": "user", "content": "no time"}\n')
    assert refused.exit_code == 2
    assert refused.stdout == ""
    assert "line 2: at" in refused.stderr
    assert run("import", "nowhere.jsonl").exit_code == 2
    assert parsed(run("exchanges", "--json"))["items"] == []


def test_events_show_the_log_of_a_user_or_to_an_admin_all(run: Run, request: pytest.FixtureRequest) -> None:
    """By kind, words and tag, oldest or latest first, as table, document, lines or counts."""
    run("add", "one fact", "--tag", "first")
    run("add", "another fact")
    shown = run("events", "--kind", "memory.added", key="admin", user="")
    assert "one fact" in shown.stdout
    events = parsed(run("events", "--json"))
    assert {event["user"] for event in events["items"]} == {request.node.name}
    lines = run(
        "events", "--lines", "--latest", "--words", "FACT", "--kind", "memory.added"
    ).stdout.splitlines()
    said = [json.loads(line)["payload"]["memory"]["text"] for line in lines]
    assert said == ["another fact", "one fact"]
    assert len(parsed(run("events", "--json", "--tag", "first"))["items"]) == 1
    counted = parsed(run("events", "--stats", "--json"))["items"]
    assert {one["kind"]: one["events"] for one in counted}["memory.added"] == 2
    assert "memory.added" in run("events", "--stats").stdout
    refused = run("events", "--since", "yesterday")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_erase_asks_first_and_removes_everything(run: Run, request: pytest.FixtureRequest) -> None:
    """Where nobody can be asked, `--yes` is needed; then nothing of the user is left."""
    run("add", "one fact")
    name = request.node.name
    assert run("erase", name, user="").exit_code == 2
    assert texts(run("list", "--json")) == ["one fact"]
    assert f"erased {name}" in run("erase", name, "--yes", "--reason", "by mail", user="").stdout
    assert texts(run("list", "--json")) == []
    assert run("erase", "--yes", user="").exit_code == 2  # an app's key has no user of its own
    latest = parsed(run("erasure", "--json", key="admin", user=""))["items"]
    (receipt,) = [one["id"] for one in latest if one["user"] == name]
    shown = run("erasure", receipt, key="admin", user="").stdout
    assert f"user {name}: p" in shown
    assert "1 memories" in shown
    assert "by mail" in shown
    run("hold", "place", name, "--reason", "case 7", key="admin", user="")
    assert "case 7" in run("hold", "list", key="admin", user="").stdout
    held = run("erase", name, "--yes", user="")
    assert (held.exit_code, "legal hold" in held.stderr) == (1, True)
    run("hold", "lift", name, "--reason", "settled", key="admin", user="")
    assert parsed(run("hold", "list", "--json", key="admin", user=""))["items"] == []
    lifted = run("events", "--kind", "hold.lifted", "--lines", key="admin", user="").stdout
    assert '"reason":"settled"' in lifted.replace(" ", "")
    wrong = run("erase", "--tenant", "nosuch", "--yes", key="admin", user="")
    assert (wrong.exit_code, "confirm: got 'nosuch'" in wrong.stderr) == (2, True)


def test_switch_and_health_and_users(run: Run) -> None:
    """A key of the tenant is switched and switched back; health is ok; users are listed by name."""
    run("add", "one fact")
    off = parsed(run("switch", "off", "--only", "bob", "--json", key="admin", user=""))
    assert off["keys"] == {"bob": "off"}
    assert "key bob" in run("switch", key="admin", user="").stdout
    assert parsed(run("switch", "on", "--only", "bob", "--json", key="admin", user=""))["keys"] == {}
    assert run("switch", "sideways", key="admin", user="").exit_code == 2
    assert parsed(run("health", "--json", user=""))["status"] == "ok"
    assert "log" in run("health", user="").stdout
    assert "switch" not in run("health", user="").stdout
    run("switch", "off", key="admin", user="")
    assert "memory is off for this tenant, by a switch\n" in run("health", user="").stdout
    run("switch", "on", key="admin", user="")
    assert "test_switch_and_health_and_users" in run("users", key="admin", user="").stdout


def test_documents_are_loaded_listed_shown_and_removed(run: Run, tmp_path: Path) -> None:
    """Of an admin key, by their files' names; a load that changes nothing says so."""
    handbook, prices = tmp_path / "handbook.md", tmp_path / "prices.html"
    handbook.write_text("# Handbook\n\nLamps come back within thirty days.\n")
    prices.write_text("<h1>Prices</h1><p>A lamp is 7 francs.</p>")

    def knowledge(*arguments: str, key: str = "admin", input: str | None = None) -> Result:
        return run("knowledge", *arguments, key=key, user="", input=input)

    loaded = knowledge("load", str(handbook), str(prices))
    assert loaded.stdout == "loaded handbook.md, version 1: 1 parts\nloaded prices.html, version 1: 1 parts\n"
    assert knowledge("load", str(handbook)).stdout == "unchanged handbook.md, version 1: 1 parts\n"
    named = ("load", "-", "--name", "notes/a b.txt", "--type", "text/plain", "--title", "Notes")
    assert knowledge(*named, input="We close at five.").exit_code == 0
    listed = knowledge("list")
    assert [name in listed.stdout for name in ("handbook.md", "prices.html", "notes/a b.txt")] == [True] * 3
    assert "3 documents" in listed.stderr
    assert "We close at five." in knowledge("show", "notes/a b.txt").stdout
    assert parsed(knowledge("show", "notes/a b.txt", "--json"))["title"] == "Notes"
    gone = knowledge("remove", "handbook.md", "prices.html", "notes/a b.txt")
    assert gone.stdout.splitlines()[0] == "removed handbook.md"
    assert parsed(knowledge("list", "--json"))["items"] == []
    assert knowledge("show", "handbook.md").exit_code == 1
    assert knowledge("list", key="app").exit_code == 1
    for wrong in (("nowhere.md",), ("-",), ("a.docx",), (str(handbook), str(prices), "--name", "x")):
        assert knowledge("load", *wrong).exit_code == 2, wrong
    (tmp_path / "scan.pdf").write_bytes(b"no PDF")
    refused = knowledge("load", str(tmp_path / "scan.pdf"))
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "scan.pdf" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("list", "--key", "wrong"), 1, "Send a key"),
        (("list", "--since", "yesterday"), 2, "ISO 8601"),
        (("diff", "2026-02-30"), 2, "a day such as"),
        (("add", "  "), 2, "text"),
        (("add", "fact", "--meta", "novalue"), 2, "NAME=VALUE"),
        (("recall", "x", "--budget", "99999999"), 2, "budget"),
        (("list", "--url", "http://127.0.0.1:1"), 1, "hearth serve"),
        (("list", "--url", "ftp://x"), 2, "--url"),
        (("list", "--url", "http://127.0.0.1:notaport"), 2, "--url"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, tuple) else "",
)
def test_what_goes_wrong_is_one_line_and_a_code(
    run: Run, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """Refusals and unreachable gateways are one line on stderr, nothing on stdout, and 1 or 2."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr


@pytest.mark.parametrize("user", ["用户1", "x@y.example", "team/a:b", "a|b"])
def test_case_06_users_of_any_script_are_named(run: Run, user: str) -> None:
    """A user id with other scripts or separators reaches that user's memory and no other's."""
    run("add", f"fact of {user}", user=user)
    assert texts(run("list", "--json", user=user)) == [f"fact of {user}"]
    assert run("list", user="a\nb").exit_code == 2


def test_a_day_stands_for_its_start_or_its_end(run: Run) -> None:
    """From a day on, before a day's end, and what held at the end of one; a day to come is refused."""
    run("add", "Alice moved to Bern.", "--at", "2025-03-02T12:00:00Z")
    for since, until, found in (("2025-03-02", "2025-03-02", 1), ("2025-03-03", "2025-03-04", 0)):
        listed = parsed(run("list", "--since", since, "--until", until, "--json"))
        assert len(listed["items"]) == found, since
    assert texts(run("list", "--as-of", "2025-03-01", "--json")) == []
    assert texts(run("list", "--as-of", "2025-03-02", "--json")) == ["Alice moved to Bern."]
    assert "0 exchanges filed; 0 memories and 0 exchanges forgotten" in run("diff", "2025-03-02").stderr
    assert run("diff", "2025-03-02", "2999-01-01").exit_code == 2
    assert len(parsed(run("list", "--until", "9999-12-31", "--json"))["items"]) == 1


def test_what_a_memory_holds_steers_no_terminal(run: Run) -> None:
    """Escape sequences of a memory's text are shown as replacement characters, and markup as it stands."""
    run("add", "\x1b[2J[red]wiped[/red]\u202e")
    shown = run("list").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[red]wiped[/red]" in shown


def turn(text: str, number: int) -> str:
    """A line of a dialogue in which user and assistant take turns."""
    role = "assistant" if number % 2 else "user"
    at = f"2025-05-24T10:{number:02}:00Z"
    return json.dumps({"role": role, "content": text, "at": at, "session": "s1"})


def until(attempt: Callable[[], Result], said: str) -> Result:
    """Try again while the index is still behind; gives the last result."""
    result = attempt()
    for _ in range(200):
        if said in result.stdout:
            break
        result = attempt()
    return result


def test_an_export_comes_in_as_another_user(run: Run, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The file that `export` writes is what `import` takes, as whomever an operator names; once."""
    run("add", "Alice is allergic to kiwi. 🥝", "--pin")
    name, file = request.node.name, tmp_path / "all.jsonl"
    assert run("export", name, "-o", str(file), user="", key="admin").exit_code == 0
    assert not list(tmp_path.glob("*.part"))
    for added in (1, 0):
        done = parsed(run("import", str(file), "--as", "bea", "--json", user="", key="admin"))
        assert (done["user"], done["format"], done["added"]) == ("bea", "hearth", added)
    assert texts(run("list", "--json", user="bea")) == ["Alice is allergic to kiwi. 🥝"]
    shown = run("export", name, "--format", "markdown", user="", key="admin")
    assert "allergic to kiwi. 🥝 (" in shown.stdout
    assert "pinned" in shown.stdout
    file.write_bytes(file.read_bytes()[:-20])
    refused = run("import", str(file), user="", key="admin")
    assert refused.exit_code == 2
    assert "line 3" in refused.stderr
