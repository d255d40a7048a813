"""How many of the truly nearest an index finds, under filters of every width. Subclass `IndexRecall`."""

from collections.abc import Callable

import numpy as np
import pytest

from conspectus.model.filter import EVERYTHING, Between, Filter
from conspectus.ports import Ids, Index, Probe, Vectors
from tests.contracts.index_contract import OpenIndex
from tests.support.journal import Journal, make_chunk, unit

DIMENSIONS = 96
QUESTIONS = 60
NEAREST = 10
MakeVectors = Callable[[int, np.random.Generator], Vectors]
PER_MILLE = (1, 10, 50, 200, 500, 1_000)


def clustered(size: int, random: np.random.Generator) -> Vectors:
    """Topics of very different sizes, as real texts have, with near duplicates."""
    latent = 20
    topics = random.standard_normal((max(8, size // 200), latent))
    topic_numbers = (random.pareto(1.1, size) * 9).astype(np.int64) % len(topics)
    points = topics[topic_numbers] + 0.5 * random.standard_normal((size, latent))
    points[1::20] = points[: len(points[1::20])]
    spread = random.standard_normal((latent, DIMENSIONS))
    return unit(points @ spread + 0.6 * random.standard_normal((size, DIMENSIONS)))


def uniform(size: int, random: np.random.Generator) -> Vectors:
    """No structure at all: the hardest there is."""
    return unit(random.standard_normal((size, DIMENSIONS)))


class IndexRecall:
    """Recall@10 of at least .95 under each filter; `size` is how many vectors are stored."""

    size = 20_000

    @pytest.fixture
    def open_index(self) -> OpenIndex:
        """How to open the adapter on a journal with vectors of `DIMENSIONS`."""
        raise NotImplementedError

    @pytest.mark.parametrize("make", [clustered, pytest.param(uniform, marks=pytest.mark.slow)])
    async def test_recall(self, open_index: OpenIndex, make: MakeVectors) -> None:
        """Under filters that have nothing to do with the order of insertion, nor with the vectors."""
        random = np.random.default_rng(7)
        every = make(self.size + QUESTIONS, random)
        vectors, questions = every[:-QUESTIONS], every[-QUESTIONS:]
        groups = random.integers(0, 1_000, self.size)
        journal = Journal(batch=5_000)
        journal.put(
            make_chunk(number, "", vector=vector, metadata={"group": int(group)})
            for number, (vector, group) in enumerate(zip(vectors, groups, strict=True))
        )
        index = await open_index(journal)
        await index.rebuild()
        recalls = {}
        for share in PER_MILLE:
            allowed = np.flatnonzero(groups < share)
            where = EVERYTHING if share == PER_MILLE[-1] else Between(("group",), 0, share)
            recalls[share] = await recall(index, where, vectors[allowed], allowed, questions)
        await index.close()
        assert min(recalls.values()) >= 0.95, recalls


async def recall(index: Index, where: Filter, vectors: Vectors, ids: Ids, questions: Vectors) -> float:
    """The share of the truly nearest that are found."""
    truth = np.argsort(-(questions @ vectors.T), axis=1)[:, :NEAREST]
    hits = 0
    for question, nearest in zip(questions, truth, strict=True):
        candidates = await index.search(Probe(where, None, question, NEAREST))
        hits += len(np.intersect1d(candidates.ids, ids[nearest]))
    return hits / truth.size
