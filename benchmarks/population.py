"""A made-up population: users in tenants by Zipf's law, dated dialogue, and vectors that need no model.

Everything follows from the number of pages alone, so that two runs see the same store. Ten pages a user on
average, a hundred users a tenant; tenants and a tenant's users by Zipf's law, and the pages of all of them
mixed in the order of time, as traffic would have written them. A few owners beside them have a fixed number
of pages (`probes`), so that stores of different size can be asked the same thing.

Words are English ones, or pieces of them, out of the token table, by Zipf's law over their rank. Each page is
about one of its user's twelve topics: a third of its words are the topic's own, and its vectors are the
topic's centroid, a direction that all texts share, and noise, so that two texts of one topic have a cosine of
0.52 and others of 0.16. `made_embedder` gives a question its vector by the same rule; it embeds the text with
the default embedder all the same, for the time that this takes.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from hearth.config.environment import bundled_token_tables
from hearth.memory.embed.use import UseEmbedder
from hearth.memory.recall.tokens import TABLE
from hearth.memory.types import Page, Scope, Vector

CACHE = Path(tempfile.gettempdir()) / "hearth-benchmark"
EMBEDDER = f"{Path(__file__).stem}:made_embedder"
"""For `load_embedder`, in a process with this folder in PYTHONPATH (`importable`)."""
PROBES = {10: 10, 100: 5, 1_000: 2, 10_000: 1}
"""How many owners of so many pages there are beside the population, where the store is ten times as large."""
BEGIN, DAYS = datetime(2024, 1, 1, tzinfo=UTC), 700
TOPICS, TOPICS_A_USER, TOPIC_WORDS, VOCABULARY = 2_000, 12, 30, 20_000
COMMON, TOPIC, NOISE = 0.4, 0.6, 0.69
"""Shares of a vector's parts; their squares are 1 together."""
SAID, ANSWERED = 14, 56
"""Words of a question and of a reply."""


def importable() -> None:
    """Let processes that we start import this module."""
    there = os.environ.get("PYTHONPATH", "")
    here = str(Path(__file__).parent)
    if here not in there.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, there)))


class Language:
    """Words, topics and vectors, the same in every process."""

    def __init__(self) -> None:
        chance = np.random.default_rng(11)
        self.words = _words()
        self._shares = np.cumsum(1 / (np.arange(len(self.words)) + 2.7))
        self.topics = chance.integers(300, len(self.words), (TOPICS, TOPIC_WORDS))
        self._own = np.cumsum(1 / (np.arange(TOPIC_WORDS) + 2.7))

    @cached_property
    def _directions(self) -> tuple[np.ndarray, np.ndarray]:
        chance = np.random.default_rng(12)
        return _unit(chance, 1), _unit(chance, TOPICS)

    @cached_property
    def _owners(self) -> dict[str, list[int]]:
        """The topics of each word."""
        found: dict[str, list[int]] = defaultdict(list)
        for topic, words in enumerate(self.topics.tolist()):
            for word in words:
                found[self.words[word]].append(topic)
        return found

    def text(self, chance: np.random.Generator, topic: int, length: int, *, own: float = 0.35) -> str:
        """So many words, the share `own` of them the topic's."""
        common = np.searchsorted(self._shares, chance.random(length) * self._shares[-1]).tolist()
        place = np.searchsorted(self._own, chance.random(length) * self._own[-1])
        special, which = self.topics[topic][place].tolist(), (chance.random(length) < own).tolist()
        return " ".join(
            self.words[a if mine else b] for a, b, mine in zip(special, common, which, strict=True)
        )

    def topic_of(self, text: str) -> int | None:
        """The topic whose words the text has most of; None where it has none."""
        votes = Counter(
            topic for word in re.findall(r"\w+", text) for topic in dict.fromkeys(self._owners.get(word, ()))
        )
        return min(votes, key=lambda topic: (-votes[topic], topic)) if votes else None

    def vectors(self, chance: np.random.Generator, topic: int | None, count: int) -> np.ndarray:
        """(count, dimension) vectors of length 1 about the topic."""
        common, topics = self._directions
        made = COMMON * common + NOISE * _unit(chance, count)
        made = made + TOPIC * topics[topic] if topic is not None else made
        return made / np.linalg.norm(made, axis=1, keepdims=True)


