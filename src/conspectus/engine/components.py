"""What an engine is put together from, and what its views for different people share."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakValueDictionary

from conspectus.access.keys import Keys
from conspectus.errors import ConspectusError
from conspectus.ingest.embedding_worker import Backfill
from conspectus.ingest.entity_worker import NameReader
from conspectus.ingest.job_worker import JobWorker, OpenJobs
from conspectus.ingest.maintenance import purge
from conspectus.ingest.open_indexes import IndexOpener, OpenIndexes
from conspectus.ingest.watchers import Followers
from conspectus.memory.retention import RetentionWorker
from conspectus.model.connections import Connection
from conspectus.model.ids import CollectionId
from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.ports import Archives, Clock, CountTokens, Embedder, Files, Records
from conspectus.ports.accounts import Accounts
from conspectus.ports.alerts import Alerts, Poster
from conspectus.ports.captions import CaptionReader
from conspectus.ports.chat import ChatModel, ChatRegistry
from conspectus.ports.graphs import EntityExtractor, Graphs, MentionStore
from conspectus.ports.jobs import IdempotencyStore, JobFiles, JobStore, JobTurn, RequestLog
from conspectus.ports.locks import Turn, Turns
from conspectus.ports.memories import Memories
from conspectus.ports.rate_counters import RateCounters
from conspectus.ports.summaries import Summaries
from conspectus.ports.web import Connector, Fetcher, Reranker
from conspectus.settings import Settings
from conspectus.streams.alert_worker import AlertWorker

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkParts:
    """What jobs need; `turn` is held by a process that runs them, with an executor from `open_jobs`.

    `alone` is held while a job runs, where several processes run jobs.

    `make_fetcher` is called when something is first asked for; `forget_connection` deletes what its
    connector keeps.
    """

    ledger: JobStore
    files: JobFiles
    turn: Turn
    alone: JobTurn
    open_jobs: OpenJobs
    make_fetcher: Callable[[], Fetcher]
    connector_for: Callable[[Connection, Fetcher], Connector]
    forget_connection: Callable[[Connection], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class EmbeddingParts:
    """What embedding needs; `turn` is held by a process that embeds, with one of the `portions` at a time."""

    turn: Turn
    portions: Turns


@dataclass(frozen=True, slots=True)
class AlertParts:
    """What alerts need; `turn` is held by the process that checks them.

    `make_poster` is called when a webhook is first named or sent to.
    """

    rows: Alerts
    turn: Turn
    make_poster: Callable[[], Poster]


@dataclass(frozen=True, slots=True)
class NameParts:
    """What names need; `turn` is held by the process that looks for them.

    `make_extractor` is called when a text is first looked through.
    """

    rows: MentionStore
    turn: Turn
    make_extractor: Callable[[], EntityExtractor]


class IndexRegistry(Protocol):
    """The indexes that a store has, whether they are open or not."""

    async def forget(self, collection: Collection, space: EmbeddingSpace | None) -> None:
        """Delete an index."""
        ...

    async def stray(self) -> Sequence[str]:
        """The names of indexes that are of no collection, or of a space that it has left.

        Only those that certainly are of this store, so none where others may have theirs under such names.
        """
        ...

    async def sweep(self) -> None:
        """Delete them, but for those that somebody builds at that moment."""
        ...


@dataclass(frozen=True, slots=True)
class EngineComponents:
    """The adapters and functions behind an engine; `bootstrap` chooses, tests may choose otherwise.

    `embedder_named` makes the embedder of a setting, `embedder_for` the one of a space (None: it cannot
    be had here), `size` says how many bytes the store takes; `keeping` is held by the process that carries
    retentions out, `purging` by one that erases; `release` is awaited when all work has stopped and the
    stores are still open.
    """

    path: str
    version: str
    settings: Settings
    records: Records
    accounts: Accounts
    files: Files
    archives: Archives
    captions: CaptionReader
    clock: Clock
    embedding: EmbeddingParts
    open_index: IndexOpener
    embedder_named: Callable[[str], Embedder | None]
    embedder_for: Callable[[EmbeddingSpace], Embedder | None]
    counter: Callable[[str], CountTokens]
    size: Callable[[], Awaitable[int]]
    indexes: IndexRegistry
    request_log: RequestLog
    replays: IdempotencyStore
    spoken: ChatRegistry | None
    allowances: RateCounters
    summaries: Summaries
    memories: Memories
    graphs: Graphs
    keeping: Turn
    purging: Turn
    alerts: AlertParts
    names: NameParts
    work: WorkParts
    release: Callable[[], Awaitable[None]]
    reranker: Reranker | None = None
    chat_model: ChatModel | None = None


class Versions:
    """Whether collections hold earlier versions of anything; asked once for each state of one."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._known: dict[str, tuple[int, bool]] = {}

    async def are_in(self, collection: Collection) -> bool:
        """Whether there are any, as of the collection's newest change."""
        known = self._known.get(collection.id)
        if known is not None and known[0] == collection.sequence:
            return known[1]
        found = await self._memories.has_versions(collection.id)
        self._known[collection.id] = (collection.sequence, found)
        return found


