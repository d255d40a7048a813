"""Search: hits, context windows and why, records of what was given, and experiments."""

from conspectus.model.results import Reranking
from conspectus.operations.answers import ANSWER_OPERATIONS
from conspectus.operations.experiments import EXPERIMENT_OPERATIONS
from conspectus.operations.search import SEARCH_OPERATIONS
from conspectus.web.dependencies import EngineOf
from conspectus.web.openapi import ReadOnly, Section
from conspectus.web.operation_routes import add_routes
from conspectus.web.schemas.documents import RerankBody

router = Section("questions")


@router.post("/rerank", dependencies=[ReadOnly])
async def rerank(body: RerankBody, engine: EngineOf) -> Reranking:
    """Passages found before, in the order of the reranker."""
    hits = await engine.search.get_hits(body.chunks)
    return await engine.search.rerank(body.query, hits, limit=body.limit)


add_routes(router, SEARCH_OPERATIONS)
add_routes(router, ANSWER_OPERATIONS)
add_routes(router, EXPERIMENT_OPERATIONS)
