"""Reading requests, and placing and stripping the block, on the four routes."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.gateway.wire import WIRES, route_of
from hearth.gateway.wire.types import Body, WireRequest
from hearth.memory.dialogue import read
from hearth.memory.recall.block import wrap
from hearth.memory.types import ToolUse

quick = settings(max_examples=50)

RAG = "### Task:\nRespond to the user query using the provided context"
BLOCK = wrap("# Facts\n2024\nTue 7 May\n- lives in Oslo")


def texts(request: WireRequest) -> list[tuple[str, str, int]]:
    return [(turn.role, turn.text, turn.index) for turn in request.turns]


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/v1/chat/completions", "chat"),
        ("/chat/completions", "chat"),
        ("/engines/gpt-4o/chat/completions", "chat"),
        ("/openai/deployments/azure/gpt-4o/chat/completions", "chat"),
        ("/v1/messages", "messages"),
        ("/v1/responses", "responses"),
        ("/responses", "responses"),
        ("/openai/v1/responses", "responses"),
        ("/v1/completions", "completions"),
        ("/completions", "completions"),
        ("/engines/m/completions", "completions"),
        ("/v1/chat/completions/", "chat"),
        ("/v1/messages/count_tokens", None),
        ("/v1/responses/resp_1", None),
        ("/v1/responses/compact", None),
        ("/v1/threads/t/messages", None),
        ("/v1/embeddings", None),
        ("/cursor/chat/completions", None),
        ("/anthropic/v1/messages", None),
        ("/", None),
    ],
)
def test_case_24_routes_by_path(path: str, route: str | None) -> None:
    """LiteLLM's own paths lead to their format; what only looks alike leads to none."""
    assert route_of(path) == route


def test_a_chat_request() -> None:
    """Roles, texts, places, tool calls and the fields beside the messages are read."""
    body = {
        "model": "gpt",
        "stream": True,
        "n": 2,
        "user": "alice",
        "metadata": {"user_id": "bob", "thread_id": "t1", "n": 3},
        "max_tokens": 50,
        "store": False,
        "prompt_cache_key": "k",
        "tools": [{"type": "function", "function": {"name": "ls"}}],
        "messages": [
            {"role": "developer", "content": "Be kind."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "What is"}, {"type": "text", "text": "here?"}],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"a":1}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "größe"},
        ],
    }
    request = WIRES["chat"].read_request(body)
    assert texts(request) == [
        ("system", "Be kind.", 0),
        ("user", "What is\nhere?", 1),
        ("assistant", "", 2),
        ("tool", "", 3),
    ]
    assert request.turns[2].tools == (ToolUse(name="ls", argument_bytes=7),)
    assert request.turns[3].tools == (ToolUse(name="ls", result_bytes=7),)
    assert (request.model, request.stream, request.choices, request.max_output) == ("gpt", True, 2, 50)
    assert (request.body_user, request.metadata_user) == ("alice", "bob")
    assert request.metadata == {"user_id": "bob", "thread_id": "t1"}
    assert (request.stored, request.prompt_cache_key, request.offered_tools) == (False, "k", 1)
    assert request.placeable


def test_a_messages_request() -> None:
    """The system prompt is a turn without a place; results alone make a tool turn; caching is noticed."""
    body = {
        "model": "claude",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "metadata": {"user_id": "bob"},
        "cache_control": {"type": "ephemeral"},
        "messages": [
            {"role": "user", "content": "What is here?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "t", "name": "ls", "input": {"path": "/"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "a b"}]},
        ],
    }
    request = WIRES["messages"].read_request(body)
    assert texts(request) == [
        ("system", "Be kind.", -1),
        ("user", "What is here?", 0),
        ("assistant", "Looking.", 1),
        ("tool", "", 2),
    ]
    assert request.turns[3].tools == (ToolUse(name="ls", result_bytes=3),)
    assert (request.automatic_caching, request.cache_seconds, request.metadata_user) == (True, 3600, "bob")


def test_case_30_a_responses_request() -> None:
    """Items are turns at their own places; reasoning and references are none."""
    body = {
        "model": "gpt",
        "instructions": "Be kind.",
        "previous_response_id": "resp_1",
        "conversation": {"id": "conv_1"},
        "store": False,
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is here?"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "a b"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Two files."}]},
            {"type": "item_reference", "id": "x"},
            {"role": "user", "content": "Thanks"},
        ],
    }
    request = WIRES["responses"].read_request(body)
    assert texts(request) == [
        ("system", "Be kind.", -1),
        ("user", "What is here?", 0),
        ("assistant", "", 2),
        ("tool", "", 3),
        ("assistant", "Two files.", 4),
        ("user", "Thanks", 6),
    ]
    assert (request.previous_response_id, request.conversation, request.stored) == ("resp_1", "conv_1", False)
    assert read(request.turns).user_index == 6
    assert texts(WIRES["responses"].read_request({"input": "Hello"})) == [("user", "Hello", -1)]


