"""Memory around an Anthropic client, without any gateway.

ANTHROPIC_API_KEY=… python examples/with_anthropic.py alice
"""

from __future__ import annotations

import asyncio
import sys
from uuid import uuid4

from anthropic import AsyncAnthropic

from hearth.memory import Engine, Scope, attach, open_memory

MODEL = "claude-sonnet-5-5"


async def turn(memory: Engine, scope: Scope, client: AsyncAnthropic, history: list[dict], text: str) -> str:
    """Ask with what is remembered, keep what was said, return the reply; `history` grows by both."""
    found = await memory.recall(scope, text, history=[message["content"] for message in history], model=MODEL)
    sent = [*history, {"role": "user", "content": attach(text, found.block.text)}]
    answer = await client.messages.create(model=MODEL, max_tokens=1000, messages=sent)
    reply = "".join(part.text for part in answer.content if part.type == "text")
    await memory.capture(scope, text, reply, recall=found, model=MODEL)
    history += [{"role": "user", "content": text}, {"role": "assistant", "content": reply}]
    return reply


async def main(user: str) -> None:
    """Talk on the terminal; an empty line ends it. The next conversation knows what was said in this one."""
    scope = Scope(tenant="example", user=user, session=uuid4().hex)
    history: list[dict] = []
    async with open_memory(".hearth-example") as memory, AsyncAnthropic() as client:
        while text := (await asyncio.to_thread(input, "you: ")).strip():
            sys.stdout.write(f"model: {await turn(memory, scope, client, history, text)}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
