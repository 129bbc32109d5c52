"""What marks a request as the repetition of an earlier one."""

from datetime import UTC, datetime, timedelta

import pytest

from hearth.gateway.retries import MOST_KEYS, REPEATED_WITHIN, Retries

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEY = (("Idempotency-Key", "k-1"),)


@pytest.mark.parametrize(
    ("count", "marked"), [("0", False), ("1", True), ("12", True), ("x", False), ("", False)]
)
def test_a_retry_count_above_zero_marks_a_retry(count: str, marked: bool) -> None:
    """OpenAI's and Anthropic's SDKs count their attempts, the first as 0."""
    assert Retries().marked("acme/alice", [("X-Stainless-Retry-Count", count)], NOON) is marked


def test_a_repeated_idempotency_key_marks_a_retry() -> None:
    """The first use of a key marks nothing, the second within ten minutes does, whatever the name's case."""
    retries = Retries()
    assert not retries.marked("acme/alice", KEY, NOON)
    assert retries.marked("acme/alice", [("idempotency-key", "k-1")], NOON + REPEATED_WITHIN)
    assert not retries.marked("acme/alice", KEY, NOON + 2 * REPEATED_WITHIN + timedelta(seconds=1))


def test_a_key_counts_for_its_owner_alone() -> None:
    """Another user's request with the same key is no retry, and an empty key is none."""
    retries = Retries()
    assert not retries.marked("acme/alice", KEY, NOON)
    assert not retries.marked("acme/bob", KEY, NOON)
    assert not retries.marked("acme/bob", [("idempotency-key", "")], NOON)
    assert not retries.marked("acme/bob", [("idempotency-key", "")], NOON)


def test_the_oldest_keys_are_forgotten_first() -> None:
    """Memory stays bounded however many keys come."""
    retries = Retries()
    for number in range(MOST_KEYS + 1):
        retries.marked("acme/alice", [("idempotency-key", str(number))], NOON)
    assert retries.marked("acme/alice", [("idempotency-key", "1")], NOON)
    assert not retries.marked("acme/alice", [("idempotency-key", "0")], NOON)
