"""The names of common things in many languages: folded, each of one thing alone."""

from collections import Counter

import pytest

from hearth.memory.extract.attributes import folded_value
from hearth.memory.extract.books import read_things
from tests.said import told

THINGS = {own: others for group in read_things().values() for own, others in group.items()}
EVERY = [name for own, others in THINGS.items() for name in (own, *others)]


def test_each_thing_stands_in_one_group():
    """Else one of its entries would be lost."""
    assert len(THINGS) == sum(map(len, read_things().values()))


def test_each_name_is_of_one_thing():
    """Neither twice in one entry nor in two."""
    assert [name for name, times in Counter(EVERY).items() if times > 1] == []


def test_names_stand_as_they_are_compared():
    """Folded, without articles: otherwise no value would find them."""
    assert [name for name in EVERY if folded_value(name) != name] == []


def test_each_has_names_in_many_languages_and_scripts():
    """A Cyrillic, an Arabic and a Chinese or Japanese one at least, for nearly all."""
    lacking = [
        own
        for own, others in THINGS.items()
        if not all(
            any(first <= letter <= last for name in others for letter in name)
            for first, last in (("а", "я"), ("ء", "ي"), ("一", "鿿"), ("가", "힣"))
        )
        and not any("ァ" <= letter <= "ヺ" for name in others for letter in name)
    ]
    assert len(lacking) <= len(THINGS) // 20, lacking


OF_TRADES = {
    "en": "I'm a {}.",
    "de": "Ich bin {}.",
    "fr": "Je suis {}.",
    "es": "Soy {}.",
    "it": "Sono {}.",
    "pt": "Eu sou {}.",
    "nl": "Ik ben {}.",
    "pl": "Jestem {}.",
    "ru": "Я работаю {}.",
    "ja": "私は{}です。",
    "ko": "저는 {}입니다.",
    "zh": "我是{}。",
    "ar": "أنا {}.",
}
"""How one says it; of the names in fourteen languages some are that language's own."""


@pytest.mark.parametrize("language", OF_TRADES)
def test_a_trade_is_read_in_every_language(language):
    """Each of a sample by one of its names at least, whether the language's file has it or not."""
    trades = list(read_things()["occupations"].items())[::8]
    unread = [
        own for own, others in trades if not _is_read(OF_TRADES[language], "occupation", [own, *others])
    ]
    assert unread == []


HAVING = {
    "en": "I have {}.",
    "de": "Ich leide an {}.",
    "fr": "Je souffre de {}.",
    "es": "Padezco {}.",
    "it": "Soffro di {}.",
    "pt": "Sofro de {}.",
    "nl": "Ik lijd aan {}.",
    "pl": "Choruję na {}.",
    "ru": "У меня {}.",
    "ja": "私は{}があります。",
    "ko": "저는 {}을 앓고 있어요.",
    "zh": "我患有{}。",
    "ar": "أعاني من {}.",
}


@pytest.mark.parametrize("language", HAVING)
def test_what_somebody_has_is_read_in_every_language(language):
    """A lasting condition; a headache that passes is no fact."""
    conditions = list(read_things()["conditions"].items())[::7]
    unread = [
        own for own, others in conditions if not _is_read(HAVING[language], "condition", [own, *others])
    ]
    assert unread == []


@pytest.mark.parametrize(
    "text",
    ["Ich habe Kopfschmerzen.", "J'ai un rhume.", "我有头痛。", "У меня болит голова.", "Tengo hambre."],
)
def test_what_passes_is_no_condition(text):
    """Not even where it has names in many languages."""
    assert told(text) == set()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Keman çalıyorum.", "Keman"),
        ("ウクレレを弾いています。", "ウクレレ"),
        ("저는 배드민턴을 쳐요.", "배드민턴"),
        ("我平时打羽毛球。", "羽毛球"),
        ("أعزف على الكمان", "الكمان"),
    ],
)
def test_what_somebody_plays_is_read(text, value):
    """By the language's verbs, whatever is played."""
    assert told(text) == {("plays", value, "asserts")}


@pytest.mark.parametrize(
    "text",
    ["ハムスターを飼っています。", "저는 고슴도치를 키워요.", "我养了一只仓鼠。", "У меня есть хомяк."],
)
def test_what_somebody_keeps_is_read(text):
    """An animal that is kept is a pet."""
    assert [(attribute, act) for attribute, _, act in told(text)] == [("pet", "asserts")]


def _is_read(sentence, attribute, names):
    return any(
        (attribute, "asserts") in {(one[0], one[2]) for one in told(sentence.format(form))}
        for name in names
        for form in (name, name.title())
    )
