"""The settings of Hearth, the section `hearth:` of the YAML file, as frozen models with a meaning a field."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    Strict,
    model_validator,
)

from hearth.config.life import CallSettings, LifeSettings, Reading, Redact, Share, Tokens
from hearth.config.problems import Problem
from hearth.config.section import Section, yaml_word
from hearth.config.switches import ModeName

KEY_HASH = re.compile(r"sha256:[0-9a-f]{64}")
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
NAMESPACE = re.compile(r"[A-Za-z0-9_-]{1,64}")
EMBEDDER = re.compile(r"fast|quality|[A-Za-z_][\w.]*:[A-Za-z_]\w*")
POSTGRES_URL = re.compile(r"postgres(ql)?://[^/?]*(/|\?|$)")
REDIS_URL = re.compile(r"(?:rediss?(?:\+(?:cluster|sentinel))?|unix)://.")
SENTINEL_PATH = re.compile(r"[^/]+(/\d+)?")
QDRANT_URL = re.compile(r"https?://[^/@?#\s]+(?:/[^@?#\s]*)?")
MASTER_KEY = re.compile(r"[A-Za-z0-9_-]{43}=")
QDRANT_PREFIX = re.compile(r"[A-Za-z0-9_.-]*")
MAX_ID = 128
"""Characters; longer ids are never a user, agent or session."""


def _header_name(value: str) -> str:
    if not HEADER_NAME.fullmatch(value):
        raise ValueError("expected the name of an HTTP header, such as X-OpenWebUI-User-Id")
    return value.lower()


def known_timezone(value: str) -> str:
    """Return an IANA zone name as it is. Raises ValueError for any other text."""
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError("expected an IANA time zone, such as Europe/Zurich") from error
    return value


def stable_id(value: str) -> str:
    """Return the id as it is. Raises ValueError if it is blank, over-long, padded or not printable."""
    if not value.strip() or value != value.strip() or len(value) > MAX_ID or not value.isprintable():
        raise ValueError(f"expected 1 to {MAX_ID} printable characters without blanks around them")
    return value


def digest_of(token: str) -> str:
    """SHA-256 of a key, hexadecimal: enough for a random key of 256 bits, and what LiteLLM logs a key by."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _matching(matches: Callable[[str], object], expected: str) -> AfterValidator:
    """Accepts a text or a secret that `matches` finds something in, as it is."""

    def check(value: Any) -> Any:
        if not matches(value.get_secret_value() if isinstance(value, SecretStr) else value):
            raise ValueError(f"expected {expected}")
        return value

    return AfterValidator(check)


def _with_ports(matches: Callable[[str], object]) -> Callable[[str], bool]:
    """What `matches` finds something in, unless a host of the address has a port that is none."""
    return lambda address: bool(matches(address)) and _has_ports(address)


def _has_ports(address: str) -> bool:
    hosts = urlsplit(address).netloc.rpartition("@")[2]
    try:
        return all((urlsplit(f"//{host}").port or 1) > 0 for host in hosts.split(","))
    except ValueError:
        return False


def _is_redis(address: str) -> bool:
    if not REDIS_URL.match(address):
        return False
    path = urlsplit(address).path.strip("/")
    if "+sentinel" in address.partition("://")[0]:
        return bool(SENTINEL_PATH.fullmatch(path))
    return address.startswith("unix:") or not path or path.isdecimal()


def _known_weights(given: dict[str, float]) -> dict[str, float]:
    """Return the weights as they are. Raises ValueError for a name that recall does not weigh."""
    # the engine takes half a second to load, which no configuration without weights should pay
    from hearth.memory.recall.policy import Weights

    known = [
        name for name in Weights.__struct_fields__ if name != "recency_days"
    ]  # that is no signal's weight
    for name in given:
        if name not in known:
            raise ValueError(f"expected names among {', '.join(known)}; got {name!r}")
    return given