class Population:
    """`pages` dated pages of users and probes, by number."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.users = max(pages // 10, 100)
        self.tenants = self.users // 100
        self.probes = {size: count for size, count in PROBES.items() if size * 10 <= pages}
        self.language = Language()
        self._tenant_shares = np.cumsum(1 / (np.arange(self.tenants) + 10))
        self._user_shares = np.cumsum(1 / (np.arange(100) + 1))

    def draw(self, chance: np.random.Generator, count: int) -> np.ndarray:
        """Numbers of so many callers, as traffic has them."""
        tenants = np.searchsorted(self._tenant_shares, chance.random(count) * self._tenant_shares[-1])
        users = np.searchsorted(self._user_shares, chance.random(count) * self._user_shares[-1])
        return tenants * 100 + users

    def scope(self, user: int) -> Scope:
        """Whose memory: from 0 the population, from -1 downwards the probes."""
        if user < 0:
            return Scope(tenant="probe", user=f"probe-{-user}")
        return Scope(tenant=f"tenant-{user // 100}", user=f"user-{user}")

    def probe(self, size: int) -> list[int]:
        """The probes that have so many pages."""
        return [user for user, pages in self._probe_pages.items() if pages == size]

    def topics(self, user: int) -> list[int]:
        """What the user speaks of."""
        made = np.random.default_rng((13, user + 100))
        return made.integers(0, TOPICS, TOPICS_A_USER).tolist()

    def owners(self) -> list[int]:
        """The user of each page, in the order of time."""
        chance = np.random.default_rng(14)
        probes = np.repeat(list(self._probe_pages), list(self._probe_pages.values())).astype(int)
        drawn = np.concatenate([probes, self.draw(chance, self.pages - len(probes))])
        return chance.permutation(drawn).tolist()

    def all(self) -> Iterator[tuple[Page, int]]:
        """Every page with its topic, each with the user's page before it as `previous`."""
        before: dict[int, str] = {}
        topics: dict[int, list[int]] = {}
        for number, user in enumerate(self.owners()):
            page, topic = self._page(number, user, topics.setdefault(user, self.topics(user)), before)
            before[user] = page.id
            yield page, topic

    def question(self, number: int, user: int) -> str:
        """Something about one of the user's topics, no two alike."""
        chance = np.random.default_rng((15, number))
        topic = self.topics(user)[int(chance.integers(TOPICS_A_USER))]
        words = self.language.text(chance, topic, 8, own=0.6)
        return f"What did I say about {words}, and when was that? (note {number})"

    @cached_property
    def _probe_pages(self) -> dict[int, int]:
        sizes = [size for size, count in self.probes.items() for _ in range(count)]
        return {-1 - place: size for place, size in enumerate(sizes)}

    def _page(
        self, number: int, user: int, topics: Sequence[int], before: dict[int, str]
    ) -> tuple[Page, int]:
        chance = np.random.default_rng((16, number))
        topic = topics[int(chance.integers(len(topics)))]
        day = number * DAYS // self.pages
        scope = self.scope(user)
        page = Page(
            id=UUID(int=(number << 64) | 0x4ECD << 48 | self.pages).hex,
            scope=Scope(tenant=scope.tenant, user=scope.user, session=f"{scope.user}-{day}"),
            generation=1,
            user_text=self.language.text(chance, topic, SAID),
            reply_text=self.language.text(chance, topic, ANSWERED),
            occurred_at=BEGIN + timedelta(seconds=number * DAYS * 86_400 // self.pages),
            previous=before.get(user),
        )
        return page, topic


class Made:
    """The default embedder's time, and the population's vectors."""

    holds_gil = True

    def __init__(self) -> None:
        self._inner, self._language = UseEmbedder(), Language()
        self._language.topic_of("")
        self._language.vectors(np.random.default_rng(0), None, 1)

    @property
    def name(self) -> str:
        """The default embedder's, whose calibration holds for cosines like these."""
        return self._inner.name

    @property
    def dimension(self) -> int:
        """The default embedder's."""
        return self._inner.dimension

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order."""
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; of equal texts equal ones."""
        self._inner.embed_documents(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        chance = np.random.default_rng((17, zlib.crc32(text.encode())))
        vector: Vector = self._language.vectors(chance, self._language.topic_of(text), 1)[0].tolist()
        return vector


def made_embedder() -> Made:
    """The factory that `EMBEDDER` names."""
    return Made()


class Progress:
    """Says once in a while how far some long work is."""

    def __init__(self, what: str, whole: int, *, every: float = 15.0) -> None:
        self._what, self._whole, self._every = what, whole, every
        self._began = self._said = time.monotonic()

    def at(self, count: int) -> None:
        """So much is done."""
        now = time.monotonic()
        if count < self._whole and now - self._said < self._every:
            return
        self._said = now
        print(f"{self._what}: {count} of {self._whole} after {now - self._began:.0f} s", flush=True)


def _unit(chance: np.random.Generator, count: int) -> np.ndarray:
    drawn: Any = chance.standard_normal((count, 512), dtype=np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _words() -> list[str]:
    """The most frequent lower-case words of the token table, most frequent first."""
    tables = bundled_token_tables()
    if tables is None:
        raise RuntimeError("LiteLLM's token tables are not installed")
    tokens = (base64.b64decode(line.split()[0]) for line in (tables / TABLE).read_bytes().splitlines())
    words = (found[1].decode() for token in tokens if (found := re.fullmatch(rb" ([a-z]{3,12})", token)))
    return [word for word, _ in zip(words, range(VOCABULARY), strict=False)]
