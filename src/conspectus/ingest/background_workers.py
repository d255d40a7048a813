"""Work behind the writers: a worker for each collection, restartable at any moment.

One kind of worker fills in vectors, another looks through passages for names. What is left to do is read from
the store each time, so a killed worker loses at most one batch of work. Where several processes fill in
vectors, each has portions of the chunks to itself. Watchers have one task for each thing that is followed.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from itertools import islice
from typing import Final

from conspectus.deferred import dataclass
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
from conspectus.ingest.embedding_queue import CONTROL_TEXT
from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.index import IndexedChunk
from conspectus.model.memory import fact_ends, stored_entities
from conspectus.model.records import Collection, Document, Mention, PreparedChunk, PreparedDocument
from conspectus.ports import Embedder, Progress, Records, Vectors
from conspectus.ports.graphs import SUBJECT, EntityExtractor, MentionStore, Unread
from conspectus.ports.jobs import Turn, Turns, on_behalf_of
from conspectus.text.vectors import packed

ATTEMPTS = 5
POLL_SECONDS = 0.2
GATHERING_SECONDS = 0.05
REST_SECONDS = 60.0
"""Seconds before a provider that failed several times is called again."""
AWAY_SECONDS = 2.0
"""Seconds until it is tried again whether a store that did not answer is back."""


@dataclass(slots=True)
class PendingWork:
    """One collection's worker: how far it is, and whether there came more while it ran."""

    task: asyncio.Task[None] | None = None
    again: bool = False
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    done: int = 0
    has_work: bool | None = None
    """Whether there is anything to do, as the last write of this process saw it."""
    error: ConspectusError | None = None
    ended: float = 0.0

    @property
    def runs(self) -> bool:
        """Whether it is at work."""
        return self.task is not None and not self.task.done()

    def failed_within(self, seconds: float) -> bool:
        """Whether an error stopped it no longer ago than that; it may rest since."""
        return self.error is not None and time.monotonic() - self.ended < seconds

    def fail(self, error: ConspectusError) -> None:
        """Note the error for those who wait, and when it came."""
        self.error, self.ended = error, time.monotonic()

    async def rest(self, seconds: float) -> None:
        """Wait before it is tried again, but no longer than until somebody asks for that."""
        self.woken.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.woken.wait(), seconds)

    async def gathering(self, maximum: int = 1) -> bool:
        """Wait for more work, unless a caller waits, because each batch costs writers the time of a commit.

        This repeats while more arrives, up to `maximum` times. Returns whether more arrived.
        """
        came = self.again
        for _ in range(maximum):
            self.again = False
            with suppress(TimeoutError):
                await asyncio.wait_for(self.requested.wait(), GATHERING_SECONDS)
            came = came or self.again
            if self.requested.is_set() or not self.again:
                break
        return came


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """The work of a worker: whether any is pending, and doing it; more is gathered up to `gathers` times."""

    waits: Callable[[], Awaitable[object]]
    do: Callable[[PendingWork], Awaitable[None]]
    gathers: int = 1


