"""The time that a question asks about: by the user's clock, in many languages, none where none is named."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.memory.recall.asked_time import asked_time

BERLIN = "Europe/Berlin"
NOW = datetime(2024, 6, 12, 15, tzinfo=ZoneInfo(BERLIN)).astimezone(UTC)
"""A Wednesday."""


def days(text, at=NOW, timezone=BERLIN):
    """The surest intervals as local dates, the last day not among them."""
    asked = asked_time(text, at, timezone)
    zone = ZoneInfo(timezone)
    intervals = asked.intervals if asked else ()
    return [
        (one.since.astimezone(zone).date().isoformat(), one.until.astimezone(zone).date().isoformat())
        for one in intervals
        if one.weight == max(other.weight for other in intervals)
    ]


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("What did I do yesterday?", "2024-06-11", "2024-06-12"),
        ("What did I tell you today?", "2024-06-12", "2024-06-13"),
        ("What did we talk about last week?", "2024-06-03", "2024-06-10"),
        ("What did I cook last weekend?", "2024-06-08", "2024-06-10"),
        ("Which film did I see two months ago?", "2024-03-29", "2024-04-29"),
        ("What did I say this morning?", "2024-06-12", "2024-06-13"),
        ("What did I eat in the last three days?", "2024-06-09", "2024-06-13"),
        ("What have I read since March?", "2024-03-01", "2024-06-13"),
        ("Where did I travel between May and July 2023?", "2023-05-01", "2023-08-01"),
        ("Where was I in summer 2022?", "2022-06-01", "2022-09-01"),
        ("What did I plan the week before 9 June 2023?", "2023-06-02", "2023-06-09"),
        ("Who did I meet last Friday?", "2024-06-07", "2024-06-08"),
        ("What did I buy last year?", "2023-01-01", "2024-01-01"),
        ("What did I say in May?", "2024-05-01", "2024-06-01"),
        ("What happened on 7 May 2023?", "2023-05-07", "2023-05-08"),
        ("May 7th, 2023: what was it?", "2023-05-07", "2023-05-08"),
        ("What did I write on 2023-05-07?", "2023-05-07", "2023-05-08"),
        ("What did I note in 2022?", "2022-01-01", "2023-01-01"),
        ("What was I doing on December 24th?", "2023-12-24", "2023-12-25"),
        ("What did I do on the 3rd of March?", "2024-03-03", "2024-03-04"),
        ("Which books did I finish in September 2023?", "2023-09-01", "2023-10-01"),
        ("Did I run on Monday?", "2024-06-10", "2024-06-11"),
        ("What was I worried about last month?", "2024-05-01", "2024-06-01"),
        ("What did I do three weeks ago?", "2024-05-19", "2024-05-26"),
        ("What was I working on a year ago?", "2022-12-13", "2023-12-13"),
        ("Where did I eat the day before yesterday?", "2024-06-10", "2024-06-11"),
        ("What did I dream last night?", "2024-06-11", "2024-06-12"),
        ("What have I spent this month?", "2024-06-01", "2024-07-01"),
        ("What did I learn this year?", "2024-01-01", "2025-01-01"),
        ("What have I been cooking recently?", "2024-05-22", "2024-06-13"),
        ("What did I mention the other day?", "2024-05-22", "2024-06-13"),
        ("Which bug did I fix a few days ago?", "2024-06-06", "2024-06-11"),
        ("Where did I go last summer?", "2023-06-01", "2023-09-01"),
        ("What did I plant last spring?", "2024-03-01", "2024-06-01"),
        ("What did I do in May last year?", "2023-05-01", "2023-06-01"),
        ("What did I do before June 2023?", "2013-06-03", "2023-06-01"),
        ("What did I do after Christmas, since 26 December?", "2023-12-26", "2024-06-13"),
        ("What did I eat 5 to 9 June?", "2024-06-05", "2024-06-10"),
        ("What did I do from 3 March to 10 April 2024?", "2024-03-03", "2024-04-11"),
        ("What did I run until April 2023?", "2013-04-03", "2023-05-01"),
        ("What did I do on 12/24/2023?", "2023-12-24", "2023-12-25"),
        ("What did we decide two days ago?", "2024-06-10", "2024-06-11"),
        ("What did I do in the past few weeks?", "2024-05-15", "2024-06-13"),
        ("what did i say in march", "2024-03-01", "2024-04-01"),
        ("What did I cook over the weekend?", "2024-06-08", "2024-06-10"),
        ("What did I do on Friday of last week?", "2024-06-07", "2024-06-08"),
        ("Was habe ich gestern gegessen?", "2024-06-11", "2024-06-12"),
        ("Was habe ich letzte Woche gekocht?", "2024-06-03", "2024-06-10"),
        ("Wo war ich vor zwei Wochen?", "2024-05-26", "2024-06-02"),
        ("Was habe ich am 3. März gesagt?", "2024-03-03", "2024-03-04"),
        ("Was habe ich im Mai 2023 gelesen?", "2023-05-01", "2023-06-01"),
        ("Was war letzten Freitag?", "2024-06-07", "2024-06-08"),
        ("Was habe ich seit März gemacht?", "2024-03-01", "2024-06-13"),
        ("Was habe ich in den letzten drei Tagen gemacht?", "2024-06-09", "2024-06-13"),
        ("Wo war ich im Sommer 2022?", "2022-06-01", "2022-09-01"),
        ("Was habe ich letztes Jahr gekauft?", "2023-01-01", "2024-01-01"),
        ("Was habe ich am Wochenende gemacht?", "2024-06-08", "2024-06-10"),
        ("Was habe ich heute Morgen gesagt?", "2024-06-12", "2024-06-13"),
        ("Was habe ich vorgestern notiert?", "2024-06-10", "2024-06-11"),
        ("Woran habe ich vor einem Monat gearbeitet?", "2024-04-28", "2024-05-29"),
        ("Was geschah zwischen Mai und Juli 2023?", "2023-05-01", "2023-08-01"),
        ("Was habe ich neulich erzählt?", "2024-05-22", "2024-06-13"),
        ("Was stand am 07.05.2023 an?", "2023-05-07", "2023-05-08"),
        ("Was habe ich vor ein paar Tagen repariert?", "2024-06-06", "2024-06-11"),
        ("Qu'est-ce que j'ai mangé hier ?", "2024-06-11", "2024-06-12"),
        ("Qu'ai-je fait la semaine dernière ?", "2024-06-03", "2024-06-10"),
        ("Où étais-je il y a deux mois ?", "2024-03-29", "2024-04-29"),
        ("Qu'ai-je dit le 3 mars ?", "2024-03-03", "2024-03-04"),
        ("Qu'ai-je lu en mai 2023 ?", "2023-05-01", "2023-06-01"),
        ("Qu'ai-je acheté l'année dernière ?", "2023-01-01", "2024-01-01"),
        ("Où suis-je allé en été 2022 ?", "2022-06-01", "2022-09-01"),
        ("Qu'ai-je dit récemment ?", "2024-05-22", "2024-06-13"),
        ("Qui ai-je vu vendredi dernier ?", "2024-06-07", "2024-06-08"),
        ("Qu'ai-je fait le week-end dernier ?", "2024-06-08", "2024-06-10"),
        ("Qu'ai-je appris depuis mars ?", "2024-03-01", "2024-06-13"),
        ("Qu'ai-je fait ces trois derniers jours ?", "2024-06-09", "2024-06-13"),
        ("¿Qué comí ayer?", "2024-06-11", "2024-06-12"),
        ("¿Qué hice la semana pasada?", "2024-06-03", "2024-06-10"),
        ("¿Dónde estuve hace dos meses?", "2024-03-29", "2024-04-29"),
        ("¿Qué pasó el 3 de marzo de 2022?", "2022-03-03", "2022-03-04"),
        ("¿Qué leí en mayo de 2023?", "2023-05-01", "2023-06-01"),
        ("¿Qué compré el año pasado?", "2023-01-01", "2024-01-01"),
        ("¿Qué hice el viernes pasado?", "2024-06-07", "2024-06-08"),
        ("¿Qué dije anoche?", "2024-06-11", "2024-06-12"),
        ("¿Qué he leído desde marzo?", "2024-03-01", "2024-06-13"),
        ("¿Adónde fui entre mayo y julio de 2023?", "2023-05-01", "2023-08-01"),
        ("¿Qué hice en verano de 2022?", "2022-06-01", "2022-09-01"),
        ("¿Qué dije el lunes?", "2024-06-10", "2024-06-11"),
        ("¿Qué hice en los últimos tres días?", "2024-06-09", "2024-06-13"),
        ("Cosa ho mangiato ieri?", "2024-06-11", "2024-06-12"),
        ("Cosa ho fatto la settimana scorsa?", "2024-06-03", "2024-06-10"),
        ("Dove ero due mesi fa?", "2024-03-29", "2024-04-29"),
        ("Cosa ho letto a maggio 2023?", "2023-05-01", "2023-06-01"),
        ("Cosa ho comprato l'anno scorso?", "2023-01-01", "2024-01-01"),
        ("Cosa ho detto il 3 marzo?", "2024-03-03", "2024-03-04"),
        ("Chi ho visto venerdì scorso?", "2024-06-07", "2024-06-08"),
        ("Cosa ho cucinato negli ultimi tre giorni?", "2024-06-09", "2024-06-13"),
        ("Cosa ho imparato da marzo?", "2024-03-01", "2024-06-13"),
        ("O que comi ontem?", "2024-06-11", "2024-06-12"),
        ("O que fiz na semana passada?", "2024-06-03", "2024-06-10"),
        ("Onde estive há dois meses?", "2024-03-29", "2024-04-29"),
        ("O que li em maio de 2023?", "2023-05-01", "2023-06-01"),
        ("O que comprei no ano passado?", "2023-01-01", "2024-01-01"),
        ("O que eu disse em 3 de março?", "2024-03-03", "2024-03-04"),
        ("O que fiz três semanas atrás?", "2024-05-19", "2024-05-26"),
        ("O que fiz desde março?", "2024-03-01", "2024-06-13"),
        ("Wat heb ik gisteren gegeten?", "2024-06-11", "2024-06-12"),
        ("Wat heb ik vorige week gedaan?", "2024-06-03", "2024-06-10"),
        ("Waar was ik twee maanden geleden?", "2024-03-29", "2024-04-29"),
        ("Wat heb ik in mei 2023 gelezen?", "2023-05-01", "2023-06-01"),
        ("Wie zag ik afgelopen vrijdag?", "2024-06-07", "2024-06-08"),
        ("Wat heb ik sinds maart geleerd?", "2024-03-01", "2024-06-13"),
        ("Wat zei ik op 3 maart?", "2024-03-03", "2024-03-04"),
        ("Wat deed ik vorig jaar?", "2023-01-01", "2024-01-01"),
        ("Что я ел вчера?", "2024-06-11", "2024-06-12"),
        ("Что я делал на прошлой неделе?", "2024-06-03", "2024-06-10"),
        ("Где я был два месяца назад?", "2024-03-29", "2024-04-29"),
        ("Что я читал в мае 2023 года?", "2023-05-01", "2023-06-01"),
        ("Что я купил в прошлом году?", "2023-01-01", "2024-01-01"),
        ("Что я сказал 3 марта?", "2024-03-03", "2024-03-04"),
        ("Кого я видел в прошлую пятницу?", "2024-06-07", "2024-06-08"),
        ("Что я выучил с марта?", "2024-03-01", "2024-06-13"),
        ("Где я был летом 2022 года?", "2022-06-01", "2022-09-01"),
        ("Что я делал недавно?", "2024-05-22", "2024-06-13"),
        ("我昨天吃了什么？", "2024-06-11", "2024-06-12"),
        ("我上周做了什么？", "2024-06-03", "2024-06-10"),
        ("我两个月前在哪里？", "2024-03-29", "2024-04-29"),
        ("我在2023年5月读了什么书？", "2023-05-01", "2023-06-01"),
        ("我去年买了什么？", "2023-01-01", "2024-01-01"),
        ("2023年5月7日发生了什么？", "2023-05-07", "2023-05-08"),
        ("我上周五见了谁？", "2024-06-07", "2024-06-08"),
        ("从三月以来我学了什么？", "2024-03-01", "2024-06-13"),
        ("去年夏天我去了哪里？", "2023-06-01", "2023-09-01"),
        ("过去三天我吃了什么？", "2024-06-09", "2024-06-13"),
        ("昨日何を食べましたか？", "2024-06-11", "2024-06-12"),
        ("先週は何をしましたか？", "2024-06-03", "2024-06-10"),
        ("2ヶ月前はどこにいましたか？", "2024-03-29", "2024-04-29"),
        ("2023年5月に何を読みましたか？", "2023-05-01", "2023-06-01"),
        ("去年何を買いましたか？", "2023-01-01", "2024-01-01"),
        ("先週の金曜日に誰に会いましたか？", "2024-06-07", "2024-06-08"),
        ("3月から何を学びましたか？", "2024-03-01", "2024-06-13"),
        ("어제 뭐 먹었지?", "2024-06-11", "2024-06-12"),
        ("지난주에 뭐 했지?", "2024-06-03", "2024-06-10"),
        ("두 달 전에 어디 있었지?", "2024-03-29", "2024-04-29"),
        ("2023년 5월에 뭘 읽었지?", "2023-05-01", "2023-06-01"),
        ("작년에 뭘 샀지?", "2023-01-01", "2024-01-01"),
        ("지난 금요일에 누구를 만났지?", "2024-06-07", "2024-06-08"),
        ("Co robiłem w zeszłym tygodniu?", "2024-06-03", "2024-06-10"),
        ("Gdzie byłem dwa miesiące temu?", "2024-03-29", "2024-04-29"),
        ("Co czytałem w maju 2023?", "2023-05-01", "2023-06-01"),
        ("Co powiedziałem 3 marca?", "2024-03-03", "2024-03-04"),
        ("Co jadłem wczoraj?", "2024-06-11", "2024-06-12"),
        ("Vad åt jag i går?", "2024-06-11", "2024-06-12"),
        ("Vad gjorde jag förra veckan?", "2024-06-03", "2024-06-10"),
        ("Var var jag för två månader sedan?", "2024-03-29", "2024-04-29"),
        ("Vad läste jag i maj 2023?", "2023-05-01", "2023-06-01"),
        ("Hvad lavede jeg i går?", "2024-06-11", "2024-06-12"),
        ("Hvor var jeg for to måneder siden?", "2024-03-29", "2024-04-29"),
        ("Dün ne yedim?", "2024-06-11", "2024-06-12"),
        ("Geçen hafta ne yaptım?", "2024-06-03", "2024-06-10"),
        ("İki ay önce neredeydim?", "2024-03-29", "2024-04-29"),
        ("Mayıs 2023 ne okudum?", "2023-05-01", "2023-06-01"),
        ("Що я робив минулого тижня?", "2024-06-03", "2024-06-10"),
        ("Де я був два місяці тому?", "2024-03-29", "2024-04-29"),
        ("Co jsem dělal minulý týden?", "2024-06-03", "2024-06-10"),
        ("Kde jsem byl před dvěma měsíci?", "2024-03-29", "2024-04-29"),
        ("Mitä tein viime viikolla?", "2024-06-03", "2024-06-10"),
        ("ماذا فعلت أمس؟", "2024-06-11", "2024-06-12"),
        ("ماذا فعلت الأسبوع الماضي؟", "2024-06-03", "2024-06-10"),
        ("Remind me what I told you about the dentist last Tuesday.", "2024-06-11", "2024-06-12"),
        ("What was on my mind in early April?", "2024-04-01", "2024-05-01"),
        ("Which restaurants did I try in the fall of 2023?", "2023-09-01", "2023-12-01"),
        ("What did we discuss on June 1st?", "2024-06-01", "2024-06-02"),
        ("Anything I mentioned about money over the past month?", "2024-05-01", "2024-06-01"),
        ("What had I said six months ago about the job?", "2023-11-28", "2023-12-29"),
        ("Did I sleep badly on Sunday night?", "2024-06-09", "2024-06-10"),
        ("What did I weigh at the end of January?", "2024-01-01", "2024-02-01"),
        ("What did I eat on Easter Sunday 31 March 2024?", "2024-03-31", "2024-04-01"),
        ("What have I done so far this week?", "2024-06-10", "2024-06-17"),
        ("Where was I 10 days ago?", "2024-06-02", "2024-06-03"),
        ("What did I think of Rust back in 2021?", "2021-01-01", "2022-01-01"),
        ("What did I do on 4/15/2024?", "2024-04-15", "2024-04-16"),
        ("What happened in the week after 1 May 2024?", "2024-05-02", "2024-05-09"),
        ("Worüber haben wir letzten Dienstag gesprochen?", "2024-06-11", "2024-06-12"),
        ("Was habe ich Anfang April gegessen?", "2024-04-01", "2024-05-01"),
        ("Was habe ich vor drei Tagen gesagt?", "2024-06-09", "2024-06-10"),
        ("Was war in der vergangenen Woche?", "2024-06-03", "2024-06-10"),
        ("Was habe ich seit gestern geschafft?", "2024-06-11", "2024-06-13"),
        ("Wo war ich im letzten Sommer?", "2023-06-01", "2023-09-01"),
        ("Was habe ich zwischen dem 3. und 9. April gemacht?", "2024-04-03", "2024-04-10"),
        ("Qu'est-ce que j'ai dit avant-hier ?", "2024-06-10", "2024-06-11"),
        ("Où étais-je l'été dernier ?", "2023-06-01", "2023-09-01"),
        ("Qu'ai-je mangé il y a une semaine ?", "2024-06-02", "2024-06-09"),
        ("Qu'ai-je noté le mois dernier ?", "2024-05-01", "2024-06-01"),
        ("¿Qué te conté el mes pasado?", "2024-05-01", "2024-06-01"),
        ("¿Qué hice hace una semana?", "2024-06-02", "2024-06-09"),
        ("¿Dónde estuve el verano pasado?", "2023-06-01", "2023-09-01"),
        ("¿Qué comí el fin de semana pasado?", "2024-06-08", "2024-06-10"),
        ("Cosa ho detto l'altro ieri?", "2024-06-10", "2024-06-11"),
        ("Dove sono stato l'estate scorsa?", "2023-06-01", "2023-09-01"),
        ("Cosa ho fatto una settimana fa?", "2024-06-02", "2024-06-09"),
        ("O que eu disse anteontem?", "2024-06-10", "2024-06-11"),
        ("Onde estive no verão passado?", "2023-06-01", "2023-09-01"),
        ("Wat zei ik eergisteren?", "2024-06-10", "2024-06-11"),
        ("Waar was ik afgelopen zomer?", "2023-06-01", "2023-09-01"),
        ("Wat at ik drie dagen geleden?", "2024-06-09", "2024-06-10"),
        ("Что я говорил позавчера?", "2024-06-10", "2024-06-11"),
        ("Где я был прошлым летом?", "2023-06-01", "2023-09-01"),
        ("Что я ел три дня назад?", "2024-06-09", "2024-06-10"),
        ("Что я делал в прошлые выходные?", "2024-06-08", "2024-06-10"),
        ("我前天说了什么？", "2024-06-10", "2024-06-11"),
        ("我三天前吃了什么？", "2024-06-09", "2024-06-10"),
        ("上个月我读了什么？", "2024-05-01", "2024-06-01"),
        ("上周末我去了哪里？", "2024-06-08", "2024-06-10"),
        ("一昨日何を言いましたか？", "2024-06-10", "2024-06-11"),
        ("三日前に何を食べましたか？", "2024-06-09", "2024-06-10"),
        ("先月どこへ行きましたか？", "2024-05-01", "2024-06-01"),
        ("지난달에 뭐 읽었지?", "2024-05-01", "2024-06-01"),
        ("3일 전에 뭐 먹었지?", "2024-06-09", "2024-06-10"),
        ("Co mówiłem przedwczoraj?", "2024-06-10", "2024-06-11"),
        ("Co jadłem trzy dni temu?", "2024-06-09", "2024-06-10"),
        ("Vad sa jag i förrgår?", "2024-06-10", "2024-06-11"),
        ("Vad åt jag för tre dagar sedan?", "2024-06-09", "2024-06-10"),
        ("Geçen ay ne okudum?", "2024-05-01", "2024-06-01"),
        ("Üç gün önce ne yedim?", "2024-06-09", "2024-06-10"),
    ],
)
def test_a_time_is_understood_in_many_languages(text, since, until):
    """Absolute, relative, ranges and vague ones, as days of the user's calendar."""
    assert days(text) == [(since, until)]


