"""Real client programs, installed and run as they are, hold ten turns through the real gateway."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import Reply, Request, ToolCall
from tests.acceptance import installed
from tests.acceptance.conftest import APP, GatewayProcess
from tests.acceptance.talk import BLOCK, ask, exchanges, sent_text, sessions

MAIN = ("chat", "messages", "responses")
SAID = [
    "My dog is called Pixel and he is afraid of thunder.",
    "I work as a nurse on night shifts in Bergen.",
    "Which files hold the rota?",
    "I can't eat peanuts, keep that in mind for recipes.",
    "Plan a dinner for Saturday.",
    "Yes, something with beetroot. My sister Ida comes too.",
    "How many of the rota files have I in the folder now?",
    "I'd like to run the Bergen half marathon in autumn.",
    "How do I train for it?",
    "What did I say about food?",
]
TOOL_TURNS = 2
"""How many of these ask for a tool where there is one."""


def answer(request: Request) -> Reply:
    """What the provider says: a tool call for each question about the rota, else one sentence."""
    body = request.body
    items: list[dict[str, Any]] = body.get("messages") or body["input"]
    asked = "rota" in request.user_text.partition(BLOCK)[0]
    if asked and body.get("tools") and not _has_result(items[-1]):
        return Reply(text="", tools=(ToolCall(name="list_files", arguments={}),))
    return Reply(text=f"Thank you for telling me, that was message number {len(items)} of our talk.")


EDIT = "rota.py\n```python\n<<<<<<< SEARCH\nSHIFTS = {}\n=======\nSHIFTS = {}\n>>>>>>> REPLACE\n```\n"
"""How aider is told to change the file."""


def edit(request: Request) -> Reply:
    """What the provider says to aider: it edits the file at every second message."""
    said = sum(item["role"] == "user" for item in request.body["messages"])
    shifts = re.findall(r"^SHIFTS = (\d+)$", sent_text(request.body).replace("\\n", "\n"), re.MULTILINE)
    if "Briefly* summarize" in sent_text(request.body) or not shifts or said % 2:
        return Reply(text=f"Thank you for telling me, message number {said}.")
    return Reply(text=f"Here you are.\n\n{EDIT.format(shifts[-1], int(shifts[-1]) + 1)}")


def _has_result(item: dict[str, Any]) -> bool:
    if item.get("role") == "tool" or item.get("type") == "function_call_output":
        return True
    content = item.get("content")
    return isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)


@pytest.fixture
def talkative(provider: ScriptedProvider) -> ScriptedProvider:
    """The provider, answering whatever comes."""
    provider.answer = answer
    return provider


def check(gateway: GatewayProcess, provider: ScriptedProvider, user: str) -> None:
    """Ten exchanges, each user message once, in one session, and known in the next one."""
    kept = exchanges(gateway, user)
    assert [exchange["user_text"] for exchange in kept] == SAID
    assert {exchange["state"] for exchange in kept} == {"closed"}
    assert [session["exchanges"] for session in sessions(gateway, user)] == [len(SAID)]
    later = ask(gateway, user, "Which food must I avoid? Can I eat peanuts?")
    assert later.session != kept[0]["session"]
    assert "I can't eat peanuts, keep that in mind" in sent_text(provider.last.body)


def environment(gateway: GatewayProcess, user: str) -> dict[str, str]:
    """What the scripts read."""
    return {"GATEWAY": gateway.url, "KEY": APP, "USER_ID": user}


@pytest.mark.parametrize("route", MAIN)
def test_langchain(
    gateway: GatewayProcess, talkative: ScriptedProvider, user: str, tmp_path: Path, route: str
) -> None:
    """LangChain's OpenAI and Anthropic models, with tools and a history trimmed to its last messages."""
    python = installed.python_environment("python")
    script = installed.WANTED / "langchain_talk.py"
    given = environment(gateway, user)
    installed.run([str(python), str(script), route], cwd=tmp_path, stdin=json.dumps(SAID), **given)
    assert len(talkative.requests) == len(SAID) + TOOL_TURNS
    assert {request.route for request in talkative.requests} == {route}
    check(gateway, talkative, user)


