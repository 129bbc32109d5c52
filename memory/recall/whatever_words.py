"""The words of a question for whatever happened, or was said: `What did we talk about last week?`.

English, German, Spanish, French, Italian, Portuguese, Dutch, Russian, Polish, Chinese, Japanese and Korean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hearth.memory.recall.function_words import FUNCTION
from hearth.memory.recall.nothing_words import Vocabulary

_WHATEVER: Final = Vocabulary(
    " ".join(
        (
            "happen* occurr* go going went gone did doing done up new anything something everything all",
            "say",
            "said talk* chat* discuss* speak spoke spoken mention* tell told ask* remember recall remind",
            "recap",
            "summar* conversation* know been get got i you we was",
            "passiert* geschah geschehen los gemacht machte* getan tat alles etwas gesagt sagte* geredet",
            "worüber wovon haben",
            "gesprochen besprochen erzählt* unterhalten erinner* zusammen fass* vor ging",
            "pasó pasado ocurrió sucedió hice hicimos hecho hiciste algo todo dije dijimos dicho hablé",
            "hablamos",
            "hablado conté contado recuerd* resum* conversación hubo",
            "passé passait fait faisait arrivé tout quelque chose dit disait parlé discuté raconté",
            "rappel* résum* qu",
            "avons avez suis eu lieu",
            "successo accaduto fatto feci tutto qualcosa detto dissi parlato discusso raccontato ricord*",
            "riassum* cosa è",
            "abbiamo hai stato",
            "aconteceu houve fiz fizemos feito tudo algo disse dissemos dito falei falamos falado",
            "conversamos",
            "contei lembr* resum*",
            "gebeurd* gebeurde gedaan deed deden alles iets gezegd zei gepraat gesproken besproken",
            "verteld ging",
            "om hebben we wij heb",
            "случилось произошло происходило было делал* сделал* всё все сказал* говорил* обсуждал*",
            "рассказ*",
            "вспомни",
            "stało działo wydarzyło robił* zrobił* wszystko coś powiedział* mówił* rozmawial* opowiada*",
            "co",
            "przypomnij się ze mną",
            "무슨 일이 일 있었어 있었지 있었나요 했어 했지 했나요 얘기 이야기 말했어 뭐",
        )
    ).split()
)
_WHATEVER_UNSPACED: Final = re.compile(
    "(?:"
    "发生|發生|做|说|說|聊|谈|談|讲|講|告诉|告訴|什么|什麼|哪些|些|事情?|了|过|過|我们?|我們|你|和|跟|的|都|有|是|请|回顾|总结|情况|吗|呢"
    "|何|が|を|に|は|の|と|で|も|あり?|した|まし|たち|話|言|っ|た|か|け|して|い|私|僕|あなた|教えて|こと|出来事|起き|起こ|どんな|って|ください"
    "|무슨|일|이|있었|어|지|나요|했|뭐|뭘|을|를|에|우리|내|가|제|는|얘기|이야기|말"
    r"|\W)*"
)


def are_whatever(words: Sequence[str]) -> bool:
    """True if the folded words (signs, where a script parts no words) ask for nothing in particular."""
    return all(word in FUNCTION or word in _WHATEVER for word in words) or (
        _WHATEVER_UNSPACED.fullmatch("".join(words)) is not None
    )
