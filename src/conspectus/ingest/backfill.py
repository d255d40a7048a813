"""Filling in vectors behind the writers: one worker per collection, restartable at any moment.

What is left to do is read from Records each time, so a killed worker loses at most one batch of work.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

import numpy as np

from conspectus.errors import ConspectusError, ProviderError, ProviderUnavailable, StorageError
from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Collection
from conspectus.ports import Embedder, Progress, Records, Vectors

Turn = Callable[[], AbstractContextManager[bool]]
"""Opens a context that is true when this process is the one that may embed now."""

BATCH = 288
"""Three times what a hosted model takes at once, so that no rest waits for texts to share its batch."""
ATTEMPTS = 5
POLL_SECONDS = 0.2
GATHERING_SECONDS = 0.05


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
    records: Records, collection: Collection, embedder: Embedder, *, report: Callable[[int], None]
) -> int:
    """Embed what waits longest; how many texts were tried, 0 when none waits."""
    batch = await records.unembedded(collection.id, embedder.space, limit=BATCH)
    if not batch:
        return 0
    try:
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


@dataclass(slots=True)
class Work:
    """One collection's worker: how far it is, and whether there came more while it ran."""

    task: asyncio.Task[None] | None = None
    again: bool = False
    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    done: int = 0
    error: ConspectusError | None = None


class Backfill:
    """Starts, watches and stops the workers of one engine."""

    def __init__(self, records: Records, turn: Turn, follow: Callable[[CollectionId], None]) -> None:
        """`follow` has the index of a collection take in what was stored."""
        self._records = records
        self._turn = turn
        self._follow = follow
        self._works: dict[str, Work] = {}

    def wake(self, collection: Collection, embedder: Embedder) -> Work:
        """Make sure that a worker is running that will see everything committed before this call."""
        work = self._works.setdefault(collection.id, Work())
        work.again = True
        work.wanted.clear()
        if work.task is None or work.task.done():
            work.error = None
            work.task = asyncio.create_task(self._run(work, collection, embedder))
        return work

    def problem(self, collection: Collection) -> ConspectusError | None:
        """Why the last worker of the collection gave up, if it did."""
        work = self._works.get(collection.id)
        return work.error if work else None

    async def settle(
        self, collection: Collection, embedder: Embedder, progress: Progress | None = None
    ) -> int:
        """Wait until everything is embedded and say how many vectors came. Raises what stopped the worker."""
        work = self.wake(collection, embedder)
        work.wanted.set()
        before, total = work.done, await self._records.count_unembedded(collection.id, embedder.space)
        while work.task is not None and not work.task.done():
            if progress is not None:
                progress("embedding", min(work.done - before, total), total)
            await asyncio.wait({work.task}, timeout=POLL_SECONDS)
        if work.error is not None:
            raise work.error
        if progress is not None and total:
            progress("embedding", total, total)
        return work.done - before

    async def close(self) -> None:
        """Stop all workers; what they did not finish is found again at the next start."""
        tasks = [work.task for work in self._works.values() if work.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, work: Work, collection: Collection, embedder: Embedder) -> None:
        failures = 0
        while work.again:
            await _gathering(work)
            work.again = False
            try:
                await self._drain(work, collection, embedder)
                failures = 0
            except ProviderUnavailable as fault:
                failures += 1
                if failures == ATTEMPTS:
                    work.error = fault
                    return
                work.again = True
                await asyncio.sleep(fault.retry_after or 2.0**failures)
            except ConspectusError as fault:
                work.error = fault
                return
            except OSError as fault:
                work.error = StorageError(f"embedding stopped: {fault}")
                return

    async def _drain(self, work: Work, collection: Collection, embedder: Embedder) -> None:
        while await self._records.count_unembedded(collection.id, embedder.space):
            with self._turn() as mine:
                if mine:
                    await self._embed_all(work, collection, embedder)
                    return
            await asyncio.sleep(POLL_SECONDS)

    async def _embed_all(self, work: Work, collection: Collection, embedder: Embedder) -> None:
        def report(stored: int) -> None:
            work.done += stored

        while tried := await _embed_batch(self._records, collection, embedder, report=report):
            if tried < BATCH:
                self._follow(collection.id)
                await _gathering(work)


async def _gathering(work: Work) -> None:
    """Let more come together, unless somebody waits: each batch costs writers the time of a commit."""
    with suppress(TimeoutError):
        await asyncio.wait_for(work.wanted.wait(), GATHERING_SECONDS)