class Workers:
    """Starts, watches and stops the workers of one engine. `what` names the work in error messages."""

    def __init__(self, turn: Turn, what: str) -> None:
        self._turn = turn
        self._what = what
        self._works: dict[str, PendingWork] = {}

    def wrote(self, collection: CollectionId, *, has_work: bool | None) -> None:
        """Remember what a write saw of the whole collection, for who asks next."""
        self.of(collection).has_work = has_work

    def knows_of_work(self, collection: CollectionId) -> bool | None:
        """The result of the last write, once: later writes of other processes are not known."""
        work = self.of(collection)
        had_work, work.has_work = work.has_work, None
        return had_work

    def of(self, collection: CollectionId) -> PendingWork:
        """The worker of a collection, which need not have begun."""
        return self._works.setdefault(collection, PendingWork())

    def start(self, collection: CollectionId, chore: BackgroundTask) -> PendingWork:
        """Make sure that a worker is running that will see everything committed before this call."""
        work = self.of(collection)
        work.again, work.error, work.has_work = True, None, None
        work.requested.clear()
        work.woken.set()
        if not work.runs:
            work.task = asyncio.create_task(self._run(work, chore))
        return work

    async def until_done(
        self, work: PendingWork, total: Callable[[], Awaitable[int]], progress: Progress | None
    ) -> int:
        """Wait until a worker that was just woken is done; how much it did. Raises what stopped it."""
        work.requested.set()
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
        """Stop all workers; what they did not finish is found again at the next start."""
        tasks = [work.task for work in self._works.values() if work.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, work: PendingWork, chore: BackgroundTask) -> None:
        """Do the work until none is left. A fault of a provider or a busy store is waited for, for ever."""
        failures = 0
        while work.again:
            await work.gathering(chore.gathers)
            work.again = False
            try:
                await self._drain(work, chore)
                failures, work.error = 0, None
            except ProviderError as fault:
                failures, work.again = failures + 1, True
                await _rest_after(fault, failures, work)
            except StorageBusy as fault:
                work.error, work.again = fault, True
                await work.rest(AWAY_SECONDS)
            except ConspectusError as fault:
                work.fail(fault)
                return
            except OSError as fault:
                work.fail(StorageError(f"{self._what} stopped: {fault}"))
                return

    async def _drain(self, work: PendingWork, chore: BackgroundTask) -> None:
        """A wake-up follows a write here; the store is read again only while another process has the lock."""
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


async def _rest_after(fault: ProviderError, failures: int, work: PendingWork) -> None:
    """Wait before the provider is called again: briefly at first, then longer and with the error noted."""
    if isinstance(fault, ProviderUnavailable) and failures < ATTEMPTS:
        await asyncio.sleep(fault.retry_after or 2.0**failures)
        return
    work.fail(fault)
    retry_after = fault.retry_after if isinstance(fault, ProviderUnavailable) else None
    await work.rest(max(REST_SECONDS, retry_after or 0.0))


logger = logging.getLogger(__name__)

RELOAD_SECONDS: Final = 5.0
"""Seconds between two reads of the watch list; a failed one is repeated then."""

Follow = Callable[[], Awaitable[None]]
LoadConnections = Callable[[], Awaitable[Mapping[str, Follow]]]
"""The connections to watch now, by name."""


