"""A vocabulary of saying nothing: the words of those who do not know, or only acknowledge.

English, German, Spanish, French, Italian, Portuguese, Russian, Dutch, Polish, Korean, Chinese and Japanese.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final


class Vocabulary:
    """Words, and beginnings of words, which end in `*`."""

    def __init__(self, words: Iterable[str]) -> None:
        entries = frozenset(words)
        self._whole = frozenset(word for word in entries if not word.endswith("*"))
        self._begin = tuple(sorted(word[:-1] for word in entries if word.endswith("*")))

    def __contains__(self, word: str) -> bool:
        return word in self._whole or word.startswith(self._begin)


NOTHING: Final = Vocabulary(
    " ".join(
        (
            "sorry apolog* unfortunately afraid know* unsure sure certain aware any anything information",
            "info detail* data record records access* personal* private memory remember* recall* told",
            "tell* said say says shar* mention* provid* given specif* context conversation* chat chats",
            "earlier previous* before yet far unable able cannot don doesn didn haven hasn isn couldn",
            "help* happy glad assist* ai language model let more need ask* question answer like want feel",
            "free something unless because since only see find look* determine hmm oh ok okay noted",
            "understood got thanks thank welcome still into or me weiß weiss weißt wissen leider leid tut",
            "entschuldig* information* angaben daten zugriff persönlich* gesagt sag sagst sagen erzähl*",
            "verrat* mitgeteilt genannt erwähnt bekannt kenne* erinner* merke* bisher noch magst möchtest",
            "kannst könntest gern gerne helfen darüber davon dazu gespräch* ki sprachmodell nichts mehr",
            "wenn weil dass hast mitteil* siento lamento disculp* perdón sé saber sabe* conozco",
            "información datos acceso dicho dijiste decir* dime cuént* contad* compart* mencion* todavía",
            "aún recuerdo ayud* puedo puedes podrías más esa eso nada lamentablemente desafortunadamente",
            "tengo has ne désolé* sais savoir connais* données accès personnel* dit dite dites dire",
            "partag* encore malheureusement excus* souvien* aider pouvez peux pourriez peut cette avez",
            "rien plus précis* quelque vos votre dispiace so sapere conosco informazion* dati accesso",
            "detto dirmi condivi* ancora purtroppo ricord* aiut* posso puoi potresti mi hai sul sulla tuo",
            "tua desculp* sinto sei conheço informaç* dados disse dizer contou contar compartilh* ainda",
            "infelizmente lembr* ajud* pode isso tenho seu sua извин* сожалению прости* знаю знать",
            "информац* данн* доступ* личн* сказал* говори* рассказ* упомина* подел* еще ещё помню помочь",
            "могу можете вас вам вы этом об пока у нет niet weet helaas spijt* informatie gegevens toegang",
            "verteld przykro niestety wiem informacji dostępu",
            "죄송* 미안* 모르* 모릅* 알 수 없* 정보* 말씀* 알려* 아직* 주세요 않* 하지*",
        )
    ).split()
)
"""What replies that do not answer are made of, function words apart."""

NOT: Final = Vocabulary(
    " ".join(
        (
            "not t cannot unable unsure unfortunately sorry no nicht kein* leider leid siento lamento pas",
            "désolé* non purtroppo não infelizmente не нет niet geen helaas nie niestety 없* 모르* 모릅*",
            "죄송*",
        )
    ).split()
)
"""One of these is in each of them: `t` is what `don't` ends in."""

NOTHING_UNSPACED: Final = "|".join(
    (
        "抱歉|对不起|對不起|不好意思|很遗憾|不知道|不清楚|不了解|无法|無法|不能|没有|沒有|还没|還沒|告诉",
        "告訴|提供|分享|提到|说过|信息|資訊|记录|個人|个人|访问|目前|之前|关于|知道|如果|任何|帮助|确定",
        "您|你|请|吗|可以|还|過|过|申し訳|ありません|ございません|すみません|ごめんなさい|わかりません",
        "分かりません|知りません|存じません|情報|教えて|いただけますか|ください|持っていません",
        "聞いていません|覚えていません|まだ|その|んが|あなた|ついて",
    )
)
"""Alternation of what Chinese and Japanese say, where no space tells words apart."""

NOT_UNSPACED: Final = "不|没|沒|无|無|抱歉|ません|申し訳"
