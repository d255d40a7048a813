"""Filling in vectors behind the writers: one worker per collection, restartable at any moment.

What is left to do is read from Records each time, so a killed worker loses at most one batch of work. Where
several processes do it, each has portions of the chunks to itself.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from conspectus.errors import ConspectusError, ProviderError
from conspectus.ingest.background_workers import POLL_SECONDS, BackgroundTask, PendingWork, Workers
from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Collection
from conspectus.ports import Embedder, Progress, Records, Vectors
from conspectus.ports.jobs import asking
from conspectus.ports.locks import Turn, Turns

BATCH = 288
"""Three times what a hosted model takes at once, so that no rest waits for texts to share its batch."""
PORTION: Final = 4 * BATCH
"""Documents that end within so many chunks are embedded by one process; another takes the next ones."""


def packed(vectors: Vectors) -> list[bytes]:
    """Vectors as Records keep them: little-endian float16."""
    return [row.tobytes() for row in vectors.astype("<f2")]


async def embed_pending(
    records: Records, collection: Collection, embedder: Embedder, *, report: Callable[[int], None]
) -> None:
    """Embed until no chunk of the collection lacks a vector in the embedder's space.

    A text that the provider refuses is tried alone and its document marked; others are not held up. A
    refusal of every text, as of the key, marks none and is raised.
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
    """Embed what waits longest; how many texts were tried, 0 when none waits."""
    batch = await records.unembedded(collection.id, embedder.space, limit=BATCH, among=among)
    if not batch:
        return 0
    try:
        with asking(None):
            vectors = await embedder.embed_documents([each.passage for each in batch])
        stored = await _store(records, embedder, batch, vectors)
    except ProviderError as refusal:
        if not refusal.about_text:
            raise
        stored = await _embed_alone(records, embedder, batch)
    report(stored)
    return len(batch)


async def _embed_alone(records: Records, embedder: Embedder, batch: Sequence[IndexedChunk]) -> int:
    """Each text as its own request, all at once: a queue behind the embedder puts them together again."""
    requests = (embedder.embed_documents([each.passage]) for each in batch)
    answers = await asyncio.gather(*requests, return_exceptions=True)
    stored, failures = 0, []
    for each, answer in zip(batch, answers, strict=True):
        try:
            if isinstance(answer, BaseException):
                raise answer
            stored += await _store(records, embedder, [each], answer)
        except ProviderError as refusal:
            if refusal.about_text:
                await records.fail(each.document.id, str(refusal))
            else:
                failures.append(refusal)
    if failures:
        raise failures[0]
    return stored


async def _store(
    records: Records, embedder: Embedder, batch: Sequence[IndexedChunk], vectors: Vectors
) -> int:
    if not np.isfinite(vectors).all():
        raise ProviderError(embedder.space.model, "returned a vector that is not finite")
    pairs = zip((ChunkId(each.chunk.id) for each in batch), packed(vectors), strict=True)
    return await records.put_vectors(embedder.space, list(pairs))


class Backfill:
    """Starts, watches and stops the embedding workers of one engine."""

    def __init__(
        self, records: Records, turn: Turn, portions: Turns, *, follow: Callable[[CollectionId], None]
    ) -> None:
        """Work is done in a `turn`, and on each of the `portions` in the turn of its name.

        `follow` has the index of a collection take in what was stored.
        """
        self._records = records
        self._portions = portions
        self._workers = Workers(turn, "embedding")
        self._follow = follow

    def wake(self, collection: Collection, embedder: Embedder) -> PendingWork:
        """Make sure that a worker is running that will see everything committed before this call."""
        waits = partial(self._records.count_unembedded, collection.id, embedder.space)
        return self._workers.wake(
            collection.id, BackgroundTask(waits, partial(self._embed_all, collection, embedder))
        )

    def problem(self, collection: Collection) -> ConspectusError | None:
        """Why the last worker of the collection gave up, if it did."""
        return self._workers.of(collection.id).error

    def gave_up_within(self, collection: Collection, seconds: float) -> bool:
        """Whether an error stopped the worker of the collection no longer ago than that."""
        return self._workers.of(collection.id).gave_up_within(seconds)

    async def settle(
        self, collection: Collection, embedder: Embedder, progress: Progress | None = None
    ) -> int:
        """Wait until everything is embedded and say how many vectors came. Raises what stopped the worker."""
        work = self.wake(collection, embedder)
        total = partial(self._records.count_unembedded, collection.id, embedder.space)
        return await self._workers.settle(work, total, progress)

    async def close(self) -> None:
        """Stop all workers; what they did not finish is found again at the next start."""
        await self._workers.close()

    async def _embed_all(self, collection: Collection, embedder: Embedder, work: PendingWork) -> None:
        """Portion by portion, until no chunk lacks a vector, those included that other processes embed."""
        start = 0
        while True:
            oldest = await self._records.oldest_unembedded(collection.id, embedder.space, start=start)
            if oldest is not None:
                first = oldest // PORTION * PORTION
                portion = range(first, first + PORTION)
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
        """Embed what waits of the documents that end in a portion; False if another process does."""

        def report(stored: int) -> None:
            work.done += stored

        async with self._portions(f"embedding {collection.id} {portion.start}") as mine:
            if not mine:
                return False
            embed = partial(_embed_batch, self._records, collection, embedder, report=report, among=portion)
            while tried := await embed():
                if tried < BATCH:
                    self._follow(collection.id)
                    await work.gathering()
        return True