class Followers:
    """Starts following what is new, and stops following what is gone."""

    def __init__(self, load: LoadConnections, *, look: float = RELOAD_SECONDS) -> None:
        self._wanted = load
        self._look = look
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._tending: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, if it has not begun. Raises what ended it."""
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
"""Three batches of a hosted model, so that the rest does not wait for texts to fill its batch."""
PORTION: Final = 4 * BATCH
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
    batch = await records.unembedded(collection.id, embedder.space, limit=BATCH, among=among)
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
    pairs = zip((ChunkId(chunk.chunk.id) for chunk in batch), packed(vectors), strict=True)
    return await records.put_vectors(batch[0].document.collection, embedder.space, list(pairs))


class Backfill(Workers):
    """Starts, watches and stops the embedding workers of one engine."""

    def __init__(
        self, records: Records, turn: Turn, portions: Turns, *, follow: Callable[[CollectionId], None]
    ) -> None:
        """The work needs the lock `turn`, and on each of the `portions` under the lock of its name.

        `follow` updates the index of a collection with new vectors.
        """
        super().__init__(turn, "embedding")
        self._retried = time.monotonic()
        self._records = records
        self._portions = portions
        self._follow = follow

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
        """Embed the pending documents that end in a portion; False if another process does."""

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
"""How many times in a row more passages may arrive before they are processed."""
MAX_NAMES = 100
"""So many different names of a passage are kept; a longer list of them connects nothing."""
MAX_TITLE_WORDS = 8
"""A title of more words is a statement, not a name."""

_ASIDE = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_ENDS = re.compile(r"[?!\n]")


def title_names(title: str) -> list[Mention]:
    """The name that a title is, with and without the words in brackets after it."""
    if not title.strip() or len(title.split()) > MAX_TITLE_WORDS or _ENDS.search(title):
        return []
    bare = _ASIDE.sub("", title)
    spelt = {key_of(name): name for name in (title, bare) if name.strip()}
    return [Mention(0, 0, name.strip(), key, SUBJECT) for key, name in spelt.items() if key]


class NameReader(Workers):
    """Starts, watches and stops the readers of one engine."""

    def __init__(self, names: MentionStore, turn: Turn, extractor: Callable[[], EntityExtractor]) -> None:
        super().__init__(turn, "looking for names")
        self._names = names
        self._make = extractor
        self._extractor: EntityExtractor | None = None
        self._refused: dict[str, ProviderError] = {}

    def extractor(self) -> EntityExtractor:
        """The entity extractor, created on first use."""
        if self._extractor is None:
            self._extractor = self._make()
        return self._extractor

    def wake(self, collection: CollectionId) -> PendingWork:
        """Make sure that a reader is running that will see everything committed before this call."""
        if not self.of(collection).runs:
            self._refused.pop(collection, None)
        waits = partial(self._names.has_unread, collection)
        chore = BackgroundTask(waits, partial(self._read, collection), MAX_GATHERED_BATCHES)
        return self.start(collection, chore)

    def problem(self, collection: CollectionId) -> ConspectusError | None:
        """Why the last worker of the collection stopped, or a passage could not be processed."""
        return self.of(collection).error or self._refused.get(collection)

    async def wait_until_done(self, collection: CollectionId, progress: Progress | None = None) -> int:
        """Wait until all passages are processed; return how many were. Raises the worker's error."""
        total = partial(self._names.count_unread, collection)
        read = await self.until_done(self.wake(collection), total, progress)
        if problem := self.problem(collection):
            raise problem
        return read

    async def close(self) -> None:
        """Stop all readers; what they did not finish is found again at the next start."""
        await super().close()
        if self._extractor is not None:
            await self._extractor.close()

    async def mentioned(self, batch: list[PreparedDocument]) -> list[PreparedDocument]:
        """The batch with the mentions in its chunks; without any if a text fails, which is tried again."""
        unread = [_unread(document.document, chunk) for document in batch for chunk in document.chunks]
        try:
            texts = await self.extractor().extract([chunk.text for chunk in unread])
        except (ConspectusError, OSError):
            return batch
        chunk_mentions = map(_mentions_of, unread, texts)
        return [
            replace(document, mentions=list(islice(chunk_mentions, len(document.chunks))))
            for document in batch
        ]

    async def _read(self, collection: CollectionId, work: PendingWork) -> None:
        while batch := await self._names.unread(collection, limit=READ_AT_ONCE):
            mentions = await self._extract_mentions(collection, batch)
            names = {chunk.chunk: named for chunk, named in zip(batch, mentions, strict=True)}
            await self._names.put(collection, names)
            work.done += len(batch)
            if len(batch) < READ_AT_ONCE and not await work.gathering(MAX_GATHERED_BATCHES):
                return

    async def _extract_mentions(
        self, collection: CollectionId, batch: Sequence[Unread]
    ) -> list[list[Mention]]:
        """The names in each; a refused text has only those of its title, and that is logged."""
        try:
            texts = await self.extractor().extract([chunk.text for chunk in batch])
        except ProviderUnavailable:
            raise
        except ProviderError as refusal:
            if refusal.verdict != "text":
                raise
            if len(batch) > 1:
                return [
                    names for chunk in batch for names in await self._extract_mentions(collection, [chunk])
                ]
            self._refused[collection] = refusal
            texts = [()]
        return [_mentions_of(chunk, names) for chunk, names in zip(batch, texts, strict=True)]


def _unread(document: Document, chunk: PreparedChunk) -> Unread:
    """A chunk without a number yet."""
    if chunk.position:
        return Unread(ChunkId(0), "", chunk.text)
    metadata = document.metadata if document.kind in {"memory", "version"} else {}
    return Unread(ChunkId(0), document.title, chunk.text, fact_ends(metadata), stored_entities(metadata))


def _mentions_of(unread: Unread, extracted: Sequence[Mention]) -> list[Mention]:
    first: dict[str, Mention] = {}
    about = [Mention(0, 0, name, key_of(name), SUBJECT) for name in unread.about]
    stored = [Mention(0, 0, name, key_of(name), "entity") for name in unread.entities]
    for mention in (*title_names(unread.title), *about, *extracted, *stored):
        if mention.key:
            first.setdefault(mention.key, mention)
    return list(first.values())[:MAX_NAMES]