@pytest.mark.parametrize(
    "text",
    [
        "May I ask you something?",
        "What may go wrong here?",
        "It may take 5 people to lift it.",
        "You may use 2 eggs.",
        "Did we march through the town?",
        "We march 10 miles with our packs.",
        "What is a march in music?",
        "Give me a second to think.",
        "What is the second best option?",
        "Wait a minute, is that right?",
        "How do I fall asleep faster?",
        "Why do apples fall from trees?",
        "What is spring in Java?",
        "How do spring rolls taste?",
        "Guten Morgen, wie heißt meine Katze?",
        "Goede morgen, waar woon ik?",
        "Who is April Ludgate?",
        "What did June say about my dog?",
        "Tell August that I love him.",
        "An august institution, they say.",
        "Is there a date palm in my garden?",
        "What do I know about the last samurai?",
        "How long is a piece of string?",
        "At last I am free.",
        "What is my last name?",
        "These shoes will last.",
        "What is the sun made of?",
        "Sunday dinners are nice.",
        "I work on my weekend house",
        "How do I win a marathon?",
        "Order 2023 is late, isn't it?",
        "It costs $2023.",
        "Room 2012 is on the left.",
        "Is 3/4 more than 0.7?",
        "Bake it for 30 minutes at 180 degrees.",
        "How do I cook rice for three days?",
        "What is the 7th prime?",
        "In three days I fly to Rome.",
        "What should I do next week?",
        "Remind me tomorrow.",
        "The year of the dragon",
        "How many days are in a month?",
        "What's a good name for a month-old kitten?",
        "Was ist der Sinn des Lebens?",
        "Der Tag ist schön.",
        "Mag ich Mai Tai?",
        "Wie heißt mein Sohn?",
        "Die Woche hat sieben Tage.",
        "Der Morgen war kalt.",
        "Sommerreifen wechseln, wie geht das?",
        "Wie viele Einwohner hat Mars?",
        "Mon chien est noir.",
        "Je suis l'homme de la situation.",
        "Les mars sont des barres chocolatées.",
        "Quel est mon plat préféré ?",
        "La semaine a sept jours.",
        "¿Cómo se hace la tortilla?",
        "¿Qué hace mi hermano?",
        "La vida es un día de sol.",
        "El sol y el mar son bonitos.",
        "Il mare è bello.",
        "Cosa fa mio fratello?",
        "Fa la spesa ogni giorno.",
        "O mar é azul.",
        "De week heeft zeven dagen.",
        "Zie je de zon?",
        "Я люблю лето.",
        "Сколько дней в неделе?",
        "Мой день прошёл хорошо.",
        "月亮为什么是圆的？",
        "今后怎么办？",
        "我每天都跑步。",
        "天气怎么样？",
        "日本の首都はどこですか？",
        "毎日走ります。",
        "一番好きな色は何ですか？",
        "일본의 수도는 어디예요?",
        "한국어를 도와주세요.",
        "Ile dni ma tydzień?",
        "Lubię lato.",
        "Jag gillar våren.",
        "Bir gün gelecek.",
        "Release 1.2.3 of the app",
        "Call me at 5 pm.",
        "The 90s were wild",
        "In 5 minutes it's done.",
        "How do I format a date in Python?",
        'Translate: "Monday"',
        "I have 3 weeks of vacation.",
        "Explain the French Revolution of 1789.",
        "My week is busy",
        "What's my schedule?",
        "Will it rain this time?",
        "How do I get a second opinion?",
        "I'd like some spring water.",
        "The march of progress",
        "Who wrote Sunday Bloody Sunday?",
        "What did Julia say about May Parker?",
        "My mother's name is June.",
        "How many weeks are in a year?",
        "Is Monday.com any good?",
        "What day is best for laundry?",
        "What's the last thing on the list?",
        "The past is a foreign country.",
        "Do I need a day off?",
        "How old is my daughter?",
        "Make the font size 12 and the margin 2.",
        "What does the year ring of a tree tell?",
        "I have been to 20 countries.",
        "Turn left after 300 metres.",
        "Which flight did I book?",
        "Is my birthday soon?",
        "a week is too short",
        "What month is my birthday?",
        "Let us look at the last row of the table.",
        "What is the 2nd law of thermodynamics?",
        "How was your day?",
        "The following week plan is mine: eggs, toast.",
        "Write a function that returns the last day of a month.",
        "Is there life on Mars?",
        "Set a timer for 10 minutes.",
        "Port 2020 is closed.",
        "Wann hat mein Bruder Geburtstag?",
        "Was mag ich lieber: Sommer oder Winter?",
        "Es ist eine Frage der Zeit.",
        "Wie viele Tage hat der Februar?",
        "Die letzte Seite fehlt.",
        "Ich habe zwei Wochen Urlaub.",
        "Quel jour sommes-nous ?",
        "J'aime l'été et l'hiver.",
        "Il y a deux chats dans le jardin.",
        "Combien de jours dans une semaine ?",
        "¿Cuántos días tiene un mes?",
        "Me gusta la primavera.",
        "Hace mucho frío.",
        "Hace dos cosas a la vez.",
        "Mi amiga se llama Abril.",
        "Quanti giorni ha un anno?",
        "Mi piace l'estate.",
        "Quantos dias tem o ano?",
        "Gosto do verão.",
        "Hoeveel dagen heeft een jaar?",
        "Ik hou van de zomer.",
        "Мне нравится зима.",
        "Сколько мне лет?",
        "У меня два кота.",
        "一年有几个月？",
        "我喜欢夏天。",
        "我有两天假。",
        "星期几最好？",
        "夏が好きです。",
        "一週間は何日ですか？",
        "여름이 좋아요.",
        "일주일은 며칠이에요?",
        "Ile mam lat?",
        "Hur många dagar har en vecka?",
        "Bir haftada kaç gün var?",
    ],
)
def test_what_only_looks_like_a_time_is_none(text):
    """Names, verbs, amounts, the future: rather no time than a wrong one."""
    assert days(text) == []


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("When did I first mention my cat?", "first"),
        ("Wann habe ich zum ersten Mal gekocht?", "first"),
        ("¿Cuándo fue la primera vez que corrí?", "first"),
        ("我第一次跑步是什么时候？", "first"),
        ("What was the last film I saw?", "latest"),
        ("Wann habe ich sie zuletzt gesehen?", "latest"),
        ("Quand l'ai-je vue la dernière fois ?", "latest"),
        ("最後に会ったのはいつ？", "latest"),
        ("How long have I been a nurse?", "lasting"),
        ("Seit wann wohne ich hier?", "lasting"),
        ("Как долго я здесь живу?", "lasting"),
        ("Depuis quand est-ce que je cours ?", "lasting"),
    ],
)
def test_a_question_for_an_order_is_told(text, order):
    """The first, the latest, or how long something has lasted."""
    asked = asked_time(text, NOW, BERLIN)
    assert asked is not None
    assert asked.order == order


