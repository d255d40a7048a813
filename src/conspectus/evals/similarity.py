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
    chosen = settings or Settings.from_environment()
    embedders = Embedders(chosen)
    try:
        embedder = embedders.by_name(chosen.embedder)
        if embedder is None:
            raise InvalidInput("embedder", "is 'none'; set CONSPECTUS_EMBEDDER to the model to measure")
        cosines = {each.name: await _cosines(embedder, list(_triples(each))) for each in directories}
    finally:
        await embedders.close()
    if len(cosines) > 1:
        cosines[ALL] = np.concatenate(list(cosines.values()))
    return {
        name: Similarity(related=_percentiles(each[:, 0]), unrelated=_percentiles(each[:, 1]))
        for name, each in cosines.items()
    }


def _triples(directory: Path) -> Iterator[Triple]:
    """Sample at most `MAX_QUERIES` queries of a set."""
    chance = Random(0)
    judged, texts = (
        _conversations(directory) if (directory / "messages.jsonl").exists() else _passages(directory)
    )
    keys = list(texts)
    for query, answers in chance.sample(judged, min(len(judged), MAX_QUERIES)):
        others = [each for each in chance.choices(keys, k=10) if each not in answers]
        if others:
            yield query, texts[chance.choice(sorted(answers))], texts[others[0]]


def _passages(directory: Path) -> tuple[list[tuple[str, set[str]]], dict[str, str]]:
    given = read_retrieval_set(directory)
    texts = {
        each.key or "": f"{each.title}\n{each.text}" if each.title else each.text for each in given.documents
    }
    judged = [(each.text, each.grades.keys() & texts.keys()) for each in given.queries]
    return [(query, answers) for query, answers in judged if answers], texts


def _conversations(directory: Path) -> tuple[list[tuple[str, set[str]]], dict[str, str]]:
    given = read_conversations(directory)
    texts = {
        f"{name} {turn.key}": f"{turn.author}: {turn.text}" if turn.author else turn.text
        for name, turns in given.conversations.items()
        for turn in turns
    }
    return [
        (each.text, {f"{each.conversation} {key}" for key in each.evidence}) for each in given.questions
    ], texts


async def _cosines(embedder: Embedder, triples: Sequence[Triple]) -> Floats:
    """Return, for each query, its similarities to the answering text and to the other text."""
    queries = np.stack([await embedder.embed_query(query) for query, _, _ in triples])
    texts = [await embedder.embed_documents([triple[place] for triple in triples]) for place in (1, 2)]
    found: Floats = np.stack([(queries * each).sum(axis=1) for each in texts], axis=1).astype(np.float64)
    return found


def _percentiles(cosines: Floats) -> Percentiles:
    p5, p50, p95 = (round(float(each), 2) for each in np.percentile(cosines, [5, 50, 95]))
    return Percentiles(p5, p50, p95)
