"""A model that reads facts, for a gateway and a worker of a test, beside the models of the clients."""

from __future__ import annotations

import json
from typing import Any

from hearth.memory.types import Usage
from hearth.testing.reply import Reply, Request

NAME, MODEL = "reader", "gpt-4.1-mini"
"""As the gateway knows it, and as the provider does."""
READ = "sk-test-read-0123456789abcdef"
"""A key whose users' words it reads; those of other keys are read by rules."""
CLIENTS, MEMORYS = Usage(input=11, output=7), Usage(input=30, output=5)
"""Usage of an answer to a client, and of one to memory."""


def configure(config: dict[str, Any], api_base: str) -> dict[str, Any]:
    """The configuration with the model at that address; it has a second for an answer, and nothing waits."""
    access = {"model": f"openai/{MODEL}", "api_base": api_base, "api_key": "provider-key"}
    config["model_list"].append({"model_name": NAME, "litellm_params": access})
    config["hearth"]["keys"].append(
        {"name": "read", "key": READ, "tenant": "acme", "users": "named", "facts": "model"}
    )
    config["hearth"]["life"] = {"extraction": {"model": NAME, "gather_seconds": 0, "timeout_seconds": 1}}
    return config


class Reader:
    """What the provider answers: clients always the same, memory what sentences of one beginning say."""

    def __init__(self, reply: str, beginning: str) -> None:
        self.status = 200
        """Of the answers to memory."""
        self._reply = Reply(text=reply, usage=CLIENTS)
        self._beginning = beginning

    def __call__(self, request: Request) -> Reply:
        """The answer to a request."""
        if request.model != MODEL:
            return self._reply
        pages = json.loads(request.user_text)
        facts = [
            {"page": page["page"], "statement": said, "quote": said}
            for page in pages
            for said in page["said"].split(". ")
            if said.startswith(self._beginning)
        ]
        return Reply(text=json.dumps({"facts": facts}), usage=MEMORYS, status=self.status)
