"""Measure the similarities of an embedding model within evaluation sets."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np

from conspectus.bootstrap import Embedders
from conspectus.errors import InvalidInput
from conspectus.evals.conversation_sets import read_conversations
from conspectus.evals.datasets import (
    read_retrieval_set,
)
from conspectus.model.results import Percentiles, Similarity
from conspectus.ports import Embedder, Floats
from conspectus.settings import Settings

MAX_QUERIES = 200
ALL = "all"
Triple = tuple[str, str, str]
"""A query, a text that answers it, and a text that does not."""


async def similarity(
    directories: Sequence[Path], *, settings: Settings | None = None
) -> dict[str, Similarity]:
    """Return the similarities of each set, and of all sets together if there are several.

    At most 200 queries of a set are used, sampled with a fixed seed. Raises InvalidInput for a directory
    without a set of queries, or if no embedding model is set.
    """
    settings = settings or Settings.from_environment()
    embedders = Embedders(settings)
    try:
        embedder = embedders.by_name(settings.embedder)
        if embedder is None:
            raise InvalidInput("embedder", "is 'none'; set CONSPECTUS_EMBEDDER to the model to measure")
        cosines = {
            directory.name: await _cosines(embedder, list(_triples(directory))) for directory in directories
        }
    finally:
        await embedders.close()
    if len(cosines) > 1:
        cosines[ALL] = np.concatenate(list(cosines.values()))
    return {
        name: Similarity(related=_percentiles(pairs[:, 0]), unrelated=_percentiles(pairs[:, 1]))
        for name, pairs in cosines.items()
    }


def _triples(directory: Path) -> Iterator[Triple]:
    """Sample at most `MAX_QUERIES` queries of a set."""
    chance = Random(0)
    judged, texts = (
        _conversations(directory) if (directory / "messages.jsonl").exists() else _passages(directory)
    )
    keys = list(texts)
    for query, answers in chance.sample(judged, min(len(judged), MAX_QUERIES)):
        others = [key for key in chance.choices(keys, k=10) if key not in answers]
        if others:
            yield query, texts[chance.choice(sorted(answers))], texts[others[0]]


def _passages(directory: Path) -> tuple[list[tuple[str, set[str]]], dict[str, str]]:
    retrieval_set = read_retrieval_set(directory)
    texts = {
        document.key or "": f"{document.title}\n{document.text}" if document.title else document.text
        for document in retrieval_set.documents
    }
    judged = [(query.text, query.grades.keys() & texts.keys()) for query in retrieval_set.queries]
    return [(query, answers) for query, answers in judged if answers], texts


def _conversations(directory: Path) -> tuple[list[tuple[str, set[str]]], dict[str, str]]:
    conversation_set = read_conversations(directory)
    texts = {
        f"{name} {turn.key}": f"{turn.author}: {turn.text}" if turn.author else turn.text
        for name, turns in conversation_set.conversations.items()
        for turn in turns
    }
    return [
        (question.text, {f"{question.conversation} {key}" for key in question.evidence})
        for question in conversation_set.questions
    ], texts


async def _cosines(embedder: Embedder, triples: Sequence[Triple]) -> Floats:
    """Return, for each query, its similarities to the answering text and to the other text."""
    queries = np.stack([await embedder.embed_query(query) for query, _, _ in triples])
    texts = [await embedder.embed_documents([triple[column] for triple in triples]) for column in (1, 2)]
    similarities: Floats = np.stack([(queries * vectors).sum(axis=1) for vectors in texts], axis=1).astype(
        np.float64
    )
    return similarities


def _percentiles(cosines: Floats) -> Percentiles:
    p5, p50, p95 = (round(float(percentile), 2) for percentile in np.percentile(cosines, [5, 50, 95]))
    return Percentiles(p5, p50, p95)
