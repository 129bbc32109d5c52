"""Which top-level sections a configuration may have, and what a misspelt one is told."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from hearth.config.problems import Level, Problem

SECTION = "hearth"
"""Hearth's own."""

LITELLM_SECTIONS = frozenset(
    {
        "agent_list",
        "agents",
        "assistant_settings",
        "callback_settings",
        "credential_list",
        "default_vertex_config",
        "environment_variables",
        "files_settings",
        "finetune_settings",
        "general_settings",
        "guardrails",
        "include",
        "litellm_settings",
        "mcp_servers",
        "mcp_tools",
        "model_list",
        "policies",
        "policy_attachments",
        "prompts",
        "router_settings",
        "sandbox_tools",
        "search_tools",
        "vector_store_registry",
        "worker_registry",
    }
)
"""What the proxy of litellm 1.108.7 reads; a test compares them with its source. It ignores all others."""

_KNOWN = sorted({SECTION, *LITELLM_SECTIONS})
_TYPING_SLIP = 0.82
"""Of difflib's ratio: `hearht` has 0.83 of `hearth`, while names as different as LiteLLM's own have 0.8."""
_LOOKS_LIKE = 0.6


def misnamed(name: str, where: str, present: Collection[str]) -> Problem | None:
    """What is wrong with a top-level name; None for a section, and for `x-…` and `.…`, which hold anchors.

    LiteLLM ignores what it doesn't know, so a misspelt section would silently be none. It is an error where
    the name is a slip of one that `present` lacks, else a warning: a newer LiteLLM may know it.
    """
    if name in _KNOWN or name.startswith(("x-", ".")):
        return None
    slip = _nearest(name, [known for known in _KNOWN if known not in present], _TYPING_SLIP)
    if slip:
        return _problem("error", where, f"did you mean `{slip}`?")
    near = _nearest(name, _KNOWN, _LOOKS_LIKE)
    hint = f"did you mean `{near}`?" if near else "remove it; what only holds YAML anchors is named `x-…`"
    return _problem("warning", where, hint)


def _nearest(name: str, known: list[str], cutoff: float) -> str:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=cutoff)), "")


def _problem(level: Level, where: str, remedy: str) -> Problem:
    message = "is no section that LiteLLM or Hearth reads"
    return Problem(level=level, where=where, message=message, remedy=remedy)
