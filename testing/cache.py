"""A double of the providers' prompt caches: what of a request is read, what is written, what the input costs.

It is a pure function of the sequence of request bodies and times. Rules as published (looked up in November 2026):

* Anthropic, platform.claude.com/docs/en/build-with-claude/prompt-caching: prefixes in the order tools, system,
  messages; an entry is written only at a breakpoint (`cache_control`, at most four; a top-level `cache_control`
  is one on the last cacheable block); each breakpoint looks back over at most 20 positions, itself the first, where
  a run of tool_use or of tool_result blocks counts as one; life of 5 minutes or an hour, refreshed by use; writes
  cost 1.25 or 2 times the input price, reads 0.1; a minimum length by model, 1,024 tokens for most.
* OpenAI before GPT-5.6, openai.com/index/api-prompt-caching and the cookbook's "Prompt Caching 201": automatic, the
  longest prefix seen before from 1,024 tokens in steps of 128; no charge for writing; cleared after 5 to 10 minutes
  without use (5 here); cached input at 0.5 (gpt-4o, o1), 0.25 (gpt-4.1, o3, o4-mini) or 0.1 (gpt-5) of the price.
* OpenAI from GPT-5.6 on, developers.openai.com/api/docs/guides/prompt-caching: an implicit breakpoint at the end of
  the newest message (unless `prompt_cache_options.mode` is `explicit`) and explicit ones
  (`prompt_cache_breakpoint`), four writes a request; a prefix matches exactly at a breakpoint, at one of the 20 message ends
  before the newest, or at the latest 50 explicit ones; writes cost 1.25, reads 0.1, life 30 minutes.

What is not modelled: that an entry can be read only once its writer's reply has begun, routing between servers,
and eviction under load.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

MINUTES_5 = timedelta(minutes=5)
MINUTES_30 = timedelta(minutes=30)
HOUR = timedelta(hours=1)

LOOKBACK = 20
"""Positions that a breakpoint (Anthropic) or the implicit breakpoint (OpenAI) checks, itself the first."""
MAX_WRITES = 4
STEP = 128
"""Tokens by which OpenAI's automatic prefix grows."""


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """The input of one request by how it is paid, in tokens, and what it costs."""

    input: int = 0
    """Neither read nor written."""
    cache_read: int = 0
    cache_write: int = 0
    write_1h: int = 0
    """The part of `cache_write` that is kept for an hour."""
    cost: float = 0.0
    """In tokens of plain input; times the model's input price it is money."""

    @property
    def total(self) -> int:
        """All input tokens."""
        return self.input + self.cache_read + self.cache_write


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """One provider's published numbers."""

    minimum: int = 1024
    """Tokens of the shortest prefix that is cached."""
    read: float = 0.1
    write: float = 1.25
    write_1h: float = 2.0
    life: timedelta = MINUTES_5


ANTHROPIC = Rules()
ANTHROPIC_MINIMUMS = {
    "opus-5": 512,
    "opus-4-7": 2048,
    "opus-4-6": 4096,
    "opus-4-5": 4096,
    "haiku-4-5": 4096,
    "haiku-3": 2048,
}
"""Minimum lengths other than 1,024, by a part of the model's name (same page as the rules, its table)."""

OPENAI_READS = {"gpt-5": 0.1, "gpt-4.1": 0.25, "o3": 0.25, "o4-mini": 0.25}
"""Price of cached input by the model's name (developers.openai.com/api/docs/pricing); 0.5 for all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One cacheable step of a prompt: a tool, a system block, a content block or a responses item."""

    text: str
    """All that the model sees of it, canonical."""
    tokens: int
    run: str = ""
    """Units that follow each other with the same name here are one position of the lookback."""
    cacheable: bool = True
    life: timedelta | None = None
    """Set where there is a breakpoint."""
    closes: bool = True
    """True if a message ends here."""


