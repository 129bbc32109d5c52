"""The check before a start finds what is legal but can't work, or costs money."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from hearth.config.check import check, check_stock_plugin, check_worker, is_loopback
from hearth.config.environment import bundled_token_tables, prepare_environment
from hearth.config.litellm_document import litellm_document, write_document
from hearth.config.load import parse_settings
from hearth.config.settings import Settings

KEYS = f"  keys:\n    - {{name: app, hash: 'sha256:{'a' * 64}', tenant: t, users: named}}\n"
MODELS = "model_list:\n  - {model_name: gpt, litellm_params: {model: openai/gpt}}\n"


def parse(hearth: str = KEYS, rest: str = MODELS) -> Settings:
    return parse_settings(f"{rest}hearth:\n{hearth}", {}, source="conf.yaml")


def wheres(settings: Settings, **served: object) -> list[tuple[str, str]]:
    return [(p.level, p.where) for p in check(settings, **served)]  # type: ignore[arg-type]


def test_a_sound_configuration_has_no_problem() -> None:
    """Keys and a model, one worker: nothing to say."""
    assert check(parse()) == []


@pytest.mark.parametrize("module", ["embedders_of_nobody", "embedders_of_nobody.deep", "json.deep"])
def test_an_embedder_that_is_not_installed_is_an_error(module: str) -> None:
    """Else the start would fail, by what the vector child says; `fast` and one that is there are fine."""
    (found,) = check(parse(f"{KEYS}  embedder: {module}:make\n"))
    assert (found.level, found.where) == ("error", "hearth.embedder")
    assert repr(f"{module}:make") in found.message
    for name in ("fast", "hearth.testing.embedder:plain"):
        assert check(parse(f"{KEYS}  embedder: {name}\n")) == []


def test_no_key_is_an_error() -> None:
    """A gateway that nobody can call does not start."""
    assert ("error", "hearth.keys") in wheres(parse("  memory: on\n"))


def test_no_model_is_an_error() -> None:
    """A gateway without a model does not start."""
    assert ("error", "model_list") in wheres(parse(rest=""))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "gateway.internal", ""])
def test_keyless_on_an_address_that_others_reach_is_an_error(host: str) -> None:
    """Without keys the gateway serves this machine only."""
    assert ("error", "hearth.keyless") in wheres(parse("  keyless: true\n"), host=host)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.0.1", "::ffff:127.0.0.1", "[::1]"])
def test_keyless_on_loopback_is_fine(host: str) -> None:
    """Without keys the gateway may serve this machine."""
    assert wheres(parse("  keyless: true\n"), host=host) == []
    assert is_loopback(host)


def test_keyless_beside_keys_is_an_error() -> None:
    """Keys that nobody needs would be a false safety."""
    assert ("error", "hearth.keyless") in wheres(parse("  keyless: true\n" + KEYS))


SERVERS = {
    "redis_url": "redis://cache.example",
    "qdrant_url": "http://vectors.example:6333",
    "postgres_url": "postgresql://hearth@db.example/hearth",
}


def shared(**settings: str) -> Settings:
    return parse(KEYS + "".join(f"  {name}: {value}\n" for name, value in settings.items()))


@pytest.mark.parametrize("left_out", [None, *SERVERS])
def test_several_processes_need_servers_to_share(left_out: str | None) -> None:
    """The gateways' and the workers' own: an error that names what is lacking, and none with all three."""
    named = {name: url for name, url in SERVERS.items() if name != left_out}
    several = check(shared(**named), workers=4)
    elsewhere = check(shared(worker="external", **named))
    if left_out is None:
        assert several == elsewhere == check_worker(shared(worker="external", **named)) == []
        return
    assert "4 gateway processes" in several[0].message
    assert [problem.where for problem in elsewhere] == ["hearth.worker"]
    for problem in (several[0], elsewhere[0], check_worker(shared(worker="external", **named))[0]):
        assert left_out in problem.remedy


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://vectors.example:6333", True),
        ("https://vectors.example", False),
        ("http://127.0.0.1:6333", False),
    ],
)
def test_a_key_that_travels_unencrypted_is_a_warning(url: str, warned: bool) -> None:
    """To Qdrant by http://, unless it is on this machine; gateways and workers say so alike."""
    settings = shared(**SERVERS | {"qdrant_url": url, "qdrant_api_key": "k", "worker": "external"})
    expected = [("warning", "hearth.qdrant_url")] if warned else []
    assert wheres(settings) == expected == [(p.level, p.where) for p in check_worker(settings)]


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("postgres_url", "postgresql://h:pw@db.example/h?sslmod=require"),
        ("postgres_url", "postgresql://h:pw@pw/pw@db.example/h"),
        ("postgres_url", "postgresql://h:pw@pw@db.example/h"),
        ("postgres_url", "postgresql://h:pw%pw@db.example/h"),
        ("redis_url", "redis://:pw@cache?db=x"),
    ],
)
def test_an_address_that_no_client_reads_is_an_error(name: str, url: str) -> None:
    """A mistyped parameter, or a password that ends where it must not, is told before the start, to gateways
    and workers, without the password.
    """
    settings = shared(**SERVERS | {name: url, "worker": "external"})
    ((found,), (same,)) = check(settings), check_worker(settings)
    assert (found.level, found.where) == ("error", f"hearth.{name}")
    assert "pw" not in str(found)
    assert found == same


