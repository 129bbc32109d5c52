"""What stores beside the log are given encrypted, and give back readable: they know nothing of it."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import Protocol, TypeVar

import msgspec

from hearth.memory.ports import Shared, ShortTerm
from hearth.memory.types import Embedding, Outdated, Page, PlacedBlock, Scope, ShortTermView

T = TypeVar("T")

MARK = "\x01~"
"""What an encrypted text begins with, and hardly anything that is said."""
_TEXTS = ("user_text", "reply_text", "user_name", "reply_name", "user_shown", "reply_shown")


class Encrypts(Protocol):
    """A data key of one user."""

    def encrypt(self, content: bytes, *place: str, same: bool = False) -> bytes:
        """The content encrypted, readable as that user's and in that place alone; with `same` equal content
        gives equal bytes.
        """
        ...


class StoreKeys(Protocol):
    """The data keys of users, for stores beside the log."""

    async def newest(self, tenant: str, user: str, generation: int) -> Encrypts:
        """By which what is of that generation is encrypted. Raises StoreUnavailable."""
        ...

    async def digest_key(self, tenant: str, user: str) -> bytes:
        """Keys digests of what is the user's, always the same. Raises StoreUnavailable."""
        ...

    async def decrypted(
        self, stored: Sequence[tuple[bytes, tuple[str, ...]]], *, whose: tuple[str, str] | None
    ) -> list[bytes | None]:
        """What was encrypted for that (tenant, user), or for anybody, each for its place; None where that was
        not so, or its key is destroyed. Raises StoreUnavailable.
        """
        ...


class _Texts(msgspec.Struct, frozen=True, array_like=True):
    """The texts of a page."""

    texts: tuple[str, ...]
    outdated: tuple[Outdated, ...]


_encode = msgspec.msgpack.Encoder().encode
_texts = msgspec.msgpack.Decoder(_Texts)


class EncryptedShortTerm:
    """Short-term memory over a store that is given pages and blocks without a readable text.

    Bounds in bytes count them as they are stored, about a third longer. What was stored before encryption was
    turned on is read as it is.
    """

    def __init__(self, store: ShortTerm, keys: StoreKeys) -> None:
        self._store = store
        self._keys = keys

    async def push(self, page: Page, *, vector: Embedding | None, block: PlacedBlock | None) -> None:
        """See `ShortTerm.push`."""
        key = await self._keys.newest(page.scope.tenant, page.scope.user, page.generation)
        if block is not None:
            text = key.encrypt(block.text.encode(), *_block_place(block))
            block = msgspec.structs.replace(block, text=marked(text))
        await self._store.push(_covered(page, key), vector=vector, block=block)

    async def latest(self, scope: Scope, *, limit: int) -> ShortTermView:
        """See `ShortTerm.latest`."""
        view = await self._store.latest(scope, limit=limit)
        blocks = [one for one in view.blocks if one.text.startswith(MARK)]
        pages = [one for one in view.pages if one.user_text.startswith(MARK)]
        if not blocks and not pages:
            return view
        found = await self._keys.decrypted(
            [
                *((unmarked(one.text), _block_place(one)) for one in blocks),
                *((unmarked(one.user_text), _page_place(one)) for one in pages),
            ],
            whose=(scope.tenant, scope.user),
        )
        told = dict(zip([one.exchange for one in blocks], found, strict=False))
        texts = dict(zip([one.id for one in pages], found[len(blocks) :], strict=True))
        return msgspec.structs.replace(
            view,
            pages=tuple(_all(_uncovered(one, texts.get(one.id, b"")) for one in view.pages)),
            blocks=tuple(_all(_readable(one, told.get(one.exchange, b"")) for one in view.blocks)),
        )

    async def settle(self, scope: Scope, pages: Sequence[Page]) -> None:
        """See `ShortTerm.settle`."""
        await self._store.settle(scope, await self._all_covered(pages))

    async def restore(
        self, scope: Scope, generation: int, pages: Sequence[Page], *, waiting: Collection[str]
    ) -> None:
        """See `ShortTerm.restore`."""
        await self._store.restore(scope, generation, await self._all_covered(pages), waiting=waiting)

    async def drop(self, scope: Scope, records: Sequence[str]) -> None:
        """See `ShortTerm.drop`."""
        await self._store.drop(scope, records)

    async def clear(self, tenant: str, user: str, *, before: int | None = None) -> None:
        """See `ShortTerm.clear`."""
        await self._store.clear(tenant, user, before=before)

    def people(self) -> AsyncIterator[Scope]:
        """See `ShortTerm.people`."""
        return self._store.people()

    async def _all_covered(self, pages: Sequence[Page]) -> list[Page]:
        return [
            _covered(one, await self._keys.newest(one.scope.tenant, one.scope.user, one.generation))
            for one in pages
        ]


