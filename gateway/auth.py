"""LiteLLM's authentication over Hearth's key table, and the way back from LiteLLM's caller to the key."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import NoReturn
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from litellm.proxy import proxy_server
from litellm.proxy._types import (
    LitellmUserRoles,
    ProxyErrorTypes,
    ProxyException,
    UserAPIKeyAuth,
)
from litellm.proxy.auth.auth_utils import get_request_route
from litellm.proxy.auth.user_api_key_auth import user_api_key_auth as litellm_auth
from starlette.types import Message

from hearth.config.check import is_loopback
from hearth.config.settings import HearthSettings, Settings, digest_of
from hearth.gateway.call import CALL
from hearth.gateway.callable_routes import is_for_callers
from hearth.gateway.identity import Off, is_no_name, usable_id
from hearth.gateway.keys import Key, KeyTable, key_table, presented_key, virtual_key


class _Installed:
    """What this process authenticates with. One module owns it, however often a plugin file is executed."""

    settings: HearthSettings | None = None
    table: KeyTable = KeyTable([])


def install(settings: Settings) -> KeyTable:
    """Make these settings' keys the ones that count in this process; return the table."""
    _Installed.table = key_table(settings.hearth)
    _Installed.settings = settings.hearth
    return _Installed.table


async def user_api_key_auth(request: Request, api_key: str) -> UserAPIKeyAuth:
    """LiteLLM's `custom_auth`: the caller of a key of the table, else 401, or 403 for administration.

    LiteLLM's master key stays what it is: its administrator, without memory.
    """
    key = _configured(request, api_key)
    if key is not None:
        if not is_for_callers(get_request_route(request=request), request.method):
            raise HTTPException(403, "this route is for LiteLLM's master key")
        call = CALL.get()
        return caller(key, counted=call is None or not call.without_block)
    master = proxy_server.master_key
    if api_key and master and hmac.compare_digest(api_key.encode(), master.encode()):
        return UserAPIKeyAuth(api_key=digest_of(api_key), user_role=LitellmUserRoles.PROXY_ADMIN)
    return _refuse(bool(api_key))


async def authenticate(request: Request) -> Key | Off | None:
    """The key of a request to our routes; Off for one without memory, None where it has no valid one.

    Raises HTTPException 503 where LiteLLM can't tell, since its database does not answer.
    """
    token = presented_key(request.headers.items())
    settings = _Installed.settings
    if len(_Installed.table) or settings is None or not settings.virtual_keys:
        return _configured(request, token)
    known = await _known_to_litellm(request, token) if token else None
    return _virtual(known, settings) if isinstance(known, UserAPIKeyAuth) else known


def _configured(request: Request, api_key: str) -> Key | None:
    """The key of the table that the request presents; None if it has no valid one."""
    if _Installed.table.keyless is not None:
        return _Installed.table.keyless if is_local(request) else None
    return _Installed.table.find(api_key)


async def _known_to_litellm(request: Request, token: str) -> UserAPIKeyAuth | Off | None:
    """LiteLLM's caller of that key, if LiteLLM lets it list models: not blocked, not expired, in its budget.

    Our routes are none of LiteLLM's, so it is asked about one of its own that costs nothing.
    """
    headers = [pair for pair in request.headers.raw if not pair[0].lower().startswith(b"content-")]
    asked = {"method": "GET", "path": "/v1/models", "root_path": "", "query_string": b"", "headers": headers}
    try:
        return await litellm_auth(
            Request({**request.scope, **asked}, _no_body),
            api_key=f"Bearer {token}",
            azure_api_key_header="",
            anthropic_api_key_header=None,
            google_ai_studio_api_key_header=None,
            azure_apim_header=None,
            custom_litellm_key_header=None,
        )
    except ProxyException as error:
        if error.type == ProxyErrorTypes.no_db_connection or str(error.code).startswith("5"):
            raise HTTPException(503, "LiteLLM can't check keys now. Try again in a moment.") from error
        return None if str(error.code) == "401" else Off(reason=error.message)


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def is_local(request: Request) -> bool:
    """True if the request comes from this machine, not from a foreign web page in its browser.

    A page can send requests to loopback addresses, directly or by a name that it resolves to one, and then
    its origin or the host that it asked for is no loopback one.
    """
    client = request.client.host if request.client is not None else ""
    named = [_host(origin) for origin in request.headers.getlist("origin")]
    named.append(_host("//" + request.headers.get("host", "")))
    return all(is_loopback(host) for host in [client, *named])


def caller(key: Key, *, counted: bool = True) -> UserAPIKeyAuth:
    """The key as LiteLLM knows callers: its `models` and limits are enforced there, without a database.

    A call that is tried again without its block is not `counted` a second time.
    """
    return UserAPIKeyAuth(
        api_key=key.digest,
        key_alias=key.name,
        user_id=_owner(key),
        user_role=LitellmUserRoles.INTERNAL_USER,
        models=list(key.models),
        rpm_limit=key.rpm if counted else None,
        tpm_limit=key.tpm,
        max_parallel_requests=key.max_parallel,
    )


def _owner(key: Key) -> str:
    """Whose the responses are that a provider keeps for this key's calls: the person's, or else the app's.

    LiteLLM seals it into each response's id and refuses that id to others. A digest, since it cuts the sealed
    text at semicolons.
    """
    whose = f"{key.tenant}\n{key.user}\n{'' if key.user else key.name}"
    return f"hearth-{digest_of(whose)[:32]}"


def key_of(user_api_key_dict: UserAPIKeyAuth) -> Key | Off:
    """The key behind LiteLLM's caller, in its hooks; or why the call has no memory.

    A key of the table is known by its digest, which no metadata can claim.
    """
    key = _Installed.table.by_digest(user_api_key_dict.api_key or "")
    if key is not None:
        return key
    settings = _Installed.settings
    if settings is None or not settings.virtual_keys:
        return Off(reason="unknown key")
    return _virtual(user_api_key_dict, settings)


def _virtual(known: UserAPIKeyAuth, settings: HearthSettings) -> Key | Off:
    """A key of LiteLLM's database: its team is the tenant, its metadata says whose memory it reaches.

    LiteLLM lets an ordinary user make keys with any metadata, but only keys that the user owns, and only in
    teams that allow it. So metadata of a key with an owner can't reach beyond the owner.
    """
    metadata: Mapping[str, object] = known.metadata or {}
    tenant = known.team_id or ("" if known.user_id else _text(metadata, "tenant"))
    user = _text(metadata, "user")
    named = metadata.get("users") == "named"
    if not tenant:
        return Off(reason="no tenant: key has neither team nor, without an owner, metadata.tenant")
    if not usable_id(tenant):
        return Off(reason="no tenant: the team's id has control characters or more than 128 others")
    if bool(user) == named:
        return Off(reason="no user: key metadata needs either user or users: named")
    if known.user_id and user != known.user_id:
        return Off(reason="no user: metadata of a key with an owner can name the owner alone")
    return virtual_key(known.key_alias or known.token or "", tenant, settings, user=user)


def _text(metadata: Mapping[str, object], name: str) -> str:
    value = metadata.get(name)
    return value if isinstance(value, str) and usable_id(value) and not is_no_name(value) else ""


def _host(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def _refuse(given: bool) -> NoReturn:
    if _Installed.table.keyless is not None:
        raise HTTPException(401, "this gateway has no keys and serves callers on its own machine only")
    raise HTTPException(401, "unknown key" if given else "no key: send it as a bearer token or x-api-key")
