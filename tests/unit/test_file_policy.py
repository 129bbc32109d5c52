"""A configuration file that changes while the process runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from hearth.config.load import load_settings
from hearth.gateway.file_policy import FilePolicy
from hearth.gateway.life import NAMES
from hearth.memory.policies import FileAccount
from hearth.memory.tiers.layers import effective

FILE = """
model_list: [{{model_name: a, litellm_params: {{model: openai/a}}}}]
hearth:
  data_dir: data
  life: {{facts: rules, limits: {{segments: {segments}}}}}
  recall: {{deadline_ms: {deadline}}}
  tenants: {{acme: {{life: {{heat: {{visit: 2}}}}, redact: [email]}}}}
  keys: [{{name: app, key: "sha256:{key}", users: named, tenant: acme, budget_tokens: 300}}]
"""
Write = Callable[..., None]


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    return tmp_path / "hearth.yaml"


@pytest.fixture(name="write")
def _write(file: Path) -> Write:
    """Puts another file in its place, as editors and ConfigMaps do."""

    def write(segments: int = 10, deadline: int = 100, key: str = "a" * 64, text: str | None = None) -> None:
        other = file.with_suffix(".new")
        other.write_text(FILE.format(segments=segments, deadline=deadline, key=key) if text is None else text)
        other.replace(file)

    write()
    return write


def said(policy: FilePolicy, name: str, key: str = "") -> object:
    """The file's value of that name for the tenant acme."""
    own = dict.fromkeys(NAMES, None)
    return {one.name: one.value for one in effective(own, policy("acme", "", key))}[name]


def test_what_the_changed_file_says_counts(file: Path, write: Write) -> None:
    """The installation's, a tenant's and a key's values; what has not changed is not read again."""
    policy = FilePolicy(load_settings(file, {}))
    assert (said(policy, "limits.segments"), said(policy, "recall.budget_tokens", "app")) == (10, 300)
    assert not policy.look()
    write(text=file.read_text().replace("segments: 10", "segments: 20").replace("visit: 2", "visit: 3"))
    assert policy.look()
    assert not policy.look()
    assert (said(policy, "limits.segments"), said(policy, "heat.visit")) == (20, 3)
    write(text=file.read_text().replace("300", "200").replace("[email]", "[phone]"))
    assert policy.look()
    assert (said(policy, "recall.budget_tokens", "app"), said(policy, "capture.redact")) == (200, "phone")
    assert policy.account() == FileAccount()


def test_the_environment_still_goes_before_the_file(file: Path, write: Write) -> None:
    """What overrides a value at the start overrides it in the changed file."""
    policy = FilePolicy(load_settings(file, {"HEARTH_LIFE__LIMITS__SEGMENTS": "7"}))
    write(segments=30)
    assert policy.look()
    assert said(policy, "limits.segments") == 7


@pytest.mark.parametrize(
    "broken",
    ["hearth: {life: {facts: maybe}}", "hearth: [", None, "", "hearth: {qdrant_api_key: {x: PASSWORD}}"],
    ids=["a value", "no YAML", "gone", "emptied", "a secret in a wrong place"],
)
def test_a_broken_file_counts_for_nothing(
    file: Path, write: Write, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """What held before goes on, the log says why, and the file counts again once it is mended."""
    policy = FilePolicy(load_settings(file, {}))
    file.unlink() if broken is None else write(text=broken)
    assert not policy.look()
    assert policy.account().unusable
    assert said(policy, "limits.segments") == 10
    assert "hearth" in caplog.text
    assert "PASSWORD" not in caplog.text
    assert not policy.look()
    assert caplog.text.count("can't be used") == 1
    write(segments=40)
    assert policy.look()
    assert (said(policy, "limits.segments"), policy.account()) == (40, FileAccount())


def test_what_needs_a_restart_is_named_and_counted(
    file: Path, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    """By their names, without a value; changed back they are no more."""
    caplog.set_level(logging.INFO)
    policy = FilePolicy(load_settings(file, {}))
    write(deadline=90, key="b" * 64)
    assert policy.look()
    assert policy.account().restart == 2
    assert "hearth.keys.app.key, hearth.recall.deadline_ms" in caplog.text
    assert "bbbb" not in caplog.text
    write(text=file.read_text().replace("openai/a", "openai/b"))
    assert policy.look()
    assert policy.account().restart == 3
    write()
    assert policy.look()
    assert policy.account().restart == 0


def test_a_model_for_facts_needs_a_restart_where_there_was_none(file: Path, write: Write) -> None:
    """All else of `extraction` counts at once."""
    policy = FilePolicy(load_settings(file, {}))
    write(text=file.read_text().replace("facts: rules", "facts: model, extraction: {model: a}"))
    assert policy.look()
    assert policy.account().restart == 1
