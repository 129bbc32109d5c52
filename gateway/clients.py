"""Presets for client programs: what their requests say about user and session, and which are housekeeping.

Learned from the programs' public sources and from traces that their users published. `llm` (the command line
tool) sends nothing that tells it from any other use of OpenAI's library: it needs no preset and has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from hearth.gateway.wire.types import WireRequest


class ClientHints(msgspec.Struct, frozen=True, kw_only=True):
    """What a known client program's request says about itself; empty where it says nothing."""

    name: str = ""
    """The preset's name, as in `clients` of the settings."""
    user: str = ""
    """The end user as the client names them; only an app's key may let it count."""
    session: str = ""
    """The client's own id of the conversation."""
    housekeeping: bool = False
    """True for calls that the program makes for itself: titles, tags, follow-ups, summaries, probes."""


Claims = Callable[[WireRequest], tuple[str, str]]
"""A body → (user, session)."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """How one client program is recognised and where it puts what Hearth wants to know."""

    name: str
    agents: tuple[str, ...] = ()
    """Any of these in the User-Agent, in lower case."""
    headers: tuple[str, ...] = ()
    """Any header whose name starts with one of these."""
    systems: tuple[str, ...] = ()
    """Any of these in the first thousand characters of the system text."""
    metadata: tuple[str, ...] = ()
    """Any of these keys in the body's metadata."""
    user_headers: tuple[str, ...] = ()
    session_headers: tuple[str, ...] = ()
    session_metadata: tuple[str, ...] = ()
    claims: Claims | None = None


_LEGACY_ID = re.compile(r"user_([0-9a-f]+)_account_([0-9a-f-]*)_session_([0-9a-f-]{36})")


def _claude_code_claims(request: WireRequest) -> tuple[str, str]:
    """`metadata.user_id` is device, account and session, joined by underscores or (since 2.1.78) in JSON."""
    legacy = _LEGACY_ID.fullmatch(request.metadata_user)
    if legacy:
        return legacy[2] or legacy[1], legacy[3]
    if not request.metadata_user.startswith("{"):
        return "", ""
    try:
        fields = json.loads(request.metadata_user)
    except (ValueError, RecursionError):
        return "", ""
    found = (fields.get(key) for key in ("account_uuid", "device_id", "session_id"))
    account, device, session = (value if isinstance(value, str) else "" for value in found)
    return account or device, session


def _cache_key_claims(request: WireRequest) -> tuple[str, str]:
    return "", request.prompt_cache_key


PRESETS: tuple[Preset, ...] = (
    Preset(
        name="claude-code",
        agents=("claude-cli/", "claude-code/"),
        headers=("x-claude-code-",),
        session_headers=("x-claude-code-session-id",),
        claims=_claude_code_claims,
    ),
    Preset(
        name="codex",
        agents=("codex_", "codex-", "codex/"),
        headers=("x-codex-",),
        session_headers=("session_id", "session-id", "conversation_id", "thread_id", "thread-id"),
        session_metadata=("session_id", "thread_id"),
        claims=_cache_key_claims,
    ),
    Preset(
        name="open-webui",
        headers=("x-openwebui-",),
        user_headers=("x-openwebui-user-id", "x-openwebui-user-email"),
        session_headers=("x-openwebui-chat-id",),
    ),
    Preset(
        name="librechat",
        agents=("librechat",),
        headers=("x-librechat-",),
        user_headers=("x-librechat-user-id",),
        session_headers=("x-librechat-conversation-id", "x-conversation-id"),
    ),
    Preset(
        name="vercel-ai",
        agents=("ai-sdk/",),
        session_headers=("x-opencode-session", "x-session-affinity"),
    ),
    Preset(
        name="langchain",
        agents=("langchain", "langgraph"),
        metadata=("thread_id", "langgraph_thread_id"),
        session_metadata=("thread_id", "langgraph_thread_id", "session_id", "conversation_id"),
    ),
    Preset(
        name="aider", agents=("aider",), systems=("*SEARCH/REPLACE", "Act as an expert software developer.")
    ),
)
"""In the order in which they are tried: the more telling marks first."""