@dataclass(slots=True)
class _Entry:
    expires: datetime
    life: timedelta


Count = Callable[[str], int]


def quarter(text: str) -> int:
    """Tokens of a text at four characters a token: stable, and near enough for ratios."""
    return -(-len(text) // 4)


class CacheDouble:
    """Prompt caches of all models, fed with requests in the order of their times."""

    def __init__(self, *, count: Count = quarter, rules: Rules | None = None) -> None:
        """`count` gives a text's tokens; `rules` replaces the published numbers (the mechanism still follows the body)."""
        self._count = count
        self._rules = rules
        self._entries: dict[bytes, _Entry] = {}
        self._children: dict[bytes, dict[str, datetime]] = {}

    def charge(self, body: dict[str, Any], at: datetime) -> Charge:
        """What the input of this request costs now; it then is in the cache.

        The mechanism follows from the body: Claude models by breakpoints, `gpt-5.6` and later by OpenAI's
        breakpoints, all others by OpenAI's automatic prefix.
        """
        model = str(body.get("model", ""))
        if _is_claude(model):
            units = list(anthropic_units(body, self._count))
            return self._at_breakpoints(
                model, units, self._rules or _anthropic(model), at, _anthropic_positions
            )
        units = list(openai_units(body, self._count))
        if _has_breakpoints(model):
            rules = self._rules or Rules(life=MINUTES_30)
            marked = _openai_marks(units, body, rules.life)
            return self._at_breakpoints(model, marked, rules, at, _openai_positions)
        return self._by_prefix(model, units, self._rules or Rules(read=_openai_read(model)), at)

    # -- entries at breakpoints ---------------------------------------------------------------------------

    def _at_breakpoints(
        self, model: str, units: list[Unit], rules: Rules, at: datetime, positions: Positions
    ) -> Charge:
        keys, ends = _chain(model, units), _ends(units)
        marks = [place for place, unit in enumerate(units) if unit.life is not None]
        hit = max(
            (place for mark in marks for place in self._found(positions(units, mark), keys, at)), default=-1
        )
        read = ends[hit] if hit >= 0 else 0
        written, hour = self._write(units, marks, keys, ends, hit, rules, at)
        if hit >= 0:
            self._touch(keys[hit], at)
        cost = (ends[-1] if ends else 0) - read - written
        plain = cost
        return Charge(
            input=plain,
            cache_read=read,
            cache_write=written,
            write_1h=hour,
            cost=plain + read * rules.read + (written - hour) * rules.write + hour * rules.write_1h,
        )

    def _found(self, positions: Iterator[int], keys: Sequence[bytes], at: datetime) -> Iterator[int]:
        """The first of the positions that holds a live entry, nothing if none does."""
        for place in positions:
            entry = self._entries.get(keys[place])
            if entry is not None and entry.expires > at:
                yield place
                return

    def _write(
        self,
        units: list[Unit],
        marks: list[int],
        keys: Sequence[bytes],
        ends: Sequence[int],
        hit: int,
        rules: Rules,
        at: datetime,
    ) -> tuple[int, int]:
        """Write an entry at each breakpoint: tokens written, and how many of them for an hour."""
        top = ends[hit] if hit >= 0 else 0
        written = hour = top
        for mark in marks[-MAX_WRITES:]:
            life = units[mark].life
            if life is None or ends[mark] < rules.minimum:
                continue
            self._entries[keys[mark]] = _Entry(at + life, life)
            written = max(written, ends[mark])
            if life >= HOUR:
                hour = max(hour, ends[mark])
        return written - top, hour - top

    def _touch(self, key: bytes, at: datetime) -> None:
        entry = self._entries[key]
        entry.expires = max(entry.expires, at + entry.life)

    # -- automatic prefixes -------------------------------------------------------------------------------

    def _by_prefix(self, model: str, units: list[Unit], rules: Rules, at: datetime) -> Charge:
        total = sum(unit.tokens for unit in units)
        key, common, whole = _digest(b"", model), 0, True
        for unit in units:
            branch = self._children.setdefault(key, {})
            if whole:
                alive = [text for text, expires in branch.items() if expires > at]
                share = max((_share(unit.text, text) for text in alive), default=0.0)
                common += int(unit.tokens * share)
                whole = share == 1.0
            if total >= rules.minimum:
                branch[unit.text] = at + rules.life
            key = _digest(key, unit.text)
        read = common - common % STEP if common >= rules.minimum and total >= rules.minimum else 0
        return Charge(input=total - read, cache_read=read, cost=total - read + read * rules.read)


def _share(one: str, other: str) -> float:
    """How much of `one` is a common beginning with `other`, 0 to 1."""
    if one == other:
        return 1.0
    same = next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), None)
    return (min(len(one), len(other)) if same is None else same) / len(one) if one else 0.0


