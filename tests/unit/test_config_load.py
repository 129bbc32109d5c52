"""Settings are read from one file and the environment, and every mistake in them is named at once."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hearth.config.load import QUICKSTART, load_settings, parse_settings
from hearth.config.problems import Problem, SettingsError
from hearth.config.sections import LITELLM_SECTIONS
from hearth.config.settings import HearthSettings, KeySettings, Settings

HASH = "sha256:" + "a" * 64
KEY_OF_U = "name: a, tenant: t, user: u"
KEY = f"""
  keys:
    - name: app
      hash: {HASH}
      tenant: acme
      users: named
"""


def parse(text: str, **environ: str) -> Settings:
    return parse_settings(text, environ, source="conf.yaml")


def problems(text: str, **environ: str) -> list[str]:
    """What is said about the text, but that most texts here configure no model."""
    with pytest.raises(SettingsError) as caught:
        parse(text, **environ)
    return [str(problem) for problem in caught.value.problems if problem.where != "model_list"]


def outcome(text: str) -> Settings | tuple[Problem, ...]:
    try:
        return parse(text)
    except SettingsError as error:
        return error.problems


def test_defaults_hold_where_the_file_says_nothing() -> None:
    """A file without the section gives the documented defaults and keeps LiteLLM's sections untouched."""
    settings = parse("model_list:\n  - model_name: os.environ/NAME\n")
    assert settings.hearth.recall.deadline_ms == 150
    assert settings.hearth.durability == "power"
    assert settings.hearth.memory == "on"
    assert settings.litellm == {"model_list": [{"model_name": "os.environ/NAME"}]}


def test_file_is_read_from_disk(tmp_path: Path) -> None:
    """load_settings reads the file that it is given."""
    file = tmp_path / "conf.yaml"
    file.write_text("hearth:\n  data_dir: /srv/hearth\n", encoding="utf-8")
    settings = load_settings(file, {})
    assert settings.hearth.data_dir == Path("/srv/hearth")
    assert settings.hearth.spool_dir == Path("/srv/hearth/spool")


def test_a_file_that_is_not_there_is_a_named_error(tmp_path: Path) -> None:
    """A missing file is reported by its path."""
    with pytest.raises(SettingsError, match=r"none\.yaml"):
        load_settings(tmp_path / "none.yaml", {})


@pytest.mark.parametrize(
    ("word", "mode"),
    [("on", "on"), ("off", "off"), ("read", "read"), ("write", "write"), ("shadow", "shadow")],
)
def test_memory_words_are_words_though_yaml_reads_on_and_off_as_booleans(word: str, mode: str) -> None:
    """`memory: off`, unquoted, is the mode off."""
    assert parse(f"hearth:\n  memory: {word}\n").hearth.memory == mode
    assert parse("hearth:\n  timezone: UTC\n", HEARTH_MEMORY=word).hearth.memory == mode


def test_environment_overrides_the_file() -> None:
    """HEARTH_<SECTION>__<KEY> wins over the file, and leaves the section's other keys."""
    settings = parse(
        "hearth:\n  recall:\n    deadline_ms: 99\n    budget_tokens: 7\n",
        HEARTH_RECALL__DEADLINE_MS="200",
        HEARTH_DATA_DIR="/data",
        HEARTH_CONFIG="conf.yaml",
        HOME="/root",
    )
    assert settings.hearth.recall.deadline_ms == 200
    assert settings.hearth.recall.budget_tokens == 7
    assert settings.hearth.data_dir == Path("/data")


def test_unknown_environment_name_is_an_error_with_the_nearest_name() -> None:
    """A misspelt HEARTH_ variable stops the start."""
    (problem,) = problems("hearth: {}\n", HEARTH_RECALL__DEADLINE="200")
    assert "HEARTH_RECALL__DEADLINE:" in problem
    assert "did you mean `HEARTH_RECALL__DEADLINE_MS`?" in problem


def test_wrong_value_in_the_environment_names_the_variable() -> None:
    """A value of the wrong type says which variable it came from."""
    (problem,) = problems("hearth: {}\n", HEARTH_RECALL__DEADLINE_MS="fast")
    assert "hearth.recall.deadline_ms (HEARTH_RECALL__DEADLINE_MS)" in problem
    assert "'fast'" in problem


