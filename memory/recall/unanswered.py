"""Tells a page that says nothing: the user only asked, and the reply did not answer.

Such a page is as near to the next question as a page can be, and helps with none. No model is asked: the text
is a question and nothing else, and what the reply adds to the question's own words is what people and models
say who do not know. A language that is missing here lets such a page through.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from hearth.memory.recall.cues import asks, is_small_talk, words_of
from hearth.memory.recall.function_words import FUNCTION_WORDS
from hearth.memory.types import Page, Record

_QUESTION_CHARACTERS: Final = 160
_REPLY_CHARACTERS: Final = 600
"""A longer question says something of itself, a longer reply is an answer, if only to another question."""
_SHARE: Final = 5
"""One new word in so many may be anything: `your calendar`."""
_SMALL_TALK_CHARACTERS: Final = 40
_STEM: Final = 4
"""Characters by which words are held to be the same: `lives` and `live`, `wohne` and `wohnst`."""

_NOTHING: Final = words_of(
    "ne|niet|sorry|apolog\\w+|unfortunately|afraid|know\\w*|unsure|sure|certain|aware|any|anything|information",
    "info|details?|data|records?|access\\w*|personal\\w*|private|memory|remember\\w*|recall\\w*|told",
    "tell\\w*|said|say|says|shar\\w+|mention\\w*|provid\\w+|given|specif\\w+|context|conversations?",
    "chats?|earlier|previous\\w*|before|yet|so far|unable|able|cannot|don|doesn|didn|haven|hasn|isn",
    "couldn|help\\w*|happy|glad|assist\\w*|ai|language model|let|more|need|ask\\w*|question|answer|like",
    "want|feel free|something|unless|because|since|only|see|find|look\\w*|determine|hmm+|oh|ok|okay|noted",
    "understood|got it|thanks|thank|welcome|still|into|or|me|weiß|weiss|weißt|wissen|leider|leid|tut",
    "entschuldig\\w*|information\\w*|angaben|daten|zugriff|persönlich\\w*|gesagt|sag\\w*|erzähl\\w*",
    "verrat\\w*|mitgeteilt|genannt|erwähnt|bekannt|kenne\\w*|erinner\\w*|merke\\w*|bisher|noch|magst",
    "möchtest|kannst|könntest|gerne?|helfen|darüber|davon|dazu|gespräch\\w*|ki|sprachmodell|nichts|mehr",
    "wenn|weil|dass|hast|mitteil\\w*|siento|lamento|disculp\\w*|perdón|sé|saber|sabe\\w*|conozco",
    "información|datos|acceso|dicho|dijiste|decir\\w*|dime|cuént\\w*|contad\\w*|compart\\w+|mencion\\w+",
    "todavía|aún|recuerdo|ayud\\w+|puedo|puedes|podrías|más|esa|eso|nada|lamentablemente",
    "desafortunadamente|tengo|has|désolée?|sais|savoir|connais\\w*|données|accès|personnel\\w*|dite?s?",
    "dire|partag\\w+|encore|malheureusement|excus\\w+|souvien\\w+|aider|pouvez|peux|pourriez|peut|cette",
    "avez|rien|plus|précis\\w+|quelque|vos|votre|dispiace|so|sapere|conosco|informazion\\w+|dati|accesso",
    "detto|dirmi|condivi\\w+|ancora|purtroppo|ricord\\w+|aiut\\w+|posso|puoi|potresti|mi|hai|sul|sulla",
    "tuo|tua|desculp\\w+|sinto|sei|conheço|informaç\\w+|dados|disse|dizer|contou|contar|compartilh\\w+",
    "ainda|infelizmente|lembr\\w+|ajud\\w+|pode|isso|tenho|seu|sua|извин\\w+|сожалению|прости\\w*|знаю",
    "знать|информац\\w+|данн\\w+|доступ\\w*|личн\\w+|сказал\\w*|говори\\w*|рассказ\\w+|упомина\\w+",
    "подел\\w+|ещ[её]|помню|помочь|могу|можете|вас|вам|вы|этом|об|пока|у|нет|weet|helaas|spijt\\w*",
    "informatie|gegevens|toegang|verteld|przykro|niestety|wiem|informacji|dostępu",
)
_NOTHING_UNSPACED: Final = words_of(
    "抱歉|对不起|對不起|不好意思|很遗憾|不知道|不清楚|不了解|无法|無法|不能|没有|沒有|还没|還沒|告诉|告訴",
    "提供|分享|提到|说过|信息|資訊|记录|個人|个人|访问|目前|之前|关于|知道|如果|任何|帮助|确定|您|你|请",
    "吗|可以|还|過|过|申し訳|ありません|ございません|すみません|ごめんなさい|わかりません|分かりません",
    "知りません|存じません|情報|教えて|いただけますか|ください|持っていません|聞いていません",
    "覚えていません|まだ|その|んが|あなた|ついて|죄송\\w*|미안\\w*|모르\\w*|모릅\\w*|알 수 없\\w*",
    "정보\\w*|말씀\\w*|알려\\w*|아직|없습니다|없어요|주세요|않\\w*|하지\\w*",
)
_YES_OR_NO: Final = words_of(
    "yes|no|yep|nope|ja|nein|sí|oui|non|sim|não|да|нет|是的|不是|不|はい|いいえ|네|아니요|예",
)

_NOT: Final = words_of(
    "not|\\w+n.t|cannot|unable|unsure|unfortunately|sorry|no|nicht|kein\\w*|leider|leid|lo siento|lamento",
    "pas|désolée?|non|purtroppo|não|infelizmente|не|нет|niet|geen|helaas|nie",
)
_NOT_UNSPACED: Final = words_of(
    "不|没|沒|无|無|抱歉|ません|없|모르|죄송",
)

_CLAUSE: Final = re.compile(r"([^.!?;:,\n。！？；，、…؟]+)([.!?;:,\n。！？；，、…؟]*)")
_OPENS_YES_OR_NO: Final = re.compile(rf"^\W*(?:{_YES_OR_NO})\s*(?:[,.!，。！、]|$)", re.IGNORECASE)
_IS_NOTHING: Final = re.compile(rf"\b(?:{_NOTHING})\b|{_NOTHING_UNSPACED}", re.IGNORECASE)
_DENIES: Final = re.compile(rf"\b(?:{_NOT})\b|{_NOT_UNSPACED}", re.IGNORECASE)
_DIGIT: Final = re.compile(r"\d")
_TOKEN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_FUNCTION: Final = frozenset(FUNCTION_WORDS.split())


def says_nothing(record: Record) -> bool:
    """True for a page that holds a question and no answer; never for a memory."""
    return isinstance(record, Page) and _says_nothing(record.user_text, record.reply_text)


def only_asks(text: str) -> bool:
    """True if every clause of `text` is a question, greetings and thanks apart.

    Without a question mark only what the text begins with is seen to be a question.
    """
    return asks(text) and all(
        asks(f"{words}{end}")
        or words.isspace()
        or (len(words) <= _SMALL_TALK_CHARACTERS and is_small_talk(words))
        for words, end in map(re.Match.groups, _CLAUSE.finditer(text))
    )


@lru_cache(maxsize=4096)
def _says_nothing(asked: str, reply: str) -> bool:
    if len(asked) > _QUESTION_CHARACTERS or len(reply) > _REPLY_CHARACTERS:
        return False
    # A number in a question is nearly always something that the user told: a date, a price, an age.
    return only_asks(asked) and not _DIGIT.search(asked) and not _answers(asked, reply)


def _answers(asked: str, reply: str) -> bool:
    """True if the reply adds words to the question that are not those of not knowing, or says yes or no."""
    unknown, replaced = _IS_NOTHING.subn(" ", reply)
    if not replaced and _OPENS_YES_OR_NO.match(reply):
        return True
    new = _tokens(unknown) - _tokens(asked)
    return len(new) * _SHARE > len(_tokens(reply)) or (bool(new) and not _DENIES.search(reply))


def _tokens(text: str) -> frozenset[str]:
    """The beginnings of content words; of scripts without spaces, characters."""
    return frozenset(word[:_STEM] for word in _TOKEN.findall(text.casefold()) if word not in _FUNCTION)
