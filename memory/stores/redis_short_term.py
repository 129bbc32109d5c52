"""Short-term memory in Redis or Valkey: the form of the `ShortTerm` port that many gateways share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import msgspec
from redis.asyncio import Redis, RedisCluster
from redis.exceptions import AuthenticationError, RedisError, ResponseError
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from hearth.memory.errors import StoreUnavailable
from hearth.memory.stores.packed import pack_embedding, unpack_embedding
from hearth.memory.tiers.short_term import Bounds
from hearth.memory.tiers.short_term_user import HeldPage, User, session_key
from hearth.memory.types import Embedding, Page, PlacedBlock, Scope, ShortTermView, scope_of

Client: TypeAlias = Redis | RedisCluster
Command: TypeAlias = tuple[str | bytes | int, ...]
"""One Redis command; its second element is a key of the user."""
T = TypeVar("T")

PART = "short-term memory"
IDLE_SECONDS = 30 * 24 * 3600
"""After so long without a word of a user Redis lets go of what long-term memory has had for long."""
CONTENTION_SECONDS = 2.0
"""How long a change waits for others of its user in this process, and is tried again for those elsewhere."""
_SCANNED = 1_000
"""Keys that Redis looks at for one answer."""

_PAGE = msgspec.msgpack.Decoder(Page)
_BLOCK = msgspec.msgpack.Decoder(PlacedBlock)
_USER = msgspec.msgpack.Decoder(User)
_encode = msgspec.msgpack.Encoder().encode

_LATEST = """
local ids, bodies, vectors = {}, {}, {}
for i, member in ipairs(redis.call('ZREVRANGE', KEYS[2], 0, ARGV[1] - 1)) do
  ids[i] = string.sub(member, 14)
end
if #ids > 0 then
  bodies, vectors = redis.call('HMGET', KEYS[3], unpack(ids)), redis.call('HMGET', KEYS[4], unpack(ids))
end
return {redis.call('HGET', KEYS[1], 'user'), bodies, vectors, redis.call('HVALS', KEYS[5])}
"""
"""One answer: the state, the newest pages with their vectors, newest first, and the session's blocks."""

_CHANGE = """
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1] + 1, 'user', ARGV[2])
local at = 4
while at <= #ARGV do
  local count = tonumber(ARGV[at])
  redis.call(unpack(ARGV, at + 1, at + count))
  at = at + count + 1
end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[3]) end
return 1
"""
"""All of a change or nothing: it was decided on a state that must still be the one that stands."""


class _ChangedMeanwhileError(Exception):
    """Another change of the same user came between reading and writing."""


class _Keys:
    """The keys of one user, all in one slot of a cluster."""

    def __init__(self, prefix: str, scope: Scope) -> None:
        self._base = f"{prefix}:{{{scope.person}}}"
        self.state = f"{self._base}:state"
        self.pages = f"{self._base}:pages"
        self.vectors = f"{self._base}:embeddings"

    def order(self, owner: str) -> str:
        """Sorted set of an owner's pages by time and arrival."""
        return f"{self._base}:order:{owner}"

    def blocks(self, session: str) -> str:
        """Hash of a session's blocks by exchange; `session` is a key of `session_key`."""
        return f"{self._base}:blocks:{session}"