def test_two_addresses_that_no_client_reads_are_both_told() -> None:
    """Whoever mends one need not start again to hear of the other."""
    bad = {"postgres_url": "postgresql://db.example/h?sslmod=require", "redis_url": "redis://cache?db=x"}
    assert wheres(shared(**SERVERS | bad)) == [
        ("error", "hearth.postgres_url"),
        ("error", "hearth.redis_url"),
    ]


def test_a_worker_beside_gateways_that_work_themselves_is_refused() -> None:
    """Their configuration must say that the work is done elsewhere."""
    (problem,) = check_worker(shared(**SERVERS))
    assert (problem.level, problem.where) == ("error", "hearth.worker")


def test_a_cache_mark_on_the_last_message_is_a_warning() -> None:
    """An injection point at -1 takes in the block and never hits."""
    rest = (
        "model_list:\n  - model_name: claude\n    litellm_params:\n      model: anthropic/claude\n"
        "      cache_control_injection_points:\n        - {location: message, index: %s}\n"
    )
    (problem,) = check(parse(rest=rest % "-1"))
    assert problem.level == "warning"
    assert "claude" in problem.where
    assert check(parse(rest=rest % "-2")) == []


def test_a_plain_key_in_the_file_is_a_warning() -> None:
    """The hash is enough."""
    settings = parse("  keys:\n    - {name: app, key: sk-0123456789abcdef, tenant: t, user: u}\n")
    assert wheres(settings) == [("warning", "hearth.keys (app)")]


def test_a_key_for_a_model_that_is_not_there_is_a_warning() -> None:
    """A misspelt model in a key's list would lock the key out."""
    (problem,) = check(parse(KEYS.replace("users: named", "users: named, models: [gtp]")))
    assert "'gtp'" in problem.message
    assert "gpt" in problem.remedy


def test_a_variable_that_litellm_would_miss_is_a_warning() -> None:
    """`os.environ/NAME` in LiteLLM's sections stays as it is; a name that is not set is told at the start."""
    parameters = "{model: m, api_key: os.environ/PROVIDER_KEY}"
    rest = f"model_list:\n  - {{model_name: m, litellm_params: {parameters}}}\n"
    (problem,) = check(parse(rest=rest))
    assert problem.level == "warning"
    assert problem.where == "model_list[0].litellm_params.api_key (conf.yaml:2)"
    assert "PROVIDER_KEY is not set" in problem.message
    settings = parse_settings(f"{rest}hearth:\n{KEYS}", {"PROVIDER_KEY": "secret"})
    assert check(settings) == []
    assert settings.litellm["model_list"][0]["litellm_params"]["api_key"] == "os.environ/PROVIDER_KEY"


def test_a_folder_that_can_not_be_made_is_an_error(tmp_path: Path) -> None:
    """Memory that has no place to stand is told at the start."""
    (tmp_path / "file").write_text("")
    fine = parse(f"  data_dir: {tmp_path}/new/deep\n" + KEYS)
    assert check(fine) == []
    bad = parse(f"  data_dir: {tmp_path}/file/deep\n" + KEYS)
    assert wheres(bad) == [("error", "hearth.data_dir"), ("error", "hearth.capture.spool_dir")]
    spool = parse(f"  capture: {{spool_dir: {tmp_path}/file}}\n" + KEYS)
    assert wheres(spool) == [("error", "hearth.capture.spool_dir")]


def test_foreign_custom_auth_is_an_error() -> None:
    """Hearth's authentication never silently replaces the operator's."""
    settings = parse(rest=MODELS + "general_settings: {custom_auth: mine.auth}\n")
    assert ("error", "general_settings.custom_auth") in wheres(settings)


