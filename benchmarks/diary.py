"""A made-up diary in which only time tells one page from another, and questions about it in ten languages.

Eight things are done again and again over eighteen months, fifty times each; a fifth of the pages tell of the
day before. Used by `times.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import product
from zoneinfo import ZoneInfo

from hearth.memory.types import Page, Scope

TIMEZONE = "America/Los_Angeles"
ZONE = ZoneInfo(TIMEZONE)
NOW = datetime(2024, 6, 12, 21, 30, tzinfo=ZONE).astimezone(UTC)
"""A Wednesday evening there, and Thursday already in UTC."""
SCOPE = Scope(tenant="t", user="u")
BEGUN = date(2022, 12, 20)
DAYS = 540
TIMES = 50
TAILS = (
    *("with my sister", "in the rain", "before noon", "after work", "in a hurry"),
    *("half asleep", "on a bet", "without gloves", "for a neighbour", "to loud music"),
)
"""What makes ten pages of one in a diary of somebody who does everything every day."""


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A thing that is done again and again."""

    said: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    asked: dict[str, str]
    """The question by language; `{}` is where the time stands."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question and the ids of all the pages that answer it."""

    text: str
    kind: str
    right: frozenset[str]


TOPICS: dict[str, Topic] = {
    "cook": Topic(
        said="I cooked {} {} for dinner.",
        first=(
            "leek",
            "pumpkin",
            "lentil",
            "spinach",
            "mushroom",
            "tomato",
            "beetroot",
            "cabbage",
            "carrot",
            "pea",
        ),
        second=("soup", "curry", "pie", "stew", "gratin"),
        asked={
            "en": "What did I cook for dinner {}?",
            "de": "Was habe ich {} zum Abendessen gekocht?",
            "fr": "Qu'est-ce que j'ai cuisiné {} ?",
            "es": "¿Qué cociné {} para la cena?",
            "it": "Cosa ho cucinato {} per cena?",
            "pt": "O que cozinhei {} para o jantar?",
            "nl": "Wat heb ik {} gekookt?",
            "ru": "Что я готовил {} на ужин?",
            "zh": "我{}晚饭做了什么菜？",
            "ja": "{}夕食に何を料理しましたか？",
        },
    ),
    "film": Topic(
        said="I watched a film about a {} {}.",
        first=("lonely", "retired", "young", "clumsy", "famous"),
        second=(
            "pilot",
            "chess player",
            "baker",
            "spy",
            "pianist",
            "diver",
            "judge",
            "clown",
            "farmer",
            "thief",
        ),
        asked={
            "en": "Which film did I watch {}?",
            "de": "Welchen Film habe ich {} gesehen?",
            "fr": "Quel film ai-je vu {} ?",
            "es": "¿Qué película vi {}?",
            "it": "Quale film ho visto {}?",
            "pt": "Que filme vi {}?",
            "nl": "Welke film heb ik {} gezien?",
            "ru": "Какой фильм я смотрел {}?",
            "zh": "我{}看了什么电影？",
            "ja": "{}どんな映画を見ましたか？",
        },
    ),
    "run": Topic(
        said="I ran {} kilometres along the {}.",
        first=("four", "six", "nine", "eleven", "fourteen"),
        second=(
            "river",
            "canal",
            "beach",
            "railway",
            "lake",
            "harbour",
            "old wall",
            "vineyards",
            "airport",
            "moor",
        ),
        asked={
            "en": "How far did I run {}?",
            "de": "Wie weit bin ich {} gelaufen?",
            "fr": "Combien de kilomètres ai-je couru {} ?",
            "es": "¿Cuántos kilómetros corrí {}?",
            "it": "Quanti chilometri ho corso {}?",
            "pt": "Quantos quilómetros corri {}?",
            "nl": "Hoeveel kilometer heb ik {} gelopen?",
            "ru": "Сколько километров я пробежал {}?",
            "zh": "我{}跑了多少公里？",
            "ja": "{}何キロ走りましたか？",
        },
    ),
    "read": Topic(
        said="I finished a novel set in {} about {}.",
        first=("Lisbon", "Oslo", "Havana", "Kyoto", "Cairo"),
        second=(
            "twins",
            "a flood",
            "a lawsuit",
            "bees",
            "a feud",
            "a ferry",
            "clocks",
            "a heist",
            "exile",
            "a choir",
        ),
        asked={
            "en": "Which novel did I finish {}?",
            "de": "Welchen Roman habe ich {} ausgelesen?",
            "fr": "Quel roman ai-je terminé {} ?",
            "es": "¿Qué novela terminé {}?",
            "it": "Quale romanzo ho finito {}?",
            "pt": "Que romance terminei {}?",
            "nl": "Welke roman heb ik {} uitgelezen?",
            "ru": "Какой роман я дочитал {}?",
            "zh": "我{}读完了哪本小说？",
            "ja": "{}どの小説を読み終えましたか？",
        },
    ),
    "repair": Topic(
        said="I repaired the {} of the {}.",
        first=("hinge", "cable", "handle", "switch", "seal"),
        second=("fridge", "bicycle", "lamp", "oven", "gate", "radio", "toaster", "boiler", "drill", "shower"),
        asked={
            "en": "What did I repair {}?",
            "de": "Was habe ich {} repariert?",
            "fr": "Qu'est-ce que j'ai réparé {} ?",
            "es": "¿Qué reparé {}?",
            "it": "Cosa ho riparato {}?",
            "pt": "O que consertei {}?",
            "nl": "Wat heb ik {} gerepareerd?",
            "ru": "Что я чинил {}?",
            "zh": "我{}修理了什么？",
            "ja": "{}何を修理しましたか？",
        },
    ),
    "plant": Topic(
        said="I planted {} in the {} in the garden.",
        first=("roses", "leeks", "tulips", "thyme", "beans", "lilies", "sage", "kale", "dahlias", "garlic"),
        second=("front bed", "big pot", "back corner", "window box", "raised bed"),
        asked={
            "en": "What did I plant in the garden {}?",
            "de": "Was habe ich {} im Garten gepflanzt?",
            "fr": "Qu'est-ce que j'ai planté dans le jardin {} ?",
            "es": "¿Qué planté en el jardín {}?",
            "it": "Cosa ho piantato in giardino {}?",
            "pt": "O que plantei no jardim {}?",
            "nl": "Wat heb ik {} in de tuin geplant?",
            "ru": "Что я посадил в саду {}?",
            "zh": "我{}在花园里种了什么？",
            "ja": "{}庭に何を植えましたか？",
        },
    ),
    "coffee": Topic(
        said="I had coffee with {} at the {}.",
        first=("Ada", "Boris", "Chloe", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas"),
        second=("station", "library", "market", "pier", "museum"),
        asked={
            "en": "Who did I have coffee with {}?",
            "de": "Mit wem habe ich {} Kaffee getrunken?",
            "fr": "Avec qui ai-je pris un café {} ?",
            "es": "¿Con quién tomé café {}?",
            "it": "Con chi ho preso un caffè {}?",
            "pt": "Com quem tomei café {}?",
            "nl": "Met wie heb ik {} koffie gedronken?",
            "ru": "С кем я пил кофе {}?",
            "zh": "我{}和谁喝了咖啡？",
            "ja": "{}誰とコーヒーを飲みましたか？",
        },
    ),
    "paint": Topic(
        said="I painted a picture of {} in {}.",
        first=("a heron", "a tram", "two boats", "a bridge", "an orchard"),
        second=("blue", "ochre", "grey", "red", "green", "black", "violet", "white", "pink", "brown"),
        asked={
            "en": "What did I paint a picture of {}?",
            "de": "Wovon habe ich {} ein Bild gemalt?",
            "fr": "Quel tableau ai-je peint {} ?",
            "es": "¿Qué cuadro pinté {}?",
            "it": "Che quadro ho dipinto {}?",
            "pt": "Que quadro pintei {}?",
            "nl": "Welk schilderij heb ik {} geschilderd?",
            "ru": "Какую картину я нарисовал {}?",
            "zh": "我{}画了什么画？",
            "ja": "{}何の絵を描きましたか？",
        },
    ),
}

REPLIES = (
    "That sounds like a good day. {} {}, I will remember it.",
    "Lovely! Thank you for telling me about it: {}, {}.",
    "{} {}: noted. How did it feel afterwards?",
    "Good to hear. Shall I keep {} and {} in mind for you?",
)

SPANS: tuple[tuple[str, str, str, str, str], ...] = (
    ("relative", "en", "last week", "2024-06-03", "2024-06-10"),
    ("relative", "en", "last month", "2024-05-01", "2024-06-01"),
    ("relative", "en", "two months ago", "2024-04-05", "2024-04-22"),
    ("relative", "en", "three weeks ago", "2024-05-19", "2024-05-26"),
    ("relative", "en", "a year ago", "2023-06-01", "2023-06-25"),
    ("relative", "en", "last weekend", "2024-06-08", "2024-06-10"),
    ("relative", "en", "in the last ten days", "2024-06-03", "2024-06-13"),
    ("relative", "en", "recently", "2024-06-01", "2024-06-13"),
    ("relative", "en", "a few weeks ago", "2024-05-08", "2024-05-29"),
    ("relative", "en", "this month", "2024-06-01", "2024-06-13"),
    ("relative", "de", "letzte Woche", "2024-06-03", "2024-06-10"),
    ("relative", "de", "vor zwei Monaten", "2024-04-05", "2024-04-22"),
    ("relative", "de", "letzten Monat", "2024-05-01", "2024-06-01"),
    ("relative", "de", "neulich", "2024-06-01", "2024-06-13"),
    ("relative", "fr", "la semaine dernière", "2024-06-03", "2024-06-10"),
    ("relative", "fr", "il y a trois mois", "2024-03-05", "2024-03-22"),
    ("relative", "es", "la semana pasada", "2024-06-03", "2024-06-10"),
    ("relative", "es", "hace dos meses", "2024-04-05", "2024-04-22"),
    ("relative", "it", "il mese scorso", "2024-05-01", "2024-06-01"),
    ("relative", "it", "tre mesi fa", "2024-03-05", "2024-03-22"),
    ("relative", "pt", "no mês passado", "2024-05-01", "2024-06-01"),
    ("relative", "pt", "há três semanas", "2024-05-19", "2024-05-26"),
    ("relative", "nl", "vorige week", "2024-06-03", "2024-06-10"),
    ("relative", "nl", "twee maanden geleden", "2024-04-05", "2024-04-22"),
    ("relative", "ru", "на прошлой неделе", "2024-06-03", "2024-06-10"),
    ("relative", "ru", "два месяца назад", "2024-04-05", "2024-04-22"),
    ("relative", "zh", "上周", "2024-06-03", "2024-06-10"),
    ("relative", "zh", "两个月前", "2024-04-05", "2024-04-22"),
    ("relative", "ja", "先週", "2024-06-03", "2024-06-10"),
    ("relative", "ja", "先月", "2024-05-01", "2024-06-01"),
    ("month", "en", "in May", "2024-05-01", "2024-06-01"),
    ("month", "en", "in March 2023", "2023-03-01", "2023-04-01"),
    ("month", "en", "last November", "2023-11-01", "2023-12-01"),
    ("month", "en", "in August last year", "2023-08-01", "2023-09-01"),
    ("month", "de", "im März 2023", "2023-03-01", "2023-04-01"),
    ("month", "de", "im Oktober", "2023-10-01", "2023-11-01"),
    ("month", "fr", "en juillet 2023", "2023-07-01", "2023-08-01"),
    ("month", "fr", "en février", "2024-02-01", "2024-03-01"),
    ("month", "es", "en enero de 2024", "2024-01-01", "2024-02-01"),
    ("month", "es", "en septiembre", "2023-09-01", "2023-10-01"),
    ("month", "it", "a dicembre 2023", "2023-12-01", "2024-01-01"),
    ("month", "it", "in aprile", "2024-04-01", "2024-05-01"),
    ("month", "pt", "em abril de 2023", "2023-04-01", "2023-05-01"),
    ("month", "nl", "in oktober 2023", "2023-10-01", "2023-11-01"),
    ("month", "ru", "в мае 2023 года", "2023-05-01", "2023-06-01"),
    ("month", "ru", "в феврале", "2024-02-01", "2024-03-01"),
    ("month", "zh", "2023年7月", "2023-07-01", "2023-08-01"),
    ("month", "zh", "去年十月", "2023-10-01", "2023-11-01"),
    ("month", "ja", "2023年11月に", "2023-11-01", "2023-12-01"),
    ("month", "ja", "1月に", "2024-01-01", "2024-02-01"),
    ("range", "en", "between 5 and 25 May 2023", "2023-05-05", "2023-05-26"),
    ("range", "en", "from 10 February to 2 March 2024", "2024-02-10", "2024-03-03"),
    ("range", "en", "since 25 May", "2024-05-25", "2024-06-13"),
    ("range", "en", "before 10 January 2023", "2022-12-20", "2023-01-10"),
    ("range", "en", "the week before 9 June 2023", "2023-06-02", "2023-06-09"),
    ("range", "en", "in the two weeks after 1 September 2023", "2023-09-01", "2023-09-22"),
    ("range", "de", "zwischen dem 5. und 25. Mai 2023", "2023-05-05", "2023-05-26"),
    ("range", "de", "seit dem 25. Mai", "2024-05-25", "2024-06-13"),
    ("range", "de", "in den letzten zwei Wochen", "2024-05-29", "2024-06-13"),
    ("range", "fr", "entre le 5 et le 25 mai 2023", "2023-05-05", "2023-05-26"),
    ("range", "fr", "depuis le 25 mai", "2024-05-25", "2024-06-13"),
    ("range", "es", "entre el 5 y el 25 de mayo de 2023", "2023-05-05", "2023-05-26"),
    ("range", "es", "desde el 25 de mayo", "2024-05-25", "2024-06-13"),
    ("range", "it", "negli ultimi dieci giorni", "2024-06-03", "2024-06-13"),
    ("range", "pt", "nas últimas duas semanas", "2024-05-29", "2024-06-13"),
    ("range", "nl", "sinds 25 mei", "2024-05-25", "2024-06-13"),
    ("range", "ru", "с 25 мая", "2024-05-25", "2024-06-13"),
    ("range", "zh", "过去十天", "2024-06-03", "2024-06-13"),
    ("range", "ja", "5月25日から", "2024-05-25", "2024-06-13"),
)
"""Kind, language, words, and the days that they mean, the last one not among them."""

_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
}
_ON = {
    "en": "on {day} {month} {year}",
    "de": "am {day}. {month} {year}",
    "fr": "le {day} {month} {year}",
    "es": "el {day} de {month} de {year}",
    "it": "il {day} {month} {year}",
    "pt": "em {day} de {month} de {year}",
    "nl": "op {day} {month} {year}",
    "ru": "{day} {month} {year} года",
    "zh": "{year}年{number}月{day}日",
    "ja": "{year}年{number}月{day}日に",
}