_TASK = "### Task:"
_USER_OPENINGS = (
    "Provide a concise, 5-word-or-less title for the conversation",
    "Please generate a concise, 5-word-or-less title",
    "Analyze this conversation and provide:\n1. The detected language",
    "Write a concise title for this conversation",
    "Detect the language used in the following text",
    "Please write a 5-10 word title for the following conversation",
    "Summarize this coding conversation in under",
    "Generate a concise, sentence-case title",
    "Your task is to create a detailed summary of the conversation so far",
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",
    "[SUGGESTION MODE:",
    "The user stepped away and is coming back",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "Your task is to reflect the speaker's likely facial expression through a fitting emoji",
)
_TASK_OPENINGS = (
    "Generate a concise",
    "Generate 1-3 broad tags",
    "Suggest 3-5 relevant follow-up",
    "Analyze the chat history to determine the necessity",
    "Analyze the context to determine the necessity",
    "You are an autocompletion system",
    "Generate a detailed prompt for",
    "You are tasked with generating",
)
_SYSTEM_MARKS = (
    "Analyze if this message indicates a new conversation topic",
    "Generate a concise, sentence-case title",
    "Summarize this coding conversation in under",
    "Summarize this coding session",
    "You are a title generator. You output ONLY a thread title",
    "Extract any file paths that this command reads or modifies",
    "Your task is to process Bash commands that an AI coding agent wants to run",
    "You are an assistant for performing a web search tool use",
    "You are a helpful AI assistant tasked with summarizing conversations",
    "Generate a concise, descriptive title for this conversation",
    "You are an expert software engineer that generates concise, one-line Git commit messages",
    "*Briefly* summarize this partial conversation about programming",
    "Your task is to choose and return the correct tool(s) from the list of available tools",
)
_MARKED_SYSTEM_CHARS = 8000
"""Housekeeping prompts are short; a main system prompt may quote one of their sentences."""
_HOUSEKEEPING_SUBAGENTS = frozenset({"compact", "memory_consolidation"})
_PROBE_TEXTS = frozenset({"quota", "warmup", "test", "count"})


def recognise(
    headers: Sequence[tuple[str, str]], request: WireRequest, clients: Collection[str] | None = None
) -> ClientHints:
    """What the request's client says about user and session, and whether the call is the program's own.

    `headers` as received, names in any case; `clients` restricts the presets to those named. Housekeeping is
    told from the prompts themselves, so that it is found without a client's headers too.
    """
    given = {name.lower(): value.strip() for name, value in reversed(headers)}
    known = (preset for preset in PRESETS if clients is None or preset.name in clients)
    preset = next((preset for preset in known if _matches(preset, given, request)), None)
    housekeeping = _is_housekeeping(preset, given, request)
    if preset is None:
        return ClientHints(housekeeping=housekeeping)
    user, session = preset.claims(request) if preset.claims else ("", "")
    return ClientHints(
        name=preset.name,
        user=_first(given, preset.user_headers) or user,
        session=_first(given, preset.session_headers)
        or _first(request.metadata, preset.session_metadata)
        or session,
        housekeeping=housekeeping,
    )


def _first(values: Mapping[str, str], names: Sequence[str]) -> str:
    return next(filter(None, (values.get(name, "") for name in names)), "")


def _matches(preset: Preset, given: dict[str, str], request: WireRequest) -> bool:
    agent = f"{given.get('user-agent', '')} {given.get('originator', '')}".lower()
    if any(mark in agent for mark in preset.agents):
        return True
    if any(name.startswith(preset.headers) for name in given):
        return True
    if any(key in request.metadata for key in preset.metadata):
        return True
    return bool(preset.systems) and any(mark in _system_text(request)[:1000] for mark in preset.systems)


def _system_text(request: WireRequest) -> str:
    return "\n".join(turn.text for turn in request.turns if turn.role == "system")


def _is_housekeeping(preset: Preset | None, given: dict[str, str], request: WireRequest) -> bool:
    if given.get("x-openai-subagent") in _HOUSEKEEPING_SUBAGENTS:
        return True
    said = next((turn.text for turn in reversed(request.turns) if turn.role == "user" and turn.text), "")
    if preset is not None and preset.name == "claude-code" and _is_probe(said, request):
        return True
    return _opens_housekeeping(said) or (not request.offered_tools and _asked_by_system(request))


def _is_probe(said: str, request: WireRequest) -> bool:
    """Claude Code asks for one token to read its rate limits, and warms caches with a word."""
    return request.max_output == 1 or (not request.offered_tools and said.strip().lower() in _PROBE_TEXTS)


def _opens_housekeeping(said: str) -> bool:
    text = said.lstrip()
    if text.startswith(_TASK):
        return text.removeprefix(_TASK).lstrip().startswith(_TASK_OPENINGS)
    return text.startswith(_USER_OPENINGS)


def _asked_by_system(request: WireRequest) -> bool:
    text = _system_text(request)
    return len(text) < _MARKED_SYSTEM_CHARS and any(mark in text for mark in _SYSTEM_MARKS)