def test_redaction_is_an_error_with_the_stock_plugin_only() -> None:
    """turn_off_message_logging empties what the plugin reads; the message names both remedies."""
    config = {"litellm_settings": {"turn_off_message_logging": True}}
    (problem,) = check_stock_plugin(config)
    assert problem.level == "error"
    assert "remove the setting" in problem.remedy
    assert "hearth serve" in problem.remedy
    assert check_stock_plugin({}) == []
    rest = MODELS + "litellm_settings: {turn_off_message_logging: true}\n"
    assert check(parse(rest=rest)) == []


def test_document_for_litellm_adds_authentication_and_the_callback() -> None:
    """LiteLLM gets the operator's sections, both flags that make model lists hold, and the plugin once."""
    rest = MODELS + "litellm_settings: {callbacks: prometheus, drop_params: true}\n"
    settings = parse(rest=rest)
    document = litellm_document(settings)
    assert document["general_settings"] == {
        "custom_auth": "hearth.gateway.auth.user_api_key_auth",
        "custom_auth_run_common_checks": True,
    }
    assert document["litellm_settings"] == {
        "callbacks": ["hearth.gateway.plugin.instance", "prometheus"],
        "drop_params": True,
        "enable_post_custom_auth_checks": True,
    }
    assert document["model_list"] == settings.litellm["model_list"]
    assert settings.litellm["litellm_settings"] == {"callbacks": "prometheus", "drop_params": True}


def test_document_for_litellms_own_keys_leaves_its_authentication() -> None:
    """With virtual_keys LiteLLM's database goes on authenticating."""
    document = litellm_document(parse("  virtual_keys: true\n"))
    assert "custom_auth" not in document["general_settings"]


def test_document_is_written_for_its_owner_only(tmp_path: Path) -> None:
    """The document may hold provider keys."""
    path = write_document(litellm_document(parse()), tmp_path / "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert yaml.safe_load(path.read_text())["model_list"][0]["model_name"] == "gpt"


def test_environment_is_prepared_without_overriding_the_operator() -> None:
    """LiteLLM finds its tables and a master key; values that are set stay."""
    environ: dict[str, str] = {}
    prepare_environment(environ, parse())
    assert environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert environ["TIKTOKEN_CACHE_DIR"] == str(bundled_token_tables())
    assert len(environ["LITELLM_MASTER_KEY"]) > 40
    own = {
        "LITELLM_MASTER_KEY": "sk-own",
        "TIKTOKEN_CACHE_DIR": "/x",
        "LITELLM_LOCAL_MODEL_COST_MAP": "False",
    }
    kept = dict(own)
    prepare_environment(kept, parse())
    assert kept == own


def test_a_master_key_in_the_file_is_not_replaced() -> None:
    """general_settings.master_key is the operator's word."""
    environ: dict[str, str] = {}
    prepare_environment(environ, parse(rest=MODELS + "general_settings: {master_key: sk-mine}\n"))
    assert "LITELLM_MASTER_KEY" not in environ


def test_a_database_in_the_file_is_the_one_that_litellm_finds() -> None:
    """LiteLLM reads `database_url` from the environment alone; the file wins, and nothing else sets it."""
    environ = {"DATABASE_URL": "postgresql://elsewhere"}
    prepare_environment(environ, parse())
    assert environ["DATABASE_URL"] == "postgresql://elsewhere"
    prepare_environment(environ, parse(rest=MODELS + "general_settings: {database_url: postgresql://mine}\n"))
    assert environ["DATABASE_URL"] == "postgresql://mine"


def test_litellms_own_keys_need_its_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a database, or without the generated client for it, every call would be refused."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    virtual = "  virtual_keys: true\n"
    with_database = MODELS + "general_settings: {database_url: postgresql://mine}\n"
    client = tmp_path / "prisma"
    client.mkdir()
    (client / "__init__.py").touch()
    problem = [("error", "hearth.virtual_keys")]
    assert wheres(parse(virtual)) == problem
    assert wheres(parse(virtual, with_database)) == problem
    (client / "client.py").touch()
    assert wheres(parse(virtual, with_database)) == []
    monkeypatch.setenv("DATABASE_URL", "postgresql://mine")
    assert wheres(parse(virtual)) == []


def test_bundled_token_tables_exist() -> None:
    """Counting tokens needs no download: o200k_base is among LiteLLM's own files."""
    folder = bundled_token_tables()
    assert folder is not None
    assert (folder / "fb374d419588a4632f3f557e76b4b70aebbca790").is_file()
