"""How the provider behind a model caches prompts, as far as the request alone does not say."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from hearth.gateway.wire.types import WireRequest

IMPLICIT_SECONDS = 1800
"""Life of OpenAI's entries from GPT-5.6 on."""
_GPT = re.compile(r"(?:.*/)?gpt-(\d+)(?:\.(\d+))?(?![\w.])")


def with_caching(request: WireRequest, models: Iterable[str]) -> WireRequest:
    """The request with what is known of its provider's cache; `models` are the deployments' own names.

    From GPT-5.6 on OpenAI writes an entry at the end of the newest message, where our block is, and keeps it
    for 30 minutes, unless `prompt_cache_options.mode` is `explicit`
    (developers.openai.com/api/docs/guides/prompt-caching). That is automatic caching as Anthropic's top-level
    `cache_control` is: without its earlier blocks a session would read nothing and write all, each turn.
    """
    if request.explicit_caching or not any(map(has_implicit_breakpoint, models)):
        return request
    return msgspec.structs.replace(request, automatic_caching=True, cache_seconds=IMPLICIT_SECONDS)


def has_implicit_breakpoint(model: str) -> bool:
    """True for OpenAI's gpt-5.6 and later, whatever stands in front of the name or behind it."""
    found = _GPT.match(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (5, 6)
