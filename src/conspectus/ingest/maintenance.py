"""Upkeep of a store: status, check, purge, and the move into another embedding space."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from conspectus.errors import IndexReplaced, NotFound, StorageError, UnindexableText
from conspectus.ingest.embedding_backfill import embed_pending
from conspectus.ingest.embedding_queue import GivenVectors
from conspectus.ingest.open_indexes import OpenIndexes
from conspectus.model.ids import CollectionId
from conspectus.model.index import Disagreement, IndexStatus
from conspectus.model.records import Collection
from conspectus.model.reports import CheckReport, CollectionStatus
from conspectus.model.results import has_measured_similarity
from conspectus.ports import Embedder, Progress, Records

ATTEMPTS: Final = 5
NO_INDEX: Final = IndexStatus(0, 0, 0, 0, 0)
MAX_SHOWN_CHUNKS: Final = 1_000
"""Most chunks that a check names as impossible to analyze."""


async def collection_status(
    records: Records, open_indexes: OpenIndexes, collection: Collection
) -> CollectionStatus:
    """One collection in numbers, its index brought up to the records, or why it cannot be."""
    space = collection.space
    index, fault = NO_INDEX, None
    try:
        index = await (await open_indexes.current(collection)).index.status()
    except (StorageError, UnindexableText, OSError) as error:
        fault = str(error)
    counts = await records.counts(collection.id)
    return CollectionStatus(
        name=collection.name,
        space=space.name if space else None,
        sources=counts["sources"],
        documents=counts["documents"],
        chunks=counts["chunks"],
        vectors=counts["vectors"],
        pending=counts["pending"],
        errors=counts["error"],
        lag=max(0, collection.sequence - index.applied),
        index=index,
        similarity=has_measured_similarity(space),
        unindexable=counts["unindexable"],
        fault=fault,
        erasures=list((await records.list_unfinished_purges()).values()).count(collection.id),
    )


async def check(records: Records, open_indexes: OpenIndexes) -> CheckReport:
    """Compare the records with every index, and let the database check itself; repairs nothing."""
    differences_by_collection = {}
    for collection in await records.collections():
        differences = await (await open_indexes.current(collection)).index.check()
        marked = await records.unindexable(collection.id, limit=MAX_SHOWN_CHUNKS)
        differences_by_collection[collection.name] = (
            *differences,
            *(Disagreement(one.chunk.id, "unindexable", one.chunk.unindexable or "") for one in marked),
        )
    return CheckReport(records=tuple(await records.check()), index=differences_by_collection)


async def purge(
    records: Records,
    open_indexes: OpenIndexes,
    *,
    sweep: Callable[[], Awaitable[None]],
    stop_builds: Callable[[], Awaitable[None]],
    waits: bool = True,
) -> None:
    """Return only when no file holds anything that a purge was begun for.

    `sweep` deletes the indexes of collections that are gone; `stop_builds` stops builds that would keep what
    is deleted. Raises StorageBusy while somebody may still read it, at once unless it waits.
    """
    begun = await records.list_unfinished_purges()
    for collection in set(begun.values()):
        with suppress(NotFound):
            await _purge_index(open_indexes, collection)
    await sweep()
    await stop_builds()
    await records.purge(tuple(begun), waits=waits)


async def _purge_index(open_indexes: OpenIndexes, collection: CollectionId) -> None:
    """Repeat if the index is deleted or replaced meanwhile. Raises NotFound for the collection."""
    for attempt in range(ATTEMPTS):
        try:
            await (await open_indexes.newest(collection)).index.purge()
        except IndexReplaced:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


async def move(
    records: Records,
    open_indexes: OpenIndexes,
    collection: Collection,
    embedder: Embedder,
    *,
    progress: Progress | None = None,
) -> int:
    """Embed everything in the new space, build an index over it, then switch to it.

    Vectors are stored as they are made, so a run that was killed continues where it stopped. Returns their
    number: 0 in a space whose vectors callers supply.
    """
    vector_count = 0
    if not isinstance(embedder, GivenVectors):
        vector_count = await _embed_and_index(records, open_indexes, collection, embedder, progress)
    await records.switch_space(collection.id, embedder.space)
    await open_indexes.drop(collection)
    return vector_count


async def _embed_and_index(
    records: Records,
    open_indexes: OpenIndexes,
    collection: Collection,
    embedder: Embedder,
    progress: Progress | None,
) -> int:
    """Vectors of the new space, and an index over them."""
    vector_count = await _fill(records, collection, embedder, progress)
    opened = await open_indexes.open_unlisted(collection, embedder.space)
    try:
        await open_indexes.rebuild(opened, progress)
        return vector_count + await _fill(records, collection, embedder, None)
    finally:
        await opened.index.close()


async def _fill(
    records: Records, collection: Collection, embedder: Embedder, progress: Progress | None
) -> int:
    total = await records.count_unembedded(collection.id, embedder.space)
    done = 0

    def report(stored: int) -> None:
        nonlocal done
        done += stored
        if progress is not None:
            progress("embedding", done, max(done, total))

    await embed_pending(records, collection, embedder, report=report)
    return done
