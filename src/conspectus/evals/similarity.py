"""How similar queries are to texts that answer them and to random other texts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np

from conspectus.bootstrap import Embedders
from conspectus.errors import InvalidInput
from conspectus.evals.asked import read_conversations
from conspectus.evals.datasets import read_retrieval_set
from conspectus.model.similarity import Percentiles, Similarity
from conspectus.ports import Embedder, Floats
from conspectus.settings import Settings

MOST_QUERIES = 200
ALL = "all"
Triple = tuple[str, str, str]
"""A query, a text that answers it, and another one."""


async def similarity(
    directories: Sequence[Path], *, settings: Settings | None = None
) -> dict[str, Similarity]:
    """The similarities of each set, and of all together if there are several.

    At most 200 queries of a set are asked, chosen at random with a fixed seed. Raises InvalidInput for a
    directory without a set of queries, or where no embedder is set.
    """
    chosen = settings or Settings.from_environment()
    embedders = Embedders(chosen)
    try:
        embedder = embedders.named(chosen.embedder)
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
    """At most `MOST_QUERIES` of a set."""
    chance = Random(0)
    judged, texts = _conversations(directory) if _is_conversation(directory) else _passages(directory)
    keys = list(texts)
    for query, answers in chance.sample(judged, min(len(judged), MOST_QUERIES)):
        others = [each for each in chance.choices(keys, k=10) if each not in answers]
        if others:
            yield query, texts[chance.choice(sorted(answers))], texts[others[0]]


def _is_conversation(directory: Path) -> bool:
    return (directory / "messages.jsonl").exists()


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
    """A row for each query: its similarity to the text that answers it, and to the other one."""
    queries = np.stack([await embedder.embed_query(query) for query, _, _ in triples])
    texts = [await embedder.embed_documents([triple[place] for triple in triples]) for place in (1, 2)]
    found: Floats = np.stack([(queries * each).sum(axis=1) for each in texts], axis=1).astype(np.float64)
    return found


def _percentiles(cosines: Floats) -> Percentiles:
    p5, p50, p95 = (round(float(each), 2) for each in np.percentile(cosines, [5, 50, 95]))
    return Percentiles(p5, p50, p95)