ORDERED: tuple[tuple[str, str, str], ...] = (
    ("first", "cook", "When did I first tell you what I cooked for dinner?"),
    ("first", "film", "Which was the first film about someone that I watched? When was the first time?"),
    ("first", "run", "When did I first go for a run of some kilometres?"),
    ("first", "read", "Wann habe ich zum ersten Mal einen Roman ausgelesen?"),
    ("first", "repair", "¿Qué reparé por primera vez?"),
    ("first", "plant", "Quand ai-je planté quelque chose dans le jardin pour la première fois ?"),
    ("first", "coffee", "С кем я впервые пил кофе?"),
    ("first", "paint", "我第一次画了什么画？"),
    ("latest", "cook", "What was the last thing I cooked for dinner?"),
    ("latest", "film", "What is the most recent film I watched?"),
    ("latest", "run", "How far did I run the last time?"),
    ("latest", "read", "Welchen Roman habe ich zuletzt ausgelesen?"),
    ("latest", "repair", "¿Qué reparé la última vez?"),
    ("latest", "plant", "Qu'est-ce que j'ai planté la dernière fois dans le jardin ?"),
    ("latest", "coffee", "С кем я пил кофе в последний раз?"),
    ("latest", "paint", "最後に何の絵を描きましたか？"),
    ("lasting", "cook", "How long have I been cooking dinner?"),
    ("lasting", "film", "How long have I been watching films?"),
    ("lasting", "run", "Seit wann laufe ich Kilometer am Fluss?"),
    ("lasting", "read", "¿Desde cuándo leo novelas?"),
    ("lasting", "plant", "Depuis quand est-ce que je plante dans le jardin ?"),
    ("lasting", "paint", "How long have I been painting pictures?"),
)
"""Right are the topic's earliest page, its latest, or both."""


