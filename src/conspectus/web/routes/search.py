"""Questions."""

from conspectus.model.results import ContextWindow, Reranking, Retrieval
from conspectus.web.deps import EngineOf
from conspectus.web.openapi import Section, problems
from conspectus.web.operation_schemas import answered
from conspectus.web.schemas.search import (
    AugmentBody,
    ContextBody,
    ExplainBody,
    RerankBody,
    SearchAndRerankBody,
    SearchBody,
)

router = Section("questions")


@router.post("/search", response_model=answered(Retrieval), responses=problems())
async def search(body: SearchBody, engine: EngineOf) -> Retrieval:
    """The best passages, each with the parts of its score."""
    return await engine.retrieve(body.taken())


@router.post("/context", response_model=answered(ContextWindow), responses=problems())
async def context(body: ContextBody, engine: EngineOf) -> ContextWindow:
    """The right context for a question, never over the budget."""
    return await engine.window(body.query, body.budget(), format=body.format, **body.fields())


@router.post("/explain", response_model=answered(ContextWindow), responses=problems())
async def explain(body: ExplainBody, engine: EngineOf) -> ContextWindow:
    """A context window whose trace also has the chunks of one document."""
    return await engine.explain(body.query, body.budget(), document=body.document, **body.fields())


@router.post("/augment", response_model=answered(ContextWindow), responses=problems())
async def augment(body: AugmentBody, engine: EngineOf) -> ContextWindow:
    """The context over everything that can be seen, without what is less similar than `min_similarity`."""
    return await engine.search.augment(body.query, body.budget(), **body.fields())


@router.post("/rerank", response_model=answered(Reranking), responses=problems())
async def rerank(body: RerankBody, engine: EngineOf) -> Reranking:
    """Passages found before, in the order of the reranker."""
    hits = await engine.search.hits(body.chunks)
    return await engine.search.rerank(body.query, hits, limit=body.limit)


@router.post("/search-and-rerank", response_model=answered(Reranking), responses=problems())
async def search_and_rerank(body: SearchAndRerankBody, engine: EngineOf) -> Reranking:
    """Look broadly, then let the reranker choose."""
    return await engine.search.search_and_rerank(body.query, candidates=body.candidates, **body.fields())
