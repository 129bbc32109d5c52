"""A request body as the steps that a prompt cache goes by, with the client's breakpoints on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Literal

import msgspec

MINUTES_5 = timedelta(minutes=5)
MINUTES_30 = timedelta(minutes=30)
HOUR = timedelta(hours=1)

Count = Callable[[str], int]
Reach = Literal["blocks", "messages", "here"]
"""Where a breakpoint looks for an entry: back over blocks, over message ends, or only at itself."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a prompt: a tool, a system block, a content block or an item."""

    text: str
    """All that the model sees of it, in canonical form."""
    tokens: int
    run: str = ""
    """Units that follow each other with the same name here are one position of the lookback."""
    cacheable: bool = True
    life: timedelta | None = None
    """Set where there is a breakpoint."""
    reach: Reach = "here"
    closes: bool = True
    """True if a message ends here."""


def quarter(text: str) -> int:
    """Tokens of a text at four characters a token: stable, and near enough for ratios."""
    return -(-len(text) // 4)


def canonical(value: Any) -> str:
    """A part of a body in canonical form, without its cache markers."""
    return msgspec.json.encode(_unmarked(value), order="sorted").decode()


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        kept = (item for item in value.items() if item[0] not in ("cache_control", "prompt_cache_breakpoint"))
        return {name: _unmarked(inner) for name, inner in kept}
    return [_unmarked(inner) for inner in value] if isinstance(value, list) else value


def size(block: Any, count: Count) -> int:
    """Tokens of a block: of its text where it has one, else of all of it."""
    if isinstance(block, str):
        return count(block)
    for name in ("text", "thinking", "content", "output"):
        if isinstance(block.get(name), str):
            return count(block[name])
    inner = block.get("content")
    if isinstance(inner, list):
        return sum(size(part, count) for part in inner)
    return count(canonical(block))


def anthropic_units(body: dict[str, Any], count: Count) -> list[Unit]:
    """A messages request in the order tools, system, messages, automatic caching applied."""
    units = list(_anthropic_plain(body, count))
    automatic = _life(body)
    last = max((place for place, unit in enumerate(units) if unit.cacheable), default=-1)
    if automatic is not None and last >= 0 and units[last].life is None:
        units[last] = msgspec.structs.replace(units[last], life=automatic, reach="blocks")
    return units


def _life(block: dict[str, Any]) -> timedelta | None:
    control = block.get("cache_control")
    if not control:
        return None
    return HOUR if control.get("ttl") == "1h" else MINUTES_5


def _anthropic_plain(body: dict[str, Any], count: Count) -> Iterator[Unit]:
    for tool in body.get("tools") or ():
        yield _anthropic_unit("tool", tool, count)
    for block in _listed(body.get("system")):
        yield _anthropic_unit("system", block, count)
    # A change of these keeps the entries of tools and system and breaks those of the messages.
    setting = canonical([body.get("tool_choice"), body.get("thinking")])
    for message in body.get("messages") or ():
        start = f"{setting}{message.get('role')}:"
        for block in _listed(message.get("content")):
            yield _anthropic_unit(start, block, count)
            start, setting = "+", ""


def _listed(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())


def _anthropic_unit(start: str, block: dict[str, Any], count: Count) -> Unit:
    kind = block.get("type", "")
    empty = kind == "text" and not block.get("text")
    return Unit(
        text=start + canonical(block),
        tokens=size(block, count),
        run=kind if kind in ("tool_use", "tool_result") else "",
        cacheable=kind not in ("thinking", "redacted_thinking") and not empty,
        life=_life(block),
        reach="blocks",
    )


def openai_units(body: dict[str, Any], count: Count) -> Iterator[Unit]:
    """A chat or responses request in the order tools, instructions, messages."""
    for tool in body.get("tools") or ():
        yield Unit(text="tool" + canonical(tool), tokens=size(tool, count), closes=False)
    if instructions := body.get("instructions"):
        yield Unit(text="instructions" + instructions, tokens=count(instructions))
    items = body.get("messages") or body.get("input") or ()
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        yield from _openai_item(item, count)


def _openai_item(item: dict[str, Any], count: Count) -> Iterator[Unit]:
    content = item.get("content")
    if isinstance(content, list):
        yield from _openai_parts(str(item.get("role")), content, count)
    elif isinstance(content, str):
        yield Unit(
            text=f"{item.get('role')}:{content}", tokens=count(content), closes=not item.get("tool_calls")
        )
    rest = {name: item[name] for name in ("tool_calls", "arguments", "output", "summary") if item.get(name)}
    if rest:
        yield Unit(text=canonical(rest), tokens=size(rest, count))


def _openai_parts(role: str, parts: list[dict[str, Any]], count: Count) -> Iterator[Unit]:
    for place, part in enumerate(parts):
        text = part["text"] if isinstance(part.get("text"), str) else canonical(part)
        yield Unit(
            text=f"{role}:{text}" if place == 0 else f"+{text}",
            tokens=size(part, count),
            life=MINUTES_30 if part.get("prompt_cache_breakpoint") else None,
            closes=place == len(parts) - 1,
        )


def mark_implicit(units: list[Unit], body: dict[str, Any], life: timedelta) -> list[Unit]:
    """The units with OpenAI's implicit breakpoint on the last one, unless the request has it off."""
    if (body.get("prompt_cache_options") or {}).get("mode") == "explicit" or not units:
        return units
    return [*units[:-1], msgspec.structs.replace(units[-1], life=life, reach="messages")]
