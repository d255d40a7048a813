"""Questions to a server: hits, windows, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from conspectus.client.encode import budget_json, encoded, query_json
from conspectus.client.operations import derived
from conspectus.client.request import ask
from conspectus.client.service import RemoteService
from conspectus.engine.search import SearchService
from conspectus.model.query import Budget, Query
from conspectus.model.records import Json
from conspectus.model.results import ContextWindow, Hit, Reranking, Retrieval

LIMIT: Final = Query("").limit
FLOOR: Final = 0.25


@derived
class RemoteSearch(RemoteService, SearchService):
    """Search on a server."""

    async def retrieve(self, /, query: str | Query, **fields: Any) -> Retrieval:
        return await self._channel.one(
            Retrieval, ask("/search", {"limit": LIMIT, **query_json(query, fields)})
        )

    async def window(
        self, /, query: str | Query, budget: int | Budget, *, renderer: str = "text", **fields: Any
    ) -> ContextWindow:
        body = {**_budgeted(query, fields, budget), "renderer": renderer}
        return await self._channel.one(ContextWindow, ask("/context", body))

    async def explain(
        self, /, query: str | Query, budget: int | Budget, *, document: str | None = None, **fields: Any
    ) -> ContextWindow:
        body = {**_budgeted(query, fields, budget), "document": document}
        return await self._channel.one(ContextWindow, ask("/explain", body))

    async def rerank(self, query: str, hits: Sequence[Hit], *, top_n: int = 5) -> Reranking:
        given = {hit.chunk.id: hit for hit in hits}
        body = {"query": query, "chunks": list(given), "top_n": top_n}
        answer = await self._channel.one(Reranking, ask("/rerank", encoded(body)))
        judged = [replace(each, hit=given[each.hit.chunk.id]) for each in answer.results]
        return replace(answer, results=tuple(judged))

    async def search_and_rerank(
        self, /, query: str | Query, *, search_limit: int = 50, top_n: int = 5, **fields: Any
    ) -> Reranking:
        question = query_json(query, fields, only_given={"limit"})
        body = {"query": question, "search_limit": search_limit, "top_n": top_n}
        return await self._channel.one(Reranking, ask("/search-and-rerank", encoded(body)))

    async def augment(
        self, /, query: str | Query, budget: int | Budget, *, floor: float = FLOOR, **fields: Any
    ) -> ContextWindow:
        question = query_json(query, fields, only_given={"collection", "floor", "limit"})
        body = {"query": question, "budget": budget_json(budget), "floor": floor}
        return await self._channel.one(ContextWindow, ask("/augment", encoded(body)))


def _budgeted(query: str | Query, fields: Mapping[str, Any], budget: int | Budget) -> dict[str, Json]:
    question = query_json(query, fields, only_given={"limit"})
    return {"query": question, "budget": budget_json(budget)}
