"""The engine on one store: an object that holds the services."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from conspectus.engine.collections import CollectionService
from conspectus.engine.components import EngineComponents
from conspectus.engine.context import EngineContext
from conspectus.engine.core import EngineCore
from conspectus.engine.delegation import delegate_to
from conspectus.engine.documents import DocumentService
from conspectus.engine.maintenance import MaintenanceService
from conspectus.engine.search import SearchService
from conspectus.engine.searcher import Searcher
from conspectus.model.access import LOCAL_OWNER, Person
from conspectus.model.parameters import Vector
from conspectus.model.trust import Origin, least_trusted
from conspectus.ports import CountTokens, Embedder, Progress
from conspectus.text.vectors import unpack_row

if TYPE_CHECKING:
    from conspectus.access.browser_sign_ins import BrowserSignIns
    from conspectus.access.sessions import Sessions
    from conspectus.access.sign_ins import SignIns
    from conspectus.engine.access import AccessService
    from conspectus.engine.alerts import AlertService
    from conspectus.engine.answers import AnswerService
    from conspectus.engine.channels import ChannelService
    from conspectus.engine.chat import ChatService
    from conspectus.engine.connections import ConnectionService
    from conspectus.engine.events import EventService
    from conspectus.engine.experiments import ExperimentService
    from conspectus.engine.files import FileService
    from conspectus.engine.graph import GraphService
    from conspectus.engine.identities import IdentityService
    from conspectus.engine.job_queue import JobQueue
    from conspectus.engine.jobs import JobService
    from conspectus.engine.keys import KeyService
    from conspectus.engine.logins import LoginService
    from conspectus.engine.memory import MemoryService
    from conspectus.engine.memory_extraction import FactExtraction
    from conspectus.engine.people import PeopleService
    from conspectus.engine.provisioning import Provisioning
    from conspectus.engine.retention import RetentionService
    from conspectus.engine.streams import StreamService
    from conspectus.engine.summaries import SummaryService
    from conspectus.engine.tasks import TaskService
    from conspectus.ingest.job_execution import Outcome, Tell
    from conspectus.model.captions import CaptionImport
    from conspectus.model.jobs import Job, Upload
    from conspectus.ports.chat import ChatRegistry
    from conspectus.ports.jobs import IdempotencyStore, RateCounters


class Engine:
    """The services of one store for one user, opened with `conspectus.open`; safe to use from many tasks.

    `as_person` returns the engine of another user on the same store. Each attribute is a service, which is
    loaded on first use; `add`, `retrieve`, `window` and `explain` are those of `documents` and `search`.
    """

    def __init__(self, parts: EngineComponents) -> None:
        self._context = EngineContext(EngineCore(parts), LOCAL_OWNER)

    def as_person(self, person: Person) -> "Engine":
        """Return the engine of another user on the same store."""
        view = Engine.__new__(Engine)
        view._context = self._context.as_person(person)
        return view

    def with_origin(self, origin: Origin) -> "Engine":
        """Return an engine whose writes are trusted no more than texts of an origin, such as `agent`."""
        person = self._context.person
        return self.as_person(replace(person, origin=least_trusted(person.origin, origin)))

    add = delegate_to("documents", DocumentService.add)
    retrieve = delegate_to("search", SearchService.retrieve)
    window = delegate_to("search", SearchService.window)
    explain = delegate_to("search", SearchService.explain)

    @cached_property
    def collections(self) -> CollectionService:
        """Collections and their sources."""
        return CollectionService(self._context)

    @cached_property
    def documents(self) -> DocumentService:
        """Documents: write, read and delete."""
        return DocumentService(self._context, self._import_captions)

    async def _import_captions(
        self, files: "Sequence[Upload]", collection: str, progress: Progress | None
    ) -> "CaptionImport":
        return await self.streams.import_captions(
            files, collection=collection, progress=progress, skip_unsupported=True
        )

    @cached_property
    def search(self) -> SearchService:
        """Search: hits, context windows and explanations."""
        return SearchService(self._context, self._searcher)

    @cached_property
    def answers(self) -> "AnswerService":
        """Answer records: the windows, recalls and chat answers that people received."""
        from conspectus.engine.answers import AnswerService

        return AnswerService(self._context)

    @cached_property
    def experiments(self) -> "ExperimentService":
        """Question sets, and runs that measure windows."""
        from conspectus.engine.experiments import ExperimentService

        return ExperimentService(self._context, self._queue)

    @cached_property
    def channels(self) -> "ChannelService":
        """Messages, threads and reply chains."""
        from conspectus.engine.channels import ChannelService

        return ChannelService(self._context, self.search)

    @cached_property
    def chat(self) -> "ChatService":
        """Answers of a chat model that cites stored documents."""
        from conspectus.engine.chat import ChatService

        return ChatService(self._context, self.search, self.channels)

    @cached_property
    def tasks(self) -> "TaskService":
        """Tasks and attachments."""
        from conspectus.engine.tasks import TaskService

        return TaskService(self)

    @cached_property
    def streams(self) -> "StreamService":
        """Streams, their captions and moments."""
        from conspectus.engine.streams import StreamService

        return StreamService(self._context, self.collections, self.documents, self._searcher, self._queue)

    @cached_property
    def events(self) -> "EventService":
        """Events of streams, and the entities in them."""
        from conspectus.engine.events import EventService

        return EventService(self._context)

    @cached_property
    def summaries(self) -> "SummaryService":
        """Summaries of streams."""
        from conspectus.engine.summaries import SummaryService

        return SummaryService(self._context, self._queue)

    @cached_property
    def alerts(self) -> "AlertService":
        """Saved queries that new captions are matched with."""
        from conspectus.engine.alerts import AlertService

        return AlertService(self._context)

    @cached_property
    def memory(self) -> "MemoryService":
        """Memories of users, agents and conversations."""
        from conspectus.engine.memory import MemoryService

        return MemoryService(self._context, self._searcher, lambda: self._extraction)

    @cached_property
    def retention(self) -> "RetentionService":
        """Rules that delete old memories."""
        from conspectus.engine.retention import RetentionService

        return RetentionService(self._context, self._queue, lambda person: self.as_person(person).retention)

    @cached_property
    def graph(self) -> "GraphService":
        """Nodes, edges and entities."""
        from conspectus.engine.graph import GraphService

        return GraphService(self._context)

    @cached_property
    def people(self) -> "PeopleService":
        """Users and groups."""
        from conspectus.engine.people import PeopleService

        return PeopleService(self._context)

    @cached_property
    def keys(self) -> "KeyService":
        """API keys."""
        from conspectus.engine.keys import KeyService

        return KeyService(self._context)

    @cached_property
    def logins(self) -> "LoginService":
        """Sessions of browsers, and invitations with which users without a key log in."""
        from conspectus.engine.logins import LoginService

        return LoginService(self._context)

    @cached_property
    def identities(self) -> "IdentityService":
        """Identities of users at an issuer of tokens, and the claims that lead to groups."""
        from conspectus.engine.identities import IdentityService

        return IdentityService(self._context)

    @cached_property
    def access(self) -> "AccessService":
        """Grants, the roles that they give, and the audit log."""
        from conspectus.engine.access import AccessService

        return AccessService(self._context)

    @cached_property
    def jobs(self) -> "JobService":
        """Durable background tasks."""
        from conspectus.engine.jobs import JobService

        return JobService(self._context, self._queue)

    @cached_property
    def connections(self) -> "ConnectionService":
        """Connections of collections with Git, wikis and folders."""
        from conspectus.engine.connections import ConnectionService

        return ConnectionService(
            self._context,
            self.collections,
            self.jobs,
            self._queue,
            lambda person: self.as_person(person).connections,
        )

    @cached_property
    def files(self) -> "FileService":
        """Documents as files: list, read, find, and search lines for a pattern."""
        from conspectus.engine.files import FileService

        return FileService(self._context, self.search)

    @cached_property
    def maintenance(self) -> MaintenanceService:
        """Status, checks, reindexing and reembedding."""
        return MaintenanceService(self._context, self.documents)

    def tokenizer(self, name: str = "o200k_base") -> CountTokens:
        """Return the function that counts tokens with a tokenizer. Raises UnknownTokenizer."""
        return self._context.parts.counter(name)

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the settings, if one is set."""
        parts = self._context.parts
        return parts.embedder_by_name(parts.settings.embedder)

    @property
    def idempotency(self) -> "IdempotencyStore":
        """The stored responses of front ends, so that a repeated request is processed once."""
        return self._context.parts.idempotency

    @property
    def sessions(self) -> "Sessions":
        """The logins of browsers at front ends."""
        return self._context.core.sessions

    @property
    def sign_ins(self) -> "SignIns | None":
        """The sign-ins with tokens at front ends; None if the settings name no issuer."""
        return self._context.core.sign_ins

    @property
    def browser_sign_ins(self) -> "BrowserSignIns | None":
        """The sign-ins of browsers on the pages of the issuer; None if the settings name no client."""
        return self._context.core.browser_sign_ins

    def make_provisioning(self) -> "Provisioning":
        """Return the users and groups that an identity provider manages, for a front end."""
        from conspectus.engine.provisioning import Provisioning

        return Provisioning(self._context)

    @property
    def rate_counters(self) -> "RateCounters":
        """The request counters of front ends, shared by all processes of a store."""
        return self._context.parts.rate_counters

    def stop_long_work(self) -> None:
        """Let windows and explanations that are being made finish soon, and begin no long ones."""
        self._context.core.long_work.stop()

    def let_long_work_wait(self, have_others_precedence: Callable[[], bool]) -> None:
        """Let windows and explanations that are being made wait a moment while others have precedence.

        The function is called in other threads.
        """
        self._context.core.long_work.have_others_precedence = have_others_precedence

    @property
    def chat_registry(self) -> "ChatRegistry | None":
        """The chats in progress that front ends share between processes, if there are several."""
        return self._context.parts.chat_registry

    async def prepare_indexes(self) -> None:
        """Create what the indexes of the store share. Raises ExtensionMissing."""
        await self._context.parts.indexes.prepare()

    async def read_vectors(self, documents: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of the first chunks of documents that the person may read and that have one."""
        readable = await self._context.authorized.documents(documents)
        vectors: dict[str, Vector] = {}
        by_collection = groupby(readable, key=lambda pair: pair[1].collection)
        for collection, pairs in by_collection:
            if collection.space is not None:
                ids = [document.id for document, _ in pairs]
                rows = await self._context.parts.summaries.vectors(ids, collection.space)
                vectors |= {document: unpack_row(row) for document, row in rows.items()}
        return vectors

    async def close(self) -> None:
        """Stop background work and close every store. Unfinished work continues when the store is next
        opened.
        """
        await self._context.core.close()

    @cached_property
    def _searcher(self) -> Searcher:
        return Searcher(self._context)

    @cached_property
    def _extraction(self) -> "FactExtraction":
        from conspectus.engine.memory_extraction import FactExtraction

        return FactExtraction(self._context, self._queue)

    @cached_property
    def _queue(self) -> "JobQueue":
        from conspectus.engine.job_queue import JobQueue

        return JobQueue(self._context, lambda person, job, tell: self.as_person(person)._perform(job, tell))

    async def _perform(self, job: "Job", tell: "Tell") -> "Outcome":
        """Run a job."""
        match job.kind:
            case "summary":
                from conspectus.engine.summary_pipeline import SummaryPipeline

                return await SummaryPipeline(self._context).perform(job, tell)
            case "retention":
                from conspectus.engine.retention import RetentionRules

                return await RetentionRules(self._context).perform(job, tell)
            case "evaluation":
                from conspectus.engine.experiment_runs import RunJobs

                return await RunJobs(self._context).perform(job, tell)
            case "extraction":
                return await self._extraction.perform(job, tell)
            case _:
                from conspectus.engine.job_handlers import JobHandlers

                engine = self._as_sync(job) if job.kind == "sync" else self
                handlers = JobHandlers(
                    engine._context, engine.collections, engine.documents, engine._import_captions
                )
                return await handlers.perform(job, tell)

    def _as_sync(self, job: "Job") -> "Engine":
        """Return the engine for a sync, which reads what its connection mirrors, whoever the viewers are."""
        person = self._context.person
        return self.as_person(replace(person, syncs=str(job.arguments["connection"])))
