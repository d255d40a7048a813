"""Queries in a language that the embedder does not know."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.embedders import StatedEmbedder, needs_multilingual

import conspectus
from conspectus import Engine, Settings
from conspectus.model.records import EmbeddingSpace
from conspectus.providers.onnx_embedder import OnnxEmbedder
from conspectus.retrieval.fusion import DEFAULT_FUSION, MULTILINGUAL_FUSION, fusion_for_model

BOOKS = "الكتب في المكتبة"
"""The books are in the library."""
FISH = "السمك في البحر cosine 0.9"
"""The fish are in the sea."""
NOTICE = "does not know the language of the query"


class LatinOnly(StatedEmbedder):
    """Knows Latin letters alone, and puts every query next to the fish."""

    def knows(self, text: str) -> bool:
        """Whether it is ASCII."""
        return text.isascii()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=LatinOnly()) as opened:
        await opened.add([BOOKS, FISH], wait=True)
        yield opened


@pytest.mark.parametrize("collection", ["default", "*"])
async def test_words_alone_decide_where_they_match(engine: Engine, collection: str) -> None:
    retrieval = await engine.retrieve("مكتبة", collection=collection)
    assert [hit.chunk.text for hit in retrieval.hits] == [BOOKS, FISH]
    assert retrieval.hits[0].parts["vector"] == 0.0
    assert retrieval.hits[1].parts["vector"] == 0.0
    assert any(NOTICE in notice for notice in retrieval.notices)


async def test_vectors_decide_where_no_word_matches(engine: Engine) -> None:
    retrieval = await engine.retrieve("سفينة")
    assert [hit.chunk.text for hit in retrieval.hits] == [FISH, BOOKS]


async def test_a_query_in_a_known_language_is_as_before(engine: Engine) -> None:
    retrieval = await engine.retrieve("fish")
    assert [hit.chunk.text for hit in retrieval.hits] == [FISH, BOOKS]
    assert retrieval.notices == ()
    assert "fusion" not in retrieval.plan


@pytest.mark.parametrize("retrievers", [("keyword",), ("vector",)])
async def test_one_retriever_alone_says_nothing_of_languages(
    engine: Engine, retrievers: tuple[str, ...]
) -> None:
    retrieval = await engine.retrieve("مكتبة", retrievers=retrievers)
    assert retrieval.notices == ()


@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        ("how do we restore a backup?", True),
        ("Wie stellt man die Größe ein?", True),
        ("", True),
        ("404 + 12.5", True),
        ("MiniLM の設定", True),
        ("كيف نستعيد النسخة الاحتياطية", False),
        ("Как восстановить копию", False),
        ("如何恢复备份 v2", False),
        ("\uff26\uff35\uff2c\uff2c width", True),
    ],
)
def test_the_built_in_model_knows_latin_letters(text: str, is_known: bool) -> None:
    assert OnnxEmbedder(threads=1).knows(text) is is_known


@needs_multilingual
async def test_a_query_finds_texts_in_another_language(
    tmp_path: Path,
) -> None:
    texts = ["Refunds are paid within two weeks.", "Die Hard is a film.", "In Wien man spricht von Kunst."]
    settings = Settings(embedder="multilingual")
    async with conspectus.open(tmp_path, settings=settings) as engine:
        await engine.add(texts, wait=True)
        retrieval = await engine.retrieve("In wie vielen Wochen zahlt man die Rückerstattung?")
        assert retrieval.hits[0].chunk.text == texts[0]
        assert retrieval.hits[0].parts["keyword"] < retrieval.hits[0].parts["vector"]
        same = await engine.retrieve("In how many weeks are refunds paid?")
        assert float(retrieval.plan["keyword_weight"]) < 0.1 < float(same.plan["keyword_weight"])


def test_the_weights_of_the_fusion_are_those_of_the_embedding_model() -> None:
    assert fusion_for_model(EmbeddingSpace("multilingual-e5-small", 384, "int8-2")) is MULTILINGUAL_FUSION
    assert fusion_for_model(EmbeddingSpace("another", 384, "1")) is fusion_for_model(None) is DEFAULT_FUSION


def test_unknown_terms_take_weight_from_keywords_with_the_multilingual_model_only() -> None:
    assert MULTILINGUAL_FUSION.with_unknown(0.5).intercept == MULTILINGUAL_FUSION.intercept
    assert MULTILINGUAL_FUSION.with_unknown(0.8).intercept == pytest.approx(
        MULTILINGUAL_FUSION.intercept - 3.0
    )
    assert not DEFAULT_FUSION.unknown


def test_a_short_query_with_an_unknown_term_counts_as_any_other() -> None:
    assert MULTILINGUAL_FUSION.short > MULTILINGUAL_FUSION.with_unknown(0.5).short == 0.0
    assert MULTILINGUAL_FUSION.with_unknown(0.0) is MULTILINGUAL_FUSION
