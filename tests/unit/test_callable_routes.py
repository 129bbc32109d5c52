"""Which routes of LiteLLM's a key of the file may call."""

from __future__ import annotations

import pytest

from hearth.gateway.callable_routes import is_for_callers

VERTEX = "vertex_ai/v1/projects/p/locations/l/publishers/google/models/gemini-pro"
CALLS = """
POST /chat/completions
POST /v1/chat/completions
POST /openai/deployments/gpt/chat/completions
POST /openai/deployments/azure/gpt-4o/chat/completions
POST /v1/completions
POST /engines/gpt/embeddings
POST /v1/embeddings
POST /v1/moderations
POST /v2/rerank
POST /v1/images/generations
POST /v1/audio/transcriptions
POST /v1/messages
POST /v1/messages/count_tokens
POST /anthropic/v1/messages
POST /v1/responses
POST /openai/v1/responses
POST /v1/responses/compact
POST /v1/responses/resp_1/cancel
GET /v1/responses/resp_1
GET /openai/v1/responses/resp_1/input_items
DELETE /v1/responses/resp_1
GET /v1/realtime
POST /v1/realtime/client_secrets
GET /models
GET /v1/models
GET /v1/models/gpt-4o
GET /v1/models/openai/gpt-4o
POST /v1beta/models/gemini:generateContent
POST /models/gemini:streamGenerateContent
POST /gemini/v1beta/models/gemini:countTokens
POST /VERTEX:generateContent
""".replace("VERTEX", VERTEX)
OTHERS = """
GET /v1/files
GET /files/file-1/content
POST /v1/batches
GET /v1/vector_stores
GET /v1/assistants
GET /v1/threads
GET /v1/fine_tuning/jobs
GET /model/info
GET /v1/model/info
GET /mcp-rest/tools/list
GET /mcp
POST /key/generate
GET /user/info
GET /spend/logs
GET /
GET /v1/containers
GET /v1/models/../files
POST /openai/deployments/../files/chat/completions
POST /openai/deployments/%2e%2e/chat/completions
POST /anthropic/v1/files
POST /anthropic/v1/messages/batches
GET /anthropic/v1/models
POST /openai/v1/files
GET /openai/v1/chat/completions
POST /openai/v1/chat/completions
GET /openai/v1/models
DELETE /openai/v1/models/ft:gpt
POST /openai/responses
GET /openai/responses/resp_1
GET /v1/responses
POST /openai/v1/responses/resp_1
POST /openai/v1/realtime/calls/call_1/hangup
GET /gemini/v1beta/files
POST /gemini/v1beta/models/gemini:batchGenerateContent
POST /vertex_ai/anything
POST /VERTEX:predictLongRunning
DELETE /v1/models/gpt-4o
PUT /v1/chat/completions
""".replace("VERTEX", VERTEX)


@pytest.mark.parametrize("call", CALLS.split("\n")[1:-1])
def test_a_model_call_is_allowed(call: str) -> None:
    """Every form in which an SDK calls a model or lists models."""
    method, route = call.split()
    assert is_for_callers(route, method)


@pytest.mark.parametrize("call", OTHERS.split("\n")[1:-1])
def test_what_belongs_to_the_account_is_not(call: str) -> None:
    """Neither LiteLLM's administration nor what all tenants of one provider account share."""
    method, route = call.split()
    assert not is_for_callers(route, method)
