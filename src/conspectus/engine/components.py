"""The components of an engine, shared by its views for different people."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from conspectus.deferred import dataclass
from conspectus.ingest.job_worker import OpenJobs
from conspectus.ingest.open_indexes import IndexOpener
from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.ports import (
    Archives,
    Clock,
    CountTokens,
    Embedder,
    FeedbackStore,
    Files,
    Records,
    TextAnalysis,
)
from conspectus.ports.accounts import Accounts
from conspectus.ports.answers import AnswerStore
from conspectus.ports.chat import ChatModel, ChatRegistry
from conspectus.ports.connectors import Connectors
from conspectus.ports.experiments import ExperimentStore
from conspectus.ports.graphs import EntityExtractor, Graphs, MentionStore
from conspectus.ports.identities import CodeFlow, GroupDirectory, TokenVerifier
from conspectus.ports.jobs import (
    IdempotencyStore,
    JobFiles,
    JobStore,
    JobTurn,
    RateCounters,
    RequestLog,
    Turn,
    Turns,
)
from conspectus.ports.memories import Memories
from conspectus.ports.sealing import Sealer
from conspectus.ports.streams import Alerts, CaptionReader, Poster, Summaries
from conspectus.ports.web import Fetcher, Reranker
from conspectus.settings import Settings


@dataclass(frozen=True, slots=True)
class WorkParts:
    """The components of jobs. A process that runs jobs holds the lock `turn`, with an executor of
    `open_jobs`.

    It holds `alone` while a job runs, if several processes run jobs.

    `make_fetcher` is called for the first request, and `make_sealer` where a connection has credentials; it
    raises InvalidInput without a key.
    """

    job_store: JobStore
    files: JobFiles
    turn: Turn
    alone: JobTurn
    open_jobs: OpenJobs
    make_fetcher: Callable[[], Fetcher]
    connectors: Connectors
    make_sealer: Callable[[], Sealer]


@dataclass(frozen=True, slots=True)
class EmbeddingParts:
    """The components of embedding. A process that embeds holds the lock `turn`, and one of `portions`."""

    turn: Turn
    portions: Turns


@dataclass(frozen=True, slots=True)
class AlertParts:
    """The components of alerts. The process that matches alerts holds the lock `turn`.

    `make_poster` is called when a webhook is first set or called.
    """

    rows: Alerts
    turn: Turn
    make_poster: Callable[[], Poster]


@dataclass(frozen=True, slots=True)
class NameParts:
    """The components of entity extraction. The process that extracts entities holds the lock `turn`.

    `make_extractor` is called for the first text.
    """

    rows: MentionStore
    turn: Turn
    make_extractor: Callable[[], EntityExtractor]


class IndexRegistry(Protocol):
    """The indexes of a store, open or not."""

    async def prepare(self) -> None:
        """Create what the indexes of the store share. Raises ExtensionMissing."""

    async def forget(self, collection: Collection, space: EmbeddingSpace | None) -> None:
        """Delete an index."""

    async def stray(self) -> Sequence[str]:
        """Return the names of indexes of deleted collections, and of embedding models that a collection left.

        Only indexes that certainly belong to this store are returned.
        """

    async def sweep(self) -> None:
        """Delete stray indexes, except those being built."""

    async def stop_builds(self) -> None:
        """Stop builds in the background that would keep what a purge erases. They begin again later."""


@dataclass(frozen=True, slots=True)
class EngineComponents:
    """The adapters and functions behind an engine; `bootstrap` chooses them, and tests may choose others.

    Results of `make_…` are loaded on first use. `embedder_by_name` makes the embedder of a setting;
    `load_embedder` does so without blocking the event loop, as does `embedder_for` of a space (None if it is
    not available here). `size` returns the bytes of the store; `turns` are locks by name; `release` is
    awaited when all work has stopped and the stores are still open.
    """

    path: str
    version: Callable[[], str]
    settings: Settings
    records: Records
    accounts: Accounts
    make_files: Callable[[], Files]
    make_archives: Callable[[], Archives]
    make_captions: Callable[[], CaptionReader]
    clock: Clock
    embedding: EmbeddingParts
    open_index: IndexOpener
    texts: TextAnalysis
    embedder_by_name: Callable[[str], Embedder | None]
    load_embedder: Callable[[str], Awaitable[Embedder | None]]
    embedder_for: Callable[[EmbeddingSpace], Awaitable[Embedder | None]]
    counter: Callable[[str], CountTokens]
    size: Callable[[], Awaitable[int]]
    indexes: IndexRegistry
    request_log: RequestLog
    idempotency: IdempotencyStore
    chat_registry: ChatRegistry | None
    rate_counters: RateCounters
    summaries: Summaries
    feedback: FeedbackStore
    answers: AnswerStore
    experiments: ExperimentStore
    memories: Memories
    graphs: Graphs
    turns: Turns
    alerts: AlertParts
    names: NameParts
    work: WorkParts
    make_token_verifier: Callable[[], TokenVerifier]
    make_code_flow: Callable[[], CodeFlow]
    make_group_directory: Callable[[], GroupDirectory]
    release: Callable[[], Awaitable[None]]
    reranker: Reranker | None = None
    chat_model: ChatModel | None = None
