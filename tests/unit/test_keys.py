"""The key table: who a presented key belongs to and what its calls may do."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hearth.config.load import parse_settings
from hearth.config.problems import SettingsError
from hearth.config.settings import digest_of
from hearth.config.switches import Mode
from hearth.gateway.keys import Budget, Key, KeyTable, key_table, new_key, presented_key

PLAIN = "sk-0123456789abcdef"


def table(keys: str, rest: str = "") -> KeyTable:
    indented = "".join(f"    {line}\n" for line in keys.strip("\n").splitlines())
    return key_table(parse_settings(f"hearth:\n{rest}  keys:\n{indented}", {}).hearth)


def only(fields: str, rest: str = "") -> Key:
    key = table(f"- {{name: app, key: {PLAIN}, tenant: acme, {fields}}}", rest).find(PLAIN)
    assert key is not None
    return key


def test_a_key_is_found_by_its_text_whether_configured_plain_or_as_hash() -> None:
    """Both forms know the same presented text, and nothing else."""
    for secret in (f"key: {PLAIN}", f"hash: 'sha256:{digest_of(PLAIN)}'"):
        keys = table(f"- {{name: app, {secret}, tenant: acme, user: alice}}")
        found = keys.find(PLAIN)
        assert found is not None
        assert (found.name, found.tenant, found.user) == ("app", "acme", "alice")
        assert keys.find(PLAIN + "x") is None
        assert keys.find(PLAIN[:-1]) is None
        assert keys.find("") is None
        assert keys.find(digest_of(PLAIN)) is None
        assert keys.find("\ud83d") is None


def test_the_table_holds_no_key_material() -> None:
    """A configured plain key is gone after the start."""
    keys = table(f"- {{name: app, key: {PLAIN}, tenant: acme, user: alice}}")
    assert PLAIN not in repr(list(keys))
    assert len(keys) == 1


def test_rotating_a_key_keeps_the_owner() -> None:
    """The owner of the records comes from tenant and user, never from the key."""
    old = only("user: alice")
    new = table("- {name: new, key: sk-another-0123456789, tenant: acme, user: alice}").find(
        "sk-another-0123456789"
    )
    assert new is not None
    assert old.scope().owner == new.scope().owner == "acme/alice"


def test_new_key_can_be_pasted_into_the_configuration() -> None:
    """What `hearth key new` prints parses as YAML, knows its key, and shows it nowhere else."""
    made = new_key("laptop")
    assert made.plain not in made.yaml
    assert made.plain not in repr(made)
    keys = table(made.yaml + "\n  tenant: acme\n  user: alice")
    found = keys.find(made.plain)
    assert found is not None
    assert found.name == "laptop"
    assert yaml.safe_load(made.yaml)[0]["hash"].startswith("sha256:")
    assert new_key("laptop").plain != made.plain


@pytest.mark.parametrize("second", [f"key: {PLAIN}", f"hash: 'sha256:{digest_of(PLAIN)}'"])
def test_one_key_under_two_names_is_refused(second: str) -> None:
    """A key belongs to one owner, whether it is written plain or as hash."""
    with pytest.raises(SettingsError, match="the same key is: first, second"):
        table(
            f"- {{name: first, key: {PLAIN}, tenant: a, user: alice}}\n"
            f"- {{name: second, {second}, tenant: b, user: bob}}"
        )


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ([("Authorization", "Bearer sk-a")], "sk-a"),
        ([("authorization", "bearer sk-a ")], "sk-a"),
        ([("authorization", "sk-a"), ("x-api-key", "sk-b")], ""),
        ([("x-api-key", "Bearer sk-a")], "Bearer sk-a"),
        ([("X-Api-Key", "sk-a")], "sk-a"),
        ([("api-key", "sk-a")], "sk-a"),
        ([("x-api-key", "sk-a"), ("authorization", "Bearer sk-b")], "sk-b"),
        ([("x-litellm-api-key", "Bearer sk-c"), ("authorization", "Bearer sk-b")], "sk-c"),
        ([("x-litellm-api-key", "sk-c")], "sk-c"),
        ([("authorization", ""), ("x-api-key", "sk-a")], "sk-a"),
        ([("cookie", "sk-a")], ""),
        ([], ""),
    ],
)
def test_the_key_is_found_where_each_kind_of_client_puts_it(
    headers: list[tuple[str, str]], token: str
) -> None:
    """OpenAI's clients send a bearer token, Anthropic's x-api-key; a bare authorization is none."""
    assert presented_key(headers) == token


def test_general_settings_are_the_defaults_of_a_key() -> None:
    """What a key does not say comes from the section."""
    rest = "  timezone: Europe/Zurich\n  user_header: X-User\n  rollout: 50\n"
    key = only("users: named", rest)
    assert (key.timezone, key.user_header) == ("Europe/Zurich", "x-user")
    assert key.policy.rollout == 50.0
    own = only("users: named, timezone: Asia/Tokyo, user_header: X-Own", rest)
    assert (own.timezone, own.user_header) == ("Asia/Tokyo", "x-own")


@pytest.mark.parametrize(
    ("rest", "fields", "default", "ceiling"),
    [
        ("", "", Mode.ON, Mode.ON),
        ("  memory: off\n", "", Mode.OFF, Mode.OFF),
        ("  memory: off\n  memory_max: on\n", "", Mode.OFF, Mode.ON),
        ("  memory: off\n", "memory: on", Mode.ON, Mode.ON),
        ("", "memory: read", Mode.READ, Mode.READ),
        ("", "memory: off, memory_max: read", Mode.OFF, Mode.READ),
        ("  models: {'gpt*': {memory: off}}\n", "", Mode.OFF, Mode.OFF),
        ("  models: {'claude*': {memory: off}}\n", "", Mode.ON, Mode.ON),
        ("  models: {'*': {memory: off}, 'gpt-x': {memory: write}}\n", "", Mode.WRITE, Mode.WRITE),
        ("  memory: off\n  models: {'gpt*': {memory: on}}\n", "", Mode.ON, Mode.ON),
        ("  models: {'gpt*': {memory: on}}\n", "memory: read", Mode.READ, Mode.READ),
        ("  models: {'gpt*': {memory: write}}\n", "memory: read", Mode.OFF, Mode.OFF),
    ],
)
def test_of_key_and_model_both_must_allow_it(rest: str, fields: str, default: Mode, ceiling: Mode) -> None:
    """Key and model each restrict the other; where neither speaks, the general setting holds."""
    allowance = only(f"users: named, {fields}", rest).policy.for_model("gpt-x", Budget())
    assert (allowance.default, allowance.ceiling) == (default, ceiling)


def test_a_models_budget_lowers_the_keys() -> None:
    """The smaller of two budgets counts."""
    policy = only("user: u", "  models: {'small*': {budget_tokens: 100}}\n").policy
    allowed = Budget(tokens=500, most=500, by="key")
    small, large = (policy.for_model(name, allowed) for name in ("small-1", "large-1"))
    assert (small.budget, small.budget_max, small.budget_from) == (100, 100, "model")
    assert (large.budget, large.budget_max, large.budget_from) == (500, 500, "key")


def test_quickstart_gives_everybody_one_key() -> None:
    """Keyless: tenant `default`, user `me` unless one is named; never found by a presented text."""
    keys = key_table(parse_settings("hearth: {keyless: true}\n", {}).hearth)
    assert keys.keyless is not None
    assert (keys.keyless.tenant, keys.keyless.user, keys.keyless.default_user) == ("default", "", "me")
    assert keys.find("keyless") is None
    assert keys.by_digest(keys.keyless.digest) is keys.keyless


@given(st.text(min_size=1, alphabet=st.characters(codec="utf-8")), st.text(min_size=1))
def test_a_namespace_keeps_two_apps_users_apart(one: str, two: str) -> None:
    """The same id in two apps is two users, and two ids in one app stay two."""
    crm, shop = Key(name="a", tenant="t", namespace="crm"), Key(name="b", tenant="t", namespace="shop")
    assert crm.scope(one).user != shop.scope(two).user
    assert (crm.scope(one).user == crm.scope(two).user) == (one == two)
