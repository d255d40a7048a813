"""Tasks by meaning: the nearest ones with the whole of what they say, each once."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, NotFound, ProviderError, ProviderUnavailable
from conspectus.facades.tasks.documents import is_task, nearness, to_result
from conspectus.facades.tasks.mapping import TaskResult
from conspectus.model.filter import And, Filter, In, Not
from conspectus.model.records import Source
from conspectus.model.results import Hit, Retrieval

PIECES = 3
FEWEST_PIECES = 50
"""For each result so many pieces are looked at, as several may be of one text; then more, if need be."""
MOST_ALIKE = 300
"""So many texts that are just as near as the last one are put into the order of their tasks' ids."""


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """What is looked for in a source: `number` results that match `where`, at least so similar."""

    text: str
    source: Source
    where: Filter
    number: int
    least: float


async def nearest(engine: AnyEngine, question: TaskQuery) -> list[TaskResult]:
    """The nearest tasks and attachments, nearest first, those equally near by the ids of their tasks.

    Raises ProviderError where they cannot be compared: the question cannot be embedded, or none of what
    there is has been yet; InvalidInput where the collection holds words only.
    """
    try:
        best = await _best_pieces(engine, question)
        if not best:
            await _require_nothing(engine, question)
    except NotFound:
        return []
    except ProviderError:
        await _require_vectors(engine, question.source)
        raise
    near = [hit for hit in best.values() if is_task(hit.document) and nearness(hit) >= question.least]
    chosen = sorted(near, key=_order)[: question.number]
    found = await asyncio.gather(*(_result(engine, hit) for hit in chosen))
    return [each for each in found if each is not None]


async def _best_pieces(engine: AnyEngine, question: TaskQuery) -> Mapping[str, Hit]:
    """The nearest piece of each document, of as many documents as it takes."""
    best: dict[str, Hit] = {}
    while True:
        found = await _look(engine, question, tuple(best))
        for hit in found.hits:
            best.setdefault(hit.document.id, hit)
        if len(found.hits) < _pieces(question) or _is_enough(best, found, question):
            return best


async def _look(engine: AnyEngine, question: TaskQuery, known: tuple[str, ...]) -> Retrieval:
    others = (Not(In("document", known)),) if known else ()
    return await engine.search.retrieve(
        question.text,
        collection=question.source.collection,
        where=And((question.where, *others)),
        limit=_pieces(question),
        arms=("vectors",),
        rerank=False,
    )


def _pieces(question: TaskQuery) -> int:
    return max(FEWEST_PIECES, PIECES * question.number)


def _is_enough(best: Mapping[str, Hit], found: Retrieval, question: TaskQuery) -> bool:
    """Whether nothing that was not looked at can be among the results."""
    farthest = min(nearness(hit) for hit in found.hits)
    if farthest < question.least or len(best) >= MOST_ALIKE:
        return True
    nearer = [hit for hit in best.values() if nearness(hit) > farthest and is_task(hit.document)]
    return len(nearer) >= question.number


async def _result(engine: AnyEngine, hit: Hit) -> TaskResult | None:
    """The result of a hit; None if it was deleted meanwhile."""
    if hit.chunk.end - hit.chunk.start == hit.document.characters:
        return to_result(hit, hit.chunk.text)
    try:
        return to_result(hit, await engine.documents.text(hit.document.id))
    except NotFound:
        return None


async def _require_nothing(engine: AnyEngine, question: TaskQuery) -> None:
    """Raise ProviderUnavailable if there is something that could not be found."""
    home = question.source.collection
    there = await engine.documents.count(collection=home, where=question.where)
    if there:
        raise ProviderUnavailable("embedder", f"none of the {there} texts to look at has its vector yet")


async def _require_vectors(engine: AnyEngine, source: Source) -> None:
    """Raise InvalidInput if the collection can have no vectors."""
    if (await engine.collections.get(source.collection)).space is None:
        raise InvalidInput(
            "collection", "holds words only; give it an embedder (`conspectus reembed`) to search by meaning"
        )


def _order(hit: Hit) -> tuple[float, str, str]:
    facts = hit.document.metadata
    return -nearness(hit), str(facts["task_id"]), str(facts.get("attachment_id") or "")