def test_a_reference_stands_for_what_the_provider_keeps() -> None:
    """A reply that is only referred to parts two user messages, and a call that is referred to is a call."""
    said = [{"role": "user", "content": text} for text in ("Which files?", "Thanks", "And now?")]
    first, second = (
        (
            {"type": "item_reference", "id": "fc_1"},
            {"type": "function_call_output", "call_id": "c", "output": "a b"},
        ),
        ({"type": "item_reference", "id": "rs_1"}, {"type": "item_reference", "id": "msg_1"}),
    )
    items = [said[0], *first, *second, said[1], *second, said[2]]
    dialogue = read(WIRES["responses"].read_request({"input": items}).turns)
    assert dialogue.user_text == "And now?"
    assert [(pair.user, pair.tools) for pair in dialogue.history] == [
        ("Which files?", True),
        ("Thanks", False),
    ]


@pytest.mark.parametrize(
    ("body", "placeable"),
    [
        ({"prompt": "Once upon"}, True),
        ({"prompt": "Once upon", "suffix": "The end."}, False),
        ({"prompt": ["Once", "upon"]}, False),
        ({"prompt": [1, 2, 3]}, False),
        ({"prompt": ""}, False),
        ({}, False),
    ],
)
def test_completions_take_a_block_in_front_of_a_string_only(body: Body, placeable: bool) -> None:
    """With a suffix, a list or tokens the body stays the same object."""
    wire = WIRES["completions"]
    placed = wire.place(body, {-1: BLOCK})
    assert wire.read_request(body).placeable is placeable
    assert (placed is not body) is placeable
    if placeable:
        assert placed["prompt"].endswith("\n\nOnce upon")
    assert wire.strip(placed) == body
    assert wire.read_request(placed).turns == wire.read_request(body).turns


EMPTY: list[object] = ["", "  \n\n", None, [], [{"type": "text", "text": ""}]]


@pytest.mark.parametrize("content", EMPTY)
@pytest.mark.parametrize("route", ["chat", "messages", "responses"])
def test_case_13_empty_content_takes_no_block(route: str, content: object) -> None:
    """Nothing said: not placeable, and placing changes nothing."""
    wire = WIRES[route]  # type: ignore[index]
    body = {"input" if route == "responses" else "messages": [{"role": "user", "content": content}]}
    request = wire.read_request(body)
    assert not request.placeable
    assert read(request.turns).user_text == ""
    assert wire.place(body, {0: BLOCK}) is body


def test_case_32_a_block_goes_to_the_users_message() -> None:
    """Within a tool loop it stands at the end of the question; the results are the same objects."""
    body = {
        "messages": [
            {"role": "user", "content": "What is 6 times 7?"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t1", "name": "times", "input": {"a": 6}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "42"}]},
        ]
    }
    wire = WIRES["messages"]
    dialogue = read(wire.read_request(body).turns)
    placed = wire.place(body, {dialogue.user_index: BLOCK})
    assert placed["messages"][0]["content"] == f"What is 6 times 7?\n\n{BLOCK}"
    assert placed["messages"][1] is body["messages"][1]
    assert placed["messages"][2] is body["messages"][2]
    assert wire.place(body, {1: BLOCK, 2: BLOCK, 3: BLOCK, -1: BLOCK}) is body


def test_case_33_and_36_only_the_text_is_added() -> None:
    """Unknown keys, tools, cache marks, images and signed thinking are the same objects."""
    thinking = {"type": "thinking", "thinking": " é  hm ", "signature": "c2ln"}
    body: Body = {
        "model": "claude",
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}],
        "anthropic_beta_thing": {"x": [1, None]},
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [thinking, {"type": "redacted_thinking", "data": "x"}]},
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "data": "AAAA"}},
                    {"type": "text", "text": "What is this?", "cache_control": {"type": "ephemeral"}},
                ],
            },
        ],
    }
    before = copy.deepcopy(body)
    placed = WIRES["messages"].place(body, {2: BLOCK})
    assert body == before
    assert placed["messages"][2]["content"] == [
        *before["messages"][2]["content"],
        {"type": "text", "text": BLOCK},
    ]
    assert placed["messages"][2]["content"][1] is body["messages"][2]["content"][1]
    assert all(placed[key] is body[key] for key in body if key != "messages")
    assert placed["messages"][1] is body["messages"][1]
    without = {**placed, "messages": [*placed["messages"][:2], body["messages"][2]]}
    assert without == before


