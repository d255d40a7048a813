"""Questions to a server: hits, windows, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from conspectus.client.documents import Documents
from conspectus.client.encode import budget_json, encoded, query_json
from conspectus.client.request import ask
from conspectus.model.query import Budget, Query
from conspectus.model.records import Json
from conspectus.model.results import ContextWindow, Hit, Reranking, Retrieval

LIMIT: Final = Query("").limit
FLOOR: Final = 0.25


class Asking(Documents):
    """What the store has to say."""

    async def retrieve(self, /, query: str | Query, **fields: Any) -> Retrieval:
        """The best chunks for a question, best first, each with the parts of its score.

        `fields` are those of Query; the collection `*` stands for all that can be seen. Raises NotFound for
        an unknown collection.
        """
        return await self._channel.one(
            Retrieval, ask("/search", {"limit": LIMIT, **query_json(query, fields)})
        )

    async def window(
        self, /, query: str | Query, budget: int | Budget, *, renderer: str = "text", **fields: Any
    ) -> ContextWindow:
        """The right context for a question, rendered, never over the budget, with a reason for everything.

        `renderer` is text, xml, json, messages or guarded. Unless `limit` is given, as many hits are looked
        at as it takes to fill the budget.
        """
        body = {**_budgeted(query, fields, budget), "renderer": renderer}
        return await self._channel.one(ContextWindow, ask("/context", body))

    async def explain(
        self, /, query: str | Query, budget: int | Budget, *, document: str | None = None, **fields: Any
    ) -> ContextWindow:
        """A window whose trace also has the chunks of one document, whether they were found or not."""
        body = {**_budgeted(query, fields, budget), "document": document}
        return await self._channel.one(ContextWindow, ask("/explain", body))

    async def rerank(self, query: str, hits: Sequence[Hit], *, top_n: int = 5) -> Reranking:
        """The hits that answer the question best by the reranker of the server, with their relevance.

        Without one, or where it fails, the first in the order given, without relevance and with a notice.
        Hits whose chunks are no longer there, or can no longer be seen, are left out.
        """
        given = {hit.chunk.id: hit for hit in hits}
        body = {"query": query, "chunks": list(given), "top_n": top_n}
        answer = await self._channel.one(Reranking, ask("/rerank", encoded(body)))
        judged = [replace(each, hit=given[each.hit.chunk.id]) for each in answer.results]
        return replace(answer, results=tuple(judged))

    async def search_and_rerank(
        self, /, query: str | Query, *, search_limit: int = 50, top_n: int = 5, **fields: Any
    ) -> Reranking:
        """Look broadly, then let the reranker choose; falls back as `rerank` does."""
        question = query_json(query, fields, only_given={"limit"})
        body = {"query": question, "search_limit": search_limit, "top_n": top_n}
        return await self._channel.one(Reranking, ask("/search-and-rerank", encoded(body)))

    async def augment(
        self, /, query: str | Query, budget: int | Budget, *, floor: float = FLOOR, **fields: Any
    ) -> ContextWindow:
        """The window over everything that can be seen, without what is less similar than the floor."""
        question = query_json(query, fields, only_given={"collection", "floor", "limit"})
        body = {"query": question, "budget": budget_json(budget), "floor": floor}
        return await self._channel.one(ContextWindow, ask("/augment", encoded(body)))


def _budgeted(query: str | Query, fields: Mapping[str, Any], budget: int | Budget) -> dict[str, Json]:
    question = query_json(query, fields, only_given={"limit"})
    return {"query": question, "budget": budget_json(budget)}