class RedisShortTerm:
    """The latest pages of each user, their query vectors and sessions' blocks, shared by many processes.

    A read is one round trip, a change two: the state is read, the change decided by the same pure functions
    as everywhere, and written only if nothing came between. `client` is the caller's to configure and close;
    it must answer in bytes. Every call raises StoreUnavailable where Redis does not do what it is asked.
    """

    def __init__(
        self, client: Client, *, prefix: str = "hearth", capacity: int = 10, hard_cap: int = 500
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._bounds = Bounds(capacity=capacity, hard_pages=hard_cap)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def push(self, page: Page, *, vector: Embedding | None, block: PlacedBlock | None) -> None:
        """Add or replace the page; one without texts brings its block alone. A stale one is ignored."""
        keys = self._keys(page.scope)

        def change(user: User) -> list[Command]:
            if not user.admits(page.generation):
                return []
            commands = _renewed(user, keys, page.generation)
            if page.user_text or page.reply_text:
                commands += self._hold(user, keys, page, vector)
            if block is not None:
                commands += self._place(user, keys, page.scope, block)
            return commands

        await self._change(keys, change)

    async def latest(self, scope: Scope, *, limit: int) -> ShortTermView:
        """The owner's latest pages, oldest first, and the blocks of `scope.session`."""
        keys = self._keys(scope)
        wanted = [keys.state, keys.order(scope.owner), keys.pages, keys.vectors]
        wanted.append(keys.blocks(session_key(scope)))
        with translated():
            state, bodies, vectors, blocks = await self._script(_LATEST, wanted, [limit])
        if state is None:
            return ShortTermView(known=False)
        user = _USER.decode(state)
        lagging = scope.owner in user.dropped.values()
        return _view(bodies, vectors, blocks, lagging=lagging, known=user.filled)

    async def settle(self, scope: Scope, pages: Sequence[Page]) -> None:
        """Mark those pages as safe in long-term memory, with the texts given; beyond capacity they leave."""
        keys = self._keys(scope)

        def change(user: User) -> list[Command]:
            held = user.settle(pages)
            commands: list[Command] = [("HSET", keys.pages, page.id, _encode(page)) for page in held]
            for owner in {user.pages[page.id].owner for page in held}:
                commands += _gone(keys, user.evict(owner, self._bounds))
            return commands

        await self._change(keys, change)

    async def restore(
        self, scope: Scope, generation: int, pages: Sequence[Page], *, waiting: Collection[str]
    ) -> None:
        """See ShortTerm."""
        keys = self._keys(scope)

        def change(user: User) -> list[Command]:
            if not user.admits(generation):
                return []
            commands = _renewed(user, keys, generation)
            gone, fresh = user.restore(pages, waiting)
            commands += _gone(keys, gone)
            for page in fresh:
                commands += _written(keys, page, user.pages[page.id])
            for owner in {held.owner for held in user.pages.values()}:
                commands += _gone(keys, user.evict(owner, self._bounds))
            return commands

        await self._change(keys, change)

    async def drop(self, scope: Scope, records: Sequence[str]) -> None:
        """Remove those pages of the user, whichever agent's, and all blocks that are theirs or show them."""
        keys, gone = self._keys(scope), frozenset(records)

        async def change(user: User) -> list[Command]:
            commands = _gone(keys, user.forget(gone))
            for session, shown in await self._showing(user, keys, gone):
                user.unplace(session, shown)
                commands.append(("HDEL", keys.blocks(session), *shown))
            return commands

        await self._change_slowly(keys, change)

    async def clear(self, tenant: str, user: str, *, before: int | None = None) -> None:
        """Remove everything of the user, of all agents; with `before` only what is of an older generation,
        and refuse such pages from now on.
        """
        keys = self._keys(Scope(tenant=tenant, user=user))

        def change(state: User) -> list[Command]:
            if before is None:
                return _wiped(state, keys, state.generation)
            return _renewed(state, keys, before) if state.admits(before) else []

        await self._change(keys, change)

    async def people(self) -> AsyncIterator[Scope]:
        """Everybody of whom something is known here, some perhaps twice: by SCAN, which holds up nobody."""
        before, after = f"{self._prefix}:{{", "}:state"
        with translated():
            async for key in self._client.scan_iter(match=f"{before}*{after}", count=_SCANNED):
                name = key.decode()
                yield scope_of(name[len(before) : -len(after)])

    # -- one change ------------------------------------------------------------------------------------

    def _hold(self, user: User, keys: _Keys, page: Page, vector: Embedding | None) -> list[Command]:
        held = user.put(page)
        commands = _written(keys, page, held)
        if vector is not None:
            commands.append(("HSET", keys.vectors, page.id, pack_embedding(vector)))
        return commands + _gone(keys, user.evict(held.owner, self._bounds))

    def _place(self, user: User, keys: _Keys, scope: Scope, block: PlacedBlock) -> list[Command]:
        session = session_key(scope)
        gone = user.place(session, block, self._bounds)
        placed: Command = ("HSET", keys.blocks(session), block.exchange, _encode(block))
        return [placed, *(("HDEL", keys.blocks(key), exchange) for key, exchange in gone)]

    async def _showing(self, user: User, keys: _Keys, records: frozenset[str]) -> list[tuple[str, list[str]]]:
        """By session: the exchanges whose block is one of the records' or shows one."""
        found = []
        for session in user.sessions:
            bodies = await self._answer(self._client.hvals(keys.blocks(session)))
            blocks = [_BLOCK.decode(body) for body in bodies]
            shown = [b.exchange for b in blocks if b.exchange in records or not records.isdisjoint(b.items)]
            found += [(session, shown)] if shown else []
        return found

    async def _change(self, keys: _Keys, change: Callable[[User], list[Command]]) -> None:
        async def at_once(user: User) -> list[Command]:
            return change(user)

        await self._change_slowly(keys, at_once)

    async def _change_slowly(self, keys: _Keys, change: Callable[[User], Awaitable[list[Command]]]) -> None:
        """Read, decide, write, again and again until nobody else came between; in a process by turns."""
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_ChangedMeanwhileError),
            wait=wait_random_exponential(multiplier=0.002, max=0.1),
            stop=stop_after_delay(CONTENTION_SECONDS),
            reraise=True,
        )
        turn = self._turns.setdefault(keys.state, asyncio.Lock())
        with translated():
            async with asyncio.timeout(CONTENTION_SECONDS):
                await turn.acquire()
            try:
                await retrying(self._try, keys, change)
            finally:
                turn.release()

    async def _try(self, keys: _Keys, change: Callable[[User], Awaitable[list[Command]]]) -> None:
        version, state = await self._answer(self._client.hmget(keys.state, ["version", "user"]))
        user = _USER.decode(state) if state else User()
        commands = await change(user)
        after = _encode(user)
        if after == state and not commands:
            return
        touched = dict.fromkeys(str(command[1]) for command in commands)
        given: list[Any] = [version or b"0", after, IDLE_SECONDS]
        for command in commands:
            given += [len(command), *command]
        if not await self._script(_CHANGE, [keys.state, *touched], given):
            raise _ChangedMeanwhileError

    def _keys(self, scope: Scope) -> _Keys:
        return _Keys(self._prefix, scope)

    async def _script(self, text: str, keys: Sequence[str], given: Sequence[Any]) -> Any:
        return await self._answer(self._client.eval(text, len(keys), *keys, *given))

    @staticmethod
    async def _answer(call: Any) -> Any:
        return await call


