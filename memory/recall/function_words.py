"""Words that say little about what a text is about: articles, pronouns, auxiliaries, question words.

An idf over many records makes such a list needless; fresh pages and a memory of three records have none.
English, German, Spanish, French, then Italian, Portuguese, Russian, Chinese and Japanese.
"""

from __future__ import annotations

from typing import Final

FUNCTION_WORDS: Final = " ".join(
    (
        "a an the and or but not no of to in on at by for with from about as is are was were be been am do",
        "does did have has had will would can could should may might i me my mine you your he him his she",
        "her it its we us our they them their this that these those what which who whom whose when where",
        "why how there here please tell give if then so than too very just s t m re ve ll d",
        "der die das den dem des ein eine einen einem einer und oder aber nicht kein keine von zu in im an",
        "am auf bei für mit aus über als ist sind war waren sein bin hat habe haben hatte wird werden kann",
        "ich mich mir mein meine meinen meinem meiner du dich dir dein deine er sie es wir uns unser ihr",
        "was welche welcher welches wer wen wem wann wo warum wie da hier bitte",
        "el la los las un una y o pero no de del a en por para con sobre como es son era ser estar está ha",
        "he yo me mi mis tú te tu tus él ella nosotros qué cuál quién cuándo dónde cómo se lo que",
        "le les une des et ou mais pas du au aux en dans pour par avec sur est sont était être a ai je j",
        "moi mon ma mes tu toi ton ta tes il elle nous vous ce cette qui que quoi quel quelle quand où",
        "pourquoi comment l d c s n",
        "il lo gli i uno e ma non di da con su per sono era essere ha ho io mio mia tu tuo lui lei noi che",
        "chi quale quando dove perché come o os as um uma não do em no na para com é são eu meu minha você",
        "ele ela nós que qual quem onde como и или но не в на с по для о от к что кто какой какая где когда",
        "почему как я меня мне мой моя ты он она мы это есть был",
        "的 了 是 在 我 你 他 她 吗 呢 什么 哪里 谁 怎么 は が を に の で",
        "と も か です ます 私 何 どこ 誰 いつ",
    )
)

FUNCTION: Final = frozenset(FUNCTION_WORDS.split())
"""The same, each by itself."""