def test_every_mistake_is_listed_with_key_path_line_value_and_remedy() -> None:
    """One start shows all mistakes, each with where it stands and what would be right."""
    found = problems(
        "model_list: []\n"
        "hearth:\n"
        "  recal:\n"
        "    deadline_ms: 5\n"
        "  capture:\n"
        "    tools: some\n"
        "  durability: power\n"
        "  recall:\n"
        "    budget_tokens: many\n"
        "  keys:\n"
        "    - name: app\n"
        f"      hash: {HASH}\n"
        "      tenat: acme\n",
        HEARTH_XYZ="1",
    )
    text = "\n".join(found)
    assert "hearth.recal (conf.yaml:3): unknown key -> did you mean `recall`?" in text
    assert "hearth.capture.tools (conf.yaml:6): got 'some' -> expected 'names' or 'full'" in text
    assert "hearth.recall.budget_tokens (conf.yaml:9): got 'many' -> expected a whole number" in text
    assert "hearth.keys[0].tenat (conf.yaml:13): unknown key -> did you mean `tenant`?" in text
    assert "hearth.keys[0].tenant (conf.yaml:11): is missing" in text
    assert "HEARTH_XYZ" in text
    assert len(found) == 6


@pytest.mark.parametrize("key", ["kafka_url", "sharding"])
def test_settings_that_do_nothing_are_refused(key: str) -> None:
    """What this version does not have is an unknown key, never silently accepted."""
    (problem,) = problems(f"hearth:\n  {key}: x\n")
    assert f"hearth.{key} (conf.yaml:2): unknown key" in problem


@pytest.mark.parametrize(
    "url",
    [
        "http://cache.example",
        "redis:/x",
        "redis://",
        "rediss+clusters://a",
        "cache:6379",
        "redis://h:port/0",
        "redis://h:70000",
        "redis://h/first",
        "redis+sentinel://h:26379",
        "redis+sentinel://h,other:x/main",
    ],
)
def test_an_address_that_is_no_redis_is_refused(url: str) -> None:
    """What can't be an address of Redis stops the start, and its password is not shown."""
    (problem,) = problems(f"hearth:\n  redis_url: {url}\n")
    assert "hearth.redis_url (conf.yaml:2)" in problem
    assert "redis+cluster://" in problem
    assert "hunter2" not in "".join(problems("hearth:\n  redis_url: http://:hunter2@cache.example\n"))


@pytest.mark.parametrize(
    "url",
    ["qdrant:6333", "grpc://qdrant", "http://", "http://a:hunter2@qdrant", "http://a?x", "http://a:99999"],
)
def test_an_address_that_is_no_qdrant_is_refused(url: str) -> None:
    """What can't be an address of Qdrant stops the start, and what may be a password in it is not shown."""
    (problem,) = problems(f"hearth:\n  qdrant_url: {url}\n")
    assert "hearth.qdrant_url (conf.yaml:2)" in problem
    assert "https://" in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize("url", ["db:5432/x", "postgres://h:abc/db", "postgresql://u:hunter2@h:99999/db"])
def test_an_address_that_is_no_postgresql_is_refused(url: str) -> None:
    """What can't be an address of PostgreSQL stops the start, and its password is not shown."""
    (problem,) = problems(f"hearth:\n  postgres_url: {url}\n")
    assert "hearth.postgres_url (conf.yaml:2)" in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize(
    "url",
    [
        "redis://:secret@h:6379/0",
        "rediss://h?ssl_ca_certs=/ca.pem",
        "unix:///run/valkey.sock",
        "redis+cluster://h:7000",
        "redis+sentinel://u:p@a:26379,b/main/2",
    ],
)
def test_every_form_of_a_redis_address_is_taken(url: str) -> None:
    """Those that the operating guide lists."""
    assert isinstance(outcome(f"hearth:\n  redis_url: {url}\n"), Settings)


def test_shares_of_a_block_are_at_most_all_of_it() -> None:
    """Less than all leaves a rest to whoever fills it."""
    assert parse("hearth: {recall: {shares: {facts: 0.1}}}").hearth.recall.shares.facts == 0.1
    (said,) = problems("hearth: {recall: {shares: {facts: 0.9}}}")
    assert "hearth.recall.shares" in said
    assert "at most 1 together, not 1.6" in said


def test_misspelt_section_is_an_error() -> None:
    """LiteLLM would ignore `heart:`, so Hearth does not."""
    (problem,) = problems("heart:\n  memory: off\n")
    assert "did you mean `hearth`?" in problem


def test_a_key_that_stands_twice_is_an_error() -> None:
    """YAML would silently take the last one."""
    (problem,) = problems("hearth:\n  memory: off\n  memory: on\n")
    assert "hearth.memory (conf.yaml:3): stands twice, first on line 2" in problem


def test_a_section_that_stands_twice_is_one_error() -> None:
    """What both hold is no error of its own, and what one of them holds twice is."""
    found = problems("hearth:\n  memory: off\nhearth:\n  memory: on\n  timezone: UTC\n  timezone: UTC\n")
    assert [problem.split(": ")[1] for problem in found] == [
        "hearth (conf.yaml:3)",
        "hearth.timezone (conf.yaml:6)",
    ]


