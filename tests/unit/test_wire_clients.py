"""Known client programs: recognised, read and followed through ten turns each."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from hearth.gateway.clients import PRESETS, recognise
from hearth.gateway.wire import WIRES
from hearth.gateway.wire.types import WireRequest
from hearth.memory.dialogue import Dialogue, exchange_id, read, tails
from hearth.memory.recall.block import wrap
from hearth.memory.types import Tails

FIXTURES = Path(__file__).parents[1] / "fixtures" / "clients"
CLIENTS = ["claude-code", "codex", "open-webui", "librechat", "langchain", "vercel-ai", "aider", "llm"]
SECRET = b"s" * 32
BLOCK = wrap("# Facts\n2024\nTue 7 May\n- lives in Oslo")


def calls(client: str) -> list[dict[str, Any]]:
    return json.loads((FIXTURES / f"{client}.json").read_text(encoding="utf-8"))


def request_of(call: dict[str, Any]) -> WireRequest:
    return WIRES[call["route"]].read_request(call["body"])  # type: ignore[index]


def spoken(client: str) -> list[tuple[dict[str, Any], Dialogue]]:
    """The calls that are no housekeeping, with what was read of them."""
    own = [call for call in calls(client) if not call["expect"]["housekeeping"]]
    return [(call, read(request_of(call).turns)) for call in own]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_file_is_what_the_script_writes(client: str) -> None:
    """A fixture changes with its script only."""
    spec = importlib.util.spec_from_file_location("rebuild", FIXTURES / "rebuild.py")
    assert spec is not None
    assert spec.loader is not None
    rebuild = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rebuild)
    assert rebuild.build(client) == (FIXTURES / f"{client}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_recognised(client: str) -> None:
    """Each call tells its client, user and session, and whether the client makes it for itself."""
    for call in calls(client):
        hints = recognise(list(call["headers"].items()), request_of(call))
        expect = call["expect"]
        found = {
            "name": hints.name,
            "user": hints.user,
            "session": hints.session,
            "housekeeping": hints.housekeeping,
        }
        assert found == {key: expect[key] for key in found}, call["body"]


@pytest.mark.parametrize("client", CLIENTS)
def test_new_content_is_the_users_words(client: str) -> None:
    """Of each call only the newest words of the user are new: no wrappers, summaries or tool results."""
    for call, dialogue in spoken(client):
        expect = call["expect"]
        assert (dialogue.user_text, dialogue.first_step) == (expect["user_text"], expect["first_step"])
        assert not dialogue.carry_over


@pytest.mark.parametrize("client", CLIENTS)
def test_a_session_is_found_by_its_tail_alone(client: str) -> None:
    """Through loops, trims and rewritten replies each call finds the one before; a compaction may hide it."""
    left: list[Tails] = []
    lost = []
    for call, dialogue in spoken(client):
        now = tails(dialogue.looked_up, SECRET)
        if left and left[-1].last_pair != now.last_pair and left[-1].user_texts != now.user_texts:
            lost.append((call["expect"]["exchange"], call["expect"]["first_step"]))
        left.append(tails(dialogue.answered(call["reply"]["text"]), SECRET))
    assert lost == ([(7, True)] if client in ("claude-code", "codex") else [])


@pytest.mark.parametrize("client", CLIENTS)
def test_case_32_each_step_of_a_loop_is_one_exchange(client: str) -> None:
    """The exchange's id is the same at each of its steps, and ten turns have ten ids."""
    ids: dict[int, set[str]] = {}
    for call, dialogue in spoken(client):
        parent = tails(dialogue.history, SECRET).last_pair
        name = exchange_id("s", parent, dialogue.user_text, SECRET)
        ids.setdefault(call["expect"]["exchange"], set()).add(name)
    assert sorted(ids) == list(range(1, 11))
    assert all(len(names) == 1 for names in ids.values())
    assert len(set.union(*ids.values())) == 10