PostgresUrl: TypeAlias = Annotated[
    SecretStr,
    Strict(False),
    _matching(_with_ports(POSTGRES_URL.match), "postgresql://, then host, port and the database's name"),
]
RedisUrl: TypeAlias = Annotated[
    SecretStr,
    Strict(False),
    _matching(
        _with_ports(_is_redis),
        "redis://, rediss:// or redis+cluster://, then host, port and /number of the database, "
        "redis+sentinel://, then hosts and /service, or unix://, then a path",
    ),
]
QdrantUrl: TypeAlias = Annotated[
    str,
    _matching(
        _with_ports(QDRANT_URL.fullmatch),
        "http:// or https://, host, port and perhaps a path; qdrant_api_key has the key",
    ),
]
QdrantPrefix: TypeAlias = Annotated[str, _matching(QDRANT_PREFIX.fullmatch, "letters, digits, _, . and -")]
MemoryMode: TypeAlias = Annotated[ModeName, BeforeValidator(yaml_word)]
HeaderName: TypeAlias = Annotated[str, AfterValidator(_header_name)]
TimeZone: TypeAlias = Annotated[str, AfterValidator(known_timezone)]
Id: TypeAlias = Annotated[str, AfterValidator(stable_id)]
MasterKey: TypeAlias = Annotated[
    SecretStr,
    _matching(
        MASTER_KEY.fullmatch, "32 bytes in URL-safe base64, as `hearth encryption new-key` prints them"
    ),
]
EmbedderName: TypeAlias = Annotated[
    str, _matching(EMBEDDER.fullmatch, "fast, quality, or package.module:factory of an embedder of your own")
]
Client: TypeAlias = Literal[
    "claude-code", "codex", "open-webui", "librechat", "langchain", "vercel-ai", "aider"
]
Access: TypeAlias = Literal["read", "write", "admin"]
Positive: TypeAlias = Annotated[int, Field(ge=1)]
WeightsByName: TypeAlias = Annotated[
    dict[str, Annotated[float, Field(ge=-100, le=100)]], AfterValidator(_known_weights)
]


class SharesSettings(Section):
    """Part of a block that each group may fill before what the others leave unused is handed out."""

    profile: Share = Field(default=0.10, description="Who the user is.")
    agent: Share = Field(default=0.05, description="What the user and the agent agreed on.")
    facts: Share = Field(default=0.30, description="What is known of the user.")
    conversation: Share = Field(default=0.40, description="What was said earlier.")
    knowledge: Share = Field(default=0.10, description="The tenant's documents.")
    system: Share = Field(default=0.05, description="System memory.")

    @model_validator(mode="after")
    def _at_most_all(self) -> SharesSettings:
        total = self.profile + self.agent + self.facts + self.conversation + self.knowledge + self.system
        if total > 1 + 1e-9:
            raise ValueError(f"expected shares that are at most 1 together, not {total:g}")
        return self


class RecallSettings(Section):
    """What happens before a call."""

    deadline_ms: int = Field(
        default=150,
        ge=10,
        le=10_000,
        description="After so many milliseconds a call goes on with what memory has by then.",
    )
    budget_tokens: int = Field(
        default=1024, ge=0, le=100_000, description="Most tokens that a block may have."
    )
    budget_share: float = Field(
        default=0.1,
        gt=0,
        le=0.5,
        description="Most of the model's window that a block may have; the smaller of the two counts.",
    )
    budget_max: int = Field(
        default=8192,
        ge=0,
        le=100_000,
        description="Most tokens that a call may ask for with x-hearth-budget.",
    )
    floor: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Relevance (0 to 1) that the best candidate must reach, or nothing is recalled; "
        "empty means the embedder's own value.",
    )
    shares: SharesSettings = Field(default=SharesSettings(), description="Of a block, by group.")


