"""Search on a server."""

from collections.abc import Sequence
from dataclasses import replace

from conspectus.client.operations import derive_client
from conspectus.client.request import query_request, to_json
from conspectus.client.transport import RemoteService
from conspectus.engine.search import RERANKED_HITS, SearchService
from conspectus.model.results import ContextWindow, Feedback, Hit, Reranking


@derive_client
class RemoteSearch(RemoteService, SearchService):
    """Search on a server."""

    async def rerank(self, query: str, hits: Sequence[Hit], *, limit: int = RERANKED_HITS) -> Reranking:
        hits_by_chunk = {hit.chunk.id: hit for hit in hits}
        body = {"query": query, "chunks": list(hits_by_chunk), "limit": limit}
        answer = await self._channel.one(Reranking, query_request("/rerank", to_json(body)))
        judged = [replace(ranked, hit=hits_by_chunk[ranked.hit.chunk.id]) for ranked in answer.results]
        return replace(answer, results=tuple(judged))

    async def feedback(
        self, window: ContextWindow, *, used: Sequence[int] = (), wrong: Sequence[int] = ()
    ) -> Sequence[Feedback]:
        return await SearchService.feedback(self, window, used=used, wrong=wrong)
