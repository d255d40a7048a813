"""Embed what was written without vectors, with one worker for each collection."""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from conspectus.errors import (
    ProviderError,
)
from conspectus.ingest.background_workers import POLL_SECONDS, BackgroundTask, PendingWork, Workers
from conspectus.ingest.embedding_queue import CONTROL_TEXT
from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Collection
from conspectus.ports import Embedder, Progress, Records, Vectors
from conspectus.ports.jobs import Turn, Turns, on_behalf_of
from conspectus.text.vectors import pack_rows

BATCH_CHUNKS = 288
"""Three batches of a hosted model, so that the rest does not wait for texts to fill its batch."""
PORTION_CHUNKS: Final = 4 * BATCH_CHUNKS
"""Documents that end within so many chunks are embedded by one process; another one takes the next."""


async def embed_pending(
    records: Records, collection: Collection, embedder: Embedder, *, report: Callable[[int], None]
) -> None:
    """Embed until no chunk of the collection lacks a vector in the embedder's space.

    A text that fails while others do not is tried alone and its document marked; others are not held up. A
    failure of every text, as for the key, marks none and is raised.
    """
    while await _embed_batch(records, collection, embedder, report=report):
        pass


async def _embed_batch(
    records: Records,
    collection: Collection,
    embedder: Embedder,
    *,
    report: Callable[[int], None],
    among: range | None = None,
) -> int:
    """Embed the oldest pending chunks; return how many were tried, 0 if none is pending."""
    batch = await records.list_unembedded(collection.id, embedder.space, limit=BATCH_CHUNKS, among=among)
    if not batch:
        return 0
    try:
        with on_behalf_of(None):
            vectors = await embedder.embed_documents([chunk.passage for chunk in batch])
        stored = await _store(records, embedder, batch, vectors)
    except ProviderError as refusal:
        if refusal.verdict == "service":
            raise
        stored = await _embed_alone(records, embedder, batch)
    report(stored)
    return len(batch)


async def _embed_alone(records: Records, embedder: Embedder, batch: Sequence[IndexedChunk]) -> int:
    """Embed each text in its own request, all at once: a queue behind the embedder joins them again.

    A text is to blame only if the service answers at the same time: for another one, or for a control text.
    """
    requests = (embedder.embed_documents([chunk.passage]) for chunk in batch)
    answers = await asyncio.gather(*requests, return_exceptions=True)
    stored = 0
    refused: list[tuple[IndexedChunk, ProviderError]] = []
    for chunk, answer in zip(batch, answers, strict=True):
        if isinstance(answer, ProviderError):
            refused.append((chunk, answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            stored += await _store(records, embedder, [chunk], answer)
    if refused and not stored:
        with on_behalf_of(None):
            await embedder.embed_documents([CONTROL_TEXT])
    await _mark_refused(records, refused)
    return stored


async def _mark_refused(records: Records, refused: Sequence[tuple[IndexedChunk, ProviderError]]) -> None:
    """Mark the documents of texts that failed. Raises the error of those that the service failed for."""
    failures = [refusal for _, refusal in refused if refusal.verdict == "service"]
    for chunk, refusal in refused:
        if refusal.verdict != "service":
            await records.fail(chunk.document.id, str(refusal))
    if failures:
        raise failures[0]


async def _store(
    records: Records, embedder: Embedder, batch: Sequence[IndexedChunk], vectors: Vectors
) -> int:
    pairs = zip((ChunkId(chunk.chunk.id) for chunk in batch), pack_rows(vectors), strict=True)
    return await records.put_vectors(batch[0].document.collection, embedder.space, list(pairs))


class Backfill(Workers):
    """Starts, watches and stops the embedding workers of one engine."""

    def __init__(
        self, records: Records, turn: Turn, portions: Turns, *, update_index: Callable[[CollectionId], None]
    ) -> None:
        """The work needs the lock `turn`, and on each of the `portions` under the lock of its name.

        `update_index` adds new vectors to the index of a collection.
        """
        super().__init__(turn, "embedding")
        self._retried = time.monotonic()
        self._records = records
        self._portions = portions
        self._update_index = update_index

    def wake(self, collection: Collection, embedder: Embedder) -> PendingWork:
        """Make sure that a worker is running that will see everything committed before this call."""
        waits = partial(self._records.count_unembedded, collection.id, embedder.space)
        chore = BackgroundTask(waits, partial(self._embed_all, collection, embedder))
        return self.start(collection.id, chore)

    def may_retry(self, seconds: float) -> bool:
        """Whether the last retry of failed texts is so long ago; it begins anew then."""
        is_due = time.monotonic() - self._retried >= seconds
        if is_due:
            self._retried = time.monotonic()
        return is_due

    async def wait_until_done(
        self, collection: Collection, embedder: Embedder, progress: Progress | None = None
    ) -> int:
        """Wait until everything is embedded and say how many vectors came. Raises what stopped the worker."""
        total = partial(self._records.count_unembedded, collection.id, embedder.space)
        work = self.of(collection.id)
        if not work.runs and not await total():
            work.error = None
            return 0
        return await self.until_done(self.wake(collection, embedder), total, progress)

    async def _embed_all(self, collection: Collection, embedder: Embedder, work: PendingWork) -> None:
        """Portion by portion, until no chunk lacks a vector, those included that other processes embed."""
        start = 0
        while True:
            oldest = await self._records.oldest_unembedded(collection.id, embedder.space, start=start)
            if oldest is not None:
                first = oldest // PORTION_CHUNKS * PORTION_CHUNKS
                portion = range(first, first + PORTION_CHUNKS)
                mine = await self._embed_portion(portion, collection, embedder, work=work)
                start = 0 if mine else portion.stop
            elif start:
                await asyncio.sleep(POLL_SECONDS)
                start = 0
            else:
                return

    async def _embed_portion(
        self, portion: range, collection: Collection, embedder: Embedder, *, work: PendingWork
    ) -> bool:
        """Embed the pending documents that end in a portion; False if another process does."""

        def report(stored: int) -> None:
            work.done += stored

        async with self._portions(f"embedding {collection.id} {portion.start}") as mine:
            if not mine:
                return False
            embed = partial(_embed_batch, self._records, collection, embedder, report=report, among=portion)
            while tried := await embed():
                if tried < BATCH_CHUNKS:
                    self._update_index(collection.id)
                    await work.gather()
        return True
