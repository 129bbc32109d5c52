"""What a question's words tell, in a dozen languages: small talk, first person, a look back, the past.

Short lists of function words, no grammar. A language that is missing here costs a signal, never an error.
"""

from __future__ import annotations

import re
from typing import Final


def _words(*lines: str) -> str:
    """One alternation of the lines' entries, which are parted by `|`; a space stands for any white space."""
    return "|".join(lines).replace(" ", r"\s+")


_SMALL_TALK: Final = _words(
    "hi|hello|hey|yo|good morning|good evening|good afternoon|good night|thanks?|thank you|thx|ty",
    "so much|very much|a lot|there|again|ok|okay|k|yes|no|yep|yeah|nope|sure|please|great|nice|cool|perfect",
    "continue|go on|go ahead|next|stop|done|bye|goodbye|see you|that helped|how are you|how's it going",
    "what's up|test|lol|haha",
    "hallo|moin|servus|guten tag|guten morgen|guten abend|danke|dankeschön|vielen dank|bitte|ja|nein",
    "gut|super|weiter|tschüss|wie geht'?s|wie geht es dir",
    "hola|gracias|muchas|buenos días|buenas tardes|sí|vale|adiós|cómo estás|qué tal|por tu ayuda",
    "bonjour|salut|bonsoir|merci|beaucoup|oui|non|ça va|comment|au revoir",
    "ciao|grazie|mille|buongiorno|sì|come stai|arrivederci|olá|oi|obrigad[oa]|bom dia|sim|não|tudo bem",
    "привет|здравствуйте|спасибо|да|нет|как дела|пока",
    "你好|您好|谢谢|謝謝|好的|是的|不是|再见|嗨|こんにちは|おはよう|ありがとう(?:ございます)?|はい|いいえ",
    "안녕(?:하세요)?|감사합니다|고마워요?|네|아니요|مرحبا|شكرا",
)
_PERSONAL: Final = _words(
    "i|me|my|mine|myself|we|us|our|ours|ich|mich|mir|mein(?:e[nmrs]?)?|wir|uns|unser(?:e[nmrs]?)?",
    "yo|mi|mis|mí|tengo|vivo|nosotros|nuestr[oa]s?|je|j|mon|ma|mes|moi|nous|notre|nos|io|mio|mia|miei|noi|nostr[oa]",
    "eu|meu|minha|meus|nós|я|меня|мне|мой|моя|моё|мои|мы|наш\\w*",
)
_PERSONAL_UNSPACED: Final = _words("我|俺|私|僕|ぼく|나는|내가|제가|나의|저는")
_OPENS_BACK: Final = _words(
    "and|but|so|also|then|what about|how about|why|why not|really|which one|the other|same|again",
    "und|aber|also|dann|was ist mit|wie wäre|warum|wieso|welche[rs]?|nochmal",
    "y|pero|entonces|por qué|qué tal|et|mais|alors|pourquoi|e se|ma|allora|perché|mas|então|por que",
    "а|и|но|почему|тогда",
)
_POINTS_BACK: Final = _words(
    "it|that|this|those|these|they|them|he|she|him|her|there|one|ones|above|previous",
    "es|das|dies(?:e[rs]?)?|jene[rs]?|er|sie|ihn|ihm|ihr|davon|dazu|damit|dort|darüber|dafür",
    "eso|esto|ello|él|ella|ellos|allí|ça|cela|celui|celle|il|elle|ils|y|quello|questo|lui|lei|lì",
    "isso|isto|ele|ela|это|он|она|они|там",
)
_OPENS_BACK_UNSPACED: Final = _words("那|它|他|她|这|這|それ|これ|あれ|彼|그|이거")
_PAST: Final = _words(
    "used to|previous(?:ly)?|former(?:ly)?|before|earlier|back then|back when|originally|initially|at first",
    "in the past|history|historically|ago|last year|no longer|any ?more",
    "früher(?:e[rsnm]?)?|vorher(?:ige[rsnm]?)?|ehemals|ehemalige[rsnm]?|damals|zuvor|ursprünglich",
    "antes|anterior(?:es|mente)?|antigu[oa]s?|originalmente|solía|avant|auparavant|précédemment|ancien(?:ne)?s?",
    "autrefois|prima|precedente(?:mente)?|antig[oa]s?|раньше|прежде|прежн\\w+|бывш\\w+",
)
_PAST_UNSPACED: Final = _words("以前|之前|曾经|曾經|过去|過去|かつて|前に|前の|예전|이전|전에")

_IS_SMALL_TALK: Final = re.compile(rf"\W*(?:(?:{_SMALL_TALK})(?:\W+|$))+", re.IGNORECASE)
_IS_PERSONAL: Final = re.compile(rf"\b(?:{_PERSONAL})\b|{_PERSONAL_UNSPACED}", re.IGNORECASE)
_REFERS_BACK: Final = re.compile(
    rf"^\W*(?:{_OPENS_BACK})\b|\b(?:{_POINTS_BACK})\b|^(?:{_OPENS_BACK_UNSPACED})", re.IGNORECASE
)
_ABOUT_PAST: Final = re.compile(rf"\b(?:{_PAST})\b|{_PAST_UNSPACED}", re.IGNORECASE)


def is_small_talk(text: str) -> bool:
    """True for greetings, thanks and bare assent alone, and for a text without letters and digits."""
    return _IS_SMALL_TALK.fullmatch(text.strip()) is not None or not any(map(str.isalnum, text))


def is_personal(text: str) -> bool:
    """True if the text speaks in the first person."""
    return _IS_PERSONAL.search(text) is not None


def refers_back(text: str) -> bool:
    """True if the text points at something said before."""
    return _REFERS_BACK.search(text) is not None


def asks_about_past(text: str) -> bool:
    """True if the text asks for what no longer holds."""
    return _ABOUT_PAST.search(text) is not None
