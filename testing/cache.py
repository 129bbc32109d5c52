"""A double of the providers' prompt caches: what of a request is read, what is written, what the input costs.

A pure function of the sequence of request bodies and times. The rules are the published ones (November 2026):

- Anthropic, platform.claude.com/docs/en/build-with-claude/prompt-caching: prefixes in the order tools,
  system, messages; an entry is written only at a breakpoint (`cache_control`, at most four; a top-level one
  stands for one on the last cacheable block); each breakpoint looks back over at most 20 positions, itself
  the first, where a run of tool_use or of tool_result blocks counts as one; an entry lives 5 minutes or an
  hour, refreshed by use; a write costs 1.25 or 2 times the input, a read 0.1; shorter prefixes than a minimum
  by model, 1,024 tokens for most, are not cached.
- OpenAI before GPT-5.6, openai.com/index/api-prompt-caching and the cookbook's "Prompt Caching 201": the
  longest prefix seen before, from 1,024 tokens in steps of 128; writing is free; an entry goes after 5 to 10
  minutes without use (5 here); cached input costs 0.5 (gpt-4o, o1), 0.25 (gpt-4.1, o3, o4-mini), 0.1 (gpt-5).
- OpenAI from GPT-5.6 on, developers.openai.com/api/docs/guides/prompt-caching: an implicit breakpoint at the
  end of the newest message (unless `prompt_cache_options.mode` is `explicit`) and explicit ones
  (`prompt_cache_breakpoint`), four writes a request; the implicit one also looks at the 20 message ends
  before it, an explicit one only at itself; a write costs 1.25, a read 0.1; an entry lives for 30 minutes.

Not modelled: that an entry can be read only once its writer's reply has begun, routing between servers, and
eviction under load.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from hearth.testing.cache_units import (
    HOUR,
    MINUTES_5,
    MINUTES_30,
    Count,
    Unit,
    anthropic_units,
    mark_implicit,
    openai_units,
    quarter,
)

LOOKBACK = 20
"""Positions that a breakpoint checks (Anthropic: itself included; OpenAI: message ends before it)."""
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
    """The published numbers of a model."""

    minimum: int = 1024
    """Tokens of the shortest prefix that is cached."""
    read: float = 0.1
    """Price of a token read, in tokens of plain input; so the next two."""
    write: float = 1.25
    write_1h: float = 2.0
    life: timedelta = MINUTES_5
    """Of an entry where the request doesn't say."""


ANTHROPIC_MINIMUMS = {
    "opus-5": 512,
    "opus-4-7": 2048,
    "opus-4-6": 4096,
    "opus-4-5": 4096,
    "haiku-4-5": 4096,
    "haiku-3": 2048,
}
"""Minimum lengths other than 1,024, by a part of the model's name (the table on the same page)."""

OPENAI_READS = {"gpt-5": 0.1, "gpt-4.1": 0.25, "o3": 0.25, "o4-mini": 0.25}
"""Price of cached input by the model's name (developers.openai.com/api/docs/pricing); 0.5 for all others."""


@dataclass(slots=True)
class _Entry:
    expires: datetime
    life: timedelta


