"""Whether a record meets a filter's conditions: the one meaning that list and search share."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from hearth.memory.ports import MemoryFilter
from hearth.memory.tiers.facts import holds
from hearth.memory.tiers.indexed import record_text
from hearth.memory.types import JsonScalar, Page, Record

_encode = msgspec.json.Encoder().encode


def fold_text(text: str) -> str:
    """The form in which words are compared: compatibility-composed and case-folded."""
    return unicodedata.normalize("NFKC", text.casefold())


def kind_of(record: Record) -> str:
    """`page`, or the memory's type."""
    return "page" if isinstance(record, Page) else record.type


def tags_of(record: Record) -> tuple[str, ...]:
    """A memory's tags; a page has none."""
    return () if isinstance(record, Page) else record.tags


def metadata_terms(metadata: Mapping[str, JsonScalar]) -> list[str]:
    """One string a key and value, equal exactly where JSON's values are: `true` is not 1, but 1 is 1.0."""
    return [_encode([key, _plain(value)]).decode() for key, value in metadata.items()]


def metadata_of(record: Record) -> list[str]:
    """`metadata_terms` of a memory; a page has none."""
    return [] if isinstance(record, Page) else metadata_terms(record.metadata)


def meets(record: Record, where: MemoryFilter) -> bool:
    """True if the record's own fields meet every condition, whether it is live or not."""
    return (
        (not where.types or kind_of(record) in where.types)
        and _holds(tags_of(record), where.tags)
        and _holds(metadata_of(record), metadata_terms(where.metadata))
        and (where.since is None or record.occurred_at >= where.since)
        and (where.until is None or record.occurred_at < where.until)
        and (where.agent is None or record.scope.agent == where.agent)
        and (where.own_agent is None or record.scope.own_agent == where.own_agent)
        and (where.session is None or record.scope.session == where.session)
        and _says(record, where.words)
    )


def is_live(record: Record, now: datetime, where: MemoryFilter) -> bool:
    """False for a page off the live branch or said after the moment asked for, and for a memory that has
    expired or does not hold then.
    """
    if isinstance(record, Page):
        said = where.as_of is None or record.occurred_at <= where.as_of
        return said and record.state == "active" and record.kind == "dialogue"
    if record.expires_at is not None and record.expires_at <= now:
        return False
    if where.as_of is not None:
        return holds(record, where.as_of)
    return where.include_superseded or record.valid_to is None or record.valid_to > now


def _says(record: Record, words: str) -> bool:
    wanted = fold_text(words).split()
    if not wanted:
        return True
    text = fold_text(record_text(record))
    return all(word in text for word in wanted)


def _holds(have: Iterable[str], wanted: Iterable[str]) -> bool:
    return frozenset(wanted) <= frozenset(have)


def _plain(value: JsonScalar) -> JsonScalar:
    return int(value) if isinstance(value, float) and value.is_integer() else value