class CaptureSettings(Section):
    """What happens after a call."""

    tools: Literal["names", "full"] = Field(
        default="names",
        description="What is kept of tool calls: `names` (and sizes), or `full` arguments and results.",
    )
    redact: Redact = Field(
        default=(),
        description="Personal data that is masked, as secrets always are, before anything is stored.",
    )
    ack_ms: int = Field(
        default=150,
        ge=1,
        le=10_000,
        description="The log has so many milliseconds to confirm a capture; then it goes to the spool.",
    )
    spool_dir: Annotated[Path, Strict(False)] | None = Field(
        default=None,
        description="Where captures wait while the log can't take them; empty means `spool` in data_dir.",
    )


class ImportSettings(Section):
    """How much one import may be; what is more is refused before anything of it is kept."""

    max_mb: int = Field(default=2_000, ge=1, le=1_000_000, description="Of the file as it is sent.")
    max_unpacked_mb: int = Field(
        default=8_000, ge=1, le=1_000_000, description="Of what is read of an archive, unpacked."
    )
    max_ratio: int = Field(
        default=200, ge=2, le=100_000, description="So many times its packed size a file in it may be."
    )
    max_record_mb: int = Field(
        default=64, ge=1, le=256, description="Of one line, conversation or other record."
    )
    max_records: int = Field(default=1_000_000, ge=1, le=100_000_000, description="In one file.")


class ErasureSettings(Section):
    """What happens to what is erased."""

    ledger: Annotated[Path, Strict(False)] | None = Field(
        default=None,
        description="File in which erasures are written down, as digests, outside the log and its backups; "
        "one for all processes over shared servers. Empty means `erasures.ledger` in data_dir.",
    )


class EncryptionSettings(Section):
    """What users said and what was made of it is stored encrypted, by a key of each user's own that a master
    key wraps ([encryption](encryption.md)). Without a master key nothing is.
    """

    keys: Annotated[tuple[MasterKey, ...], Strict(False)] = Field(
        default=(),
        description="Master keys, better os.environ/NAME each: the first one encrypts, what the others have "
        "encrypted is still read. `hearth encryption new-key` makes one.",
    )

    @model_validator(mode="after")
    def _different(self) -> EncryptionSettings:
        if len({key.get_secret_value() for key in self.keys}) < len(self.keys):
            raise ValueError("expected every master key to be another one")
        return self


class QdrantSettings(Section):
    """The collection in the server that `qdrant_url` names, as it is made; one that exists stays as it is."""

    prefix: QdrantPrefix = Field(
        default="hearth-",
        description="Begins the collection's alias, which goes on with embedder, dimension and format.",
    )
    connections: Annotated[int, Field(ge=2, le=64)] = Field(
        default=8, description="Searches that one process has under way at once; each takes a connection."
    )
    shards: Positive | None = Field(
        default=None, description="Shards of the collection; empty leaves it to the server."
    )
    replicas: Positive | None = Field(
        default=None, description="Copies of each shard; empty leaves it to the server."
    )
    write_consistency: Positive | None = Field(
        default=None,
        description="Copies that have to confirm a write; empty leaves it to the server.",
    )
    on_disk: bool = Field(
        default=False, description="Whether vectors and words are read from disk, in place of memory."
    )
    quantization: Literal["none", "scalar", "binary"] = Field(
        default="none",
        description="What candidates are looked for by: the vectors, or a short form of them in memory, a "
        "quarter (`scalar`) or a 32nd (`binary`) of their size, with the vectors on disk.",
    )
    oversampling: float = Field(
        default=2.0,
        ge=1,
        le=16,
        description="So many times the candidates are found by the short form, and the best of them kept.",
    )
    rescore: bool = Field(
        default=True,
        description="Whether the best of them are told by the vectors. Scores are exact in either case.",
    )