def test_a_history_that_holds_a_block_is_read_without_it() -> None:
    """A client or a stock proxy that gives our block back does not make it the user's words."""
    for route, key, kind in (
        ("chat", "messages", "text"),
        ("messages", "messages", "text"),
        ("responses", "input", "input_text"),
    ):
        body = {
            key: [
                {"role": "user", "content": "Hi"},
                {"role": "user", "content": [{"type": kind, "text": "Where?"}]},
            ]
        }
        wire = WIRES[route]  # type: ignore[index]
        placed = wire.place(body, {0: BLOCK, 1: BLOCK})
        assert json.dumps(placed).count("hearth-memory id=") == 2
        assert wire.read_request(placed).turns == wire.read_request(body).turns


def test_scaffolding_is_not_the_users_words() -> None:
    """Reminders beside the words go; reminders alone are scaffolding, with results a tool turn."""
    reminder = {"type": "text", "text": "<system-reminder>\nToday is Monday.\n</system-reminder>"}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "42"}
    body = {
        "messages": [
            {"role": "user", "content": [reminder, {"type": "text", "text": "Fix it"}]},
            {"role": "user", "content": [reminder]},
            {"role": "user", "content": [result, reminder]},
            {"role": "user", "content": [result, {"type": "text", "text": "No, stop"}]},
        ]
    }
    turns = WIRES["messages"].read_request(body).turns
    assert [(turn.role, turn.text, turn.scaffolding) for turn in turns] == [
        ("user", "Fix it", False),
        ("user", "", True),
        ("tool", "", True),
        ("user", "No, stop", False),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<environment_details>\n# VSCode\n</environment_details>\nFix it", "Fix it"),
        ("<user_info>\nOS: linux\n</user_info>\n<user_query>\nFix it\n</user_query>", "Fix it"),
        ("<context>\nfiles\n</context>\n<userRequest>\nFix it\n</userRequest>\n", "Fix it"),
        ("<rules>be brief</rules> Fix it", "<rules>be brief</rules> Fix it"),
        ("What is <user_query> for?", "What is <user_query> for?"),
        ("<command-name>/fix</command-name><command-args>it now</command-args>", "it now"),
        ("# AGENTS.md instructions for /src\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>", ""),
        ("<environment_context>\n  <cwd>/src</cwd>\n</environment_context>", ""),
        (
            f'{RAG}, with citations.\n<context>\n<source id="1">Cold.</source>\n</context>\n\nIs Oslo cold?',
            "Is Oslo cold?",
        ),
        (
            f"{RAG}.\n<context>\nx\n</context>\n\n<user_query>\nIs Oslo cold?\n</user_query>",
            "Is Oslo cold?",
        ),
        ("I have *added these files to the chat* so you can go ahead and edit them.\n\na.py", ""),
        ("I updated the files.", ""),
        (
            "Add a test.\n\n# *SEARCH/REPLACE block* Rules:\n\nEvery *SEARCH/REPLACE block* must",
            "Add a test.",
        ),
        ("Add a test.\n\n# File editing rules:\n\nReturn edits similar to unified diffs", "Add a test."),
        ("# File editing rules:\nnone", "# File editing rules:\nnone"),
        ("I updated the files. Now run the tests.", "I updated the files. Now run the tests."),
        ("I committed the changes with git hash 0f3a9c1 & commit msg: feat: add rota", ""),
        ("How do I use <system-reminder> in a prompt?", "How do I use <system-reminder> in a prompt?"),
        ("if a < b and c > d: pass", "if a < b and c > d: pass"),
        ("<div>hello</div>", "<div>hello</div>"),
    ],
)
def test_known_wrappers(text: str, said: str) -> None:
    """What clients wrap around the words goes, what people write in angle brackets stays."""
    request = WIRES["chat"].read_request({"messages": [{"role": "user", "content": text}]})
    assert request.turns[0].text == said


