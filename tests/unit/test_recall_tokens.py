"""Token counts need no network and, where they are estimates, err high."""

import hashlib
from pathlib import Path

import pytest
import tiktoken

from hearth.config.environment import bundled_token_tables
from hearth.memory.recall.tokens import TABLE, LocalTokenCounter, estimate

TEXTS = {
    "en": "Yesterday I went to the LGBTQ support group and it was so powerful, I felt at home. " * 5,
    "de": "Gestern war ich beim Elternabend; die Straßenbahnhaltestelle liegt gleich gegenüber. " * 5,
    "es": "Mi hermana vive en Sevilla y trabaja como médica en un hospital pequeño. " * 5,
    "ru": "Моя сестра живёт в Санкт-Петербурге и работает врачом. " * 5,
    "zh": "我昨天去了医院，医生说我对海鲜过敏，所以以后不能再吃虾了。" * 5,
    "ja": "昨日、病院に行きました。海老にアレルギーがあると言われました。" * 5,
    "ko": "어제 병원에 갔는데 해산물 알레르기가 있다고 했어요. " * 5,
    "th": "เมื่อวานฉันไปโรงพยาบาลและหมอบอกว่าฉันแพ้อาหารทะเล " * 5,
    "ar": "ذهبت أمس إلى المستشفى وقال الطبيب إن لدي حساسية من المأكولات البحرية. " * 5,
    "code": "def f(x: int) -> list[int]:\n    return [i ** 2 for i in range(x) if i % 2 == 0]\n" * 5,
    "emoji": "🙂👍🎉🚀 " * 20,
}


@pytest.fixture(name="exact", scope="module")
def _exact():
    tables = bundled_token_tables()
    if tables is None or not (tables / TABLE).is_file():
        pytest.skip("LiteLLM here bundles no o200k_base table")
    return LocalTokenCounter(tables)


def test_the_bundled_table_gives_exact_counts(exact):
    """Counts are o200k_base's."""
    assert exact.exact
    assert [exact.count("hello world"), exact.count(""), exact.count("hello world", "claude")] == [2, 0, 2]


@pytest.mark.parametrize("language", TEXTS)
def test_the_estimate_errs_high(exact, language):
    """In no language does it fall below the exact count."""
    assert estimate(TEXTS[language]) >= exact.count(TEXTS[language])


def test_without_a_table_counts_are_estimates(tmp_path: Path):
    """No folder named, or none with the table in it: nothing is loaded from the network."""
    counter = LocalTokenCounter()
    assert not counter.exact
    assert counter.count("abcdef") == 2
    assert not LocalTokenCounter(tmp_path).exact


def test_a_damaged_table_is_not_used_nor_touched(tmp_path: Path):
    """A table of other bytes than OpenAI's would count something else."""
    (tmp_path / TABLE).write_bytes(b"damaged")
    assert not LocalTokenCounter(tmp_path).exact
    assert (tmp_path / TABLE).read_bytes() == b"damaged"


@pytest.mark.parametrize("language", TEXTS)
def test_counts_are_those_of_tiktokens_own_encoding(exact, monkeypatch, language):
    """The encoding that is built here parts and merges texts as tiktoken's does."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(bundled_token_tables()))
    own = tiktoken.get_encoding("o200k_base")
    assert exact.count(TEXTS[language]) == len(own.encode_ordinary(TEXTS[language]))


def test_the_tables_name_is_the_one_that_tiktoken_uses():
    """The name of the cached file is made from the address in tiktoken's own registry."""
    import tiktoken_ext.openai_public as registry

    addresses = {word for word in registry.o200k_base.__code__.co_consts if isinstance(word, str)}
    assert TABLE in {hashlib.sha1(address.encode()).hexdigest() for address in addresses}


def test_lone_surrogates_are_counted(exact):
    """Broken text from a client raises nothing."""
    assert exact.count("a\ud83d") > 0
    assert estimate("a\ud83d") > 0
