"""Who calls, what the key may do, and whose memory the call reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec
from fastapi import Depends, Header, Query, Request

from hearth.config.settings import MAX_ID, Access
from hearth.gateway.api.problems import Problem
from hearth.gateway.identity import (
    AGENT_HEADER,
    SESSION_HEADER,
    USER_HEADER,
    GivenHeaders,
    IdentityError,
    is_no_name,
    usable_id,
)
from hearth.gateway.keys import Key
from hearth.gateway.runtime import Gateway
from hearth.memory.engine import Engine
from hearth.memory.types import Scope

NAMED = "the user, in the header x-hearth-user or the parameter `user`"
USABLE = f"an id of 1 to {MAX_ID} characters without control characters, no JSON and no empty value's name"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A key that may do what its route does, and whom its request names."""

    key: Key
    named: tuple[tuple[str, str], ...] = ()
    """(where, user) for every place of the request that names a user."""
    agent: str = ""
    session: str = ""

    @property
    def admin(self) -> bool:
        """True for a key that reaches every user of its tenant."""
        return "admin" in self.key.scopes

    def scope(
        self, user: str | None = None, *, agent: str | None = None, session: str | None = None
    ) -> Scope:
        """Whose memory the call reaches; the arguments are what its body or path names.

        A person's key reaches that person, an app's key the user it names, an admin key any user of its
        tenant, named in full. Raises IdentityError: 400 for nobody, two users or an unusable id, 403 where a
        person's key names somebody else.
        """
        named = [*self.named, *([("user", _usable("user", user))] if user is not None else [])]
        scope = self.key.scope(
            self._user(named),
            agent=_one(AGENT_HEADER, self.agent, agent),
            session=_one(SESSION_HEADER, self.session, session),
        )
        return msgspec.structs.replace(scope, user=self._full(scope.user, named))

    def _user(self, named: Iterable[tuple[str, str]]) -> str:
        users = dict.fromkeys(user for _, user in named)
        for where, user in named:
            if self.key.personal and not self.admin and user != self.key.user:
                raise IdentityError(403, where, user, "the key's own user, or none")
        if len(users) > 1:
            raise IdentityError(400, "user", sorted(users), "one user in header, parameters and body")
        user = next(iter(users), self.key.user or self.key.default_user)
        if not user:
            raise IdentityError(400, "user", None, NAMED)
        return user

    def _full(self, user: str, named: Iterable[tuple[str, str]]) -> str:
        return next((name for _, name in named), user) if self.admin else user


def may(access: Access) -> Callable[..., Caller]:
    """The dependency of a route that needs that access."""

    def caller(
        request: Request,
        user: Annotated[
            str | None,
            Query(description="Whose memory; needed with an app's key unless the header names it."),
        ] = None,
        x_hearth_user: Annotated[
            str | None, Header(description="Whose memory; needed with an app's key unless `user` names it.")
        ] = None,
        x_hearth_agent: Annotated[str | None, Header(description="Which assistant speaks.")] = None,
        x_hearth_session: Annotated[str | None, Header(description="Which conversation.")] = None,
    ) -> Caller:
        key = _allowed(request, access)
        given = GivenHeaders(request.headers.items())
        return Caller(
            key=key,
            named=tuple(_named(given, key, user)),
            agent=given.identifier(AGENT_HEADER),
            session=given.identifier(SESSION_HEADER),
        )

    return caller


def keyed(access: Access) -> Callable[..., Key]:
    """The dependency of a route that is about the key's tenant, and no user."""

    def key(request: Request) -> Key:
        return _allowed(request, access)

    return key


def gateway_of(request: Request) -> Gateway:
    """The running gateway. Raises Problem 503 where there is none."""
    try:
        gateway: Gateway = request.app.state.gateway_of()
    except RuntimeError as error:
        detail = "The gateway is starting or stopping. Try again in a moment."
        raise Problem(503, "unavailable", detail, headers={"retry-after": "5"}) from error
    return gateway


def engine_of(request: Request) -> Engine:
    """The running gateway's engine."""
    return gateway_of(request).flow.engine


Reader = Annotated[Caller, Depends(may("read"))]
Writer = Annotated[Caller, Depends(may("write"))]
ReadKey = Annotated[Key, Depends(keyed("read"))]
AdminKey = Annotated[Key, Depends(keyed("admin"))]
TheEngine = Annotated[Engine, Depends(engine_of)]
TheGateway = Annotated[Gateway, Depends(gateway_of)]


async def note_write(engine: Engine, caller: Caller, scope: Scope, what: str) -> None:
    """Write down what an admin key is about to do in somebody else's memory, by an event that does not tell
    whose key it was. Raises LogUnavailable.
    """
    if caller.admin and scope.user != caller.key.user:
        await engine.note(scope.tenant, "write", by=caller.key.name, user=scope.user, about=what)


def reached(scope: Scope, record: Scope) -> bool:
    """True if the scope's agent may see the record: an isolated agent sees what is its own alone.

    By the owner, not by the agent's name: what others say to an agent of that name is shared.
    """
    return not scope.isolated or record.owner == scope.owner


def _allowed(request: Request, access: Access) -> Key:
    key: Key = request.state.key
    if access not in key.scopes:
        has = ", ".join(sorted(key.scopes)) or "nothing"
        detail = f"This needs `{access}`; the key {key.name} has {has}, by its `scopes` in the YAML file."
        raise Problem(403, "forbidden", detail)
    return key


def _named(given: GivenHeaders, key: Key, parameter: str | None) -> Iterable[tuple[str, str]]:
    for header in dict.fromkeys(filter(None, (USER_HEADER, "" if key.personal else key.user_header))):
        user = given.one(header)
        if user:
            yield header, _usable(header, user)
    if parameter is not None:
        yield "user", _usable("user", parameter)


def _usable(where: str, user: str) -> str:
    user = user.strip()
    if not usable_id(user) or is_no_name(user):
        raise IdentityError(400, where, user, USABLE)
    return user


def _one(where: str, header: str, field: str | None) -> str:
    if header and field and header != field:
        raise IdentityError(400, where, field, f"the same as the header's {header!r}, or none")
    return header or field or ""
