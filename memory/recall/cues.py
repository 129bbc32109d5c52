"""What a text's words tell, in a dozen languages: small talk, a question, oneself, a look back, the past.

Short lists of function words, no grammar. A language that is missing here costs a signal, never an error.
"""

from __future__ import annotations

import re
from typing import Final


def words_of(*lines: str) -> str:
    """One alternation of the lines' entries, which are parted by `|`; a space stands for any white space."""
    return "|".join(lines).replace(" ", r"\s+")


_SMALL_TALK: Final = words_of(
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
_ASKS: Final = words_of(
    "(?:what|who|whose|when|where|which|why|how)"
    "(?:'?s| is| are| am| was| were| do| does| did| should| can| have)",
    "(?:was|wer|wo|wann|wie|welche[rs]?) (?:ist|sind|bin|hei(?:ß|ss)t|hei(?:ß|ss)e|habe|hat|war|wohne|soll)",
    "tell me|remind me|sag mir|dime|dis-moi|dimmi|qué|quién|cuál|cuándo|dónde|adónde|cómo|cuánt[oa]s?",
)
_ASKS_UNSPACED: Final = words_of(
    "什么|什麼|哪|谁|誰|吗|嗎|多少|几|何|どこ|いつ|어디|무엇|뭐|언제|누구|อะไร|ไหน|ใคร|เมื่อไ|เท่าไ|ไหม|กี่",
    "क्या|कौन|कब|कहाँ|कितन|कैसे",
)
_SELF: Final = words_of(
    "(?:do|did|am|are|was|have|had|should|shall|can|could|will|would|must|may|might) (?:i|we)|my|mine|our",
    "ours|myself|(?:about|know|suits?|with|than|like|for) (?:me|us)|ich|mein(?:e[nmrs]?)?|wir",
    "unser(?:e[nmrs]?)?|(?:über|zu|für|mit|bei|könnte|gefällt|passt) (?:mich|mir|uns)|yo|mi|mis|mí",
    "nuestr[oa]s?|puedo|podría|podemos|debo|debería|deberíamos|soy|estoy|tengo|tenemos|vivo|trabajo|voy",
    "estudio|estudié|nací|hago|prefiero|me gusta|je|j|mon|ma|mes|moi|nous|notre|nos|io|mio|mia|mie|miei",
    "noi|nostr[oaie]|posso|potrei|devo|dovrei|sono|abito|lavoro|faccio|eu|meu|minha|meus|minhas|nosso",
    "nossa|devo|deveria|sou|estou|tenho|moro|trabalho|faço|я|мой|моя|моё|мои|моего|моей|мне|меня|мы",
    "наш\\w*|ik|mijn|mij|wij|ons|onze|benim|bana|beni|bizim|mój|moj[aeąe]|moje(?:go|mu|j)|jestem",
    "mieszkam|pracuję|nasz\\w*|أنا|لي|عندي|لدي|لدينا|عندنا|نحن|[^\\W\\d_]{2,}(?:تي|نا)",
    "(?:did|does|has|have|had|who) (?!you)(?:[^\\W\\d_]+ ){1,4}(?:me|us)",
    # verbs that say by their ending who acts, where a question has nobody else to act
    "(?:a?dónde|cuándo) (?:me )?(?!hizo|dijo|vino|pudo|puso|quiso|supo|hubo)"
    "[^\\W\\d_]+(?<!uv)(?<!aj)(?<!uj)o",
    "(?:aonde|onde|quando|dove) (?:me |mi )?[^\\W\\d_]+(?<!n)o|(?:где|куда|когда|откуда) [^\\W\\d_]+[еёи]м",
    "(?:gdzie|dokąd|skąd|kiedy) [^\\W\\d_]+(?:[ae]m|ę|my)",
    "(?:nerede|nereye|nereden|ne zaman|ne|neyi|kime|kiminle) (?:[^\\W\\d_]+ ){0,3}"
    "[^\\W\\d_]{2,}(?:[ıiuü]yoru[mz]|[dt][ıiuü][mk])",
)
_SELF_UNSPACED: Final = words_of(
    "我|俺|私|僕|ぼく|나는|내가|내|제가|제|나의|저는|우리|ฉัน|ผม|เรา|मेर[ाीे]|मैं|मुझ|हमार[ाीे]|हमें",
)
_ASKS_HOW_TO: Final = words_of(
    "how (?:do|can|could|would|might|to)(?! i (?:get to|look|feel)|n.t)",
    "(?:can|could|would|will) you (?!tell|remember|remind|recall|recommend|suggest)",
    "wie (?:kann|könnte|mache|macht|schreibe|erstelle|\\w+iere)",
    "(?:kannst|könntest|würdest) du (?!dich|mir sagen)",
    "cómo (?:puedo|podría|podemos|hago|se (?:hace|dice|escribe))",
    "comment (?:puis|peut|pourrais|faire|on|dire)",
    "come (?:posso|faccio|si(?! chiam))|como (?:posso|faço|se(?! cham))",
    "как (?:мне|можно|сделать|написать)",
)
_ASKS_HOW_TO_UNSPACED: Final = words_of(
    "怎么|怎樣|怎样|如何|方法|어떻게|やり方|書き方",
)
_WORK: Final = words_of(
    "code|functions?|script|regex|regular expression|traceback|exception|errors?|compil\\w+|syntax",
    "semicolon|variable|sentence|paragraph|essay|grammar|synonyms?|query|queries|git|python|java",
    "javascript|typescript|rust|sql|html|css|php|bash|json|yaml|csv|docker\\w*|makefile|systemd|linux",
    "excel|latex|api|funktion|skript|programm|fehler|satz|absatz|aufsatz|grammatik|abfrage|función|código",
    "consulta|error|frase|párrafo|fonction|erreur|requête|phrase|paragraphe|funzione|codice|errore|função",
    "erro|код|функци\\w+|ошибк\\w+|запрос",
)
_WORK_SIGNS: Final = r"[{}<>=\[\]`\\|]|\w\(|代码|代碼|函数|函數|コード|関数|코드|함수"
_WORKS_ON: Final = words_of(
    "translate|correct|fix|proofread|rewrite|rephrase|summari[sz]e|shorten|korrigiere?|verbessere?|übersetze?",
    "traduis|traduisez|corrige[sz]?|reformule|traduce|corrige|resume|traduci|correggi|riscrivi|traduza?|corrija",
    "vertaal|verbeter|przetłumacz|popraw|переведи|исправь",
)
_OPENS_BACK: Final = words_of(
    "and|but|so|also|then|what about|how about|why|why not|really|which one|the other|same|again",
    "und|aber|also|dann|was ist mit|wie wäre|warum|wieso|welche[rs]?|nochmal",
    "y|pero|entonces|por qué|qué tal|et|mais|alors|pourquoi|e se|ma|allora|perché|mas|então|por que",
    "а|и|но|почему|тогда",
)
_POINTS_BACK: Final = words_of(
    "it|that|this|those|these|they|them|he|she|him|her|there|one|ones|above|previous",
    "es|das|dies(?:e[rs]?)?|jene[rs]?|er|sie|ihn|ihm|ihr|davon|dazu|damit|dort|darüber|dafür",
    "eso|esto|ello|él|ella|ellos|allí|ça|cela|celui|celle|il|elle|ils|y|quello|questo|lui|lei|lì",
    "isso|isto|ele|ela|это|он|она|они|там",
)
_OPENS_BACK_UNSPACED: Final = words_of("那|它|他|她|这|這|それ|これ|あれ|彼|그|이거")
_PAST: Final = words_of(
    "used to|previous(?:ly)?|former(?:ly)?|before|earlier|back then|back when|originally|initially|at first",
    "in the past|history|historically|ago|last year|no longer|any ?more",
    "früher(?:e[rsnm]?)?|vorher(?:ige[rsnm]?)?|ehemals|ehemalige[rsnm]?|damals|zuvor|ursprünglich",
    "antes|anterior(?:es|mente)?|antigu[oa]s?|originalmente|solía|avant|auparavant|précédemment|ancien(?:ne)?s?",
    "autrefois|prima|precedente(?:mente)?|antig[oa]s?|раньше|прежде|прежн\\w+|бывш\\w+",
)
_PAST_UNSPACED: Final = words_of("以前|之前|曾经|曾經|过去|過去|かつて|前に|前の|예전|이전|전에")

_QUESTION_MARKS: Final = ("?", "？", "؟")
_IS_SMALL_TALK: Final = re.compile(rf"\W*(?:(?:{_SMALL_TALK})(?:\W+|$))+", re.IGNORECASE)
_OPENS_ASKING: Final = re.compile(rf"\W*(?:{_ASKS})\b", re.IGNORECASE)
_ASKS_ANYWHERE: Final = re.compile(_ASKS_UNSPACED)
_SPEAKS_OF_SELF: Final = re.compile(rf"\b(?:i|i'm|i've|we|am|{_SELF})\b|{_SELF_UNSPACED}", re.IGNORECASE)
_IS_ABOUT_SELF: Final = re.compile(rf"\b(?:{_SELF})\b|{_SELF_UNSPACED}", re.IGNORECASE)
_IS_HOW_TO: Final = re.compile(rf"\b(?:{_ASKS_HOW_TO})\b|{_ASKS_HOW_TO_UNSPACED}", re.IGNORECASE)
_IS_WORK: Final = re.compile(rf"\b(?:{_WORK})\b|{_WORK_SIGNS}", re.IGNORECASE)
_IS_OF_A_TEXT: Final = re.compile(
    rf"\W*(?:(?:please|bitte|por favor|per favore) )?(?:{_WORKS_ON})\b[^\n:：]{{0,40}}[:：]", re.IGNORECASE
)
_REFERS_BACK: Final = re.compile(
    rf"^\W*(?:{_OPENS_BACK})\b|\b(?:{_POINTS_BACK})\b|^(?:{_OPENS_BACK_UNSPACED})", re.IGNORECASE
)
_ABOUT_PAST: Final = re.compile(rf"\b(?:{_PAST})\b|{_PAST_UNSPACED}", re.IGNORECASE)


def is_small_talk(text: str) -> bool:
    """True for greetings, thanks and bare assent alone, and for a text without letters and digits."""
    return _IS_SMALL_TALK.fullmatch(text.strip()) is not None or not any(map(str.isalnum, text))


def refers_back(text: str) -> bool:
    """True if the text points at something said before."""
    return _REFERS_BACK.search(text) is not None


def asks_about_past(text: str) -> bool:
    """True if the text asks for what no longer holds."""
    return _ABOUT_PAST.search(text) is not None


def asks(text: str) -> bool:
    """True if the text has a question mark or begins as a question does."""
    return (
        any(mark in text for mark in _QUESTION_MARKS)
        or _OPENS_ASKING.match(text) is not None
        or (not text.isascii() and _ASKS_ANYWHERE.search(text) is not None)
    )


def ends_asking(text: str) -> bool:
    """True if the text ends with a question mark of any script."""
    return text.rstrip().endswith(_QUESTION_MARKS)


def concerns_self(text: str) -> bool:
    """True if the text is about the speaker: neither how a thing is done nor about their code or prose."""
    return (
        _IS_ABOUT_SELF.search(text) is not None
        and _IS_HOW_TO.search(text) is None
        and _IS_WORK.search(text) is None
        and _IS_OF_A_TEXT.match(text) is None
    )


def concerns_work(text: str) -> bool:
    """True if the text is about code or prose that somebody works on."""
    return _IS_WORK.search(text) is not None


def speaks_of_self(text: str) -> bool:
    """True if the text says something in the first person that is not about their code or prose."""
    return _SPEAKS_OF_SELF.search(text) is not None and _IS_WORK.search(text) is None