class ModelSettings(Section):
    """Overrides for models whose name matches."""

    memory: MemoryMode | None = Field(default=None, description="Default for calls to this model.")
    memory_max: MemoryMode | None = Field(
        default=None, description="The most that a call to this model can get."
    )
    budget_tokens: int | None = Field(
        default=None, ge=0, le=100_000, description="Most tokens that a block may have."
    )


class AgentSettings(Section):
    """What holds for one assistant of a tenant. All else is its users' memory, which agents share."""

    facts: Reading = Field(
        default=None, description="As `hearth.life.facts`, for what is said to this agent."
    )
    budget_tokens: Tokens | None = Field(default=None, description="Most tokens that a block may have.")


class TenantSettings(CallSettings):
    """What holds for one tenant."""

    weights: WeightsByName = Field(
        default={},
        description="Weights of the rank score by signal, as `hearth tune` proposes them; those left out are "
        "Hearth's own.",
    )
    life: LifeSettings = Field(
        default=LifeSettings(), description="As `hearth.life`; what is left out is the installation's."
    )
    agents: dict[Id, AgentSettings] = Field(
        default={}, description="What holds for one of its agents, by name."
    )


class KeySettings(CallSettings):
    """One gateway key."""

    name: Id = Field(
        description="Name of the key in logs, metrics and switches; stays when the key is rotated."
    )
    key: SecretStr | None = Field(
        default=None, description="The key itself; better os.environ/NAME. Give this or `hash`."
    )
    hash: str | None = Field(
        default=None, description="`sha256:<hex>` of the key, as `hearth key new` prints it."
    )
    tenant: Id = Field(description="Who owns the data: a stable name, such as a team's.")
    user: Id | None = Field(
        default=None, description="The person whose key it is. Give this or `users: named`."
    )
    users: Literal["named"] | None = Field(
        default=None,
        description="`named`: an app's key; each request names its end user. Give this or `user`.",
    )
    agent: Id = Field(default="default", description="Which assistant speaks where the request doesn't say.")
    isolate_agents: bool = Field(
        default=False, description="Whether each agent has memories of its own of every user."
    )
    user_namespace: str | None = Field(
        default=None,
        description="Put before this app's user ids (`crm` makes `crm:7`), so that two apps' don't mix.",
    )
    user_header: HeaderName | None = Field(
        default=None, description="Header in which this app names its end user."
    )
    session_header: HeaderName | None = Field(
        default=None, description="Header in which this app names the conversation."
    )
    timezone: TimeZone | None = Field(
        default=None, description="Users' time zone where the request doesn't say."
    )
    models: Annotated[tuple[str, ...], Strict(False)] = Field(
        default=(), description="Models that the key may call; empty means all."
    )
    rpm: Positive | None = Field(default=None, description="Most requests per minute.")
    tpm: Positive | None = Field(default=None, description="Most tokens per minute.")
    max_parallel: Positive | None = Field(default=None, description="Most requests at once.")
    memory: MemoryMode | None = Field(default=None, description="Default for this key's calls.")
    memory_max: MemoryMode | None = Field(
        default=None,
        description="The most that x-hearth-memory can ask for; empty means the same as `memory`.",
    )
    facts: Reading = Field(default=None, description="As `hearth.life.facts`, for what comes by this key.")
    scopes: Annotated[tuple[Access, ...], Strict(False)] = Field(
        default=("read", "write"), description="What the key may do in the memory API: read, write, admin."
    )

    @model_validator(mode="after")
    def _complete(self) -> KeySettings:
        if (self.key is None) == (self.hash is None):
            raise ValueError("expected exactly one of `key` and `hash`")
        if (self.user is None) == (self.users is None):
            raise ValueError(
                "expected exactly one of `user: NAME` (a person's key) and `users: named` (an app's key)"
            )
        if self.hash is not None and not KEY_HASH.fullmatch(self.hash):
            raise ValueError("expected `hash` as sha256: and 64 lower-case hexadecimal digits")
        if self.key is not None and len(self.key.get_secret_value()) < 16:
            raise ValueError("expected a `key` of at least 16 characters; `hearth key new` makes one")
        self._check_app_fields()
        return self

    @property
    def digest(self) -> str:
        """SHA-256 of the key, hexadecimal."""
        if self.hash is not None:
            return self.hash.removeprefix("sha256:")
        return digest_of(self.key.get_secret_value() if self.key is not None else "")

    def _check_app_fields(self) -> None:
        if self.user is not None and (self.user_namespace is not None or self.user_header is not None):
            raise ValueError("`user_namespace` and `user_header` are for an app's key (`users: named`)")
        if self.user_namespace is not None and not NAMESPACE.fullmatch(self.user_namespace):
            raise ValueError("expected `user_namespace` of letters, digits, - and _, at most 64")