@dataclass(frozen=True, kw_only=True)
class _Entry:
    topic: str
    day: date
    page: Page


def diary(daily: bool = False) -> list[_Entry]:
    """All entries, earliest first; the same each time. `daily` has ten times as many in the same months."""
    chance = random.Random(7)
    tails = TAILS if daily else ("",)
    order = [name for name in TOPICS for _ in range(TIMES * len(tails))]
    chance.shuffle(order)
    details = {}
    for name, topic in TOPICS.items():
        details[name] = list(product(topic.first, topic.second, tails))
        chance.shuffle(details[name])
    return [_entry(i, name, details[name].pop(), len(order), chance) for i, name in enumerate(order)]


def _entry(i: int, name: str, detail: tuple[str, str, str], count: int, chance: random.Random) -> _Entry:
    told = BEGUN + timedelta(days=i * DAYS // count)
    late = chance.random() < 0.2
    said = " ".join((TOPICS[name].said.format(*detail), detail[2])).strip()
    at = datetime.combine(told, time(chance.choice((8, 13, 20, 22)), chance.randrange(60)), tzinfo=ZONE)
    page = Page(
        id=f"{name}-{i:04}",
        scope=SCOPE,
        generation=1,
        user_text=f"Yesterday {said}" if late else f"Today {said}",
        reply_text=REPLIES[i % len(REPLIES)].format(*detail),
        occurred_at=at.astimezone(UTC),
        timezone=TIMEZONE,
    )
    return _Entry(topic=name, day=told - timedelta(days=1) if late else told, page=page)


def questions(entries: list[_Entry]) -> list[Question]:
    """All questions that have an answer in the diary."""
    return [*_of_spans(entries), *_of_days(entries), *_of_order(entries)]


def _of_spans(entries: list[_Entry]) -> Iterator[Question]:
    """Each span asked of two topics that have one to three pages in it."""
    for place, (kind, language, words, first, end) in enumerate(SPANS):
        days = date.fromisoformat(first), date.fromisoformat(end)
        names = list(TOPICS)[place % len(TOPICS) :] + list(TOPICS)[: place % len(TOPICS)]
        found = {name: _within(entries, name, *days) for name in names}
        for name in [name for name in names if 1 <= len(found[name]) <= 3][:2]:
            yield Question(text=TOPICS[name].asked[language].format(words), kind=kind, right=found[name])


def _within(entries: list[_Entry], name: str, first: date, end: date) -> frozenset[str]:
    return frozenset(one.page.id for one in entries if one.topic == name and first <= one.day < end)


def _of_days(entries: list[_Entry]) -> Iterator[Question]:
    """Every tenth entry's own day, by its date, in each language in turn."""
    for place, entry in enumerate(entries[5 :: len(entries) // 40]):
        language = list(_ON)[place % len(_ON)]
        names = _MONTHS.get(language, "").split()
        words = _ON[language].format(
            day=entry.day.day,
            month=names[entry.day.month - 1] if names else "",
            number=entry.day.month,
            year=entry.day.year,
        )
        right = _within(entries, entry.topic, entry.day, entry.day + timedelta(days=1))
        yield Question(text=TOPICS[entry.topic].asked[language].format(words), kind="day", right=right)


def _of_order(entries: list[_Entry]) -> Iterator[Question]:
    for kind, name, text in ORDERED:
        ids = [one.page.id for one in sorted(entries, key=lambda one: one.day) if one.topic == name]
        right = {"first": ids[:1], "latest": ids[-1:], "lasting": [ids[0], ids[-1]]}[kind]
        yield Question(text=text, kind=kind, right=frozenset(right))