def _digest(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest()


def _chain(model: str, units: Sequence[Unit]) -> list[bytes]:
    """The key of the prefix that ends with each unit."""
    keys, key = [], _digest(b"", model)
    for unit in units:
        key = _digest(key, unit.text)
        keys.append(key)
    return keys


def _ends(units: Sequence[Unit]) -> list[int]:
    """Tokens of the prefix that ends with each unit."""
    ends, total = [], 0
    for unit in units:
        total += unit.tokens
        ends.append(total)
    return ends


Positions = Callable[[Sequence[Unit], int], Iterator[int]]


def _anthropic_positions(units: Sequence[Unit], mark: int) -> Iterator[int]:
    """Places that a breakpoint checks, latest first; a run of tool blocks is one position."""
    seen = 0
    for place in range(mark, -1, -1):
        joined = place < mark and units[place].run and units[place].run == units[place + 1].run
        seen += 0 if joined else 1
        if seen > LOOKBACK:
            return
        yield place


def _openai_positions(units: Sequence[Unit], mark: int) -> Iterator[int]:
    """Places that a breakpoint checks, latest first: itself and the ends of the messages before it."""
    yield mark
    ends = [place for place in range(mark - 1, -1, -1) if units[place].closes]
    yield from ends[:LOOKBACK]


def _text(value: Any) -> str:
    """A part of a body in canonical form, without its cache markers."""
    return msgspec.json.encode(_unmarked(value), order="sorted").decode()


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _unmarked(inner)
            for name, inner in value.items()
            if name not in ("cache_control", "prompt_cache_breakpoint")
        }
    return [_unmarked(inner) for inner in value] if isinstance(value, list) else value


def _size(block: Any, count: Count) -> int:
    """Tokens of a block: of its text where it has one, else of all of it."""
    if isinstance(block, str):
        return count(block)
    for name in ("text", "thinking", "content"):
        if isinstance(block.get(name), str):
            return count(block[name])
    inner = block.get("content")
    if isinstance(inner, list):
        return sum(_size(part, count) for part in inner)
    return count(_text(block))


# -- Anthropic ----------------------------------------------------------------------------------------------


def _is_claude(model: str) -> bool:
    return "claude" in model


def _anthropic(model: str) -> Rules:
    for part, minimum in ANTHROPIC_MINIMUMS.items():
        if part in model:
            return msgspec.structs.replace(ANTHROPIC, minimum=minimum)
    return ANTHROPIC


def _life(block: Any) -> timedelta | None:
    control = block.get("cache_control") if isinstance(block, dict) else None
    if not control:
        return None
    return HOUR if control.get("ttl") == "1h" else MINUTES_5


def anthropic_units(body: dict[str, Any], count: Count) -> Iterator[Unit]:
    """A messages request as cacheable units in the order tools, system, messages."""
    units = list(_anthropic_plain(body, count))
    automatic = _life(body)
    if automatic is not None:
        last = max((place for place, unit in enumerate(units) if unit.cacheable), default=-1)
        units = [
            _marked(unit, automatic) if place == last and unit.life is None else unit
            for place, unit in enumerate(units)
        ]
    yield from units