class EngineCore:
    """One open store: what the engines of all people share."""

    def __init__(self, parts: EngineComponents) -> None:
        self.parts = parts
        self.records = parts.records
        self.keys = Keys(parts.accounts, parts.clock)
        self.versions = Versions(parts.memories)
        self.shelves = OpenIndexes(parts.records, parts.open_index)
        turn, portions = parts.embedding.turn, parts.embedding.portions
        self.backfill = Backfill(parts.records, turn, portions, follow=self.shelves.follow)
        self.names = NameReader(parts.names.rows, parts.names.turn, parts.names.make_extractor)
        work = parts.work
        self.jobs = JobWorker(
            work.ledger, work.files, turn=work.turn, open_jobs=work.open_jobs, clock=parts.clock
        )
        self.summary_turns = asyncio.Semaphore(max(1, parts.settings.summary_concurrency))
        self.summary_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._fetcher: Fetcher | None = None
        self._followers: Followers | None = None
        self._poster: Poster | None = None
        self._alerting: AlertWorker | None = None
        self._keeper: RetentionWorker | None = None
        self._finishing: asyncio.Task[None] | None = None

    def follow(self, followers: Followers) -> None:
        """Keep followers running until the store is closed; the first ones stay. Raises what ended them."""
        if self._followers is None:
            self._followers = followers
        self._followers.start()

    def alert(self, make: Callable[[], AlertWorker]) -> None:
        """Keep alerts checked until the store is closed; the first service stays. Raises what ended it."""
        if self._alerting is None:
            self._alerting = make()
        self._alerting.start()

    def keep(self, make: Callable[[], RetentionWorker]) -> None:
        """Keep retentions carried out until the store is closed; the first stays. Raises what ended it."""
        if self._keeper is None:
            self._keeper = make()
        self._keeper.start()

    @asynccontextmanager
    async def purging(self, *collections: CollectionId) -> AsyncIterator[None]:
        """Erase what the block deletes from the collections; if this is interrupted, the next purge does it.

        Raises StorageBusy where a reader does not let go of it.
        """
        for each in collections:
            await self.records.begin_purge(each)
        yield
        async with self.parts.purging():
            await self._purge()

    def finish_purges(self) -> None:
        """Erase, while this goes on, what processes were to erase that ended before."""
        self._finishing = asyncio.create_task(self._finish_purges())

    async def _finish_purges(self) -> None:
        try:
            async with self.parts.purging() as mine:
                if mine and await self.records.unfinished_purges():
                    await self._purge()
        except ConspectusError as fault:
            logger.warning("a purge that was interrupted could not be finished: %s", fault.code)

    async def _purge(self) -> None:
        await purge(self.records, self.shelves, sweep=self.parts.indexes.sweep)

    def poster(self) -> Poster:
        """What webhooks are sent with, made when it is first needed."""
        if self._poster is None:
            self._poster = self.parts.alerts.make_poster()
        return self._poster

    def fetcher(self) -> Fetcher:
        """What pages are asked for with, made when it is first needed."""
        if self._fetcher is None:
            self._fetcher = self.parts.work.make_fetcher()
        return self._fetcher

    async def close(self) -> None:
        """Stop background work and release every store; what is unfinished goes on at the next opening."""
        if self._followers is not None:
            await self._followers.close()
        if self._alerting is not None:
            await self._alerting.close()
        if self._keeper is not None:
            await self._keeper.close()
        if self._finishing is not None:
            await asyncio.wait({self._finishing})
        if self._poster is not None:
            await self._poster.close()
        await self.jobs.close(grace=self.parts.settings.job_grace_seconds)
        if self._fetcher is not None:
            await self._fetcher.close()
        await self.names.close()
        await self.backfill.close()
        await self.shelves.followed()
        await self.parts.release()
        await self.shelves.close()
        await self.records.close()
