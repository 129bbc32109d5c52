"""Whose memory a request reaches and what memory does for it: key, headers and body make Scope and Policy."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from hearth.config.settings import MAX_ID, known_timezone
from hearth.config.switches import Decision, Mode, ModeName, Switches, effective_mode
from hearth.gateway.keys import Budget, Headers, Key
from hearth.gateway.wire.types import WireRequest
from hearth.memory.errors import BadInput
from hearth.memory.types import BudgetFrom, Scope, SessionMode

USER_HEADER = "x-hearth-user"
SESSION_HEADER = "x-hearth-session"
AGENT_HEADER = "x-hearth-agent"
MEMORY_HEADER = "x-hearth-memory"
SESSION_MEMORY_HEADER = "x-hearth-session-memory"
BUDGET_HEADER = "x-hearth-budget"
TIMEZONE_HEADER = "x-hearth-timezone"
TAGS_HEADER = "x-hearth-tags"
MOST_TAGS = 16
"""Of one call."""
CLIENT_MODES: tuple[ModeName, ...] = ("on", "read", "write", "off")
"""What a call can ask for; `shadow` is the operator's."""


SESSION_MODES: tuple[SessionMode, ...] = ("on", "read", "off")
"""What a call can switch its session to."""


class Hints(Protocol):
    """What a known client program's request says about itself."""

    @property
    def user(self) -> str:
        """The end user; empty where the request names none."""
        ...

    @property
    def session(self) -> str:
        """The conversation; empty where the request names none."""
        ...

    @property
    def housekeeping(self) -> bool:
        """True for title, tag and follow-up generation and the like."""
        ...


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What memory does for one call."""

    mode: Mode
    budget: int
    """Most tokens of the block; 0: no recall."""
    budget_from: BudgetFrom = "settings"
    budget_share: float
    """Most of the model's window that the block may have, where the call names no budget."""
    timezone: str
    """IANA name of the user's zone."""
    tags: tuple[str, ...] = ()
    """By which the call's events are to be found."""
    daily_tokens: int | None = None
    """Block tokens a day of the key; None: no limit."""
    session: SessionMode | None = None
    """What the call switches its session to; None: to nothing else than it is."""
    waits: bool = False
    """What is captured waits in the spool until it is known what was switched off."""
    reason: str = ""
    """Why the mode is less than the default; empty where nothing restricted it."""

    @property
    def recall(self) -> bool:
        """True if recall is computed."""
        return Mode.RECALL in self.mode and self.budget > 0

    @property
    def place(self) -> bool:
        """True if the block goes into the prompt."""
        return self.recall and Mode.PLACE in self.mode

    @property
    def capture(self) -> bool:
        """True if the exchange is captured."""
        return Mode.CAPTURE in self.mode


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Whose memory a call reaches and what memory does for it."""

    scope: Scope
    """Its session is empty where the request names none; the log then finds it by the transcript's tail."""
    policy: Policy
    key: str
    """Name of the gateway key."""


class Off(msgspec.Struct, frozen=True, kw_only=True):
    """The call goes through without memory."""

    reason: str


class IdentityError(BadInput):
    """The request names somebody in a way that must be refused; the caller's to correct."""

    def __init__(self, status: int, field: str, value: object, expected: str) -> None:
        self.status = status
        """HTTP status: 400, or 403 where a personal key names somebody else."""
        super().__init__(field, value, expected)


def resolve(
    key: Key,
    headers: Headers,
    request: WireRequest,
    hints: Hints | None = None,
    switches: Switches = Switches(),  # noqa: B008 - a frozen record
    budget_of: Callable[[str], Budget] = lambda agent: Budget(),
) -> Identity | Off:
    """Whose memory this call reaches, or why it has none. `budget_of` an agent is for calls by this key.

    Raises IdentityError with status 400 for a header that is repeated or can't be used, or for two users
    named at once; 403 where a person's key names somebody else.
    """
    given = GivenHeaders(headers)
    user = _personal_user(key, given) if key.personal else _named_user(key, given, request, hints)
    agent = given.identifier(AGENT_HEADER)
    policy = _policy(key, given, request, switches, budget_of(agent or key.agent))
    session = _session(key, given, hints)
    if hints is not None and hints.housekeeping:
        return Off(reason="housekeeping")
    if not (policy.mode or policy.session):
        return Off(reason=policy.reason)
    if not user:
        return Off(reason="no user")
    return Identity(scope=key.scope(user, agent=agent, session=session), policy=policy, key=key.name)


def usable_id(text: str) -> bool:
    """True for what can be a user, agent or session: 1 to 128 characters, no control characters."""
    return 0 < len(text) <= MAX_ID and not any(unicodedata.category(char) in _UNUSABLE for char in text)


_UNUSABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Control characters, lone surrogates, line and paragraph separators."""


def is_no_name(text: str) -> bool:
    """True for what programs send where they have no user: JSON (session data) or an empty value as text.

    All who send the same of these would share one memory. A number is a name.
    """
    if text.lower() in _EMPTY_VALUES:
        return True
    if text[:1] not in '{["tf':
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_EMPTY_VALUES = frozenset({"null", "none", "nil", "undefined", "nan"})


class GivenHeaders:
    """The request's headers by lower-case name, repeats kept."""

    def __init__(self, pairs: Headers) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name.lower(), []).append(value)

    def one(self, name: str) -> str:
        """The value without blanks around it; empty where absent. Raises IdentityError 400 if repeated."""
        values = self._values.get(name)
        if not values:
            return ""
        if len(values) > 1:
            raise IdentityError(400, name, values, "the header once")
        return _unicode(values[0]).strip()

    def identifier(self, name: str) -> str:
        """The value as an id; empty where absent. Raises IdentityError 400 if it can't be one."""
        value = self.one(name)
        if value and not usable_id(value):
            expected = f"at most {MAX_ID} characters without control characters"
            raise IdentityError(400, name, value, expected)
        return value


def _unicode(value: str) -> str:
    """ASGI hands header bytes on as Latin-1; ids in other scripts arrive as UTF-8 inside that."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _personal_user(key: Key, given: GivenHeaders) -> str:
    """The key's person. Body fields are ignored: client programs fill them by themselves."""
    named = given.one(USER_HEADER)
    if named and named != key.user:
        raise IdentityError(403, USER_HEADER, named, "the key's own user, or no such header")
    return key.user


def _named_user(key: Key, given: GivenHeaders, request: WireRequest, hints: Hints | None) -> str:
    """The end user whom an app names, in headers or in the body; empty where it names nobody."""
    explicit = [_explicit_user(given, name) for name in dict.fromkeys((key.user_header, USER_HEADER)) if name]
    named = set(filter(None, [*explicit, *_implicit_users(request, hints)]))
    if len(named) > 1:
        raise IdentityError(400, "user", sorted(named), "one user in headers and body")
    return named.pop() if named else key.default_user


def _explicit_user(given: GivenHeaders, header: str) -> str:
    user = given.identifier(header)
    if user and is_no_name(user):
        raise IdentityError(400, header, user, "a user id, not JSON or an empty value's name")
    return user


def _implicit_users(request: WireRequest, hints: Hints | None) -> Iterable[str]:
    """Users named by the client program's own fields; what can't be a user there is passed over."""
    own = hints.user if hints is not None else ""
    named = [own] if own else [request.body_user, request.metadata_user]
    stripped = [user.strip() for user in named]
    return [user for user in stripped if usable_id(user) and not is_no_name(user)]


def _session(key: Key, given: GivenHeaders, hints: Hints | None) -> str:
    for header in (SESSION_HEADER, key.session_header):
        session = given.identifier(header) if header else ""
        if session:
            return session
    session = hints.session.strip() if hints is not None else ""
    return session if usable_id(session) else ""


def _policy(
    key: Key, given: GivenHeaders, request: WireRequest, switches: Switches, allowed: Budget
) -> Policy:
    allowance = key.policy.for_model(request.model, allowed)
    wish = _wish(given)
    budget = _budget(given, allowance.budget_max)
    decision = effective_mode(
        switches,
        tenant=key.tenant,
        key=key.name,
        default=allowance.default,
        ceiling=allowance.ceiling,
        rollout=key.policy.rollout,
        header=wish,
    )
    if request.route == "completions" and wish is None:
        decision = Decision(mode=Mode.OFF, reason="route")
    return Policy(
        mode=decision.mode,
        reason=decision.reason,
        waits=switches.unread,
        budget=allowance.budget if budget is None else budget,
        budget_from=allowance.budget_from if budget is None else "request",
        budget_share=key.policy.budget_share if budget is None else 1.0,
        timezone=_timezone(given) or key.timezone,
        tags=_tags(given),
        daily_tokens=allowed.daily,
        session=_session_mode(given),
    )


def _wish(given: GivenHeaders) -> ModeName | None:
    value = given.one(MEMORY_HEADER).lower()
    for mode in CLIENT_MODES:
        if value == mode:
            return mode
    if value:
        raise IdentityError(400, MEMORY_HEADER, value, ", ".join(CLIENT_MODES))
    return None


def _session_mode(given: GivenHeaders) -> SessionMode | None:
    value = given.one(SESSION_MEMORY_HEADER).lower()
    for mode in SESSION_MODES:
        if value == mode:
            return mode
    if value:
        raise IdentityError(400, SESSION_MEMORY_HEADER, value, ", ".join(SESSION_MODES))
    return None


def _budget(given: GivenHeaders, most: int) -> int | None:
    value = given.one(BUDGET_HEADER)
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) <= most):
        raise IdentityError(400, BUDGET_HEADER, value, f"a number of tokens from 0 to {most}")
    return int(value)


def _tags(given: GivenHeaders) -> tuple[str, ...]:
    value = given.one(TAGS_HEADER)
    tags = tuple(dict.fromkeys(tag for part in value.split(",") if (tag := part.strip())))
    if len(tags) > MOST_TAGS or not all(map(usable_id, tags)):
        expected = f"up to {MOST_TAGS} tags of 1 to {MAX_ID} characters, with commas between them"
        raise IdentityError(400, TAGS_HEADER, value, expected)
    return tags


def _timezone(given: GivenHeaders) -> str:
    value = given.one(TIMEZONE_HEADER)
    if not value:
        return ""
    try:
        return known_timezone(value)
    except ValueError as error:
        raise IdentityError(400, TIMEZONE_HEADER, value, "an IANA time zone such as Europe/Zurich") from error