def test_a_key_that_stands_twice_hides_no_other_mistake() -> None:
    """Every kind of mistake is in one list: doubled, unknown, misspelt, wrong, and in LiteLLM's sections."""
    text = (
        "model_lst: []\n"
        "general_settings:\n  custom_auth: mine.auth\n"
        "hearth:\n  durability: disk\n  memory: off\n  memory: on\n  rolout: 5\n"
    )
    with pytest.raises(SettingsError) as caught:
        parse(text)
    assert [(problem.level, problem.where) for problem in caught.value.problems] == [
        ("error", "hearth.memory (conf.yaml:7)"),
        ("error", "model_lst (conf.yaml:1)"),
        ("error", "hearth.durability (conf.yaml:5)"),
        ("error", "hearth.rolout (conf.yaml:8)"),
        ("error", "model_list"),
        ("error", "general_settings.custom_auth"),
    ]


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("model_lst", "model_list"),
        ("litellm_setings", "litellm_settings"),
        ("General_settings", "general_settings"),
        ("hearht", "hearth"),
    ],
)
def test_a_slip_in_a_section_that_is_not_there_is_an_error(name: str, right: str) -> None:
    """LiteLLM would silently do without the section."""
    (problem,) = problems(f"{name}: {{}}\n")
    assert problem.startswith(f"error: {name} (conf.yaml:1)")
    assert problem.endswith(f"-> did you mean `{right}`?")


@pytest.mark.parametrize("name", ["model_lst", "telemetry_settings", "cache_settings", "prompt_settings"])
def test_another_unknown_section_is_a_warning(name: str) -> None:
    """A newer LiteLLM may read it, or the right one stands beside it; the start goes on."""
    (warning,) = parse(f"model_list: []\nhearth: {{}}\n{name}: {{}}\n").warnings
    assert (warning.level, warning.where) == ("warning", f"{name} (conf.yaml:3)")


def test_sections_that_only_hold_anchors_are_no_problem() -> None:
    """`x-…` and `.…` are how YAML files name those."""
    assert parse("x-common: &c {a: 1}\n.more: {b: 2}\nmodel_list: []\n").warnings == ()


def test_litellm_reads_the_sections_that_are_known() -> None:
    """The list agrees with what the proxy's own source asks its configuration for."""
    package = find_spec("litellm")
    assert package is not None
    assert package.origin is not None
    source = (Path(package.origin).parent / "proxy" / "proxy_server.py").read_text(encoding="utf-8")
    body = source[source.index("class ProxyConfig") : source.index("class ProxyStartupEvent")]
    asked = set(re.findall(r"""(?<![.\w])config\.get\(\s*"(\w+)\"""", body))
    of_its_database = {"interval_hours", "force_reload"}
    assert (asked - of_its_database) | {"include"} == LITELLM_SECTIONS


@pytest.mark.parametrize("text", ["hearth: [\n", "- a\n- b\n", "hearth: 7\n", "just text\n"])
def test_text_that_is_no_configuration_is_an_error(text: str) -> None:
    """Broken YAML, a list or a plain value is reported, not raised through."""
    assert problems(text)


NAMES = st.sampled_from([*HearthSettings.model_fields, *KeySettings.model_fields, "on", "1", "x.y", "*", "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | NAMES | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(section=VALUES, rest=st.dictionaries(NAMES | st.integers() | st.booleans(), VALUES, max_size=2))
def test_whatever_stands_in_the_file_it_loads_or_is_explained(
    section: object, rest: dict[object, object]
) -> None:
    """No content of the file ends in anything but settings or a list of problems, each with a remedy."""
    found = outcome(yaml.safe_dump({"hearth": section, **rest}, allow_unicode=True))
    if not isinstance(found, Settings):
        assert found
        assert all(problem.where and problem.message and problem.remedy for problem in found)


@pytest.mark.parametrize(
    "text", ["hearth: &a {recall: *a}\n", "x: &a [*a]\n", "hearth: {rollout: 2024-13-45}\n", "a: !!int b\n"]
)
def test_odd_yaml_is_an_error_with_a_place(text: str) -> None:
    """Loops, impossible dates and wrong tags are reported."""
    assert "conf.yaml" in "".join(problems(text))


def test_empty_file_is_an_empty_configuration() -> None:
    """An empty file parses to the defaults."""
    assert parse("").hearth == Settings().hearth


def test_os_environ_values_are_looked_up() -> None:
    """`os.environ/NAME` in Hearth's section is replaced, as LiteLLM does in its own."""
    text = "hearth:\n  keys:\n    - {name: a, tenant: t, user: u, key: os.environ/APP_KEY}\n"
    settings = parse(text, APP_KEY="sk-0123456789abcdef")
    (key,) = settings.hearth.keys
    assert key.key is not None
    assert key.key.get_secret_value() == "sk-0123456789abcdef"
    assert any("environment variable APP_KEY is not set" in problem for problem in problems(text))


def test_of_a_value_whose_variable_is_not_set_only_that_is_told() -> None:
    """What it would have to be can be judged once it is known; other mistakes are told."""
    text = f"hearth:\n  redis_url: os.environ/CACHE\n  keys:\n    - {{{KEY_OF_U}, hash: os.environ/HASH}}\n"
    found = problems(text.replace("keys:", "drain_seconds: -1\n  keys:"))
    assert [one.partition(" ->")[0].partition("): ")[2] for one in found] == [
        "environment variable CACHE is not set",
        "environment variable HASH is not set",
        "got -1",
    ]


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("keys: {app: {user: u}}", "hearth.keys (conf.yaml:2): is no list -> expected items below it"),
        ("keys: [{name: a, tenant: t, user: u, scopes: [raed]}]", "scopes[0] (conf.yaml:2): got 'raed' ->"),
        ("life: {system_memory: {attributes: [name]}}", "(conf.yaml:2): got ['name'] -> expected a text"),
        ("capture: {spool_dir: 7}", "hearth.capture.spool_dir (conf.yaml:2): got 7 -> expected a path"),
    ],
)
def test_a_mistake_is_told_in_the_words_of_yaml(mistake: str, told: str) -> None:
    """By field, value and what was expected, not by what Python calls it."""
    assert told in "\n".join(problems(f"hearth:\n  {mistake}\n"))


