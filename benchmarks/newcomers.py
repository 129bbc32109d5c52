"""A new user's first memories, questions about them, questions left unanswered, and unrelated requests.

Used by `newcomer.py` only. What ends in `HELD_OUT` was written at the same time and by the same hand as the
rest, but no rule and no number of recall was chosen on it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Newcomer:
    """One user: up to ten things said, and questions with the places of those that answer."""

    said: tuple[str, ...]
    direct: tuple[tuple[str, tuple[int, ...]], ...]
    """Questions that share words or their plain meaning with what was said."""
    indirect: tuple[tuple[str, tuple[int, ...]], ...]
    """Questions that what was said bears on, without a word in common."""


NEWCOMERS: tuple[Newcomer, ...] = (
    Newcomer(
        said=(
            "I am allergic to kiwi.",
            "I moved to Lisbon in March and work as a nurse.",
            "By the way, my dog is called Zebedee.",
            "My name is Ada.",
            "I run ten kilometres every morning before work.",
            "My daughter Lena turns six in June.",
            "I drive an old Volvo.",
            "My brother Tom has a bakery in Leeds.",
            "I really can't stand coriander.",
            "We are flying to Iceland in September.",
        ),
        direct=(
            ("What is the name of my dog?", (2,)),
            ("What am I allergic to?", (0,)),
            ("How old is my daughter?", (5,)),
            ("What car do I drive?", (6,)),
            ("Where are we flying in September?", (9,)),
            ("Wie heißt mein Hund?", (2,)),
        ),
        indirect=(
            ("What should I cook tonight?", (0, 8)),
            ("Where do I live?", (1,)),
            ("What do I do for a living?", (1,)),
            ("What should I pack for our holiday?", (9,)),
            ("Which sport do I do?", (4,)),
            ("Was soll ich heute kochen?", (0, 8)),
        ),
    ),
    Newcomer(
        said=(
            "Ich bin vor zwei Jahren nach Graz gezogen.",
            "Meine Frau heißt Judith und ist Zahnärztin.",
            "Ich vertrage keine Milch.",
            "Ich baue gerade ein Baumhaus mit meinen Söhnen.",
            "Ich habe Höhenangst.",
            "Am liebsten höre ich Bach.",
            "Ich lerne seit dem Sommer Portugiesisch.",
            "Unser Kater heißt Moritz.",
            "Ich arbeite bei der Stadt als Verkehrsplaner.",
            "Ich trinke nur grünen Tee.",
        ),
        direct=(
            ("Wie heißt meine Frau?", (1,)),
            ("Wie heißt unser Kater?", (7,)),
            ("Welche Sprache lerne ich?", (6,)),
            ("What is my wife's job?", (1,)),
            ("Wo arbeite ich?", (8,)),
        ),
        indirect=(
            ("Wo wohne ich?", (0,)),
            ("Was soll ich zum Frühstück essen?", (2,)),
            ("Welches Konzert könnte mir gefallen?", (5,)),
            ("Should I go climbing with my friends?", (4,)),
            ("What do you know about me?", (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)),
        ),
    ),
    Newcomer(
        said=(
            "Soy celíaca.",
            "Me mudé a Valencia por trabajo.",
            "Mi hijo Mateo juega al baloncesto.",
            "Trabajo de noche en un hospital.",
            "Mi madre cumple setenta años en mayo.",
            "No me gusta el calor.",
            "Tengo dos gatos, Luna y Sol.",
            "Estoy ahorrando para comprar una casa.",
            "Estudié química en Granada.",
            "Voy a todas partes en bicicleta.",
        ),
        direct=(
            ("¿Cómo se llaman mis gatos?", (6,)),
            ("¿Qué deporte practica mi hijo?", (2,)),
            ("¿Qué estudié?", (8,)),
            ("When is my mother's birthday?", (4,)),
        ),
        indirect=(
            ("¿Qué puedo cenar hoy?", (0,)),
            ("¿Dónde vivo?", (1,)),
            ("¿Adónde debería ir de vacaciones?", (5, 7)),
            ("How do I get to work?", (9,)),
        ),
    ),
)

NEWCOMERS_HELD_OUT: tuple[Newcomer, ...] = (
    Newcomer(
        said=(
            "I've been a vegan since college.",
            "Our flat in Bristol is tiny.",
            "My partner Sam plays the trumpet.",
            "I get migraines from red wine.",
            "I teach maths to eleven year olds.",
            "My parents are visiting us next week.",
            "I broke my left knee skiing last winter.",
            "My phone is an old Pixel.",
            "I love Terry Pratchett.",
            "Our rabbit is named Biscuit.",
        ),
        direct=(
            ("What's our rabbit's name?", (9,)),
            ("Which instrument does my partner play?", (2,)),
            ("Which phone do I have?", (7,)),
            ("Who is coming to visit us?", (5,)),
            ("What gives me migraines?", (3,)),
            ("Comment s'appelle notre lapin ?", (9,)),
        ),
        indirect=(
            ("What could I order at the restaurant?", (0, 3)),
            ("Which town am I in?", (1,)),
            ("What's my job?", (4,)),
            ("Which novel should I read next?", (8,)),
            ("What should I be careful with at the gym?", (6,)),
            ("Où est-ce que j'habite ?", (1,)),
        ),
    ),
    Newcomer(
        said=(
            "J'ai déménagé à Lyon l'an dernier.",
            "Je suis allergique aux noix.",
            "Ma fille Chloé passe le bac cette année.",
            "Je suis menuisier.",
            "Mon mari déteste l'avion.",
            "Nous avons un potager.",
            "Je joue de la guitare le soir.",
            "Je ne mange pas de porc.",
            "Mon chien s'appelle Filou.",
            "J'ai mal au dos depuis janvier.",
        ),
        direct=(
            ("Comment s'appelle mon chien ?", (8,)),
            ("De quel instrument est-ce que je joue ?", (6,)),
            ("À quoi suis-je allergique ?", (1,)),
            ("What is my dog's name?", (8,)),
        ),
        indirect=(
            ("Dans quelle ville est-ce que je vis ?", (0,)),
            ("Que puis-je préparer pour le dîner ?", (1, 7)),
            ("Quel est mon métier ?", (3,)),
            ("How should we travel to Rome this summer?", (4,)),
            ("Quel matelas devrais-je acheter ?", (9,)),
        ),
    ),
    Newcomer(
        said=(
            "我对花生过敏。",
            "我去年搬到了成都。",
            "我女儿叫小雨。",
            "我在银行上班。",
            "我每天晚上打羽毛球。",
            "我怕狗。",
        ),
        direct=(("我女儿叫什么名字？", (2,)), ("我在哪里上班？", (3,)), ("我对什么过敏？", (0,))),
        indirect=(("我住在哪里？", (1,)), ("我今天晚上吃什么好？", (0,)), ("我做什么运动？", (4,))),
    ),
)

ASKED: tuple[tuple[str, str], ...] = (
    ("Where do I live?", "I don't know where you live."),
    ("What is my favourite film?", "I'm sorry, but I don't have any information about your favourite film."),
    ("When is my birthday?", "You haven't told me your birthday yet. If you share it, I'll remember it!"),
    (
        "What's my sister's name?",
        "I don't have access to personal information about you unless you share it with me in our chat.",
    ),
    ("Do I have any meetings today?", "I'm unable to see your calendar. Could you tell me more?"),
    ("Hi! What did I eat yesterday? Thanks", "I don't know."),
    ("What is my blood type?", ""),
    ("Wann habe ich Geburtstag?", "Das weiß ich leider nicht."),
    ("Wie heißt meine Schwester?", "Du hast mir noch nicht gesagt, wie deine Schwester heißt."),
    ("Wo wohne ich?", "Darüber habe ich keine Informationen. Magst du es mir verraten?"),
    ("¿Dónde vivo?", "No lo sé, no me lo has dicho todavía."),
    ("¿Cuándo es mi cumpleaños?", "Lo siento, no tengo esa información."),
    ("Où est-ce que j'habite ?", "Je ne sais pas, vous ne me l'avez pas encore dit."),
    ("Quel est mon plat préféré ?", "Désolé, je n'ai pas cette information."),
    ("Dove abito?", "Mi dispiace, non lo so."),
    ("Как меня зовут?", "К сожалению, я не знаю, как вас зовут."),
    ("我住在哪里？", "抱歉，我不知道您住在哪里。"),
    ("私の誕生日はいつ？", "申し訳ありませんが、わかりません。"),
)
"""Questions that were asked before, and replies that say nothing."""

ASKED_HELD_OUT: tuple[tuple[str, str], ...] = (
    ("Which school did I go to?", "I don't have that information. You haven't mentioned it before."),
    ("what's my address", "Sorry, I can't know your address."),
    ("Who is my boss?", "I'm not sure who your boss is. Can you give me more context?"),
    (
        "How tall am I?",
        "As an AI, I don't have access to personal details about you, so I can't tell how tall you are.",
    ),
    ("When did I start my job?", "Hmm, you haven't mentioned when you started your job. When was it?"),
    ("Can you tell me my favourite band?", "Unfortunately I do not know your favourite band."),
    ("What's my cat's name?", "I don't recall you telling me your cat's name. What is it?"),
    ("Wer ist mein Chef?", "Tut mir leid, das kann ich nicht wissen, weil du es mir nicht erzählt hast."),
    ("Wie alt bin ich?", "Ich weiß nicht, wie alt du bist."),
    ("¿Cómo se llama mi jefe?", "No tengo acceso a información personal sobre ti."),
    ("Quel âge ai-je ?", "Je ne connais pas votre âge. Pouvez-vous me le dire ?"),
    ("Qual è il mio colore preferito?", "Non ho informazioni sul tuo colore preferito."),
    ("Qual é o meu nome?", "Desculpe, não sei o seu nome. Você ainda não me contou."),
    ("Где я работаю?", "Я не знаю, где вы работаете. Вы мне ещё не говорили."),
    ("我的生日是什么时候？", "你还没有告诉我你的生日。"),
    ("私はどこに住んでいますか？", "その情報は持っていません。教えていただけますか？"),
    ("내 생일이 언제야?", "죄송하지만 알 수 없습니다."),
)

ANSWERED: tuple[tuple[str, str], ...] = (
    ("What is the tallest mountain in Austria?", "The Großglockner, at 3,798 metres."),
    ("Where do I live?", "You live in Lisbon."),
    ("Is my dog allowed to eat grapes?", "No, grapes are toxic to dogs."),
    ("What should I feed my rabbit?", "Mostly hay, some leafy greens, and fresh water."),
    ("Was koche ich für acht Gäste?", "Ein Ofengemüse mit Couscous lässt sich gut vorbereiten."),
    ("¿Qué libro me recomiendas?", "Te recomiendo La sombra del viento."),
    ("How old am I?", "42."),
    ("What's my dog's name?", "I remember you told me that your dog's name is Rex!"),
    ("谁写了《红楼梦》？", "曹雪芹。"),
    ("I am allergic to kiwi, what should I eat?", "I don't know."),
    ("My sister is called Clara.", "I see, I don't have that information yet. Thanks for telling me!"),
    ("Ich wohne in Bern. Wo kann ich baden?", "Das weiß ich leider nicht."),
)
"""Exchanges that hold something, in what was said or in the reply: none of them says nothing."""

ANSWERED_HELD_OUT: tuple[tuple[str, str], ...] = (
    ("What did I say my gate code was?", "4711"),
    ("Who painted The Night Watch?", "Rembrandt."),
    ("What should we see in Porto?", "I don't know your taste, but the Livraria Lello and a port cellar."),
    ("Wie heißt mein Chef?", "Dein Chef heißt Herr Brandner."),
    ("Does my plan include dental?", "Yes, up to 500 a year."),
    ("Quel est le plus long fleuve de France ?", "La Loire, avec 1 006 kilomètres."),
    ("Since I moved to Ghent, where can I swim?", "I don't have information about pools."),
    ("我叫李雷，你是谁？", "我不知道。"),
    ("¿Cómo se llama mi hermana?", "Se llama Clara."),
)

UNRELATED: tuple[str, ...] = (
    "Write a haiku about rivers",
    "What is 17*23?",
    "Fix this Python traceback: KeyError: 'name' in line 12 of main.py",
    "Why does my code raise IndexError: list index out of range?",
    "How do I centre a div?",
    "How can I merge two branches in git?",
    "Tell me a joke about lawyers",
    "Give me five synonyms for quick",
    "Can you help me write a regular expression for dates?",
    "Can I use a list as a key in a Python dict?",
    "When should I use a semicolon?",
    "Translate to French: where is the station?",
    "What is wrong with my function?\ndef f(x): retrun x",
    "Please proofread my sentence: She go to school.",
    "Explain recursion to me",
    "I need a SQL query that counts rows by day",
    "Who won the world cup in 1998?",
    "Summarise this article for me",
    "Wie konvertiere ich einen String in eine Zahl in Java?",
    "Schreib mir einen Limerick über Katzen",
    "¿Cómo puedo ordenar una lista en Python?",
    "Écris-moi un courriel pour annuler un abonnement",
    "给我讲个笑话",
    "Pythonで辞書を並べ替える方法を教えて",
)
"""Requests that nothing about the user helps with."""

UNRELATED_HELD_OUT: tuple[str, ...] = (
    "Write a limerick about the sea",
    "What is the square root of 2025?",
    "Why do I get 'undefined is not a function' in this code: items.map(x => x.id)",
    "How do I convert a CSV to JSON with jq?",
    "How would I write a for loop in Bash?",
    "Should I use tabs or spaces in a Makefile?",
    "Can you explain monads to me?",
    "My SQL query is slow: SELECT * FROM orders WHERE total > 5. How do I speed it up?",
    "Give me a title for a blog post about bees",
    "I want you to act as a pirate and describe a storm",
    "Rewrite my paragraph in a formal tone: hey guys, we're late",
    "Where can I find the logs of a systemd service?",
    "What is the difference between TCP and UDP?",
    "Do I need a semicolon at the end of a JavaScript line?",
    "Wie kann ich in Git einen Commit rückgängig machen?",
    "Warum kompiliert mein Programm nicht? Fehler: expected ';'",
    "Übersetze mir das ins Englische: Ich bin müde.",
    "¿Por qué falla mi consulta SQL? SELECT nombre FROM",
    "Escríbeme un poema sobre la luna",
    "Comment puis-je trier un tableau en PHP ?",
    "Raconte-moi une blague",
    "帮我写一首关于秋天的诗",
    "解释一下什么是递归",
    "円周率を10桁まで教えて",
)