class EncryptedShared:
    """What processes tell each other, over a store that is given no readable body of a user."""

    def __init__(self, store: Shared, keys: StoreKeys) -> None:
        self._store = store
        self._keys = keys

    async def keep(self, kind: str, id: str, body: bytes, *, seconds: int, tenant: str, user: str) -> None:
        """See `Shared.keep`."""
        if user:
            key = await self._keys.newest(tenant, user, 0)
            body = MARK.encode() + key.encrypt(body, "shared", kind, id)
        await self._store.keep(kind, id, body, seconds=seconds, tenant=tenant, user=user)

    async def get(self, kind: str, id: str) -> bytes:
        """See `Shared.get`."""
        body = await self._store.get(kind, id)
        if not body.startswith(MARK.encode()):
            return body
        (found,) = await self._keys.decrypted([(body[len(MARK) :], ("shared", kind, id))], whose=None)
        return found or b""

    async def drop(self, tenant: str, user: str) -> None:
        """See `Shared.drop`."""
        await self._store.drop(tenant, user)

    async def add(self, counter: str, amount: int, *, seconds: int) -> int:
        """See `Shared.add`."""
        return await self._store.add(counter, amount, seconds=seconds)


def _covered(page: Page, key: Encrypts) -> Page:
    """The page with all its texts in one, encrypted; equal texts give an equal page."""
    if not (page.user_text or page.reply_text):
        return page
    texts = tuple(getattr(page, name) for name in _TEXTS)
    content = _encode(_Texts(texts, page.outdated))
    told = marked(key.encrypt(content, *_page_place(page), same=True))
    bare = dict.fromkeys(_TEXTS, "") | {"user_text": told}
    return msgspec.structs.replace(page, outdated=(), **bare)


def _uncovered(page: Page, content: bytes | None) -> Page | None:
    """The page with its texts; None where they can't be read, the page itself where it has them."""
    if not page.user_text.startswith(MARK):
        return page
    if content is None:
        return None
    held = _texts.decode(content)
    texts = dict(zip(_TEXTS, held.texts, strict=True))
    return msgspec.structs.replace(page, outdated=held.outdated, **texts)


def _readable(block: PlacedBlock, content: bytes | None) -> PlacedBlock | None:
    if not block.text.startswith(MARK):
        return block
    if content is None:
        return None
    return msgspec.structs.replace(block, text=content.decode())


def _all(found: Iterable[T | None]) -> list[T]:
    """Those that could be read."""
    return [one for one in found if one is not None]


def _page_place(page: Page) -> tuple[str, ...]:
    return "page", page.id


def _block_place(block: PlacedBlock) -> tuple[str, ...]:
    return "block", block.exchange


def marked(encrypted: bytes) -> str:
    """What is encrypted as a text, which tells that it is."""
    return MARK + b64encode(encrypted).decode()


def unmarked(text: str) -> bytes:
    """The inverse of `marked`; empty where what follows the mark is no such text."""
    try:
        return b64decode(text[len(MARK) :])
    except ValueError:
        return b""
