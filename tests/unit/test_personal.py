"""Personal data: what is masked, what only looks like it, and that any text takes linear time."""

from __future__ import annotations

import random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.redaction import KINDS_COUNTED, measure, texts
from hearth.config.settings import CaptureSettings
from hearth.memory.extract.personal import KINDS, Personal, mask_of, mask_personal, masked_by
from hearth.memory.extract.secrets import mask_secrets
from hearth.memory.extract.spans import own_words
from hearth.memory.tiers.life import CapturePolicy

EVERYTHING = (
    "anna@example.com, +41 44 668 18 00, DE89 3704 0044 0532 0130 00, 203.0.113.7, AHV 756.9217.0769.85, "
    "sk-test-FAKE0123456789abcdef"
)


def test_the_labelled_texts() -> None:
    """Nearly all labels are found, and no trap but a time that looks like a card's number."""
    labelled = texts()
    traps = [one for one in labelled if not one.spans]
    assert len(labelled) >= 120
    assert len(traps) * 5 >= len(labelled) * 2
    counts = measure(labelled)
    assert {kind for kind in KINDS if counts[kind].precision < 1.0} == set()
    assert {kind for kind in KINDS_COUNTED if counts[kind].recall < 0.9} == set()


def test_only_what_is_chosen_is_masked() -> None:
    """Nothing by default but secrets; each kind by itself; all of them, the secret too."""
    assert mask_of(()) is mask_secrets
    assert mask_personal(EVERYTHING, ("email",)) == EVERYTHING.replace("anna@example.com", "[personal:email]")
    masked = mask_of(KINDS)(EVERYTHING)
    assert [f"[personal:{kind}]" in masked for kind in KINDS] == [True] * len(KINDS)
    assert masked.endswith("AHV [personal:national-id], [secret:api-key]")
    assert masked_by(mask_of(("ip",))) == ("ip",)


def test_an_iban_is_no_card() -> None:
    """Sixteen of its digits have a card's check digit."""
    assert mask_of(("iban",))("to PL61 1090 1014 0000 0712 1981 2874") == "to [personal:iban]"


def test_settings_know_the_kinds() -> None:
    """The file, the policy and the masks speak of the same kinds."""
    assert set(get_args(Personal)) == set(KINDS)
    assert CaptureSettings.model_validate({"redact": list(KINDS)}).redact == KINDS
    assert CapturePolicy(redact="ip, email").kinds == ("email", "ip")
    with pytest.raises(ValueError, match="national-id"):
        CaptureSettings.model_validate({"redact": ["names"]})


def test_a_marker_is_not_the_users_own_word() -> None:
    """No fact is read from it."""
    assert "personal" not in own_words("My mail is [personal:email] now.")


@settings(max_examples=100)
@given(st.text(max_size=200) | st.text("0123456789+-.()/@:aA \u00a0", max_size=200))
def test_any_text_is_taken(text: str) -> None:
    """Whatever the text, masking ends and is idempotent."""
    once = mask_personal(text, KINDS)
    assert mask_personal(once, KINDS) == once


@pytest.mark.parametrize("unit", ["@", "a@b.", "1234 ", "(1) ", "+49 ", "1:", "DE89 ", "tel 1 ", "a1", "1."])
def test_what_a_pattern_begins_with_may_repeat_for_ever(unit: str) -> None:
    """A hundred thousand characters are read in linear time, or this would never end."""
    text = unit * (100_000 // len(unit))
    assert len(mask_personal(text, KINDS)) <= len(text) * 3


def test_digests_are_nobodys() -> None:
    """Hexadecimal digits by chance are no address, number or name."""
    rng = random.Random(7)
    for _ in range(300):
        text = f"see {rng.randbytes(20).hex()} and {rng.randbytes(4).hex()} for it"
        assert mask_personal(text, KINDS) == text
