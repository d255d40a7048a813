"""Reranking of hits, and the order that stays where the reranker fails."""

from collections.abc import Sequence

import pytest
from tests.support.journal import make_chunk

from conspectus.errors import ProviderError, ProviderUnavailable
from conspectus.model.results import Hit, Retrieval
from conspectus.retrieval.reranking import MAX_RERANKED_HITS, rerank_best, rerank_hits
from conspectus.testing.reranker_contract import OverlapReranker


class Watched(OverlapReranker):
    """The reference that remembers what it was shown, and fails on demand."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.shown: list[tuple[str, tuple[str, ...], int]] = []
        self._fault = fault

    async def rerank(self, query: str, texts: Sequence[str], *, limit: int) -> Sequence[tuple[int, float]]:
        self.shown.append((query, tuple(texts), limit))
        if self._fault is not None:
            raise self._fault
        return await super().rerank(query, texts, limit=limit)


def make_hit(number: int, text: str, score: float = 0.5, **fields) -> Hit:
    indexed = make_chunk(number, text, **fields)
    return Hit(indexed.chunk, indexed.document, score, {"keyword": score}, 1.0, None)


HITS = [make_hit(1, "a hen"), make_hit(2, "a red fox"), make_hit(3, "a fox"), make_hit(4, "red paint")]


async def test_the_most_relevant_come_first() -> None:
    answer = await rerank_hits("red fox", HITS, Watched(), limit=3)
    assert [(relevant.hit.chunk.id, relevant.relevance) for relevant in answer.results] == [
        (2, 1.0),
        (3, 0.5),
        (4, 0.5),
    ]
    assert (answer.model, answer.notice) == ("overlap", None)


async def test_texts_are_shown_as_the_index_knows_them() -> None:
    reranker = Watched()
    message = make_hit(2, "hello", kind="message", author="ann")
    await rerank_hits("q", [make_hit(1, "of foxes", title="Animals"), message], reranker, limit=5)
    assert reranker.shown == [("q", ("Animals\nof foxes", "ann: hello"), 5)]


@pytest.mark.parametrize(
    "fault", [ProviderError("p", "refused"), ProviderUnavailable("p", "busy", status=503)]
)
async def test_a_failure_keeps_the_order_and_says_so(fault: ProviderError) -> None:
    answer = await rerank_hits("red fox", HITS, Watched(fault), limit=2)
    assert [(relevant.hit.chunk.id, relevant.relevance) for relevant in answer.results] == [
        (1, None),
        (2, None),
    ]
    assert answer.notice == f"not reranked: {fault}"


async def test_without_a_reranker_the_order_stays_and_that_is_said() -> None:
    answer = await rerank_hits("red fox", HITS, None, limit=50)
    assert [relevant.hit.chunk.id for relevant in answer.results] == [1, 2, 3, 4]
    assert "no reranker is set" in answer.notice


@pytest.mark.parametrize(("hits", "limit"), [([], 5), (HITS, 0), (HITS, -1)])
async def test_nothing_to_judge_asks_nobody(hits: list[Hit], limit: int) -> None:
    reranker = Watched()
    answer = await rerank_hits("red fox", hits, reranker, limit=limit)
    assert (answer.results, answer.notice, reranker.shown) == ((), None, [])


async def test_a_defect_is_not_taken_for_a_failing_provider() -> None:
    with pytest.raises(ZeroDivisionError):
        await rerank_hits("red fox", HITS, Watched(ZeroDivisionError()), limit=2)


async def test_an_answer_is_reordered_and_its_scores_still_add_up() -> None:
    rest = [make_hit(number, "a hen") for number in range(10, 10 + MAX_RERANKED_HITS)]
    reranked = await rerank_best("red fox", Retrieval("found", (*HITS, *rest)), Watched())
    assert [hit.chunk.id for hit in reranked.hits[:3]] == [2, 3, 4]
    assert len(reranked.hits) == len(HITS) + MAX_RERANKED_HITS
    assert [hit.score for hit in reranked.hits] == sorted((hit.score for hit in reranked.hits), reverse=True)
    assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in reranked.hits)
    assert reranked.plan["reranker"] == "overlap"


async def test_an_answer_that_cannot_be_reordered_stays_and_says_so() -> None:
    before = Retrieval("found", tuple(HITS), notices=("first",))
    reranked = await rerank_best("red fox", before, Watched(ProviderError("p", "refused")))
    assert reranked.hits == before.hits
    assert reranked.notices == ("first", "not reranked: p: refused")
    assert await rerank_best("red fox", before, None) is before
