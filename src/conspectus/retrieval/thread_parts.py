"""The named parts of the scores of messages, from all boosts."""

from collections.abc import Sequence

import numpy as np

from conspectus.model.records import Document, StoredChunk
from conspectus.retrieval.arrays import Floats, Ids
from conspectus.retrieval.boosts import question_penalty, role_boost, speaker_boost
from conspectus.retrieval.dates import DATE_PART, date_boost
from conspectus.retrieval.profiles import PLAIN, Weights
from conspectus.retrieval.thread_boosts import (
    above_typical,
    chain_boost,
    exchange_boost,
    neighbor_boost,
    preceding_question_boost,
    thread_boost,
)


def thread_parts(
    query: str,
    scores: Floats,
    ids: Ids,
    links: Ids,
    *,
    rows: Sequence[StoredChunk],
    weights: Weights = PLAIN.people,
) -> dict[str, Floats]:
    """Return score parts from threads for ascending `ids` and their rows; 0 outside of threads."""
    documents = [row.document for row in rows]
    inside = np.array([float(document.thread is not None) for document in documents])
    threads = [thread_key(document) for document in documents]
    authors = [None if document.thread is None else document.author for document in documents]
    roles = [document.role for document in documents]
    times = [document.occurred for document in documents]
    texts = [row.chunk.text for row in rows]
    above = above_typical(scores, threads)
    return {
        "neighbors": neighbor_boost(above, ids, links, weight=weights.neighbors),
        "thread": thread_boost(above, threads, weight=weights.thread),
        "speaker": speaker_boost(query, authors, weight=weights.speaker),
        "role": inside * role_boost(roles, weight=weights.role),
        "question": inside * question_penalty(texts, weight=weights.question),
        "reply": preceding_question_boost(
            above, ids, links, authors=authors, texts=texts, weight=weights.reply
        ),
        DATE_PART: inside * date_boost(query, times, weight=weights.date),
    }


def exchange_parts(
    scores: Floats, ids: Ids, links: Ids, *, rows: Sequence[StoredChunk], weights: Weights
) -> dict[str, Floats]:
    """Return score parts from the messages before and after, for the same candidates."""
    authors = [row.document.author for row in rows]
    above = above_typical(scores, [thread_key(row.document) for row in rows])
    hours = np.full(len(rows), np.nan)
    for position, row in enumerate(rows):
        if row.document.occurred is not None:
            hours[position] = row.document.occurred.start.timestamp() / 3_600
    return {
        "conversation_flow": exchange_boost(
            above, ids, links, authors=authors, hours=hours, weight=weights.conversation_flow
        ),
        "thread_completeness": chain_boost(above, ids, links, weight=weights.thread_completeness),
    }


def thread_key(document: Document) -> str | None:
    """Return the key of the thread of a document; None without a thread."""
    if document.thread is None:
        return None
    return f"{document.source} {document.thread}"