@pytest.mark.parametrize("client", CLIENTS)
def test_case_33_a_block_changes_one_message(client: str) -> None:
    """The block goes into the user's message, and stripping gives the client's body back."""
    for call, dialogue in spoken(client):
        wire, body = WIRES[call["route"]], call["body"]  # type: ignore[index]
        placed = wire.place(body, {dialogue.user_index: BLOCK})
        key = "input" if call["route"] == "responses" else "messages"
        changed = [place for place, item in enumerate(placed[key]) if item is not body[key][place]]
        assert changed == [dialogue.user_index]
        assert placed[key][dialogue.user_index]["role"] == "user"
        assert wire.strip(placed) == body
        assert wire.read_request(placed).turns == wire.read_request(body).turns


def _request(said: str = "", system: str = "", **fields: Any) -> WireRequest:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": said}]
    return WIRES["chat"].read_request({"messages": messages, **fields})


@pytest.mark.parametrize(
    ("user_id", "user", "session"),
    [
        (
            f"user_{'a' * 64}_account_7d1f0c3a-52b4-4b0e-8a55-0f6f1f9a2b11_session_" + "0" * 36,
            "7d1f0c3a",
            "0" * 36,
        ),
        (f"user_{'a' * 64}_account__session_" + "0" * 36, "a" * 64, "0" * 36),
        ('{"device_id": "d", "account_uuid": "", "session_id": "s"}', "d", "s"),
        ('{"device_id": 7, "session_id": ["s"]}', "", ""),
        ("{", "", ""),
        ("[" * 10_000, "", ""),
        ("alice", "", ""),
    ],
)
def test_claude_codes_user_id_in_all_its_forms(user_id: str, user: str, session: str) -> None:
    """The joined and the JSON form give account and session; what is neither gives nothing."""
    request = WIRES["messages"].read_request({"metadata": {"user_id": user_id}, "messages": []})
    hints = recognise([("User-Agent", "claude-cli/2.0.0")], request)
    assert (hints.name, hints.user.partition("-")[0], hints.session) == ("claude-code", user, session)


@pytest.mark.parametrize(
    "text",
    [
        "Generate a concise title for my blog post about Oslo",
        "### Task:\nWrite a poem about rain",
        "quota",
        "Suggest 3-5 relevant follow-up questions for an interview",
        "What does '[SUGGESTION MODE:' mean in a log?",
        "Your task is to create a detailed summary of this book",
    ],
)
def test_what_people_type_is_no_housekeeping(text: str) -> None:
    """A request that merely resembles a client's own prompt is remembered as any other."""
    assert not recognise([("user-agent", "OpenAI/Python 2.8.0")], _request(text)).housekeeping


def test_a_main_prompt_that_quotes_a_side_prompt_is_no_housekeeping() -> None:
    """Long system prompts and requests that offer tools are the conversation itself."""
    mark = "Generate a concise, sentence-case title"
    assert recognise([], _request("Hi", mark)).housekeeping
    assert not recognise([], _request("Hi", mark, tools=[{"type": "function"}])).housekeeping
    assert not recognise([], _request("Hi", mark + " x" * 8000)).housekeeping


def test_presets_can_be_switched_off() -> None:
    """A client that the settings leave out is not recognised, and its fields count for nothing."""
    call = calls("open-webui")[0]
    given = list(call["headers"].items())
    assert recognise(given, request_of(call), clients=["codex"]).user == ""
    assert recognise(given, request_of(call), clients=["open-webui"]).user == "u-4711"


def test_the_first_of_a_repeated_header_counts() -> None:
    """A second value does not replace the first."""
    given = [("X-OpenWebUI-User-Id", "a"), ("x-openwebui-user-id", "b")]
    assert recognise(given, _request("Hi")).user == "a"


def test_every_preset_says_how_it_is_recognised() -> None:
    """No preset is without a mark, and no two have one name."""
    assert all(preset.agents or preset.headers or preset.systems or preset.metadata for preset in PRESETS)
    assert len({preset.name for preset in PRESETS}) == len(PRESETS)
