"""Long-term memory over an index that keeps no readable record, where the log's payloads are encrypted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from hearth.memory.encryption.stores import MARK, StoreKeys, marked, unmarked
from hearth.memory.filters import meets
from hearth.memory.ports import Indexed, MemoryFilter, SearchRequest
from hearth.memory.stores.fresh import Filling
from hearth.memory.stores.hits import decode_record
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.types import Page, Record, SearchResult

WORDS_AMONG = 2_000
"""Records that a search reads to find words in them, nearest first."""
_encode = msgspec.json.Encoder().encode


class EncryptedChild(VectorChild):
    """A vector child that is given records encrypted, beside the texts that it embeds and counts words of.

    What was stored before encryption was turned on is read as it is. Words that a search is restricted to are
    looked for among the nearest `WORDS_AMONG` records.
    """

    def __init__(self, *arguments: Any, keys: StoreKeys, **options: Any) -> None:
        """`keys`: by which users' records are encrypted; the rest is VectorChild's."""
        super().__init__(*arguments, **options)
        self._keys = keys

    async def search(self, request: SearchRequest) -> SearchResult:
        """See LongTerm."""
        words = MemoryFilter(words=request.where.words)
        if request.where.words:
            bare = msgspec.structs.replace(request.where, words="")
            among = max(request.limit, WORDS_AMONG)
            request = msgspec.structs.replace(request, where=bare, limit=among)
        found = await super().search(request)
        records = await _read(self._keys, [one.record for one in found.candidates], request.owners)
        candidates = tuple(
            msgspec.structs.replace(one, record=record)
            for one, record in zip(found.candidates, records, strict=True)
            if record is not None and (not words.words or meets(record, words))
        )
        return msgspec.structs.replace(found, candidates=candidates)

    async def upsert(self, records: Sequence[Indexed]) -> None:
        """See LongTerm."""
        await super().upsert([await _covered(self._keys, one) for one in records])

    async def get(self, owner: str, ids: Sequence[str]) -> list[Record]:
        """See LongTerm."""
        found = await _read(self._keys, await super().get(owner, ids), (owner,))
        return [one for one in found if one is not None]

    async def walk(self, owner: str, *, after: str = "", limit: int) -> tuple[list[Record], str]:
        """See LongTerm."""
        stored, following = await super().walk(owner, after=after, limit=limit)
        found = await _read(self._keys, stored, (owner,))
        return [one for one in found if one is not None], following


class EncryptedFilling(Filling):
    """A filling that writes records encrypted."""

    def __init__(self, *arguments: Any, keys: StoreKeys) -> None:
        """`keys`: by which users' records are encrypted; the rest is Filling's."""
        super().__init__(*arguments)
        self._keys = keys

    async def upsert(self, records: Sequence[Indexed]) -> None:
        """See Filling."""
        await super().upsert([await _covered(self._keys, one) for one in records])


async def _covered(keys: StoreKeys, item: Indexed) -> Indexed:
    """The item with a page for its record's place that says whose it is, and all else encrypted."""
    record = item.record
    key = await keys.newest(record.scope.tenant, record.scope.user, record.generation)
    told = key.encrypt(_encode(record), "record", record.id)
    stored = Page(
        id=record.id,
        scope=record.scope,
        generation=record.generation,
        user_text=marked(told),
        reply_text="",
        occurred_at=record.occurred_at,
    )
    digest_key = await keys.digest_key(record.scope.tenant, record.scope.user)
    return msgspec.structs.replace(item, stored=stored, digest_key=digest_key)


async def _read(keys: StoreKeys, stored: Sequence[Record], owners: Sequence[str]) -> list[Record | None]:
    """The records of what the index keeps; None for one that can't be read or is of another owner."""
    encrypted = [(at, text) for at, one in enumerate(stored) if (text := _encrypted(one)) is not None]
    if not encrypted:
        return [*stored]
    found = await keys.decrypted([(text, ("record", stored[at].id)) for at, text in encrypted], whose=None)
    records: list[Record | None] = [*stored]
    for (at, _), content in zip(encrypted, found, strict=True):
        record = None if content is None else decode_record(content)
        records[at] = record if record is not None and record.scope.owner in owners else None
    return records


def _encrypted(record: Record) -> bytes | None:
    """What is encrypted of it; None for a record that is kept as it is."""
    if not isinstance(record, Page) or not record.user_text.startswith(MARK):
        return None
    return unmarked(record.user_text)