@pytest.mark.parametrize("text", ["", "Where do I live?", "Wie heißt meine Katze?", "你好", "the last of us"])
def test_a_question_without_time_asks_for_none(text):
    """Most questions."""
    assert asked_time(text, NOW, BERLIN) is None


@pytest.mark.parametrize(
    ("at", "timezone", "today"),
    [
        ("2025-12-31T15:30:00+00:00", "Asia/Tokyo", "2026-01-01"),
        ("2026-01-01T04:30:00+00:00", "America/Los_Angeles", "2025-12-31"),
        ("2025-12-31T23:30:00+00:00", "UTC", "2025-12-31"),
        ("2025-12-31T10:30:00+00:00", "Pacific/Kiritimati", "2026-01-01"),
    ],
)
def test_case_49_days_are_counted_from_the_users_own(at, timezone, today):
    """Half an hour into the new year in Tokyo yesterday is the last day of the old one."""
    moment = datetime.fromisoformat(at).astimezone(UTC)
    yesterday = (datetime.fromisoformat(today) - timedelta(days=1)).date().isoformat()
    assert days("What did I do yesterday?", moment, timezone) == [(yesterday, today)]
    assert days("What happened this year?", moment, timezone)[0][0] == f"{today[:4]}-01-01"


def test_a_day_on_which_clocks_change_has_its_own_length():
    """23 hours in spring and 25 in autumn."""
    zone = ZoneInfo(BERLIN)
    for day, hours in ((31, 23), (27, 25)):
        at = datetime(2024, 4 if day == 31 else 10, 1 if day == 31 else 28, 12, tzinfo=zone).astimezone(UTC)
        asked = asked_time("What did I say yesterday?", at, BERLIN)
        assert asked is not None
        assert asked.intervals[0].until - asked.intervals[0].since == timedelta(hours=hours)


