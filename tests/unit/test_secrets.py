"""Masking of secrets before anything is stored."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.memory.extract.secrets import mask_secrets

quick = settings(max_examples=50)

_HEX = "3f9a1c7be2d84056"
_ALNUM = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2dE3f"

SECRETS = [
    "My key is sk-test-FAKE0123456789abcdef and I use Postgres",
    f"OPENAI_API_KEY=sk-proj-{_ALNUM}",
    f"use sk-ant-api03-{_ALNUM}-{_ALNUM}AA please",
    f"openrouter: sk-or-v1-{_HEX * 4}",
    f"stripe sk_live_{_ALNUM[:24]}",
    f"rk_test_{_ALNUM[:24]} is restricted",
    f"whsec_{_ALNUM[:32]}",
    "aws AKIAQ3EGRT7YXV2LMN4P there",
    "temporary ASIAQ3EGRT7YXV2LMN4P",
    "aws_secret_access_key = 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",
    f"ghp_{_ALNUM[:36]}",
    f"token gho_{_ALNUM[:36]}.",
    f"github_pat_{_ALNUM[:22]}_{_ALNUM}{_ALNUM[:19]}",
    f"glpat-{_ALNUM[:20]}",
    f"xoxb-123456789012-123456789012-{_ALNUM[:24]}",
    f"xapp-1-A0123456789-123456789012-{_HEX * 2}",
    f"AIzaSy{_ALNUM[:33]}",
    f"npm_{_ALNUM[:36]}",
    f"pypi-AgEIcHlwaS5vcmc{_ALNUM}",
    f"hf_{_ALNUM[:34]}",
    f"SG.{_ALNUM[:22]}.{_ALNUM}123",
    f"gsk_{_ALNUM}{_ALNUM[:12]}",
    f"xai-{_ALNUM}{_ALNUM}",
    f"dop_v1_{_HEX * 4}",
    f"shpat_{_HEX * 2}",
    f"lin_api_{_ALNUM}",
    f"r8_{_ALNUM[:37]}",
    f"telegram 123456789:AAF{_ALNUM[:32]}",
    "Authorization: Bearer abcdef0123456789abcdef0123456789",
    "curl -H 'authorization: bearer 9f86d081884c7d659a2feaa0c55ad015'",
    "Authorization: Basic dXNlcjpwYXNzd29yZDEyMw==",
    "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAfakefakefake0123456789\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC and it is cut here",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg, cut before -----BEGIN of something else",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUF\n-----END CERTIFICATE-----",
    "postgres://app:s3cr3tpw@db.internal:5432/app",
    "mongodb+srv://root:hunter2hunter@cluster0.example.net/test",
    "redis://:p4ssw0rd@cache:6379/0",
    "AccountName=x;AccountKey=Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4MTIzNA==;",
    "password=hunter2",
    "PASSWORD: Tr0ub4dor&3",
    '{"password": "correct horse battery staple"}',
    "DB_PASSWORD='let me in 1'",
    "my password is hunter2!",
    "The passphrase is Zx9$kk2",
    "Mein Passwort ist Sommer2024!",
    "client_secret: 8Q~dX1fakeFAKEfake.0123456789abcdefgh",
    "api_key = 0123456789abcdef0123456789abcdef",
    "https://api.example.com/v1?api_key=9f86d081884c7d65",
    "X-Api-Key: 9f86d081884c7d659a2feaa0",
    "the API key is 9f86d081884c7d659a2feaa0",
    "my pin is 4711",
    "card 4111 1111 1111 1111 exp 12/30",
    "5555-5555-5555-4444",
    "amex 378282246310005",
    "https://hooks.slack.com/services/T0FAKE000/B0FAKE000/abcdefFAKE0123456789abcd",
    "HTTPS://HOOKS.SLACK.COM/services/T0FAKE000/B0FAKE000/abcdefFAKE0123456789abcd",
    "https://discord.com/api/webhooks/012345678901234567/abcdefFAKE0123456789abcd",
    "refresh_token=1//0gFAKEfakeFAKEfake0123456789",
    "db-password: Tr0ub4dor&3",
]

PROSE = [
    "The reset-password page is slow",
    "I forgot my password and had to reset it.",
    "The password is wrong.",
    "The password is required, the name is optional",
    "What does password: required mean?",
    "Which token is used for padding?",
    "The key is understanding what users want.",
    "The key is cross-functional-communication in 2024-style teams",
    "max_tokens: 1024",
    "tokens=4096, temperature=0.7",
    "He was the bearer of bad news about authentication.",
    "Bearer authentication is described in RFC 6750.",
    "Use a Bearer token in the Authorization header",
    "see task-force-sk-learn-2024 for it",
    "sk-learn-based-approach-2024-version is the branch",
    "a risk-assessment-framework-2023-update",
    "my order number is 1234567890123456",
    "call me at +49 170 1234567",
    "the id is 550e8400-e29b-41d4-a716-446655440000",
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "https://example.com/a/b?c=d&page=2",
    "https://user@example.com/path",
    "git@github.com:owner/repo.git",
    "mail me at alice@example.com",
    "postgres://localhost:5432/app",
    "http://localhost:8080/@user",
    "password = getpass.getpass()",
    "token = os.environ['TOKEN']",
    "api_key=settings.api_key",
    "password: string;",
    "secret: str | None = None",
    "def reset_password(user): pass",
    "The secret of good soup is time.",
    "Secretary: Anna Schmidt",
    "keyword arguments: a=1, b=2",
    "The PIN is 4-digit by default",
    "0000 0000 0000 0000",
    "1234 5678 9012 3456",
    "2024-05-07 12:30:45 +0200",
    "hf_transfer makes downloads faster",
    "npm_config_cache is a variable",
    "-----BEGIN of the story",
    "eyJ is how JSON starts in base64",
    "用户的密码页面很慢",
    "I was born on 1990-01-01 in Oslo",
    "isbn 978-3-16-148410-0",
    "services/accounts/reports/2024/november/overview of hooks.slack.com",
]


def test_precision_and_recall_on_the_sample() -> None:
    """Every secret of the sample is masked and no prose is touched."""
    missed = [text for text in SECRETS if "[secret:" not in mask_secrets(text)]
    touched = [text for text in PROSE if mask_secrets(text) != text]
    hits = len(SECRETS) - len(missed)
    recall, precision = hits / len(SECRETS), hits / max(hits + len(touched), 1)
    assert not missed, f"precision {precision:.3f}, recall {recall:.3f}; missed {missed}"
    assert not touched, f"precision {precision:.3f}, recall {recall:.3f}; touched {touched}"


def test_case_50_only_the_secret_goes() -> None:
    """The key goes and the words around it stay; a page about passwords is not altered."""
    text = "My key is sk-test-FAKE0123456789abcdef and I use Postgres"
    assert mask_secrets(text) == "My key is [secret:api-key] and I use Postgres"
    assert mask_secrets("The reset-password page is slow") == "The reset-password page is slow"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("redis://:p4ssw0rd@cache:6379/0", "redis://:[secret:connection-string]@cache:6379/0"),
        ("Authorization: Bearer abcdef0123456789ab", "Authorization: Bearer [secret:bearer-token]"),
        ("my pin is 4711.", "my pin is [secret:pin]."),
        ("my password is hunter2!", "my password is [secret:password]!"),
        ("card 4111 1111 1111 1111.", "card [secret:card-number]."),
        ('{"password": "a b c", "x": 1}', '{"password": [secret:password], "x": 1}'),
    ],
)
def test_the_rest_of_the_line_stays(text: str, masked: str) -> None:
    """A marker stands exactly where the secret stood and names its kind."""
    assert mask_secrets(text) == masked


@pytest.mark.parametrize("text", SECRETS)
def test_masking_twice_is_masking_once(text: str) -> None:
    """A marker is no secret."""
    assert mask_secrets(mask_secrets(text)) == mask_secrets(text)


def test_a_secret_is_found_behind_letters_that_change_their_length() -> None:
    """The one letter whose lower case is two characters moves no place in the text."""
    longer = [char for char in map(chr, range(0x110000)) if len(char.lower()) != 1]
    assert longer == ["\u0130"]
    assert mask_secrets("\u0130" * 40 + " Bearer abcdef0123456789ab.") == (
        "\u0130" * 40 + " Bearer [secret:bearer-token]."
    )


@quick
@given(st.text(max_size=400))
def test_any_text_is_taken(text: str) -> None:
    """Whatever the text, masking ends and is idempotent."""
    assert mask_secrets(mask_secrets(text)) == mask_secrets(text)


@pytest.mark.parametrize(
    "unit",
    [
        "a_",
        "-----BEGIN A-----\n",
        "sk-",
        "eyJ",
        "://a:",
        "password=",
        "4111 ",
        "Bearer ",
        "key is ",
        "password: '",
    ],
)
def test_what_a_pattern_begins_with_may_repeat_for_ever(unit: str) -> None:
    """Half a megabyte of a pattern's beginning is read in linear time, or this would never end."""
    text = unit * (524_288 // len(unit))
    assert len(mask_secrets(text)) <= len(text) * 3


def test_random_hex_in_prose_is_no_secret() -> None:
    """Checksums and ids without a name that says so are left alone."""
    rng = random.Random(7)
    for _ in range(50):
        text = "see " + "".join(rng.choice("0123456789abcdef") for _ in range(40)) + " for it"
        assert mask_secrets(text) == text
