"""Whose memory a request reaches: from the key, never from what a client may claim."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.config.switches import Mode, Switches
from hearth.gateway.identity import Identity, IdentityError, Off, resolve
from hearth.gateway.keys import Grant, Key, MemoryPolicy
from hearth.gateway.wire.types import Route, WireRequest

ALICE = Key(name="alice-laptop", tenant="acme", user="alice")
APP = Key(name="chat", tenant="acme", timezone="Europe/Zurich")
ROUTES: list[Route] = ["chat", "messages", "responses"]

CLAUDE_CODE = '{"device_id":"d1","account_uuid":"","session_id":"s1"}'


class Hint(msgspec.Struct, frozen=True, kw_only=True):
    user: str = ""
    session: str = ""
    housekeeping: bool = False


def request(route: Route = "chat", **fields: str) -> WireRequest:
    return WireRequest(route=route, model="gpt-x", turns=(), **fields)  # type: ignore[arg-type]


def who(
    key: Key,
    headers: Sequence[tuple[str, str]] = (),
    wire: WireRequest | None = None,
    hint: Hint | None = None,
    switches: Switches = Switches(),  # noqa: B008 - a frozen record
) -> Identity:
    found = resolve(key, headers, wire or request(), hint, switches)
    assert isinstance(found, Identity), found
    return found


def refused(key: Key, headers: Sequence[tuple[str, str]], wire: WireRequest | None = None) -> IdentityError:
    with pytest.raises(IdentityError) as caught:
        resolve(key, headers, wire or request())
    return caught.value


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "body",
    [{"body_user": "bob"}, {"metadata_user": "bob"}, {"metadata_user": CLAUDE_CODE}, {"body_user": ""}],
)
def test_case_02_a_personal_key_ignores_users_in_the_body(route: Route, body: dict[str, str]) -> None:
    """Client programs fill body fields by themselves; the key's person stays the user."""
    assert who(ALICE, wire=request(route, **body)).scope.owner == "acme/alice"


def test_case_02_a_personal_key_refuses_another_user_in_the_header() -> None:
    """Naming somebody else on purpose is 403, in any case of the header's name."""
    assert refused(ALICE, [("X-Hearth-User", "bob")]).status == 403
    assert who(ALICE, [("x-hearth-user", "alice")]).scope.user == "alice"


def test_case_02_a_hint_can_not_change_a_personal_keys_user() -> None:
    """What a client program says about itself counts for an app's key only."""
    assert who(ALICE, hint=Hint(user="bob")).scope.user == "alice"


@pytest.mark.parametrize("key", [ALICE, APP])
@pytest.mark.parametrize(
    "name", ["x-hearth-user", "x-hearth-session", "x-hearth-agent", "x-hearth-memory", "x-hearth-budget"]
)
def test_case_02_a_repeated_header_is_refused(key: Key, name: str) -> None:
    """Two values of one header are 400, even where they are equal."""
    error = refused(key, [(name, "1"), (name.upper(), "1")])
    assert error.status == 400
    assert error.field == name


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("body", [{"body_user": "bob"}, {"metadata_user": "bob"}])
def test_an_app_names_its_user_in_the_body(route: Route, body: dict[str, str]) -> None:
    """An app's request may name the user in any of the body's fields."""
    assert who(APP, wire=request(route, **body)).scope.owner == "acme/bob"


def test_an_app_names_its_user_in_a_header() -> None:
    """x-hearth-user, or the header that the settings name."""
    assert who(APP, [("X-Hearth-User", "bob")]).scope.user == "bob"
    key = msgspec.structs.replace(APP, user_header="x-openwebui-user-id")
    assert who(key, [("X-OpenWebUI-User-Id", "u-7")]).scope.user == "u-7"
    assert who(key, [("x-hearth-user", "u-8")]).scope.user == "u-8"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([("x-hearth-user", "alice")], {"body_user": "bob"}),
        ([("x-hearth-user", "alice")], {"metadata_user": "bob"}),
        ([], {"body_user": "alice", "metadata_user": "bob"}),
        ([("x-own", "alice"), ("x-hearth-user", "bob")], {}),
    ],
)
def test_two_users_in_one_request_are_refused(headers: list[tuple[str, str]], body: dict[str, str]) -> None:
    """An app that names two users doesn't know whose request it is."""
    key = msgspec.structs.replace(APP, user_header="x-own")
    assert refused(key, headers, request(**body)).status == 400


