"""Job handlers: ingestion, connection syncs and other work that outlasts a request."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from pathlib import Path, PurePath

from conspectus.access.job_reader import AuthorizedJobs
from conspectus.access.policy import require_scope
from conspectus.deferred import dataclass
from conspectus.engine.collections import CollectionService
from conspectus.engine.connection_sources import ConnectionSources
from conspectus.engine.context import EngineContext
from conspectus.engine.credentials import ConnectionCredentials, mask_credentials, mask_error
from conspectus.engine.documents import DocumentService, ImportCaptions
from conspectus.engine.service import Service
from conspectus.errors import (
    AccessLost,
    Conflict,
    ConspectusError,
    FetchFailed,
    ForbiddenAddress,
    LockLost,
    NotFound,
    PermissionDenied,
    RequestBudgetSpent,
    UnreadableFile,
    UnsupportedContent,
)
from conspectus.ingest.batch_writes import batches, write
from conspectus.ingest.connection_sync import synchronise
from conspectus.ingest.document_fields import message_id
from conspectus.ingest.files import file_name, page_key, require_text_answer, title_of
from conspectus.ingest.job_execution import MAX_MESSAGE_CHARACTERS, Outcome, Tell, fate
from conspectus.ingest.metered_requests import MeteredFetcher
from conspectus.ingest.sensitive import mask_report
from conspectus.model.access import Person
from conspectus.model.connections import Connection, SyncReport, SyncState
from conspectus.model.filter import And, Eq, Filter, In, Not, Or
from conspectus.model.ids import SourceId
from conspectus.model.jobs import Job, Upload
from conspectus.model.quarantine import as_given
from conspectus.model.records import Json, Metadata, NewDocument, Source, SourceKind, Written
from conspectus.ports import FoundFile, ParsedFile
from conspectus.ports.connectors import Connectors
from conspectus.ports.web import Fetched


class JobHandlers(Service, checked=False):
    """The handlers of each kind of job. Every handler is idempotent."""

    def __init__(
        self,
        context: EngineContext,
        collections: CollectionService,
        documents: DocumentService,
        import_captions: ImportCaptions,
    ) -> None:
        super().__init__(context)
        self._import_captions = import_captions
        self._authorized_jobs = AuthorizedJobs(context.authorized, context.parts.work.job_store)
        self._credentials = ConnectionCredentials(context.parts.work)
        self._collections = collections
        self._documents = documents

    async def perform(self, job: Job, tell: Tell) -> Outcome:
        """Run a job and return its result. However it ends, what it stored is embedded."""
        try:
            return await self._handle(job, tell)
        finally:
            await self._embed_stored(job)

    async def _handle(self, job: Job, tell: Tell) -> Outcome:
        match job.kind:
            case "ingest_url":
                return await self._ingest_page(job, tell)
            case "ingest_files":
                return await self._ingest_files(job, tell)
            case "sync":
                return await self._sync(job, tell)
            case "summary" | "retention" | "extraction" | "evaluation":
                raise Conflict("job", job.id, "needs an engine with streams and memories")

    async def _ingest_page(self, job: Job, tell: Tell) -> Outcome:
        """Fetch and parse a page, and replace its earlier version."""
        request = {**job.arguments, **(await self._parts.work.files.secret(job.id) or {})}
        url, headers = request.get("url"), request.get("headers", {})
        if not isinstance(url, str) or not isinstance(headers, dict):
            raise Conflict("job", job.id, "its request was deleted; start a new job")
        sent = {name: str(value) for name, value in headers.items()}
        fetched = require_text_answer(
            await self._core.fetcher().fetch(url, method=str(request["method"]), headers=sent)
        )
        tell(1, 3)
        parsed = await asyncio.to_thread(
            self._parts.make_files().parse_bytes, fetched.body, file_name(fetched), charset=fetched.charset
        )
        source = await self._require_target(job, str(request["source"]), "web")
        documents = _page_documents(parsed, fetched, page_key(url), source.id)
        counts = await self._replace_documents(job, source, documents, Eq(("url",), page_key(url)))
        subtitles = _subtitles(parsed, Upload(_stream_file(fetched), fetched.body))
        imported_counts, failed_captions, skipped_captions = await self._import_subtitles(
            job, subtitles, tell
        )
        failures = [*(failed_captions | skipped_captions).items()]
        counts.update(imported_counts)
        tell(2, 3)
        await self._finish_embedding(job)
        tell(3, 3)
        if parsed.has_captions and failures:
            raise UnreadableFile(*failures[0])
        notices = [] if parsed.notice is None else [parsed.notice]
        notices += [f"{name}: {reason}" for name, reason in failures]
        notices += [str(member.fault) for member in parsed.members if member.fault is not None]
        notice = {"notice": "; ".join(notices)[:MAX_MESSAGE_CHARACTERS]} if notices else {}
        return Outcome({**counts, **notice, "type": fetched.content_type, "bytes": len(fetched.body)})

    async def _ingest_files(self, job: Job, tell: Tell) -> Outcome:
        """Parse each file, and replace its earlier version. A failed file does not stop the others."""
        names, paths = _file_names(job), await self._parts.work.files.files(job.id)
        if len(paths) != len(names):
            raise Conflict("job", job.id, "its files were deleted; upload them again")
        source = await self._require_target(job, str(job.arguments["source"]), "upload")
        ingested = _IngestedFiles()
        faults: list[ConspectusError] = []
        for number, (name, path) in enumerate(zip(names, paths, strict=True)):
            tell(number, len(names))
            try:
                ingested.add(await self._ingest_file(job, source, name, path, tell))
            except ConspectusError as fault:
                if fate(fault) == "again" or isinstance(fault, PermissionDenied | NotFound):
                    raise
                faults.append(fault)
                ingested.failures.append(_failure(name, fault))
        await self._finish_embedding(job)
        tell(len(names), len(names))
        have_all_failed = len(faults) == len(names)
        return Outcome(ingested.result(), faults[0] if have_all_failed else None)

    async def _ingest_file(
        self, job: Job, source: Source, name: str, path: Path, tell: Tell
    ) -> "_IngestedFiles":
        """Replace what is stored of a file and of those inside it.

        What was stored of a file inside that cannot be read remains. Files of captions become streams. Raises
        UnreadableFile if the file itself is one without captions.
        """
        uploaded = FoundFile(path, name, (await asyncio.to_thread(path.stat)).st_size)
        parsed = await asyncio.to_thread(self._parts.make_files().parse, uploaded)
        files = {name: parsed}
        files |= {member.name: member.file for member in parsed.members if member.file is not None}
        documents = [
            replace(
                document,
                key=document.key or file_name,
                parent=None if document.parent is None else message_id(source.id, document.parent),
                metadata={**document.metadata, "path": file_name},
                origin="import",
            )
            for file_name, file in files.items()
            for document in file.documents
        ]
        faults = {member.name: member.fault for member in parsed.members if member.fault is not None}
        same_file: Filter = Eq(("path",), name)
        if parsed.may_have_members:
            unread = [Or((Eq(("path",), member), Eq("folder", member))) for member in faults]
            same_file = And((Or((same_file, Eq("folder", name))), *map(Not, unread)))
        counts = await self._replace_documents(job, source, documents, same_file)
        skipped = {
            member: fault.reason for member, fault in faults.items() if isinstance(fault, UnsupportedContent)
        }
        failures = [_failure(member, fault) for member, fault in faults.items() if member not in skipped]
        imported_counts, failed_captions, skipped_captions = await self._import_subtitles(
            job, _subtitles(parsed, Upload(name, path)), tell
        )
        if parsed.has_captions and skipped_captions:
            raise UnsupportedContent(name, skipped_captions[name])
        if parsed.has_captions and failed_captions:
            raise UnreadableFile(name, failed_captions[name])
        counts.update(imported_counts)
        failures += [_failure(member, UnreadableFile(member, why)) for member, why in failed_captions.items()]
        notices = {file_name: file.notice for file_name, file in files.items() if file.notice}
        return _IngestedFiles(counts, failures, {**skipped, **skipped_captions}, notices)

    async def _import_subtitles(
        self, job: Job, subtitles: Sequence[Upload], tell: Tell
    ) -> tuple[Counter[str], dict[str, str], dict[str, str]]:
        """Make streams of files of captions; return counts, and why files failed or were skipped, by name."""
        if not subtitles:
            return Counter(), {}, {}
        imported = await self._import_captions(
            subtitles, job.collection, lambda _, done, total: tell(done, total)
        )
        counts = Counter(
            added=imported.added,
            replaced=imported.replaced,
            unchanged=imported.unchanged,
            documents=sum(imported.streams.values()),
            streams=len(imported.streams),
        )
        return counts, dict(imported.failures), dict(imported.skipped_files)

    async def _sync(self, job: Job, tell: Tell) -> Outcome:
        """Sync the collection with its connection."""
        access = await self._authorized.collection(job.collection)
        connection = await self._authorized_jobs.connection(access, str(job.arguments["connection"]))

        async def create_source(name: str, metadata: Metadata) -> Source:
            return await self._require_target(job, name, "wiki", metadata)

        store = ConnectionSources(
            self._context,
            self._collections,
            self._documents,
            connection,
            create_source=create_source,
            write=partial(self._write_batch, job),
        )
        state: SyncState = "idle"
        error: str | None = None
        try:
            await store.update(state="running", error=None)
            report = await self._copy_changes(connection, store, tell)
            if not report.is_cut_off:
                await store.show_again()
            await self._finish_embedding(job)
            state = "idle" if report.is_cut_off else "complete"
        except ConspectusError as fault:
            is_remote_fault = isinstance(fault, FetchFailed) and not isinstance(fault, ForbiddenAddress)
            is_refusal = isinstance(fault, FetchFailed) and is_remote_fault and fault.refused
            reported = AccessLost(fault) if is_refusal else fault
            reason = mask_report(self._parts.settings.sensitive, str(reported), job.collection)
            state, error = "error", reason[:MAX_MESSAGE_CHARACTERS]
            if is_remote_fault:
                await store.hide("lost" if is_refusal else "unreachable")
            raise reported from fault.__cause__
        finally:
            await store.update(state=state, error=error, last_run=self._parts.clock())
        if report.is_cut_off:
            budget = self._parts.settings.sync_max_requests
            return replace(_sync_outcome(report), fault=RequestBudgetSpent(budget))
        return _sync_outcome(report)

    async def _copy_changes(self, connection: Connection, store: ConnectionSources, tell: Tell) -> SyncReport:
        """Sync with the credentials of the connection, which no error and no report repeats."""
        connectors = self._parts.work.connectors
        credentials = await self._credentials.open(connection)
        require_readable_origin(self._person, connectors, connection, credentials)
        settings = self._parts.settings
        fetcher = MeteredFetcher(
            self._core.fetcher(),
            per_second=settings.sync_requests_per_second,
            budget=settings.sync_max_requests,
        )
        connector = connectors.create(connection, fetcher, credentials)
        try:
            report = await synchronise(
                connection, connector, store, progress=lambda _, done, total: tell(done, total)
            )
        except ConspectusError as fault:
            mask_error(fault, credentials)
            raise
        finally:
            await connector.close()
        failures = tuple((name, mask_credentials(reason, credentials)) for name, reason in report.failures)
        requests, waited_seconds = fetcher.requests, round(fetcher.waited_seconds, 1)
        people = await self._parts.accounts.list_remote_people(connection.id)
        return replace(
            report,
            failures=failures,
            requests=requests,
            waited_seconds=waited_seconds,
            unmapped_people=sum(person.user is None for person in people),
        )

    async def _require_target(
        self, job: Job, name: str, kind: SourceKind, metadata: Metadata | None = None
    ) -> Source:
        """Return the source that a job writes to; it is created if the user may do so.

        A collection that is no longer readable raises NotFound and is not created again.
        """
        access = await self._authorized.collection(job.collection)
        source = await self._authorized.source(access, name)
        if source is None:
            source = (await self._writer.source(name, job.collection, metadata, kind))[0]
        if metadata is None and job.source != source.id:
            await self._parts.work.job_store.change(job.id, source=source.id)
        return source

    async def _write_batch(self, job: Job, source: Source, batch: Sequence[NewDocument]) -> Sequence[Written]:
        """Write a batch in one transaction, if the user still may."""
        access = await self._authorized.collection(job.collection)
        require_scope(self._person, "write", "write")
        access.require("editor", "add documents", source=source.id)
        preparation = self._context.preparation(source)
        size, overlap = job.arguments.get("chunk_size"), job.arguments.get("overlap")
        if isinstance(size, int) and isinstance(overlap, int):
            settings = replace(preparation.settings, chunk_size=size, chunk_overlap=overlap)
            preparation = replace(preparation, settings=settings)
        outcome = await write(self._core.records, batch, preparation)
        await self._core.open_indexes.catch_up(source.collection, outcome.update)
        return outcome.written

    async def _replace_documents(
        self, job: Job, source: Source, documents: Sequence[NewDocument], same_origin: Filter
    ) -> Counter[str]:
        """Write the documents of a page or file, and delete the others that `same_origin` matches."""
        written: list[Written] = []
        for batch in batches(documents):
            # A later attempt may have begun elsewhere, as after a long pause of this process.
            current_job = await self._parts.work.job_store.job(job.id)
            if current_job is not None and current_job.attempts != job.attempts:
                raise LockLost(f"job {job.id}")
            written += await self._write_batch(job, source, batch)
        counts = Counter[str](document.outcome for document in written)
        written_ids = {document.id for document in written}
        access = await self._authorized.collection(source.collection)
        stored = self._authorized.iterate_matching(access, And((Eq("source", source.id), same_origin)))
        outdated = [
            document.id async for page in stored for document in page if document.id not in written_ids
        ]
        deleted = (await self._documents.delete(outdated)).documents if outdated else 0
        chunks = sum(document.chunks for document in written)
        counts.update({"documents": len(written), "chunks": chunks, "deleted": deleted})
        return counts

    async def _embed_stored(self, job: Job) -> None:
        """Embed in the background what an attempt stored, as it may have been cancelled or have failed."""
        with suppress(ConspectusError):
            access = await self._authorized.collection(job.collection)
            await self._context.embed(access.collection, wait=False)
            await note_stored_files(self._context, job)

    async def _finish_embedding(self, job: Job) -> None:
        access = await self._authorized.collection(job.collection)
        await self._context.embed_in(access, wait=True)


async def note_stored_files(context: EngineContext, job: Job) -> None:
    """Name the files of a cancelled upload that are stored, under `stored` in its result."""
    jobs = context.parts.work.job_store
    ended = await jobs.job(job.id)
    if ended is None or ended.state != "cancelled" or ended.kind != "ingest_files" or ended.source is None:
        return
    access = await context.authorized.collection(ended.collection)
    where = And((Eq("source", ended.source), In(("path",), tuple(_file_names(ended)))))
    stored = {
        str(as_given(document).metadata["path"])
        async for page in context.authorized.iterate_matching(access, where)
        for document in page
    }
    stored_names: list[Json] = [name for name in _file_names(ended) if name in stored]
    await jobs.change(ended.id, result={"stored": stored_names})


def require_readable_origin(
    person: Person, connectors: Connectors, connection: Connection, credentials: Mapping[str, str]
) -> None:
    """Raise PermissionDenied for a connection to local files, which only the owner account may read."""
    if not person.owner and connectors.is_local(connection, credentials):
        raise PermissionDenied("read what lies on the machine that holds the store", "its owner account")


def _page_documents(parsed: ParsedFile, fetched: Fetched, key: str, source: SourceId) -> list[NewDocument]:
    """Return the documents of a page and of the files inside it, named by its address.

    They have nothing that varies between fetches.
    """
    files = [parsed, *(member.file for member in parsed.members if member.file is not None)]
    parsed_documents = [document for file in files for document in file.documents]
    is_single = len(parsed_documents) == 1
    name_of_download = PurePath(file_name(fetched)).name
    documents = []
    for document in parsed_documents:
        metadata = {
            name: value for name, value in document.metadata.items() if name not in {"path", "media_type"}
        }
        documents.append(
            replace(
                document,
                key=key if is_single else f"{key}#{document.key}",
                parent=None if document.parent is None else message_id(source, f"{key}#{document.parent}"),
                title=title_of(key) if document.title in {"", name_of_download} else document.title,
                metadata={**metadata, "url": key, "content_type": fetched.content_type},
                origin="web",
            )
        )
    return documents


def _subtitles(parsed: ParsedFile, file: Upload) -> list[Upload]:
    """Return the files of captions: the file itself, and those inside it."""
    inside = [
        Upload(member.name, member.subtitles) for member in parsed.members if member.subtitles is not None
    ]
    return [file, *inside] if parsed.has_captions else inside


def _stream_file(fetched: Fetched) -> str:
    """Return the name of the file of captions at an address, after which its stream is named."""
    address = page_key(fetched.url).partition("://")[2]
    suffix = PurePath(file_name(fetched)).suffix
    return address if address.endswith(suffix) else f"{address}{suffix}"


@dataclass(slots=True)
class _IngestedFiles:
    """What became of uploaded files: numbers of documents, failures, and remarks by name."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Json] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    notices: dict[str, str] = field(default_factory=dict)

    def add(self, others: "_IngestedFiles") -> None:
        """Add the outcomes of other files."""
        self.counts.update(others.counts)
        self.failures += others.failures
        self.skipped |= others.skipped
        self.notices |= others.notices

    def result(self) -> Metadata:
        """Return the result of the job."""
        skipped: Metadata = {"skipped": len(self.skipped), "skipped_files": dict(self.skipped)}
        notices: Metadata = {"notices": dict(self.notices)}
        return {
            **self.counts,
            **(skipped if self.skipped else {}),
            **(notices if self.notices else {}),
            "failures": self.failures,
        }


def _failure(name: str, fault: ConspectusError) -> Json:
    return {"name": name, "code": fault.code, "reason": str(fault)[:MAX_MESSAGE_CHARACTERS]}


def _file_names(job: Job) -> list[str]:
    """Return the names of the files of an upload."""
    names = job.arguments.get("files")
    return [str(name) for name in names] if isinstance(names, list) else []


def _sync_outcome(report: SyncReport) -> Outcome:
    failures: list[Json] = [{"name": name, "reason": reason} for name, reason in report.failures]
    written = {"added": report.added, "replaced": report.replaced, "unchanged": report.unchanged}
    counts = {**written, "deleted": report.deleted}
    result: Metadata = {**counts, "failures": failures}
    if report.unmapped_people:
        result = {**result, "unmapped_people": report.unmapped_people}
    if report.requests:
        result = {**result, "requests": report.requests, "waited_seconds": report.waited_seconds}
    if report.skipped:
        result = {**result, "skipped": report.skipped, "skipped_files": dict(report.skipped_files)}
    if report.failures and not any(counts.values()):
        return Outcome(result, UnreadableFile(*report.failures[0]))
    return Outcome(result)
