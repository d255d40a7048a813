"""The named parts of the scores of messages, from all boosts."""

from collections.abc import Sequence

import numpy as np

from conspectus.model.records import Document, StoredChunk
from conspectus.retrieval.arrays import Floats, Ids
from conspectus.retrieval.boosts import from_role, from_speaker, question_penalty
from conspectus.retrieval.dates import from_dates
from conspectus.retrieval.profiles import PLAIN, Weights
from conspectus.retrieval.thread_boosts import (
    from_chain,
    from_exchange,
    from_neighbors,
    from_question_before,
    from_thread,
)


def thread_parts(
    question: str,
    scores: Floats,
    ids: Ids,
    links: Ids,
    *,
    rows: Sequence[StoredChunk],
    weights: Weights = PLAIN.people,
) -> dict[str, Floats]:
    """Return score parts from threads for ascending `ids` and their rows; 0 outside of threads."""
    documents = [row.document for row in rows]
    inside = np.array([float(each.thread is not None) for each in documents])
    threads = [None if each.thread is None else f"{each.source} {each.thread}" for each in documents]
    authors = [each.author if each.thread is not None else None for each in documents]
    roles = [each.role for each in documents]
    texts = [row.chunk.text for row in rows]
    return {
        "neighbors": from_neighbors(scores, ids, links, weight=weights.neighbors),
        "thread": from_thread(scores, threads, weight=weights.thread),
        "speaker": from_speaker(question, authors, weight=weights.speaker),
        "role": inside * from_role(roles, weight=weights.role),
        "question": inside * question_penalty(texts, weight=weights.question),
        "reply": from_question_before(scores, ids, links, authors=authors, texts=texts, weight=weights.reply),
        "date": inside * from_dates(question, [each.occurred for each in documents], weight=weights.date),
    }


def exchange_parts(
    scores: Floats, ids: Ids, links: Ids, *, rows: Sequence[StoredChunk], weights: Weights
) -> dict[str, Floats]:
    """Return score parts from the messages before and after, for the same candidates."""
    authors = [row.document.author for row in rows]
    hours = np.array([_hour(row.document) for row in rows])
    return {
        "conversation_flow": from_exchange(
            scores, ids, links, authors=authors, hours=hours, weight=weights.conversation_flow
        ),
        "thread_completeness": from_chain(scores, ids, links, weight=weights.thread_completeness),
    }


def _hour(document: Document) -> float:
    return np.nan if document.occurred is None else document.occurred.start.timestamp() / 3_600
