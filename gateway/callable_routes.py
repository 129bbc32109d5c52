"""Which of LiteLLM's routes a key of the file may call."""

from __future__ import annotations

import re
from functools import lru_cache

_CALLS = re.compile(
    r"(?!.*/\.\.?(?:/|$))(?:"
    r"(?:/openai|/anthropic)?(?:/v1|/v2)?(?:/engines/[^/]+|/deployments/[^/]+)?/(?:"
    r"chat/completions|completions|embeddings|moderations|rerank|images/(?:generations|edits|variations)"
    r"|audio/(?:transcriptions|translations|speech)|messages(?:/count_tokens)?|realtime(?:/.+)?"
    r"|responses(?:/(?:input_tokens|compact)|/[^/]+(?:/input_items|/cancel)?)?|models(?:/[^/]+)*)"
    r"|(?:/gemini)?(?:/v1beta)?/models/[^/]+:\w+)"
)
"""Routes that call a model or list models, as the SDKs of OpenAI, Azure, Anthropic and Google have them."""


@lru_cache(maxsize=1024)
def is_for_callers(route: str) -> bool:
    """True for routes that call a model or list models; False for everything else that LiteLLM serves.

    Its administration is one part of that; the other is what belongs to the provider's whole account, which
    keys of several tenants share: files, batches, vector stores, assistants, fine-tuning.
    """
    return _CALLS.fullmatch(route) is not None
