"""The gateway's keys: who a presented key belongs to, and what its calls may do."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import reduce

import msgspec

from hearth.config.settings import Access, HearthSettings, KeySettings, ModelSettings, digest_of
from hearth.config.switches import MODES, Mode, ModeName, narrow
from hearth.memory.types import BudgetFrom, Scope

Headers = Sequence[tuple[str, str]]
"""Header names and values in the order received, repeats included; names in any case."""

TOKEN_HEADERS = (
    "x-litellm-api-key",
    "authorization",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "ocp-apim-subscription-key",
)
"""Where clients put their key, in the order in which LiteLLM looks."""
_SCHEMES = ("Bearer ", "bearer ", "Basic ")
"""What LiteLLM takes off a key in the first two of them; `authorization` must have one."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What one level of the settings (all, a key, a model) says about memory; None: nothing."""

    default: Mode | None = None
    """For calls that don't say."""
    ceiling: Mode | None = None
    """The most that a call can ask for."""


class ModelRule(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say about models whose name matches a pattern."""

    pattern: str
    grant: Grant
    budget: int | None = None


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What a call's block may cost, by the policy that holds now."""

    tokens: int = 1024
    """Where the call doesn't say."""
    most: int = 8192
    """That a call can ask for."""
    by: BudgetFrom = "settings"
    daily: int | None = None
    """Block tokens of the key a day; None: no limit."""


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """What a key's calls to one model get: mode unless they ask, the most they can ask for, block tokens."""

    default: Mode
    ceiling: Mode
    budget: int
    budget_max: int
    budget_from: BudgetFrom = "settings"


class MemoryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What memory does for a key's calls, from the settings alone."""

    general: Grant = Grant(default=Mode.ON, ceiling=Mode.ON)
    own: Grant = Grant()
    budget_share: float = 0.1
    """Most of the model's window that a block may have."""
    rollout: float = 100.0
    """Percent of keys that have memory."""
    rules: tuple[ModelRule, ...] = ()

    def for_model(self, model: str, budget: Budget) -> Allowance:
        """What holds for calls to that model: of key and model what both allow, else the general setting."""
        rule = next((rule for rule in self.rules if fnmatchcase(model, rule.pattern)), None)
        grants = [self.own] if rule is None else [self.own, rule.grant]
        limit = None if rule is None else rule.budget
        return Allowance(
            default=_both([grant.default for grant in grants], self.general.default),
            ceiling=_both([grant.ceiling for grant in grants], self.general.ceiling),
            budget=budget.tokens if limit is None else min(budget.tokens, limit),
            budget_max=budget.most if limit is None else min(budget.most, limit),
            budget_from=budget.by if limit is None or limit >= budget.tokens else "model",
        )


def _both(modes: Iterable[Mode | None], otherwise: Mode | None) -> Mode:
    said = [mode for mode in modes if mode is not None]
    return reduce(narrow, said) if said else otherwise or Mode.OFF


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway key as resolved from the settings; it holds no key material but a digest."""

    name: str
    tenant: str
    digest: str = ""
    """SHA-256 of the key, hexadecimal; empty for keys that LiteLLM's database holds."""
    user: str = ""
    """The person whose key it is; empty for an app's key, whose requests name their users."""
    default_user: str = ""
    """Only the keyless quickstart has one: whose memory it is where a request names nobody."""
    agent: str = "default"
    isolated: bool = False
    namespace: str = ""
    user_header: str = ""
    """Lower-case name of the header in which this app names its end user, besides x-hearth-user."""
    session_header: str = ""
    timezone: str = "UTC"
    models: tuple[str, ...] = ()
    rpm: int | None = None
    tpm: int | None = None
    max_parallel: int | None = None
    policy: MemoryPolicy = MemoryPolicy()
    scopes: frozenset[Access] = frozenset({"read", "write"})

    @property
    def personal(self) -> bool:
        """True for a person's key, whose requests can't name anybody else."""
        return bool(self.user)

    def scope(self, user: str = "", *, agent: str = "", session: str = "") -> Scope:
        """The scope of this key's records; `user` counts for an app's key only."""
        return Scope(
            tenant=self.tenant,
            user=self.user or self.qualified(user),
            agent=agent or self.agent,
            session=session,
            isolated=self.isolated,
        )

    def qualified(self, user: str) -> str:
        """The user id with this app's namespace before it."""
        return f"{self.namespace}:{user}" if self.namespace and user else user


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A fresh key: the text that the client gets, and the lines that go into the YAML."""

    plain: str
    yaml: str

    def __repr__(self) -> str:
        return "NewKey(…)"


class KeyTable:
    """All keys of the settings, found by the presented text in constant time."""

    def __init__(self, keys: Iterable[Key], *, keyless: Key | None = None) -> None:
        self._by_digest = {key.digest: key for key in keys}
        self._by_name = {key.name: key for key in self._by_digest.values()}
        self.keyless = keyless
        """The key that every caller on this machine has, in the quickstart; else None."""
        if keyless is not None:
            self._by_digest[keyless.digest] = self._by_name[keyless.name] = keyless

    def find(self, token: str) -> Key | None:
        """The key of that presented text; None if it is unknown.

        The look-up is by SHA-256, so its timing says nothing about a configured key.
        """
        found = self.by_digest(digest_of(token)) if token else None
        return found if found is not self.keyless else None

    def by_digest(self, digest: str) -> Key | None:
        """The key whose SHA-256, in hexadecimal, that is; None if there is none."""
        key = self._by_digest.get(digest)
        return key if key is not None and hmac.compare_digest(key.digest, digest) else None

    def named(self, name: str) -> Key | None:
        """The key of that name; None if there is none."""
        return self._by_name.get(name)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)


def new_key(name: str) -> NewKey:
    """Make a random key of 256 bits for `hearth key new`; only its hash goes into the YAML."""
    plain = f"sk-hearth-{secrets.token_urlsafe(32)}"
    lines = f"- name: {name}\n  hash: sha256:{digest_of(plain)}"
    return NewKey(plain=plain, yaml=lines)


def presented_key(headers: Headers) -> str:
    """The key that a request carries, without its scheme, by LiteLLM's rules; empty where there is none."""
    given = {name.lower(): value.strip() for name, value in reversed(headers)}
    name = next((name for name in TOKEN_HEADERS if given.get(name)), "")
    value = given.get(name, "")
    if name not in ("authorization", "x-litellm-api-key"):
        return value
    scheme = next((scheme for scheme in _SCHEMES if value.startswith(scheme)), "")
    return value.removeprefix(scheme) if scheme or name != "authorization" else ""


def key_table(settings: HearthSettings) -> KeyTable:
    """The table for these settings."""
    keyless = _keyless(settings) if settings.keyless else None
    return KeyTable([_key(key, settings) for key in settings.keys], keyless=keyless)


def virtual_key(name: str, tenant: str, settings: HearthSettings, *, user: str = "") -> Key:
    """A key of LiteLLM's own database: a person's where `user` is given, else an app's."""
    return Key(
        name=name,
        tenant=tenant,
        user=user,
        user_header=settings.user_header or "",
        session_header=settings.session_header or "",
        timezone=settings.timezone,
        policy=_policy(settings),
    )


def _keyless(settings: HearthSettings) -> Key:
    """Everybody's key on this machine's loopback address: tenant `default`, user `me` unless one is named.

    It is one person's own machine, so the key may also read the log and set switches.
    """
    key = virtual_key("local", "default", settings)
    scopes: frozenset[Access] = frozenset({"read", "write", "admin"})
    return msgspec.structs.replace(key, digest=digest_of("keyless"), default_user="me", scopes=scopes)


def _key(key: KeySettings, settings: HearthSettings) -> Key:
    return Key(
        name=key.name,
        tenant=key.tenant,
        digest=key.digest,
        user=key.user or "",
        agent=key.agent,
        isolated=key.isolate_agents,
        namespace=key.user_namespace or "",
        user_header=key.user_header or settings.user_header or "",
        session_header=key.session_header or settings.session_header or "",
        timezone=key.timezone or settings.timezone,
        models=key.models,
        rpm=key.rpm,
        tpm=key.tpm,
        max_parallel=key.max_parallel,
        policy=_policy(settings, key),
        scopes=frozenset(key.scopes),
    )


def _policy(settings: HearthSettings, key: KeySettings | None = None) -> MemoryPolicy:
    return MemoryPolicy(
        general=_grant(settings.memory, settings.memory_max),
        own=_grant(key.memory, key.memory_max) if key else Grant(),
        budget_share=settings.recall.budget_share,
        rollout=settings.rollout,
        rules=_rules(settings.models),
    )


def _grant(default: ModeName | None, ceiling: ModeName | None) -> Grant:
    most = ceiling or default
    return Grant(default=MODES[default] if default else None, ceiling=MODES[most] if most else None)


def _rules(models: Mapping[str, ModelSettings]) -> tuple[ModelRule, ...]:
    """Longer patterns first, so that the more exact of two wins."""
    return tuple(
        ModelRule(pattern=name, grant=_grant(model.memory, model.memory_max), budget=model.budget_tokens)
        for name, model in sorted(models.items(), key=lambda item: (-len(item[0]), item[0]))
    )
