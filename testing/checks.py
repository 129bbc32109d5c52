"""What the real providers refuse, so that a broken request fails in a test as it would in life."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Iterator
from typing import Any

from hearth.testing.refusals import Refused

MAX_BREAKPOINTS = 4
"""cache_control markers in one request (platform.claude.com/docs/en/build-with-claude/prompt-caching)."""

_SECRET = b"the scripted provider signs its thinking"


def sign(thinking: str) -> str:
    """The signature that belongs to a thinking text; a changed byte of either is refused on the way back."""
    mac = hmac.new(_SECRET, thinking.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return base64.b64encode(mac).decode()


def redact(thinking: str) -> str:
    """The `data` of a redacted_thinking block."""
    return f"{base64.b64encode(thinking.encode()).decode()}.{sign(thinking)}"


def _unredacted(data: str) -> bool:
    body, _, signature = data.partition(".")
    try:
        return hmac.compare_digest(sign(base64.b64decode(body).decode()), signature)
    except ValueError:
        return False


def check_messages(body: dict[str, Any]) -> None:
    """Refuse what Anthropic's messages route refuses. Raises Refused."""
    messages = body.get("messages")
    if "max_tokens" not in body:
        raise Refused(400, "max_tokens: Field required")
    if not isinstance(messages, list):
        raise Refused(400, "messages: Input should be a valid list")
    if not messages:
        raise Refused(400, "messages: at least one message is required")
    _check_breakpoints(body)
    for place, message in enumerate(messages):
        _check_content(place, message, last=place == len(messages) - 1)
        _check_thinking(place, message)
    _check_tool_results(messages)


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def marked(body: dict[str, Any]) -> int:
    """How many cache_control markers a messages request has, the top-level one included."""
    system = body.get("system")
    places: list[Any] = [body, *(body.get("tools") or ()), *(system if isinstance(system, list) else ())]
    places += [block for message in body.get("messages", ()) for block in _blocks(message)]
    return sum(1 for place in places if isinstance(place, dict) and place.get("cache_control"))


def _check_breakpoints(body: dict[str, Any]) -> None:
    count = marked(body)
    if count > MAX_BREAKPOINTS:
        raise Refused(
            400, f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {count}."
        )


def _check_content(place: int, message: dict[str, Any], *, last: bool) -> None:
    content = message.get("content")
    if content is None:
        raise Refused(400, f"messages.{place}.content: Field required")
    if not content and not (last and message.get("role") == "assistant"):
        raise Refused(
            400,
            f"messages.{place}: all messages must have non-empty content except for the optional final "
            "assistant message",
        )
    for block in _blocks(message):
        if block.get("type") == "text" and not block.get("text"):
            raise Refused(400, "messages: text content blocks must be non-empty")
        if block.get("type") == "text" and not str(block["text"]).strip():
            raise Refused(400, "messages: text content blocks must contain non-whitespace text")


def _check_thinking(place: int, message: dict[str, Any]) -> None:
    for index, block in enumerate(_blocks(message)):
        where = f"messages.{place}.content.{index}"
        if block.get("type") == "thinking" and block.get("signature") != sign(str(block.get("thinking", ""))):
            raise Refused(400, f"{where}: Invalid `signature` in `thinking` block")
        if block.get("type") == "redacted_thinking" and not _unredacted(str(block.get("data", ""))):
            raise Refused(400, f"{where}: Invalid `data` in `redacted_thinking` block")


def _check_tool_results(messages: list[dict[str, Any]]) -> None:
    """Each tool_use is answered in the next message, by blocks that stand before everything else."""
    expected: list[str] = []
    for place, message in enumerate(messages):
        blocks = _blocks(message)
        given = {
            block.get("tool_use_id")
            for block in blocks[: len(expected)]
            if block.get("type") == "tool_result"
        }
        missing = [one for one in expected if one not in given]
        if missing:
            raise Refused(
                400,
                f"messages.{place - 1}: `tool_use` ids were found without `tool_result` blocks immediately "
                f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message.",
            )
        _check_unexpected(place, blocks, expected)
        expected = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]


def _check_unexpected(place: int, blocks: list[dict[str, Any]], expected: list[str]) -> None:
    for index, block in enumerate(blocks):
        if block.get("type") == "tool_result" and block.get("tool_use_id") not in expected:
            raise Refused(
                400,
                f"messages.{place}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{block.get('tool_use_id')}. Each `tool_result` block must have a corresponding "
                "`tool_use` block in the previous message.",
            )


def check_chat(body: dict[str, Any]) -> None:
    """Refuse what OpenAI's chat route refuses. Raises Refused."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise Refused(
            400,
            "Missing required parameter: 'messages'.",
            param="messages",
            code="missing_required_parameter",
        )
    if not messages:
        raise Refused(
            400,
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty "
            "array instead.",
            param="messages",
            code="empty_array",
        )
    for place, message in enumerate(messages):
        if message.get("content") is None and message.get("role") in ("user", "system", "developer"):
            raise Refused(
                400,
                f"Invalid value for 'messages[{place}].content': expected a string or an array, got null.",
                param=f"messages.[{place}].content",
            )
    _check_chat_tools(messages)


def _check_chat_tools(messages: Iterable[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for message in messages:
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                raise Refused(
                    400,
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding message "
                    "with 'tool_calls'.",
                    param="messages",
                )
            waiting.remove(str(message["tool_call_id"]))
            continue
        _refuse_waiting(waiting)
        waiting = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    _refuse_waiting(waiting)


def _refuse_waiting(waiting: list[str]) -> None:
    if waiting:
        raise Refused(
            400,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(waiting)}",
            param="messages",
        )


def check_completions(body: dict[str, Any]) -> None:
    """Refuse what OpenAI's completions route refuses. Raises Refused."""
    if "messages" in body:
        raise Refused(400, "Unrecognized request argument supplied: messages")
    if "prompt" not in body:
        raise Refused(400, "you must provide a prompt", param="prompt")


def check_responses(body: dict[str, Any]) -> None:
    """Refuse what OpenAI's responses route refuses in the body alone. Raises Refused."""
    if "messages" in body:
        raise Refused(
            400,
            "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'.",
            code="unsupported_parameter",
        )
    if body.get("previous_response_id") and body.get("conversation"):
        raise Refused(
            400,
            "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
            code="mutually_exclusive_parameters",
        )
    if not any(body.get(name) for name in ("input", "previous_response_id", "conversation", "prompt")):
        raise Refused(
            400,
            'One of "input" or "previous_response_id" or "prompt" or "conversation" must be provided.',
            code="missing_required_parameter",
        )


def check_items(items: Iterable[Any]) -> None:
    """Refuse a responses context whose calls and outputs do not match. Raises Refused."""
    called = list(_ids(items, "function_call"))
    answered = list(_ids(items, "function_call_output"))
    for one in answered:
        if one not in called:
            raise Refused(
                400, f"No tool call found for function call output with call_id {one}.", param="input"
            )
    for one in called:
        if one not in answered:
            raise Refused(400, f"No tool output found for function call {one}.", param="input")


def _ids(items: Iterable[Any], kind: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict) and item.get("type") == kind:
            yield str(item.get("call_id"))
