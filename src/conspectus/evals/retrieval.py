"""Evaluate retrieval: nDCG and recall."""

from collections.abc import Mapping
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from conspectus.evals.datasets import (
    RetrievalSet,
    read_retrieval_set,
)
from conspectus.evals.measures import Figures, ndcg, percent, recall
from conspectus.evals.stores import FilledStore, fresh_engine, store_documents, wait_for_entities
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import Query, Retriever
from conspectus.ports import Progress
from conspectus.settings import Settings

RETRIEVERS: Mapping[str, tuple[Retriever, ...]] = {
    "keyword": ("keyword",),
    "vector": ("vector",),
    "hybrid": ("keyword", "vector"),
}
WITH_GRAPH = "hybrid with graph"
RetrievalReport = TypedDict(
    "RetrievalReport",
    {
        "ndcg@10": float,
        "recall@5": NotRequired[float],
        "recall@10": float,
        "recall@100": float,
        "by_question": Figures,
    },
)


async def retrieval(
    directory: str | Path,
    *,
    graph: GraphExpansion | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> dict[str, RetrievalReport]:
    """Return nDCG@10, recall@10 and recall@100, 0 to 100, for `keyword`, `vector` and `hybrid`.

    `by_question` has the values of each question, from 0 to 1. Documents are ranked by their best chunk.
    Without an embedding model, `vector` is left out. With a `graph`, `hybrid` is compared with `hybrid with
    graph`, and recall@5 is added. Raises InvalidInput for a directory without `corpus.jsonl`, `queries.jsonl`
    and `qrels.tsv`, or if one of them is not readable.
    """
    settings = settings or Settings.from_environment()
    data = read_retrieval_set(Path(directory))
    async with fresh_engine(settings) as engine:
        keys = await store_documents(engine, {"corpus": data.documents}, progress)
        run = FilledStore(engine, settings, keys["corpus"], progress)
        if graph is not None:
            await wait_for_entities(engine, progress)
            return {
                "hybrid": await _judge(run, data, "hybrid", deep=True),
                WITH_GRAPH: await _judge(run, data, WITH_GRAPH, graph=graph, deep=True),
            }
        can_embed = (await engine.collections.get_or_create()).space is not None
        return {name: await _judge(run, data, name) for name in RETRIEVERS if can_embed or name != "vector"}


async def _judge(
    run: FilledStore,
    data: RetrievalSet,
    name: str,
    *,
    graph: GraphExpansion | None = None,
    deep: bool = False,
) -> RetrievalReport:
    by_question: Figures = {}
    for done, judged in enumerate(data.queries, start=1):
        query = Query(
            judged.text,
            filter=judged.where,
            retrievers=RETRIEVERS.get(name, RETRIEVERS["hybrid"]),
            graph=graph,
        )
        ranking = [run.keys[hit.document.id] for hit in await run.hits(query, depth=100)]
        by_question[judged.id] = {
            "ndcg@10": ndcg(ranking, judged.grades, depth=10),
            **{
                f"recall@{depth}": recall(ranking, judged.grades.keys(), depth=depth)
                for depth in ((5, 10, 100) if deep else (10, 100))
            },
        }
        run.report(f"asking by {name}", done, len(data.queries))
    means = {
        name: percent([measures[name] for measures in by_question.values()])
        for name in next(iter(by_question.values()))
    }
    return cast(RetrievalReport, {**means, "by_question": by_question})