def test_case_23_lone_surrogates_in_a_request() -> None:
    """A lone half becomes U+FFFD in whatever is kept; the body that goes on is not touched."""
    body = json.loads(
        r'{"user": "a\ud83d", "messages": [{"role": "user", "content": "x \ud83d\ude80 \ud83d"}]}'
    )
    request = WIRES["chat"].read_request(body)
    assert (request.turns[0].text, request.body_user) == ("x \U0001f680 \ufffd", "a\ufffd")
    nul = WIRES["chat"].read_request({"messages": [{"role": "user", "content": "a\x00b"}]})
    assert nul.turns[0].text == "a\ufffdb"
    assert body["messages"][0]["content"].endswith("\ud83d")
    placed = WIRES["chat"].place(body, {0: BLOCK})
    assert placed["messages"][0]["content"].startswith("x \U0001f680 \ud83d")
    assert WIRES["chat"].strip(placed) == body


_TEXT = st.text(max_size=30)
_PART = st.one_of(
    st.builds(
        lambda kind, text: {"type": kind, "text": text}, st.sampled_from(["text", "input_text"]), _TEXT
    ),
    st.builds(lambda url: {"type": "image_url", "image_url": {"url": url}}, _TEXT),
    st.builds(lambda text: {"type": "tool_result", "tool_use_id": "t", "content": text}, _TEXT),
    st.builds(lambda text: {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}, _TEXT),
)
_MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "user", "assistant", "system", "tool"]),
        "content": _TEXT | st.lists(_PART, max_size=4),
    }
)
_PLACES = st.sets(st.integers(-2, 8))


@pytest.mark.parametrize(
    ("route", "key"), [("chat", "messages"), ("messages", "messages"), ("responses", "input")]
)
@quick
@given(messages=st.lists(_MESSAGE, max_size=6), places=_PLACES)
def test_strip_undoes_place(route: str, key: str, messages: list[dict[str, Any]], places: set[int]) -> None:
    """Whatever the body and wherever the blocks, stripping gives the client's body back."""
    wire, body = WIRES[route], {"model": "m", key: messages}  # type: ignore[index]
    before = copy.deepcopy(body)
    placed = wire.place(body, dict.fromkeys(places, BLOCK))
    assert wire.strip(placed) == before == body


@quick
@given(prompt=_TEXT, route=st.sampled_from(["responses", "completions"]))
def test_strip_undoes_place_on_a_string(prompt: str, route: str) -> None:
    """The same for a string input and a string prompt."""
    wire = WIRES[route]  # type: ignore[index]
    body = {"input" if route == "responses" else "prompt": prompt}
    assert wire.strip(wire.place(body, {-1: BLOCK})) == body


_NAMES = ["model", "messages", "input", "prompt", "system", "role", "content", "type", "text", "tool_calls"]
_MORE_NAMES = ["function", "name", "metadata", "user", "cache_control", "tools", "id", "instructions", "n"]
_KEYS = st.sampled_from([*_NAMES, *_MORE_NAMES, "conversation", "max_tokens"])
_WORDS = st.sampled_from(
    ["user", "assistant", "tool", "text", "tool_use", "tool_result", "message", "function_call"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=25,
)


@pytest.mark.parametrize("route", WIRES)
@quick
@given(body=st.dictionaries(_KEYS, _JSON, max_size=6))
def test_any_body_is_read(route: str, body: Body) -> None:
    """No request makes a reader raise, and a block can be placed and stripped all the same."""
    wire = WIRES[route]  # type: ignore[index]
    read(wire.read_request(body).turns)
    wire.strip(wire.place(body, {-1: BLOCK, 0: BLOCK, 1: BLOCK}))


def test_deep_and_huge_bodies_are_read() -> None:
    """Ten thousand messages and a content nested a hundred thousand deep make no reader raise."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    many = [
        {"role": "user", "content": "<rules>" * 100},
        {"role": "assistant", "content": "<think>" * 100},
    ] * 5_000
    for wire in WIRES.values():
        wire.read_request(
            {"messages": [{"role": "user", "content": deep}], "input": deep, "prompt": deep, "system": deep}
        )
        read(wire.read_request({"messages": many, "input": many}).turns)
