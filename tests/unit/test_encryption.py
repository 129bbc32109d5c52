"""Bytes by one key, and master keys: what was encrypted is read in its place alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.config.load import parse_settings
from hearth.config.problems import SettingsError
from hearth.memory.encryption.box import Box, DecryptionError, new_key
from hearth.memory.encryption.master import (
    MasterKeyMissing,
    MasterKeys,
    name_of,
    new_master_key,
    read_master_key,
)
from hearth.memory.errors import BadInput
from hearth.memory.events.spool import Spool
from tests.events import step

PLACES = st.lists(st.text(st.characters(codec=None)), max_size=3).map(tuple)
BOX = Box(b"k" * 32)


@given(st.binary(max_size=300), PLACES)
def test_what_was_encrypted_is_read(content: bytes, place: tuple[str, ...]) -> None:
    """Whatever it is, in its place; twice the same is not the same bytes."""
    encrypted = BOX.encrypt(content, place)
    assert BOX.decrypt(encrypted, place) == content
    assert BOX.encrypt(content, place) != encrypted


@given(st.binary(max_size=100), PLACES, st.data())
def test_what_was_altered_is_not_read(content: bytes, place: tuple[str, ...], data: st.DataObject) -> None:
    """One bit, or a shorter end."""
    encrypted = bytearray(BOX.encrypt(content, place))
    bit = data.draw(st.integers(0, 8 * len(encrypted) - 1))
    encrypted[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DecryptionError):
        BOX.decrypt(bytes(encrypted), place)
    encrypted[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DecryptionError):
        BOX.decrypt(bytes(encrypted[: data.draw(st.integers(0, len(encrypted) - 1))]), place)


@given(PLACES, PLACES)
def test_what_was_moved_is_not_read(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """No two places are the same to it, however their parts run together; nor are two keys."""
    encrypted = BOX.encrypt(b"said", one)
    with pytest.raises(DecryptionError):
        BOX.decrypt(encrypted, (*one, ""))
    with pytest.raises(DecryptionError):
        Box(new_key()).decrypt(encrypted, one)
    if one != other:
        with pytest.raises(DecryptionError):
            BOX.decrypt(encrypted, other)


def test_the_first_master_key_encrypts_and_all_read() -> None:
    """After a rotation the older one is there to read, and without it nothing is read."""
    old, new = (read_master_key(new_master_key()) for _ in range(2))
    wrapped = MasterKeys([old]).wrap(b"key", ("alice",))
    both = MasterKeys([new, old])
    assert both.newest == name_of(new)
    assert both.unwrap(name_of(old), wrapped, ("alice",)) == b"key"
    with pytest.raises(MasterKeyMissing, match=f"{name_of(old)} is not configured.*{name_of(new)}"):
        MasterKeys([new]).unwrap(name_of(old), wrapped, ("alice",))


KEY = "ZeMIE3kgTblj0gszeTElEXbDP4iitO5jCyx_uRbSA2Q="


@pytest.mark.parametrize("text", ["", "secret", KEY[:-2], "ü" * 44, KEY * 2])
def test_what_is_no_master_key_is_refused_and_not_shown(text: str) -> None:
    """The message says what a key looks like; in the configuration it names the field."""
    with pytest.raises(BadInput, match="32 bytes") as refused:
        read_master_key(text)
    assert not text or text not in str(refused.value)
    with pytest.raises(SettingsError) as told:
        parse_settings(
            "hearth: {encryption: {keys: [os.environ/HEARTH_ENCRYPTION_KEY]}}",
            {"HEARTH_ENCRYPTION_KEY": text},
        )
    (problem,) = [one for one in told.value.problems if "encryption" in one.where]
    assert "keys" in problem.where
    assert "hearth encryption new-key" in problem.remedy
    assert not text or text not in f"{problem}"


def test_master_keys_are_taken_from_the_environment() -> None:
    """By a name that begins like a setting's; one in the file itself is warned of, twice the same refused."""
    key = new_master_key()
    settings = parse_settings(
        "hearth: {encryption: {keys: [os.environ/HEARTH_MASTER]}}", {"HEARTH_MASTER": key}
    )
    assert [one.get_secret_value() for one in settings.hearth.encryption.keys] == [key]
    assert settings.warnings == ()
    (warning,) = parse_settings(f"hearth: {{encryption: {{keys: ['{key}']}}}}", {}).warnings
    assert (warning.level, warning.where) == ("warning", "hearth.encryption.keys")
    with pytest.raises(SettingsError, match="another one"):
        parse_settings(f"hearth: {{encryption: {{keys: ['{key}', '{key}']}}}}", {})


def test_the_spool_is_encrypted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its lines say nothing; without the key they are left where they are."""
    masters = MasterKeys([b"m" * 32])
    spool = Spool(tmp_path, masters=masters)
    spool.write([step(user_text="a marmalade elephant")])
    spool.close()
    (path,) = tmp_path.iterdir()
    assert b"elephant" not in path.read_bytes()
    assert spool.pending() == 1
    with path.open("rb") as file:
        events, whole = spool._read(file, path)
        assert (events[0].payload.step.user_text, whole) == ("a marmalade elephant", True)  # type: ignore[union-attr]
        file.seek(0)
        assert Spool(tmp_path)._read(file, path) == ([], False)
    assert "hearth.encryption.keys" in caplog.text