class CacheDouble:
    """The prompt caches of all models, fed with requests in the order of their times."""

    def __init__(self, *, count: Count = quarter, rules: Rules | None = None) -> None:
        """`count` gives a text's tokens; `rules` replaces the numbers, the mechanism follows the model."""
        self._count = count
        self._rules = rules
        self._entries: dict[bytes, _Entry] = {}
        self._branches: dict[bytes, dict[str, datetime]] = {}

    def charge(self, body: dict[str, Any], at: datetime) -> Charge:
        """What the input of this request costs now; from then on it is in the cache.

        Claude models go by breakpoints, `gpt-5.6` and later by OpenAI's breakpoints, all others by OpenAI's
        automatic prefix.
        """
        model = str(body.get("model", ""))
        rules = self._rules or rules_of(model)
        if "claude" in model:
            return self._at_breakpoints(model, list(anthropic_units(body, self._count)), rules, at)
        units = list(openai_units(body, self._count))
        if has_breakpoints(model):
            return self._at_breakpoints(model, mark_implicit(units, body, rules.life), rules, at)
        return self._by_prefix(model, units, rules, at)

    # -- entries at breakpoints

    def _at_breakpoints(self, model: str, units: list[Unit], rules: Rules, at: datetime) -> Charge:
        keys, ends = _chain(model, units), _ends(units)
        marks = [place for place, unit in enumerate(units) if unit.life is not None]
        hits = [hit for mark in marks for hit in self._hit(positions(units, mark), keys, at)]
        read = ends[max(hits)] if hits else 0
        if hits:
            entry = self._entries[keys[max(hits)]]
            entry.expires = max(entry.expires, at + entry.life)
        written = hour = read
        for mark in marks[-MAX_WRITES:]:
            life = units[mark].life or rules.life
            if ends[mark] < rules.minimum:
                continue
            self._entries[keys[mark]] = _Entry(at + life, life)
            written = max(written, ends[mark])
            hour = max(hour, ends[mark]) if life >= HOUR else hour
        total = ends[-1] if ends else 0
        return priced(rules, total=total, read=read, written=written - read, hour=hour - read)

    def _hit(self, places: Iterator[int], keys: Sequence[bytes], at: datetime) -> Iterator[int]:
        """The first of the places that holds a live entry; nothing if none does."""
        for place in places:
            entry = self._entries.get(keys[place])
            if entry is not None and entry.expires > at:
                yield place
                return

    # -- automatic prefixes

    def _by_prefix(self, model: str, units: list[Unit], rules: Rules, at: datetime) -> Charge:
        total = sum(unit.tokens for unit in units)
        common = self._common(model, units, at)
        if total >= rules.minimum:
            self._remember(model, units, at + rules.life)
        read = common - common % STEP if common >= rules.minimum else 0
        return priced(rules, total=total, read=read, written=0, hour=0)

    def _common(self, model: str, units: list[Unit], at: datetime) -> int:
        """Tokens that the prompt has in common with the beginning of an earlier one."""
        key, common = _digest(b"", model), 0
        for unit in units:
            alive = [text for text, expires in self._branches.get(key, {}).items() if expires > at]
            share = max((_share(unit.text, text) for text in alive), default=0.0)
            common += int(unit.tokens * share)
            if share < 1.0:
                break
            key = _digest(key, unit.text)
        return common

    def _remember(self, model: str, units: list[Unit], expires: datetime) -> None:
        key = _digest(b"", model)
        for unit in units:
            self._branches.setdefault(key, {})[unit.text] = expires
            key = _digest(key, unit.text)


def rules_of(model: str) -> Rules:
    """The published numbers of a model, by its name."""
    if "claude" in model:
        minimums = (minimum for part, minimum in ANTHROPIC_MINIMUMS.items() if part in model)
        return Rules(minimum=next(minimums, 1024))
    if has_breakpoints(model):
        return Rules(life=MINUTES_30)
    name = model.rpartition("/")[2]
    reads = (read for start, read in OPENAI_READS.items() if name.startswith(start))
    return Rules(read=next(reads, 0.5))


def has_breakpoints(model: str) -> bool:
    """True for gpt-5.6 and later."""
    version = model.rpartition("/")[2].removeprefix("gpt-").partition("-")[0]
    numbers = version.split(".")
    if not all(number.isdigit() for number in numbers):
        return False
    return tuple(map(int, numbers)) >= (5, 6)


def priced(rules: Rules, *, total: int, read: int, written: int, hour: int) -> Charge:
    """A charge with its cost."""
    plain = total - read - written
    cost = plain + read * rules.read + (written - hour) * rules.write + hour * rules.write_1h
    return Charge(input=plain, cache_read=read, cache_write=written, write_1h=hour, cost=cost)


def positions(units: Sequence[Unit], mark: int) -> Iterator[int]:
    """The places where a breakpoint looks for an entry, latest first."""
    reach = units[mark].reach
    if reach == "blocks":
        return _blocks_back(units, mark)
    if reach == "messages":
        return _messages_back(units, mark)
    return iter((mark,))


def _blocks_back(units: Sequence[Unit], mark: int) -> Iterator[int]:
    seen = 0
    for place in range(mark, -1, -1):
        joined = place < mark and units[place].run and units[place].run == units[place + 1].run
        seen += 0 if joined else 1
        if seen > LOOKBACK:
            return
        yield place


def _messages_back(units: Sequence[Unit], mark: int) -> Iterator[int]:
    yield mark
    yield from [place for place in range(mark - 1, -1, -1) if units[place].closes][:LOOKBACK]


def _share(one: str, other: str) -> float:
    """How much of `one` is a common beginning with `other`, 0 to 1."""
    if one == other:
        return 1.0
    pairs = enumerate(zip(one, other, strict=False))
    same = next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
    return same / len(one) if one else 0.0


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
