"""Which routes of LiteLLM's a key of the file may call."""

from __future__ import annotations

import pytest

from hearth.gateway.callable_routes import is_for_callers

CALLS = (
    *(
        "/chat/completions",
        "/v1/chat/completions",
        "/openai/deployments/gpt/chat/completions",
        "/v1/completions",
    ),
    *("/engines/gpt/embeddings", "/v1/embeddings", "/v1/moderations", "/v2/rerank", "/v1/images/generations"),
    *("/v1/audio/transcriptions", "/v1/messages", "/v1/messages/count_tokens", "/anthropic/v1/messages"),
    *("/v1/responses", "/openai/v1/responses", "/v1/responses/resp_1", "/v1/responses/resp_1/input_items"),
    *("/v1/responses/resp_1/cancel", "/models", "/v1/models", "/v1/models/gpt-4o", "/v1/realtime"),
    *("/v1beta/models/gemini:generateContent", "/models/gemini:streamGenerateContent"),
)
OTHERS = (
    *(
        "/v1/files",
        "/files/file-1/content",
        "/v1/batches",
        "/v1/vector_stores",
        "/v1/assistants",
        "/v1/threads",
    ),
    *(
        "/v1/fine_tuning/jobs",
        "/model/info",
        "/v1/model/info",
        "/mcp-rest/tools/list",
        "/mcp",
        "/key/generate",
    ),
    *("/anthropic/v1/files", "/anthropic/v1/messages/batches", "/openai/v1/files", "/gemini/v1beta/files"),
    *("/user/info", "/spend/logs", "/", "/v1/models/../files", "/v1/containers", "/vertex_ai/anything"),
)


@pytest.mark.parametrize("route", CALLS)
def test_a_model_call_is_allowed(route: str) -> None:
    """Every form in which an SDK calls a model or lists models."""
    assert is_for_callers(route)


@pytest.mark.parametrize("route", OTHERS)
def test_what_belongs_to_the_account_is_not(route: str) -> None:
    """Neither LiteLLM's administration nor what all tenants of one provider account share."""
    assert not is_for_callers(route)
