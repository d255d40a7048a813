"""Background workers: one per collection and kind of work, restartable at any moment.

One kind computes vectors, another extracts entities. Pending work is read from the store each time, so a
killed worker loses at most one batch. If several processes compute vectors, each processes portions of the
chunks. `Followers` run one task per watched connection.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from conspectus.errors import (
    ConspectusError,
    LockLost,
    ProviderError,
    ProviderUnavailable,
    RecordsDamaged,
    StorageBusy,
    StorageError,
)
from conspectus.graph.name_keys import key_of
from conspectus.model.graph import Mention
from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Collection
from conspectus.ports import Embedder, Progress, Records, Vectors
from conspectus.ports.graphs import SUBJECT, EntityExtractor, MentionStore, Unread
from conspectus.ports.jobs import Turn, Turns, on_behalf_of
from conspectus.text.vectors import packed

ATTEMPTS = 5
POLL_SECONDS = 0.2
GATHERING_SECONDS = 0.05
AWAY_SECONDS = 2.0
"""Seconds before a store that did not answer is tried again."""


@dataclass(slots=True)
class PendingWork:
    """The worker of one collection: its progress, and whether more work arrived while it ran."""

    task: asyncio.Task[None] | None = None
    again: bool = False
    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    done: int = 0
    has_work: bool | None = None
    """Whether there is pending work, as of the last write of this process."""
    error: ConspectusError | None = None
    ended: float = 0.0

    @property
    def runs(self) -> bool:
        """Whether the worker is running."""
        return self.task is not None and not self.task.done()

    def gave_up_within(self, seconds: float) -> bool:
        """Return whether an error stopped the worker within a number of seconds."""
        return self.error is not None and not self.runs and time.monotonic() - self.ended < seconds

    async def rest(self, seconds: float) -> None:
        """Wait before a retry, but no longer than until work is requested."""
        self.woken.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.woken.wait(), seconds)

    async def gathering(self, maximum: int = 1) -> bool:
        """Wait for more work, unless a caller waits.

        Each batch costs writers the time of a commit. This repeats while more arrives, up to `maximum` times.
        Returns whether more arrived, which must be read.
        """
        came = self.again
        for _ in range(maximum):
            self.again = False
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wanted.wait(), GATHERING_SECONDS)
            came = came or self.again
            if self.wanted.is_set() or not self.again:
                break
        return came


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """The work of a worker: whether any is pending, and doing it. More is gathered up to `gathers` times."""

    waits: Callable[[], Awaitable[object]]
    do: Callable[[PendingWork], Awaitable[None]]
    gathers: int = 1


class Workers:
    """Starts, watches and stops the workers of one engine. `what` names the work in error messages."""

    def __init__(self, turn: Turn, what: str) -> None:
        self._turn = turn
        self._what = what
        self._works: dict[str, PendingWork] = {}

    def of(self, collection: CollectionId) -> PendingWork:
        """Return the worker of a collection, which may not be running yet."""
        return self._works.setdefault(collection, PendingWork())

    def wake(self, collection: CollectionId, chore: BackgroundTask) -> PendingWork:
        """Ensure that a worker is running that sees everything committed before this call."""
        work = self.of(collection)
        work.again, work.error, work.has_work = True, None, None
        work.wanted.clear()
        work.woken.set()
        if not work.runs:
            work.task = asyncio.create_task(self._run(work, chore))
        return work

    async def wait_until_done(
        self, work: PendingWork, total: Callable[[], Awaitable[int]], progress: Progress | None
    ) -> int:
        """Wait until a worker that was just woken is done. Returns its count of results; raises its error."""
        work.wanted.set()
        before, maximum = work.done, await total()
        while work.runs and work.error is None and work.task is not None:
            if progress is not None:
                progress(self._what, min(work.done - before, maximum), maximum)
            await asyncio.wait({work.task}, timeout=POLL_SECONDS)
        if work.task is not None and work.task.done() and not work.task.cancelled():
            work.task.result()
        if work.error is not None:
            raise work.error
        if progress is not None and maximum:
            progress(self._what, maximum, maximum)
        return work.done - before

    async def close(self) -> None:
        """Stop all workers. Unfinished work is found again at the next start."""
        tasks = [work.task for work in self._works.values() if work.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, work: PendingWork, chore: BackgroundTask) -> None:
        try:
            await self._attempts(work, chore)
        finally:
            work.ended = time.monotonic()

    async def _attempts(self, work: PendingWork, chore: BackgroundTask) -> None:
        failures = 0
        while work.again:
            await work.gathering(chore.gathers)
            work.again = False
            try:
                await self._drain(work, chore)
                failures, work.error = 0, None
            except ProviderUnavailable as fault:
                failures += 1
                if failures == ATTEMPTS:
                    work.error = fault
                    return
                work.again = True
                await asyncio.sleep(fault.retry_after or 2.0**failures)
            except StorageBusy as fault:
                work.error, work.again = fault, True
                await work.rest(AWAY_SECONDS)
            except ConspectusError as fault:
                work.error = fault
                return
            except OSError as fault:
                work.error = StorageError(f"{self._what} stopped: {fault}")
                return

    async def _drain(self, work: PendingWork, chore: BackgroundTask) -> None:
        """Work until nothing is pending. Without a local write, only other processes cause new reads."""
        waits: object = True
        while waits:
            with suppress(LockLost):
                if await self._done_in_turn(work, chore):
                    return
            await asyncio.sleep(POLL_SECONDS)
            waits = await chore.waits()

    async def _done_in_turn(self, work: PendingWork, chore: BackgroundTask) -> bool:
        async with self._turn() as mine:
            if mine:
                await chore.do(work)
            return bool(mine)


logger = logging.getLogger(__name__)

RELOAD_SECONDS: Final = 5.0
"""Seconds between two reads of the watch list, also after a failed one."""

Follow = Callable[[], Awaitable[None]]
LoadConnections = Callable[[], Awaitable[Mapping[str, Follow]]]
"""Returns the connections to watch now, by name."""


class Followers:
    """Starts following new connections, and stops following removed ones."""

    def __init__(self, load: LoadConnections, *, look: float = RELOAD_SECONDS) -> None:
        self._wanted = load
        self._look = look
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._tending: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start following, if not done yet. Raises the error that ended it."""
        if self._tending is None:
            self._tending = asyncio.create_task(self._tend())
        if self._tending.done():
            self._tending.result()

    async def close(self) -> None:
        """Stop following everything."""
        running = [task for task in (self._tending, *self._tasks.values()) if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _tend(self) -> None:
        while True:
            await self._tend_once()
            await asyncio.sleep(self._look)

    async def _tend_once(self) -> None:
        try:
            load = await self._wanted()
        except RecordsDamaged:
            raise
        except ConspectusError as fault:
            logger.warning("watch_list_failed code=%(code)s", {"code": fault.code})
            return
        for name in self._tasks.keys() - load.keys():
            self._tasks.pop(name).cancel()
        for name, follow in load.items():
            task = self._tasks.get(name)
            if task is None or task.done():
                self._tasks[name] = asyncio.create_task(_followed(name, follow))


async def _followed(name: str, follow: Follow) -> None:
    try:
        await follow()
    except ConspectusError as fault:
        logger.warning(
            "watch_failed connection=%(connection)s code=%(code)s", {"connection": name, "code": fault.code}
        )


BATCH = 288
"""Three batches of a hosted model, so that texts do not wait long for a full batch."""
PORTION: Final = 4 * BATCH
"""Documents within this many chunks are embedded by one process; another one takes the next portion."""


async def embed_pending(
    records: Records, collection: Collection, embedder: Embedder, *, report: Callable[[int], None]
) -> None:
    """Embed until no chunk of the collection lacks a vector of the embedder's model.

    A text that the provider rejects is retried alone and its document marked as failed; others are not
    delayed. A rejection of every text, as for an invalid key, marks none and is raised.
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
    """Embed the oldest pending chunks. Returns the number attempted, 0 if none is pending."""
    batch = await records.unembedded(collection.id, embedder.space, limit=BATCH, among=among)
    if not batch:
        return 0
    try:
        with on_behalf_of(None):
            vectors = await embedder.embed_documents([each.passage for each in batch])
        stored = await _store(records, embedder, batch, vectors)
    except ProviderError as refusal:
        if not refusal.about_text:
            raise
        stored = await _embed_alone(records, embedder, batch)
    report(stored)
    return len(batch)


async def _embed_alone(records: Records, embedder: Embedder, batch: Sequence[IndexedChunk]) -> int:
    """Embed each text in a request of its own, concurrently: a queue behind the embedder may batch them."""
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
    return await records.put_vectors(batch[0].document.collection, embedder.space, list(pairs))


class Backfill:
    """Starts, watches and stops the embedding workers of one engine."""

    def __init__(
        self, records: Records, turn: Turn, portions: Turns, *, follow: Callable[[CollectionId], None]
    ) -> None:
        """The work requires the lock `turn`, and each of the `portions` the lock of its name.

        `follow` updates the index of a collection with new vectors.
        """
        self._records = records
        self._portions = portions
        self._workers = Workers(turn, "embedding")
        self._follow = follow

    def wake(self, collection: Collection, embedder: Embedder) -> PendingWork:
        """Ensure that a worker is running that sees everything committed before this call."""
        waits = partial(self._records.count_unembedded, collection.id, embedder.space)
        return self._workers.wake(
            collection.id, BackgroundTask(waits, partial(self._embed_all, collection, embedder))
        )

    def wrote(self, collection: CollectionId, *, lacks_vectors: bool | None) -> None:
        """Store what a write saw of the whole collection, for the next query."""
        self._workers.of(collection).has_work = lacks_vectors

    def knows_of_work(self, collection: CollectionId) -> bool | None:
        """Return the result of the last write, once: later writes of other processes are unknown."""
        work = self._workers.of(collection)
        known, work.has_work = work.has_work, None
        return known

    def problem(self, collection: Collection) -> ConspectusError | None:
        """Return the error that stopped the last worker of the collection, if any."""
        return self._workers.of(collection.id).error

    def gave_up_within(self, collection: Collection, seconds: float) -> bool:
        """Return whether an error stopped the worker of the collection within a number of seconds."""
        return self._workers.of(collection.id).gave_up_within(seconds)

    async def wait_until_done(
        self, collection: Collection, embedder: Embedder, progress: Progress | None = None
    ) -> int:
        """Wait until everything is embedded. Returns the number of vectors; raises the worker's error."""
        total = partial(self._records.count_unembedded, collection.id, embedder.space)
        work = self._workers.of(collection.id)
        if not work.runs and not await total():
            work.error = None
            return 0
        return await self._workers.wait_until_done(self.wake(collection, embedder), total, progress)

    async def close(self) -> None:
        """Stop all workers. Unfinished work is found again at the next start."""
        await self._workers.close()

    async def _embed_all(self, collection: Collection, embedder: Embedder, work: PendingWork) -> None:
        """Embed portion by portion until no chunk lacks a vector, including those of other processes."""
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
        """Embed the pending documents of a portion; returns False if another process does."""

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


READ_AT_ONCE = 100
MAX_GATHERED_BATCHES = 10
"""Maximum consecutive times that more passages may arrive before they are processed."""
MAX_NAMES = 100
"""Maximum number of distinct names of a passage; a longer list connects nothing."""
MAX_TITLE_WORDS = 8
"""Maximum number of words of a title that is a name."""

_ASIDE = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_ENDS = re.compile(r"[?!\n]")


def title_names(title: str) -> list[Mention]:
    """Return the names of a title: with and without the words in parentheses after it."""
    if not title.strip() or len(title.split()) > MAX_TITLE_WORDS or _ENDS.search(title):
        return []
    bare = _ASIDE.sub("", title)
    spelt = {key_of(each): each for each in (title, bare) if each.strip()}
    return [Mention(0, 0, name.strip(), key, SUBJECT) for key, name in spelt.items() if key]


class NameReader:
    """Starts, watches and stops the entity extraction workers of one engine."""

    def __init__(self, names: MentionStore, turn: Turn, extractor: Callable[[], EntityExtractor]) -> None:
        self._names = names
        self._workers = Workers(turn, "looking for names")
        self._make = extractor
        self._extractor: EntityExtractor | None = None
        self._refused: dict[str, ProviderError] = {}

    def extractor(self) -> EntityExtractor:
        """The entity extractor, created on first use."""
        if self._extractor is None:
            self._extractor = self._make()
        return self._extractor

    def wake(self, collection: CollectionId) -> PendingWork:
        """Ensure that a worker is running that sees everything committed before this call."""
        if not self._workers.of(collection).runs:
            self._refused.pop(collection, None)
        waits = partial(self._names.has_unread, collection)
        return self._workers.wake(
            collection, BackgroundTask(waits, partial(self._read, collection), MAX_GATHERED_BATCHES)
        )

    def problem(self, collection: CollectionId) -> ConspectusError | None:
        """Return the error that stopped the last worker, or that a passage caused."""
        return self._workers.of(collection).error or self._refused.get(collection)

    async def wait_until_done(self, collection: CollectionId, progress: Progress | None = None) -> int:
        """Wait until all passages are processed. Returns their number; raises the worker's error."""
        total = partial(self._names.count_unread, collection)
        read = await self._workers.wait_until_done(self.wake(collection), total, progress)
        if problem := self.problem(collection):
            raise problem
        return read

    async def close(self) -> None:
        """Stop all workers. Unfinished work is found again at the next start."""
        await self._workers.close()
        if self._extractor is not None:
            await self._extractor.close()

    async def _read(self, collection: CollectionId, work: PendingWork) -> None:
        while batch := await self._names.unread(collection, limit=READ_AT_ONCE):
            found = await self._found(collection, batch)
            names = {each.chunk: named for each, named in zip(batch, found, strict=True)}
            await self._names.put(collection, names)
            work.done += len(batch)
            if len(batch) < READ_AT_ONCE and not await work.gathering(MAX_GATHERED_BATCHES):
                return

    async def _found(self, collection: CollectionId, batch: Sequence[Unread]) -> list[list[Mention]]:
        """Return the mentions in each passage; of a rejected text only those of its title, with a log
        entry.
        """
        try:
            texts = await self.extractor().extract([each.text for each in batch])
        except ProviderUnavailable:
            raise
        except ProviderError as refusal:
            if not refusal.about_text:
                raise
            if len(batch) > 1:
                return [names for each in batch for names in await self._found(collection, [each])]
            self._refused[collection] = refusal
            texts = [()]
        return [_kept(each, names) for each, names in zip(batch, texts, strict=True)]


def _kept(unread: Unread, found: Sequence[Mention]) -> list[Mention]:
    first: dict[str, Mention] = {}
    about = [Mention(0, 0, name, key_of(name), SUBJECT) for name in unread.about]
    stored = [Mention(0, 0, name, key_of(name), "entity") for name in unread.entities]
    for each in (*title_names(unread.title), *about, *found, *stored):
        if each.key:
            first.setdefault(each.key, each)
    return list(first.values())[:MAX_NAMES]
