"""Which of LiteLLM's routes a key of the file may call."""

from __future__ import annotations

import re
from functools import lru_cache

_OPENAI = r"(?:(?:/openai)?/v1)?"
_NAME = r"[^/?#%:]+"
_VERB = r":(?:generateContent|streamGenerateContent|countTokens)"
_ROUTES = {
    "POST": re.compile(
        r"(?:/v1)?/(?:chat/completions|completions|embeddings|moderations|rerank|messages(?:/count_tokens)?"
        r"|images/(?:generations|edits|variations)|audio/(?:transcriptions|translations|speech))"
        r"|/v2/rerank"
        r"|/(?:engines|openai/deployments)/[^?#%]+/(?:chat/completions|completions|embeddings)"
        r"|/openai/deployments/[^?#%]+/images/(?:generations|edits)"
        rf"|{_OPENAI}/responses(?:/(?:input_tokens|compact)|/[^/]+/cancel)?"
        rf"|{_OPENAI}/realtime/(?:calls|client_secrets|transcription_sessions)"
        r"|/anthropic/v1/messages(?:/count_tokens)?"
        rf"|(?:(?:/gemini)?/v1beta)?/models/[^?#%:]+{_VERB}"
        rf"|/vertex[_-]ai/v1(?:beta1)?/projects/{_NAME}/locations/{_NAME}/publishers/{_NAME}/models/{_NAME}{_VERB}"
    ),
    "GET": re.compile(
        rf"(?:/v1)?/models(?:/[^/]+)*|{_OPENAI}/responses/[^/]+(?:/input_items)?|{_OPENAI}/realtime"
    ),
    "DELETE": re.compile(rf"{_OPENAI}/responses/[^/]+"),
}
"""Routes of litellm 1.108.7, as the SDKs of OpenAI, Azure, Anthropic and Google call models and list them.

What it does not serve itself below `/openai` it hands to the provider with the account's key, whatever the
method: `GET /openai/v1/chat/completions` would list what everybody stored. A WebSocket comes as GET; the one
of `/v1/responses` is left out, since neither memory nor LiteLLM's check of response ids reaches into it.
"""
_UPWARDS = re.compile(r"/\.\.?(?:/|$)")


@lru_cache(maxsize=1024)
def is_for_callers(route: str, method: str = "POST") -> bool:
    """True for what calls a model or lists models; False for everything else that LiteLLM serves.

    Its administration is one part of that; the other is what belongs to the provider's whole account, which
    keys of several tenants share: files, batches, vector stores, assistants, fine-tuning.
    """
    allowed = _ROUTES.get(method)
    return allowed is not None and allowed.fullmatch(route) is not None and not _UPWARDS.search(route)