@pytest.mark.parametrize("route", MAIN)
def test_vercel_ai_sdk(gateway: GatewayProcess, talkative: ScriptedProvider, user: str, route: str) -> None:
    """The Vercel AI SDK's OpenAI and Anthropic providers, generating and streaming, with tool loops."""
    home = installed.node_environment("ai_sdk")
    script = home / "talk.mjs"
    script.write_text((installed.WANTED / "ai_sdk_talk.mjs").read_text())
    given = environment(gateway, user)
    installed.run(["node", str(script), route], cwd=home, stdin=json.dumps(SAID), **given)
    assert len(talkative.requests) == len(SAID) + TOOL_TURNS
    assert {request.route for request in talkative.requests} == {route}
    check(gateway, talkative, user)


LLM_MODELS = """
- model_id: hearth
  model_name: gpt
  api_base: "{url}/v1"
  api_key_name: hearth
  supports_tools: true
  headers:
    x-hearth-user: "{user}"
"""
LIST_FILES = (
    'def list_files() -> str:\n    "List the files of the folder."\n    return "rota.csv, holidays.csv"\n'
)


def test_llm(gateway: GatewayProcess, talkative: ScriptedProvider, user: str, tmp_path: Path) -> None:
    """The command line tool `llm`: a chat with tools, then single prompts that go on from its database."""
    python = installed.python_environment("python")
    (tmp_path / "extra-openai-models.yaml").write_text(LLM_MODELS.format(url=gateway.url, user=user))
    (tmp_path / "keys.json").write_text(json.dumps({"hearth": APP}))
    llm, given = [str(python.parent / "llm")], {"LLM_USER_PATH": str(tmp_path)}
    chat = [*llm, "chat", "-m", "hearth", "--functions", LIST_FILES]
    installed.run(chat, cwd=tmp_path, stdin="\n".join([*SAID[:-2], "exit"]) + "\n", **given)
    for text in SAID[-2:]:
        installed.run([*llm, "prompt", "-m", "hearth", "--continue", text], cwd=tmp_path, **given)
    assert len(talkative.requests) == len(SAID) + TOOL_TURNS
    check(gateway, talkative, user)


AIDER_SETTINGS = """
- name: openai/gpt
  edit_format: diff
  weak_model_name: openai/gpt
  use_repo_map: false
  extra_params:
    extra_headers:
      x-hearth-user: "{user}"
"""


def test_aider(gateway: GatewayProcess, talkative: ScriptedProvider, user: str, tmp_path: Path) -> None:
    """aider with a file in the chat that it edits, scaffolding around each message, and its own summaries."""
    python = installed.python_environment("aider")
    talkative.answer = edit
    (tmp_path / "rota.py").write_text("SHIFTS = 14\n")
    (tmp_path / ".aider.model.settings.yml").write_text(AIDER_SETTINGS.format(user=user))
    options = (
        "--model openai/gpt --no-git --yes-always --no-pretty --no-fancy-input --no-check-update"
        " --analytics-disable --no-show-model-warnings --no-show-release-notes --no-auto-lint"
        " --no-suggest-shell-commands --no-detect-urls --map-tokens 0 --max-chat-history-tokens 250 rota.py"
    )
    installed.run(
        [str(python.parent / "aider"), *options.split()],
        cwd=tmp_path,
        stdin="\n".join([*SAID, "/exit"]) + "\n",
        HOME=str(tmp_path),
        OPENAI_API_BASE=f"{gateway.url}/v1",
        OPENAI_API_KEY=APP,
        LITELLM_LOCAL_MODEL_COST_MAP="True",
    )
    summaries = [request for request in talkative.requests if "Briefly* summarize" in sent_text(request.body)]
    assert summaries
    assert all(BLOCK not in sent_text(request.body) for request in summaries)
    check(gateway, talkative, user)
