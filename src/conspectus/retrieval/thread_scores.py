"""What a conversation adds to the scores of its turns, one named part for each reason."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conspectus.model.records import Document, StoredChunk
from conspectus.retrieval.boosts import from_asking, from_role, from_speaker, from_thread
from conspectus.retrieval.neighbors import from_chain, from_exchange, from_neighbours
from conspectus.retrieval.scoring_profiles import PLAIN, Weights

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def thread_parts(
    question: str,
    scores: Floats,
    ids: Ids,
    links: Ids,
    *,
    rows: Sequence[StoredChunk],
    weights: Weights = PLAIN.people,
) -> dict[str, Floats]:
    """The parts of candidates (`ids` ascending, their rows in the same order); 0 for texts in no thread."""
    documents = [row.document for row in rows]
    inside = np.array([float(each.thread is not None) for each in documents])
    threads = [None if each.thread is None else f"{each.source} {each.thread}" for each in documents]
    authors = [each.author if each.thread is not None else None for each in documents]
    roles = [each.role for each in documents]
    return {
        "neighbours": from_neighbours(scores, ids, links, weight=weights.neighbours),
        "thread": from_thread(scores, threads, weight=weights.thread),
        "speaker": from_speaker(question, authors, weight=weights.speaker),
        "role": inside * from_role(roles, weight=weights.role),
        "asking": inside * from_asking([row.chunk.text for row in rows], weight=weights.asking),
    }


def exchange_parts(
    scores: Floats, ids: Ids, links: Ids, *, rows: Sequence[StoredChunk], weights: Weights
) -> dict[str, Floats]:
    """What the exchange around a message adds, for the same candidates."""
    authors = [row.document.author for row in rows]
    hours = np.array([_hour(row.document) for row in rows])
    return {
        "flow": from_exchange(scores, ids, links, authors=authors, hours=hours, weight=weights.flow),
        "completeness": from_chain(scores, ids, links, weight=weights.completeness),
    }


def _hour(document: Document) -> float:
    return np.nan if document.occurred is None else document.occurred.start.timestamp() / 3_600