def test_the_same_user_twice_is_one_user() -> None:
    """Header and body may agree."""
    assert who(APP, [("x-hearth-user", "bob")], request(body_user=" bob ")).scope.user == "bob"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "   ",
        CLAUDE_CODE,
        '["a"]',
        '"a"',
        "null",
        "None",
        "undefined",
        "true",
        "a" * 129,
        "a\nb",
        "\ud83d",
        "a\u2028b",
    ],
)
def test_case_06_what_is_no_name_in_the_body_is_nobody(value: str) -> None:
    """Session data, empty values, over-long ids and control characters never become a user all share."""
    assert resolve(APP, [], request(body_user=value)) == Off(reason="no user")
    assert resolve(APP, [], request(metadata_user=value)) == Off(reason="no user")


@pytest.mark.parametrize(
    "value", [CLAUDE_CODE, '"a"', "null", "None", "a" * 129, "a" * 300, "a\nb", "a\x00b"]
)
def test_case_06_what_is_no_name_in_a_header_is_refused(value: str) -> None:
    """A header is meant, so an unusable one is told."""
    assert refused(APP, [("x-hearth-user", value)]).status == 400


IDS = [
    "a-b",
    "550e8400-e29b-41d4-a716-446655440000",
    "x@y.example",
    "team/a:b",
    "a_b",
    "a b",
    "*",
    "a*",
    "a{b}",
    "a|b",
    "用户1",
    "é",
    "42",
    "{a",
    "a" * 128,
]


@pytest.mark.parametrize("value", IDS)
def test_case_06_special_characters_are_part_of_the_name(value: str) -> None:
    """Each such id is a user of its own, the same by header and by body."""
    by_body = who(APP, wire=request(body_user=value)).scope
    by_header = who(APP, [("x-hearth-user", value)]).scope
    as_asgi_decodes = who(APP, [("x-hearth-user", value.encode().decode("latin-1"))]).scope
    assert by_body.user == by_header.user == as_asgi_decodes.user == value


def test_case_06_separators_do_not_make_two_owners_one() -> None:
    """Every id of the list has an owner of its own, and (a:b, c) is not (a, b:c)."""
    owners = {who(APP, wire=request(body_user=value)).scope.owner for value in IDS}
    assert len(owners) == len(IDS)
    one = who(APP, [("x-hearth-session", "c")], request(body_user="a:b")).scope
    two = who(APP, [("x-hearth-session", "b:c")], request(body_user="a")).scope
    assert (one.owner, one.session) != (two.owner, two.session)


@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=200))
def test_no_user_id_escapes_the_keys_tenant(one: str, two: str) -> None:
    """Whatever a body says, the owner lies in the key's tenant, and two users have two owners."""
    first, second = (resolve(APP, [], request(body_user=user)) for user in (one, two))
    for found in (first, second):
        assert isinstance(found, Off) or found.scope.owner.startswith("acme/")
    if isinstance(first, Identity) and isinstance(second, Identity):
        assert (first.scope.owner == second.scope.owner) == (one.strip() == two.strip())


def test_a_request_that_names_nobody_has_no_memory() -> None:
    """Never a shared anonymous memory."""
    assert resolve(APP, [], request()) == Off(reason="no user")


def test_quickstart_falls_back_to_its_one_user() -> None:
    """Only the keyless key has a default user, and a named one wins."""
    key = msgspec.structs.replace(APP, tenant="default", default_user="me")
    assert who(key).scope.owner == "default/me"
    assert who(key, [("x-hearth-user", "you")]).scope.owner == "default/you"


def test_a_hint_says_who_and_where_for_a_known_client() -> None:
    """A preset's user replaces the body's fields; its session counts where no header names one."""
    hint = Hint(user="u1", session="s1")
    scope = who(APP, wire=request(metadata_user="user_x_session_y"), hint=hint).scope
    assert (scope.user, scope.session) == ("u1", "s1")
    assert who(APP, [("x-hearth-session", "own")], hint=hint).scope.session == "own"


def test_housekeeping_calls_have_no_memory() -> None:
    """Title generation passes through untouched."""
    assert resolve(APP, [], request(body_user="bob"), Hint(housekeeping=True)) == Off(reason="housekeeping")


def test_session_and_agent_come_from_header_then_key() -> None:
    """Headers say session and agent; the key says which header else, and which agent else."""
    key = msgspec.structs.replace(ALICE, agent="coder", session_header="x-chat-id", isolated=True)
    scope = who(key, [("x-chat-id", "c1")]).scope
    assert (scope.agent, scope.session, scope.owner) == ("coder", "c1", "acme/alice/coder")
    scope = who(key, [("x-hearth-agent", "writer"), ("x-hearth-session", "s"), ("x-chat-id", "c1")]).scope
    assert (scope.agent, scope.session) == ("writer", "s")
    assert who(ALICE).scope.session == ""