class HearthSettings(Section):
    """The section `hearth:`."""

    data_dir: Annotated[Path, Strict(False)] = Field(
        default=Path(".hearth"), description="Folder of the embedded stores: log, short-term memory, index."
    )
    archive_dir: Annotated[Path, Strict(False)] | None = Field(
        default=None,
        description="Folder for old payloads of the log (`hearth archive`, `life.retention.payload_days`): "
        "`archive` in `data_dir` where empty. With `postgres_url` one that all gateways and workers share.",
    )
    redis_url: RedisUrl | None = Field(
        default=None,
        description="Redis or Valkey for short-term memory: `redis://`, `rediss://` (TLS), `unix://`, "
        "`redis+cluster://`, `redis+sentinel://host,host/service`; empty keeps it in `data_dir`.",
    )
    qdrant_url: QdrantUrl | None = Field(
        default=None,
        description="Qdrant server for long-term memory, `https://host:6333`; empty keeps it in `data_dir`.",
    )
    qdrant_api_key: SecretStr | None = Field(
        default=None, description="Key of that server; better os.environ/NAME."
    )
    qdrant: QdrantSettings = Field(default=QdrantSettings(), description="The collection in that server.")
    postgres_url: PostgresUrl | None = Field(
        default=None,
        description="PostgreSQL for the event log: `postgresql://user@host/database`, with the parameters "
        "of libpq (several hosts, TLS); empty keeps it in `data_dir`.",
    )
    postgres_connections: int = Field(
        default=12, ge=2, le=100, description="Most connections to PostgreSQL that a process holds."
    )
    worker: Literal["embedded", "external"] = Field(
        default="embedded",
        description="Where what was said is filed: in the gateway itself, or in processes of `hearth worker` "
        "over the same servers.",
    )
    max_request_mb: int = Field(
        default=128,
        ge=1,
        le=10_000,
        description="Largest body of a model call, in megabytes; a larger one is refused with 413, and not "
        "read to its end.",
    )
    drain_seconds: float = Field(
        default=0,
        ge=0,
        le=600,
        description="Seconds after SIGTERM in which calls are still taken while the gateway says that it is "
        "not ready: as long as a balancer needs to notice.",
    )
    durability: Literal["power", "process"] = Field(
        default="power",
        description="What a captured exchange survives: a power cut, or only a killed process (faster).",
    )
    embedder: EmbedderName = Field(
        default="fast",
        description="Embedding model: `fast`, `quality` (better, 20 ms a question more; Linux on x86-64, "
        "extra `quality`), or `package.module:factory` of your own.",
    )
    memory: MemoryMode = Field(
        default="on",
        description="Default for every call: on, read (recall only), write (capture only), off, "
        "shadow (all but the block in the prompt).",
    )
    memory_max: MemoryMode | None = Field(
        default=None,
        description="The most that x-hearth-memory can ask for; empty means the same as `memory`.",
    )
    rollout: float = Field(
        default=100.0,
        ge=0,
        le=100,
        description="Percent of keys that have memory; the others' calls go through without.",
    )
    timezone: TimeZone = Field(
        default="UTC", description="Users' time zone where neither request nor key says."
    )
    recall: RecallSettings = Field(default=RecallSettings(), description="Before the call.")
    capture: CaptureSettings = Field(default=CaptureSettings(), description="After the call.")
    erasure: ErasureSettings = Field(default=ErasureSettings(), description="What is removed for good.")
    encryption: EncryptionSettings = Field(
        default=EncryptionSettings(), description="What is stored encrypted."
    )
    life: LifeSettings = Field(default=LifeSettings(), description="Beside the calls: what becomes of pages.")
    imports: ImportSettings = Field(default=ImportSettings(), description="Limits of `hearth import`.")
    models: dict[str, ModelSettings] = Field(
        default={}, description="Overrides by model name; `*` stands for any text."
    )
    tenants: dict[Id, TenantSettings] = Field(default={}, description="What holds for one tenant, by name.")
    clients: Annotated[tuple[Client, ...], Strict(False)] = Field(
        default=("claude-code", "codex", "open-webui", "librechat", "langchain", "vercel-ai", "aider"),
        description="Client programs to recognise, by where they put user, session and housekeeping.",
    )
    user_header: HeaderName | None = Field(
        default=None, description="Header in which apps name their end user."
    )
    session_header: HeaderName | None = Field(
        default=None, description="Header in which clients name the conversation."
    )
    virtual_keys: bool = Field(
        default=False,
        description="Whether keys of LiteLLM's own database have memory; who may make some without an owner "
        "decides whose memory they reach.",
    )
    keyless: bool = Field(
        default=False,
        description="Serve without keys, on the loopback address only, for one person trying it out.",
    )
    keys: Annotated[tuple[KeySettings, ...], Strict(False)] = Field(
        default=(), description="The gateway's keys."
    )

    @model_validator(mode="after")
    def _unique_keys(self) -> HearthSettings:
        names = Counter(key.name for key in self.keys)
        double = sorted(name for name, times in names.items() if times > 1)
        if double:
            raise ValueError(f"expected every key to have a name of its own; used twice: {', '.join(double)}")
        digests = Counter(key.digest for key in self.keys)
        same = [key.name for key in self.keys if digests[key.digest] > 1]
        if same:
            raise ValueError(f"expected every key to be another one; the same key is: {', '.join(same)}")
        return self

    @model_validator(mode="after")
    def _archive_for_payloads(self) -> HearthSettings:
        lives = {"life": self.life} | {f"tenants.{name}.life": one.life for name, one in self.tenants.items()}
        old = [name for name, life in lives.items() if life.retention.payload_days is not None]
        if old and self.postgres_url is not None and self.archive_dir is None:
            raise ValueError(
                f"expected `archive_dir`, a folder that all gateways and workers share, with "
                f"`{old[0]}.retention.payload_days` and `postgres_url`"
            )
        return self

    @property
    def spool_dir(self) -> Path:
        """Where captures wait while the log can't take them."""
        return self.capture.spool_dir or self.data_dir / "spool"


class Settings(BaseModel):
    """Everything that one file configures: Hearth's own section, and LiteLLM's sections as they stand."""

    model_config = ConfigDict(frozen=True)

    hearth: HearthSettings = HearthSettings()
    litellm: Mapping[str, Any] = Field(default={}, repr=False)
    """All other sections. Values such as `os.environ/NAME` are left for LiteLLM to resolve."""
    source: str = ""
    """The file's name, for messages."""
    path: Path | None = None
    """The file itself, as it was named; None where there is none."""
    again: Callable[[], Settings] | None = Field(default=None, repr=False, exclude=True)
    """Reads the file as it stands now, in the same environment. Raises SettingsError."""
    folder: Path = Path()
    """The folder of the file: where LiteLLM looks for what it names (callbacks' modules, included files)."""
    warnings: tuple[Problem, ...] = ()
    """What was noticed while reading and stops nothing."""
