"""Vector search for tasks and attachments of one source."""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from conspectus.deferred import dataclass
from conspectus.engine.collections import CollectionService
from conspectus.engine.documents import DocumentService
from conspectus.engine.search import SearchService
from conspectus.engine.task_documents import ids_in, is_task, rounded_similarity, to_result
from conspectus.errors import InvalidInput, NotFound, ProviderError, ProviderUnavailable
from conspectus.model.filter import And, Filter, In, Not
from conspectus.model.records import Source
from conspectus.model.results import Hit, Retrieval
from conspectus.model.tasks import TaskResult
from conspectus.ports import CountTokens
from conspectus.text.counts import format_count

CHUNKS_PER_RESULT: Final = 3
"""Number of chunks read per result, as several may belong to one text; more are read if needed."""
MIN_CHUNKS: Final = 50
"""Minimum number of chunks read at once."""
MAX_DOCUMENTS: Final = 300
"""Number of documents after which no more are read, even if some have the same similarity."""


class TaskEngine(Protocol):
    """The services that tasks use."""

    @property
    def collections(self) -> CollectionService:
        """See CollectionService."""

    @property
    def documents(self) -> DocumentService:
        """See DocumentService."""

    @property
    def search(self) -> SearchService:
        """See SearchService."""

    def tokenizer(self, name: str = ...) -> CountTokens:
        """Return the tokenizer of that name. Raises UnknownTokenizer."""


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """A search for tasks and attachments in a source: at most `limit` results that match `filter`."""

    text: str
    source: Source
    filter: Filter
    limit: int
    min_similarity: float


async def find_nearest(engine: TaskEngine, query: TaskQuery) -> list[TaskResult]:
    """Return the most similar tasks and attachments, ties by task id.

    Raises ProviderError if the query cannot be embedded or nothing is embedded yet, and InvalidInput if the
    collection has no embedding model.
    """
    collection = query.source.collection
    try:
        best = await _retrieve_best(engine, query)
        if not best:
            candidates = await engine.documents.count(collection=collection, filter=query.filter)
            if candidates:
                raise ProviderUnavailable(
                    "embedder", f"none of the {format_count(candidates, 'candidate')} is embedded yet"
                )
    except NotFound:
        return []
    except ProviderError as fault:
        if (await engine.collections.get(collection)).space is None:
            raise InvalidInput(
                "collection", "has no embedding model; set one with `conspectus reembed` for vector search"
            ) from fault
        raise
    similar = [
        hit
        for hit in best.values()
        if is_task(hit.document) and rounded_similarity(hit) >= query.min_similarity
    ]
    best_hits = sorted(similar, key=_order)[: query.limit]
    task_hits = await asyncio.gather(*(_read_result(engine, hit) for hit in best_hits))
    return [task_hit for task_hit in task_hits if task_hit is not None]


async def _retrieve_best(engine: TaskEngine, query: TaskQuery) -> Mapping[str, Hit]:
    """Return the best chunk of each document, reading more until there are enough documents."""
    best: dict[str, Hit] = {}
    while True:
        retrieval = await _retrieve_others(engine, query, tuple(best))
        for hit in retrieval.hits:
            best.setdefault(hit.document.id, hit)
        if len(retrieval.hits) < _chunk_limit(query) or _is_enough(best, retrieval, query):
            return best


async def _retrieve_others(engine: TaskEngine, query: TaskQuery, excluded_ids: tuple[str, ...]) -> Retrieval:
    others = (Not(In("document", excluded_ids)),) if excluded_ids else ()
    return await engine.search.retrieve(
        query.text,
        collection=query.source.collection,
        filter=And((query.filter, *others)),
        limit=_chunk_limit(query),
        retrievers=("vector",),
        rerank=False,
    )


def _chunk_limit(query: TaskQuery) -> int:
    return max(MIN_CHUNKS, CHUNKS_PER_RESULT * query.limit)


def _is_enough(best: Mapping[str, Hit], retrieval: Retrieval, query: TaskQuery) -> bool:
    """Return whether no unread chunk can be among the results."""
    lowest = min(rounded_similarity(hit) for hit in retrieval.hits)
    if lowest < query.min_similarity or len(best) >= MAX_DOCUMENTS:
        return True
    higher = [hit for hit in best.values() if rounded_similarity(hit) > lowest and is_task(hit.document)]
    return len(higher) >= query.limit


async def _read_result(engine: TaskEngine, hit: Hit) -> TaskResult | None:
    """Return the result of a hit; None if its document was deleted meanwhile."""
    if hit.chunk.end - hit.chunk.start == hit.document.characters:
        return to_result(hit, hit.chunk.text)
    try:
        return to_result(hit, await engine.documents.get_text(hit.document.id))
    except NotFound:
        return None


def _order(hit: Hit) -> tuple[float, str, str]:
    task_id, attachment_id = ids_in(hit.document.key)
    return -rounded_similarity(hit), task_id, attachment_id or ""