@pytest.mark.parametrize("name", ["x-hearth-session", "x-hearth-agent"])
def test_an_unusable_session_or_agent_is_refused(name: str) -> None:
    """Over-long names and control characters are 400."""
    assert refused(ALICE, [(name, "a" * 129)]).status == 400
    assert refused(ALICE, [(name, "a\tb\x7f")]).status == 400


@pytest.mark.parametrize(
    ("word", "mode"), [("on", Mode.ON), ("READ", Mode.READ), ("write", Mode.WRITE), (" on ", Mode.ON)]
)
def test_a_call_says_what_memory_may_do(word: str, mode: Mode) -> None:
    """x-hearth-memory chooses recall, capture or both."""
    policy = who(ALICE, [("x-hearth-memory", word)]).policy
    assert policy.mode == mode
    assert policy.recall == (Mode.RECALL in mode)
    assert policy.capture == (Mode.CAPTURE in mode)


def test_a_call_can_switch_memory_off() -> None:
    """x-hearth-memory: off is a call without memory."""
    assert resolve(ALICE, [("x-hearth-memory", "off")], request()) == Off(reason="asked by header")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-hearth-memory", "yes"),
        ("x-hearth-memory", "shadow"),
        ("x-hearth-budget", "-1"),
        ("x-hearth-budget", "1.5"),
        ("x-hearth-budget", "9999999"),
        ("x-hearth-budget", "9" * 5000),
        ("x-hearth-budget", "١٢"),
        ("x-hearth-timezone", "Mars/Base"),
        ("x-hearth-timezone", "../../etc/passwd"),
        ("x-hearth-timezone", "/etc/localtime"),
        ("x-hearth-tags", ",".join(map(str, range(17)))),
        ("x-hearth-tags", "x" * 129),
    ],
)
def test_a_header_that_can_not_be_used_is_refused_by_name(name: str, value: str) -> None:
    """The error names the header and what it expects."""
    error = refused(ALICE, [(name, value)])
    assert error.status == 400
    assert str(error).startswith(name)


def test_budget_and_timezone_come_from_header_then_key() -> None:
    """A call's own budget is not cut to a share of the model's window."""
    policy = who(APP, wire=request(body_user="u")).policy
    assert (policy.budget, policy.budget_share, policy.timezone) == (1024, 0.1, "Europe/Zurich")
    headers = [("x-hearth-budget", "2000"), ("x-hearth-timezone", "Asia/Tokyo")]
    policy = who(APP, headers, request(body_user="u")).policy
    assert (policy.budget, policy.budget_share, policy.timezone) == (2000, 1.0, "Asia/Tokyo")
    assert policy.budget_from == "request"
    none = who(ALICE, [("x-hearth-budget", "0")]).policy
    assert (none.recall, none.place, none.capture) == (False, False, True)


def test_a_call_s_tags_come_from_its_header() -> None:
    """Each once and without the blanks around it; none where the header is empty."""
    assert who(ALICE, [("x-hearth-tags", " billing, urgent ,, billing")]).policy.tags == ("billing", "urgent")
    assert who(ALICE, [("x-hearth-tags", "")]).policy.tags == ()


def test_completions_have_memory_only_when_asked() -> None:
    """The legacy route is off unless the call says otherwise."""
    assert resolve(ALICE, [], request("completions")) == Off(reason="route")
    assert who(ALICE, [("x-hearth-memory", "on")], request("completions")).policy.mode == Mode.ON


def test_a_switch_turns_memory_off_without_a_restart() -> None:
    """The reason says which switch it was."""
    found = resolve(ALICE, [], request(), None, Switches(tenants={"acme": "off"}))
    assert found == Off(reason="switched for tenant")


def test_shadow_places_nothing() -> None:
    """In shadow the block is computed and the exchange captured, and the prompt stays as it is."""
    policy = who(ALICE, switches=Switches(keys={"alice-laptop": "shadow"})).policy
    assert (policy.recall, policy.place, policy.capture) == (True, False, True)


def test_a_key_without_memory_has_none_whatever_is_asked() -> None:
    """A call can't ask for more than its key allows."""
    off = MemoryPolicy(own=Grant(default=Mode.OFF, ceiling=Mode.OFF))
    key = msgspec.structs.replace(ALICE, policy=off)
    found = resolve(key, [("x-hearth-memory", "on")], request())
    assert found == Off(reason="limit of key or model")


def test_an_error_stays_an_error_where_memory_is_off() -> None:
    """A request that claims somebody else is refused even if it asks for no memory."""
    assert refused(ALICE, [("x-hearth-memory", "off"), ("x-hearth-user", "bob")]).status == 403
