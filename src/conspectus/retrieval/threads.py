"""What a conversation adds to the scores of its turns, one named part for each reason."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conspectus.model.records import StoredChunk
from conspectus.retrieval.boost import from_asking, from_role, from_speaker, from_thread
from conspectus.retrieval.neighbours import from_neighbours

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def thread_parts(
    question: str, scores: Floats, ids: Ids, links: Ids, rows: Sequence[StoredChunk]
) -> dict[str, Floats]:
    """The parts of candidates (`ids` ascending, their rows in the same order); 0 for texts in no thread."""
    documents = [row.document for row in rows]
    inside = np.array([float(each.thread is not None) for each in documents])
    threads = [None if each.thread is None else f"{each.source} {each.thread}" for each in documents]
    authors = [each.author if each.thread is not None else None for each in documents]
    return {
        "neighbours": from_neighbours(scores, ids, links),
        "thread": from_thread(scores, threads),
        "speaker": from_speaker(question, authors),
        "role": inside * from_role([each.role for each in documents]),
        "asking": inside * from_asking([row.chunk.text for row in rows]),
    }
