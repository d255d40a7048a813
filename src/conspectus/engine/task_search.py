"""Vector search for tasks and attachments of one source."""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from conspectus.deferred import dataclass
from conspectus.engine.collections import CollectionService
from conspectus.engine.documents import DocumentService
from conspectus.engine.search import SearchService
from conspectus.engine.task_documents import ids_in, is_task, nearness, to_result
from conspectus.errors import InvalidInput, NotFound, ProviderError, ProviderUnavailable
from conspectus.model.filter import And, Filter, In, Not
from conspectus.model.records import Source
from conspectus.model.results import Hit, Retrieval
from conspectus.model.tasks import TaskResult
from conspectus.ports import CountTokens

CHUNKS_PER_RESULT: Final = 3
MIN_CHUNKS: Final = 50
"""Number of chunks read per result, as several may belong to one text; more are read if needed."""
MAX_TITLES: Final = 300
"""Maximum number of texts with equal similarity that are ordered by task id."""


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
    """A search in a source: `number` results that match `where`, with a minimum similarity."""

    text: str
    source: Source
    where: Filter
    number: int
    least: float


async def find_nearest(engine: TaskEngine, question: TaskQuery) -> list[TaskResult]:
    """Return the most similar tasks and attachments, ties by task id.

    Raises ProviderError if the query cannot be embedded or nothing is embedded yet, and InvalidInput if the
    collection has no embedding model.
    """
    collection = question.source.collection
    try:
        best = await _retrieve_best(engine, question)
        if not best and (there := await engine.documents.count(collection=collection, filter=question.where)):
            raise ProviderUnavailable("embedder", f"none of the {there} candidates is embedded yet")
    except NotFound:
        return []
    except ProviderError as fault:
        if (await engine.collections.get(collection)).space is None:
            raise InvalidInput(
                "collection", "has no embedding model; set one with `conspectus reembed` for vector search"
            ) from fault
        raise
    near = [hit for hit in best.values() if is_task(hit.document) and nearness(hit) >= question.least]
    best_hits = sorted(near, key=_order)[: question.number]
    task_hits = await asyncio.gather(*(_read_result(engine, hit) for hit in best_hits))
    return [task_hit for task_hit in task_hits if task_hit is not None]


async def _retrieve_best(engine: TaskEngine, question: TaskQuery) -> Mapping[str, Hit]:
    """Return the best chunk of each document, reading more until there are enough documents."""
    best: dict[str, Hit] = {}
    while True:
        retrieval = await _retrieve_others(engine, question, tuple(best))
        for hit in retrieval.hits:
            best.setdefault(hit.document.id, hit)
        if len(retrieval.hits) < _chunk_limit(question) or _is_enough(best, retrieval, question):
            return best


async def _retrieve_others(
    engine: TaskEngine, question: TaskQuery, excluded_ids: tuple[str, ...]
) -> Retrieval:
    others = (Not(In("document", excluded_ids)),) if excluded_ids else ()
    return await engine.search.retrieve(
        question.text,
        collection=question.source.collection,
        filter=And((question.where, *others)),
        limit=_chunk_limit(question),
        retrievers=("vector",),
        rerank=False,
    )


def _chunk_limit(question: TaskQuery) -> int:
    return max(MIN_CHUNKS, CHUNKS_PER_RESULT * question.number)


def _is_enough(best: Mapping[str, Hit], retrieval: Retrieval, question: TaskQuery) -> bool:
    """Return whether no unread chunk can be among the results."""
    farthest = min(nearness(hit) for hit in retrieval.hits)
    if farthest < question.least or len(best) >= MAX_TITLES:
        return True
    nearer = [hit for hit in best.values() if nearness(hit) > farthest and is_task(hit.document)]
    return len(nearer) >= question.number


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
    return -nearness(hit), task_id, attachment_id or ""