def _renewed(user: User, keys: _Keys, generation: int) -> list[Command]:
    """Take over a newer generation: what is left of an older one goes."""
    return _wiped(user, keys, generation) if user.renews(generation) else []


def _wiped(user: User, keys: _Keys, generation: int) -> list[Command]:
    owners = {held.owner for held in user.pages.values()}
    every = [keys.pages, keys.vectors, *map(keys.order, owners), *map(keys.blocks, user.sessions)]
    user.wipe(generation)
    return [("DEL", key) for key in every]


def _written(keys: _Keys, page: Page, held: HeldPage) -> list[Command]:
    return [
        ("HSET", keys.pages, page.id, _encode(page)),
        ("ZADD", keys.order(held.owner), held.occurred, _member(page.id, held)),
    ]


def _gone(keys: _Keys, pages: Sequence[tuple[str, HeldPage]]) -> list[Command]:
    commands: list[Command] = []
    for id, held in pages:
        commands.append(("ZREM", keys.order(held.owner), _member(id, held)))
        commands += [("HDEL", key, id) for key in (keys.pages, keys.vectors)]
    return commands


def _member(id: str, held: HeldPage) -> str:
    # Equal times sort by member, so the arrival stands in front: 13 digits.
    return f"{held.arrival:013d}{id}"


def _view(
    bodies: Sequence[bytes | None],
    vectors: Sequence[bytes | None],
    blocks: Sequence[bytes],
    *,
    lagging: bool,
    known: bool,
) -> ShortTermView:
    held = [(_PAGE.decode(body), raw) for body, raw in zip(bodies, vectors, strict=True) if body is not None]
    placed = sorted((_BLOCK.decode(body) for body in blocks), key=lambda one: (one.at, one.exchange))
    return ShortTermView(
        pages=tuple(page for page, _ in reversed(held)),
        vectors={page.id: unpack_embedding(raw) for page, raw in held if raw is not None},
        blocks=tuple(placed),
        lagging=lagging,
        known=known,
    )


@contextmanager
def translated() -> Iterator[None]:
    """Turn the client library's errors into StoreUnavailable."""
    try:
        yield
    except (RedisError, OSError, TimeoutError, _ChangedMeanwhileError) as error:
        refused = isinstance(error, (AuthenticationError, ResponseError))
        raise StoreUnavailable(PART, str(error) or type(error).__name__, refused=refused) from error
