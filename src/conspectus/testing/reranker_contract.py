"""What every reranker must do. Subclass `RerankerContract`, give it `reranker`, let pytest collect it.

The reranker's model must judge as `OverlapReranker` does: by the share of the question's words.
"""

import re
from collections.abc import Sequence

import pytest

from conspectus.ports.web import Reranker

TEXTS = ("the red fox", "the blue whale sings", "a red whale", "nothing of it", "whale red the blue")


def overlap(query: str, text: str) -> float:
    """The share of the question's words that a text has, as its relevance."""
    query_words = set(re.findall(r"\w+", query.lower()))
    return len(query_words & set(re.findall(r"\w+", text.lower()))) / len(query_words) if query_words else 0.0


class OverlapReranker:
    """The reference: the share of the question's words that a text has."""

    @property
    def model(self) -> str:
        """Its name."""
        return "overlap"

    async def rerank(self, query: str, texts: Sequence[str], *, limit: int) -> Sequence[tuple[int, float]]:
        """The most similar texts, the earlier one first where two are equal."""
        scored = [(position, overlap(query, text)) for position, text in enumerate(texts)]
        return sorted(scored, key=lambda scored_text: (-scored_text[1], scored_text[0]))[: max(0, limit)]

    async def close(self) -> None:
        """Nothing to release."""


class RerankerContract:
    """The behaviour of every reranker, as tests. Fixture to override: `reranker`."""

    @pytest.fixture
    def reranker(self) -> Reranker:
        """The adapter, closed by its fixture."""
        raise NotImplementedError

    async def agree(self, reranker: Reranker, query: str, texts: Sequence[str], limit: int) -> None:
        """Assert that the answer is the reference's."""
        expected = await OverlapReranker().rerank(query, texts, limit=limit)
        ranking = await reranker.rerank(query, texts, limit=limit)
        assert [position for position, _ in ranking] == [position for position, _ in expected]
        assert [score for _, score in ranking] == pytest.approx([score for _, score in expected])

    @pytest.mark.parametrize("limit", [1, 3, 5, 50])
    async def test_best_first_and_no_more_than_asked_for(self, reranker: Reranker, limit: int) -> None:
        """The order is that of relevance, ties in the order of the texts."""
        await self.agree(reranker, "the blue whale", TEXTS, limit)
        assert len(await reranker.rerank("the blue whale", TEXTS, limit=limit)) == min(limit, len(TEXTS))

    @pytest.mark.parametrize("limit", [0, 5])
    async def test_no_text_or_no_room(self, reranker: Reranker, limit: int) -> None:
        """Nothing to judge: an empty answer."""
        assert list(await reranker.rerank("fox", TEXTS if limit == 0 else (), limit=limit)) == []

    async def test_one_text(self, reranker: Reranker) -> None:
        """A single text is judged like any other."""
        await self.agree(reranker, "red fox", ["a fox"], 5)

    async def test_many_texts(self, reranker: Reranker) -> None:
        """As many as a search can bring, the best of them last."""
        texts = [f"whale number {number}" for number in range(120)]
        await self.agree(reranker, "whale 119", texts, 10)
        assert (await reranker.rerank("whale 119", texts, limit=10))[0][0] == 119

    async def test_equal_texts(self, reranker: Reranker) -> None:
        """The same text twice is two texts."""
        await self.agree(reranker, "fox", ["the fox", "the fox", "a hen"], 3)

    @pytest.mark.parametrize("odd", ["", " \n\t", "\ud800 fox", "fox\u0000", "🦊 fox 日本", "fox " * 20_000])
    async def test_odd_texts_and_questions(self, reranker: Reranker, odd: str) -> None:
        """Blank, broken, foreign and very long texts are judged, not refused."""
        ranking = await reranker.rerank("fox", [odd, "red fox"], limit=2)
        assert sorted(position for position, _ in ranking) == [0, 1]
        assert len(await reranker.rerank(odd, ["red fox", "a hen"], limit=2)) == 2

    async def test_relevance_is_a_share(self, reranker: Reranker) -> None:
        """Between 0 and 1, both reached."""
        scores = [score for _, score in await reranker.rerank("nothing of it", TEXTS, limit=5)]
        assert (scores[0], scores[-1]) == (1.0, 0.0)

    async def test_it_has_a_name(self, reranker: Reranker) -> None:
        """The model's name is for people to read."""
        assert reranker.model.strip()