def _marked(unit: Unit, life: timedelta | None) -> Unit:
    return Unit(
        text=unit.text,
        tokens=unit.tokens,
        run=unit.run,
        cacheable=unit.cacheable,
        life=life,
        closes=unit.closes,
    )


def _anthropic_plain(body: dict[str, Any], count: Count) -> Iterator[Unit]:
    for tool in body.get("tools") or ():
        yield Unit(text="tool" + _text(tool), tokens=_size(tool, count), life=_life(tool))
    for block in _listed(body.get("system")):
        yield _anthropic_unit("system", block, count)
    # A change of these keeps the caches of tools and system and breaks that of the messages.
    setting = _text([body.get("tool_choice"), body.get("thinking")])
    for message in body.get("messages") or ():
        blocks = _listed(message.get("content"))
        for place, block in enumerate(blocks):
            start = f"{setting}{message.get('role')}:" if place == 0 else "+"
            yield _anthropic_unit(start, block, count)
            setting = ""


def _listed(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())


def _anthropic_unit(start: str, block: dict[str, Any], count: Count) -> Unit:
    kind = block.get("type", "")
    thinking = kind in ("thinking", "redacted_thinking")
    return Unit(
        text=start + _text(block),
        tokens=_size(block, count),
        run=kind if kind in ("tool_use", "tool_result") else "",
        cacheable=not thinking and not (kind == "text" and not block.get("text")),
        life=_life(block),
    )


# -- OpenAI -------------------------------------------------------------------------------------------------


def _has_breakpoints(model: str) -> bool:
    """True for gpt-5.6 and later."""
    version = model.rpartition("/")[2].removeprefix("gpt-").split("-")[0]
    major, _, minor = version.partition(".")
    return major.isdigit() and (int(major), int(minor or 0) if minor.isdigit() or not minor else 0) >= (5, 6)


def _openai_read(model: str) -> float:
    name = model.rpartition("/")[2]
    return next((read for start, read in OPENAI_READS.items() if name.startswith(start)), 0.5)


def openai_units(body: dict[str, Any], count: Count) -> Iterator[Unit]:
    """A chat or responses request as units in the order tools, instructions, messages."""
    for tool in body.get("tools") or ():
        yield Unit(text="tool" + _text(tool), tokens=_size(tool, count), closes=False)
    if instructions := body.get("instructions"):
        yield Unit(text="instructions" + instructions, tokens=count(instructions))
    items = body.get("messages") or body.get("input") or ()
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        yield from _openai_message(item, count)


def _openai_message(item: dict[str, Any], count: Count) -> Iterator[Unit]:
    content = item.get("content")
    rest = {name: value for name, value in item.items() if name not in ("content", "id", "status")}
    start = _text(rest) if set(rest) - {"role", "type"} else str(item.get("role"))
    if not isinstance(content, list):
        tokens = count(content) if content else 0
        extra = count(start) if set(rest) - {"role", "type", "tool_call_id"} else 0
        yield Unit(text=f"{start}:{content or ''}", tokens=tokens + extra)
        return
    for place, part in enumerate(content):
        head = f"{start}:" if place == 0 else "+"
        text = part["text"] if isinstance(part.get("text"), str) else _text(part)
        yield Unit(
            text=head + text,
            tokens=_size(part, count),
            life=MINUTES_30 if part.get("prompt_cache_breakpoint") else None,
            closes=place == len(content) - 1,
        )


def _openai_marks(units: list[Unit], body: dict[str, Any], life: timedelta) -> list[Unit]:
    """Units with the implicit breakpoint at the end of the newest message, unless the request says `explicit`."""
    if (body.get("prompt_cache_options") or {}).get("mode") == "explicit" or not units:
        return units
    return [*units[:-1], _marked(units[-1], life)]
