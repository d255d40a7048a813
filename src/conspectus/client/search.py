"""Questions to a server: hits, windows, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Unpack

from conspectus.client.encode import budget_fields, encoded, query_json
from conspectus.client.operations import derived
from conspectus.client.request import ask
from conspectus.client.service import RemoteService
from conspectus.engine.search import SearchService
from conspectus.model.query import Budget, Query, QueryOptions
from conspectus.model.records import Json
from conspectus.model.results import ContextWindow, Hit, Reranking, Retrieval

LIMIT: Final = Query("").limit


@derived
class RemoteSearch(RemoteService, SearchService):
    """Search on a server."""

    async def retrieve(self, /, query: str | Query, **fields: Unpack[QueryOptions]) -> Retrieval:
        return await self._channel.one(
            Retrieval, ask("/search", {"limit": LIMIT, **query_json(query, fields)})
        )

    async def window(
        self,
        /,
        query: str | Query,
        max_tokens: int | Budget,
        *,
        format: str = "text",
        **fields: Unpack[QueryOptions],
    ) -> ContextWindow:
        body = {**_budgeted(query, fields, max_tokens), "format": format}
        return await self._channel.one(ContextWindow, ask("/context", body))

    async def explain(
        self,
        /,
        query: str | Query,
        max_tokens: int | Budget,
        *,
        document: str | None = None,
        **fields: Unpack[QueryOptions],
    ) -> ContextWindow:
        body = {**_budgeted(query, fields, max_tokens), "document": document}
        return await self._channel.one(ContextWindow, ask("/explain", body))

    async def rerank(self, query: str, hits: Sequence[Hit], *, limit: int = 5) -> Reranking:
        given = {hit.chunk.id: hit for hit in hits}
        body = {"query": query, "chunks": list(given), "limit": limit}
        answer = await self._channel.one(Reranking, ask("/rerank", encoded(body)))
        judged = [replace(each, hit=given[each.hit.chunk.id]) for each in answer.results]
        return replace(answer, results=tuple(judged))

    async def search_and_rerank(
        self, /, query: str | Query, *, candidates: int = 50, **fields: Unpack[QueryOptions]
    ) -> Reranking:
        asked = query_json(query, fields, only_given={"limit"})
        body = {**asked, "candidates": candidates}
        return await self._channel.one(Reranking, ask("/search-and-rerank", encoded(body)))

    async def augment(
        self,
        /,
        query: str | Query,
        max_tokens: int | Budget,
        **fields: Unpack[QueryOptions],
    ) -> ContextWindow:
        asked = query_json(query, fields, only_given={"collection", "min_similarity", "limit"})
        body = {**asked, **budget_fields(max_tokens)}
        return await self._channel.one(ContextWindow, ask("/augment", encoded(body)))


def _budgeted(query: str | Query, fields: Mapping[str, Any], budget: int | Budget) -> dict[str, Json]:
    return {**query_json(query, fields, only_given={"limit"}), **budget_fields(budget)}