def test_a_date_without_a_year_is_the_latest_one_and_may_be_the_one_before():
    """December lies ahead in June, so last year's is meant; the one before counts half."""
    asked = asked_time("What did I do in December?", NOW, BERLIN)
    assert asked is not None
    assert [(one.since.year, one.weight) for one in asked.intervals] == [(2023, 1.0), (2022, 0.5)]


def test_the_present_counts_half():
    """`tonight` and `this week` are said of what is to come as well, of which nothing was said then."""
    asked = asked_time("What should I cook tonight?", NOW, BERLIN)
    assert asked is not None
    assert [one.weight for one in asked.intervals] == [0.5]


def test_several_times_are_several_intervals():
    """In the order of the question."""
    assert days("What did I do in April 2023 and in May 2024?") == [
        ("2023-04-01", "2023-05-01"),
        ("2024-05-01", "2024-06-01"),
    ]


@given(st.text(max_size=80), st.sampled_from([BERLIN, "Asia/Tokyo", "nowhere"]))
def test_any_text_is_read(text, timezone):
    """Whatever a client sends gives intervals that are none or in order."""
    asked = asked_time(text, NOW, timezone)
    assert asked is None or all(one.since <= one.until for one in asked.intervals)


_WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "in on last two 3 31 999 2023 week weeks month year ago since until before after between and May . 29"
        " February Monday summer weekend yesterday recently vor hace dos años 月 5月 前 去年 1999-02-30",
    )
)


@given(st.lists(_WORDS, max_size=10))
def test_any_order_of_time_words_is_read(words):
    """Nonsense made of time words too."""
    asked = asked_time(" ".join(words), NOW, BERLIN)
    assert asked is None or all(one.since <= one.until for one in asked.intervals)


def test_a_long_text_is_read_at_its_head_alone():
    """A pasted diary is no question about each of its days."""
    asked = asked_time("What is this? " + "It rained. " * 100 + "Yesterday", NOW, BERLIN)
    assert asked is None


def test_weeks_follow_one_another():
    """Without a gap and without an overlap."""
    spans = [days(text)[0] for text in ("What happened last week?", "What happened this week?")]
    assert all(one[1] == other[0] for one, other in pairwise(spans))