def test_secrets_are_never_shown() -> None:
    """Neither repr nor an error message holds a configured key."""
    secret = "sk-secret-0123456789"
    text = f"hearth:\n  keys:\n    - {{name: a, tenant: t, user: u, key: {secret}}}\n"
    assert secret not in repr(parse(text))
    with pytest.raises(SettingsError) as refused:
        parse(f"hearth: {{keyless: true, qdrant_url: 'http://q', qdrant_api_key: {{x: {secret}}}}}")
    assert secret not in str(refused.value)
    assert secret not in str(parse(text))
    bad = problems(text.replace("user: u", "user: u, users: named"))
    assert secret not in "".join(bad)
    short = problems("hearth:\n  keys:\n    - {name: a, tenant: t, user: u, key: sk-shrt}\n")
    assert "sk-shrt" not in "".join(short)
    assert "at least 16 characters" in "".join(short)
    number = problems("hearth:\n  keys:\n    - {name: a, tenant: t, user: u, key: 73577357}\n")
    assert "73577357" not in "".join(number)
    assert secret not in "".join(problems(f"hearth:\n  keys: [{secret}]\n"))
    assert secret not in "".join(problems(f"hearth:\n  keys: {secret}\n"))
    assert secret not in "".join(problems("hearth: {}\n", HEARTH_KEYS=secret))
    assert secret not in "".join(problems("hearth: {}\n", HEARTH_KEYS=f"[{{{secret}: ["))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (f"hash: '{HASH}', tenant: t", "exactly one of `user: NAME`"),
        (f"hash: '{HASH}', tenant: t, user: u, users: named", "exactly one of `user: NAME`"),
        ("tenant: t, user: u", "exactly one of `key` and `hash`"),
        ("hash: 'md5:1', tenant: t, user: u", "64 lower-case hexadecimal"),
        (f"hash: '{HASH}', tenant: t, user: u, user_namespace: crm", "for an app's key"),
        (f"hash: '{HASH}', tenant: t, users: named, user_namespace: 'a:b'", "expected `user_namespace`"),
        (f"hash: '{HASH}', tenant: ' t', user: u", "printable characters"),
        (f"hash: '{HASH}', tenant: t, user: u, timezone: Mars/Base", "IANA time zone"),
        (f"hash: '{HASH}', tenant: t, users: named, user_header: 'a b'", "name of an HTTP header"),
        (f"hash: '{HASH}', tenant: t, user: u, rpm: 0", "greater than or equal to 1"),
    ],
)
def test_a_key_that_can_not_work_is_a_start_up_error(fields: str, message: str) -> None:
    """A key must say whose it is, in which tenant, and by which secret."""
    assert message in "\n".join(problems(f"hearth:\n  keys:\n    - {{name: a, {fields}}}\n"))


def test_two_keys_of_one_name_are_an_error() -> None:
    """A key's name is its identity in metrics and switches."""
    text = f"hearth:\n{KEY}    - {{name: app, hash: 'sha256:{'b' * 64}', tenant: t, user: u}}\n"
    assert "used twice: app" in "\n".join(problems(text))


def test_settings_are_frozen() -> None:
    """Nothing changes settings after the start."""
    with pytest.raises(ValueError, match="frozen"):
        parse("").hearth.memory = "off"


def test_quickstart_configuration_is_valid_and_keyless() -> None:
    """The built-in quickstart parses and needs no key."""
    settings = load_settings(QUICKSTART, {})
    assert settings.hearth.keyless
    assert not settings.hearth.keys
