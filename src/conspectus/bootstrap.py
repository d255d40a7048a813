"""The composition root: the only module that names adapters.

Adapters are imported when they are first needed, so that a program pays only for what it uses.
"""

import asyncio
import importlib
import importlib.metadata
import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from conspectus.engine import Engine, Parts
from conspectus.engine.parts import WorkParts
from conspectus.errors import IndexDamaged, InvalidInput, MissingExtra, NotFound, ProviderError, StorageError
from conspectus.model.patience import Patience
from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.model.wiki import Connection
from conspectus.ports import CountTokens, Embedder, Index, Reader
from conspectus.ports.chat import ChatModel
from conspectus.ports.jobs import Jobs, Ledger
from conspectus.ports.web import Connector, Fetcher, Reranker
from conspectus.providers.logged import Note, RequestNotes, drop
from conspectus.records.turns import turn
from conspectus.settings import Settings
from conspectus.text.words import Analyzer

if TYPE_CHECKING:
    from conspectus.sources.chats.archives import LocalArchives
    from conspectus.sources.files import LocalFiles

RECORDS = "records.sqlite"
INDEXES = "index"
EMBEDDING = "embedding.lock"
JOBS = "jobs.sqlite"
JOBS_LOCK = "jobs.lock"
COPIES = "wikis"
MINILM = "minilm"
MINILM_MODEL = "all-MiniLM-L6-v2"
STATIC = "static:"
GIVEN = "given"
CHILD = "import asyncio, sys; from conspectus import bootstrap; asyncio.run(bootstrap.build(*sys.argv[1:]))"


@asynccontextmanager
async def open(
    path: str | Path | None = None,
    *,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    reranker: Reranker | None = None,
    chat_model: ChatModel | None = None,
) -> AsyncIterator[Engine]:
    """Open the store at `path` (made if it does not exist) and release everything at the end of the block.

    `path` defaults to the one of the settings, the settings to the environment's; `embedder` is any object
    of that protocol, used for its own space and for new collections instead of the settings' one, and
    `reranker` and `chat_model` likewise. Raises StorageTooNew, StorageError, or MissingExtra for a model
    whose library is not installed.
    """
    chosen = Settings.from_environment() if settings is None else settings
    if embedder is not None:
        chosen = replace(chosen, embedder=GIVEN)
    folder = absolute(path or chosen.path)
    models = Models(chosen, embedder)
    judge = reranker or models.rerankers.named(chosen.reranker)
    speaker = chat_model or models.speaker()
    parts = replace(await _parts(folder, chosen, models), reranker=judge, chat_model=speaker)
    models.notes.write_to(parts.request_log)
    engine = Engine(parts)
    try:
        await engine.resume()
        yield engine
    finally:
        await engine.close()


class Models:
    """All models in use, and the notes of what vendors are asked."""

    def __init__(self, settings: Settings, given: Embedder | None = None) -> None:
        self.notes = RequestNotes()
        self._settings = settings
        self._speakers: list[ChatModel] = []
        self.embedders = Embedders(settings, given, note=self.notes)
        self.rerankers = Rerankers(settings, note=self.notes)

    def speaker(self) -> ChatModel | None:
        """The chat model of the settings; None for `none`. Raises InvalidInput or MissingExtra."""
        if self._settings.chat_model == "none":
            return None
        from conspectus.providers.vendors import chat_model_of

        made = chat_model_of(self._settings, note=self.notes)
        self._speakers.append(made)
        return made

    async def close(self) -> None:
        """Release the models, then write down what is still to note."""
        for made in self._speakers:
            await made.close()
        await self.embedders.close()
        await self.rerankers.close()
        await self.notes.close()


class Embedders:
    """The embedders in use, each made when it is first needed."""

    def __init__(self, settings: Settings, given: Embedder | None = None, *, note: Note = drop) -> None:
        self._settings = settings
        self._given = given
        self._note = note
        self._made: dict[str, Embedder] = {}

    def named(self, name: str) -> Embedder | None:
        """The embedder of a setting; None for `none`. Raises InvalidInput for a name of no known form.

        `given` is the object that the caller handed in.
        """
        if name == "none":
            return None
        if name == GIVEN:
            return self._given
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def of(self, space: EmbeddingSpace) -> Embedder | None:
        """The embedder whose vectors can be compared with those of the space; None if there is none here."""
        for made in [self._given, *self._made.values()]:
            if made is not None and made.space == space:
                return made
        try:
            named = self.named(_setting(space))
        except (InvalidInput, MissingExtra, ProviderError):
            return None
        return named if named is not None and named.space == space else None

    async def close(self) -> None:
        """Release those that were made here."""
        for made in self._made.values():
            await made.close()

    def _make(self, name: str) -> Embedder:
        if name == MINILM:
            from conspectus.providers.onnx_embedder import OnnxEmbedder

            return OnnxEmbedder(threads=self._settings.embedder_threads or None)
        if name.startswith(STATIC):
            from conspectus.providers.static_embedder import StaticEmbedder

            return StaticEmbedder(Path(name.removeprefix(STATIC)))
        if ":" not in name:
            raise InvalidInput("embedder", f"{name!r} is not minilm, none, static:PATH or vendor:model")
        from conspectus.ingest.embed_queue import EmbedQueue, Sharing
        from conspectus.providers.vendors import embedder_of

        chosen = self._settings
        inner = embedder_of(name, timeout=float(chosen.provider_seconds), note=self._note)
        sharing = Sharing(max(1, chosen.embed_batch), chosen.embed_wait_milliseconds / 1000)
        return EmbedQueue(inner, sharing=sharing, patience=_patience(chosen))


class Rerankers:
    """The rerankers in use, each made when it is first needed."""

    def __init__(self, settings: Settings, *, note: Note = drop) -> None:
        self._settings = settings
        self._note = note
        self._made: dict[str, Reranker] = {}

    def named(self, name: str) -> Reranker | None:
        """The reranker of a setting; None for `none`. Raises InvalidInput for a name of no known form."""
        if name == "none":
            return None
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    async def close(self) -> None:
        """Release those that were made here."""
        for made in self._made.values():
            await made.close()

    def _make(self, name: str) -> Reranker:
        from conspectus.providers.vendors import reranker_of

        timeout = float(self._settings.provider_seconds)
        return reranker_of(name, patience=_patience(self._settings), timeout=timeout, note=self._note)


def _patience(settings: Settings) -> Patience:
    return Patience(settings.embed_attempts, longest_wait=float(settings.embed_longest_wait_seconds))


def absolute(path: str | Path) -> Path:
    """The same place, whatever the working folder becomes."""
    return Path(path).expanduser().absolute()


async def _parts(folder: Path, settings: Settings, models: Models) -> Parts:
    from conspectus.index.segments.store import bytes_below
    from conspectus.providers.tokenizers import counter
    from conspectus.records.accounts import SqlAccounts
    from conspectus.records.ledger import SqlLedger
    from conspectus.records.replays import SqlReplays
    from conspectus.records.request_log import SqlRequestLog
    from conspectus.records.store import open_records

    await asyncio.to_thread(_make, folder)

    async def open_index(collection: Collection, space: EmbeddingSpace | None, reader: Reader) -> Index:
        return await _open_segments(folder, collection, space, reader, settings)

    async def forget_index(collection: Collection, space: EmbeddingSpace | None) -> None:
        await asyncio.to_thread(shutil.rmtree, index_folder(folder, collection, space), ignore_errors=True)

    records = await open_records(folder / RECORDS, busy_seconds=settings.busy_seconds)
    return Parts(
        path=str(folder),
        version=importlib.metadata.version("conspectus"),
        settings=settings,
        records=records,
        accounts=SqlAccounts(records.transactions),
        files=local_files(settings),
        archives=local_archives(settings),
        clock=now,
        turn=lambda: turn(folder / EMBEDDING),
        open_index=open_index,
        embedder_named=models.embedders.named,
        embedder_for=models.embedders.of,
        release=models.close,
        counter=cache(counter),
        size=partial(bytes_below, folder),
        forget_index=forget_index,
        request_log=SqlRequestLog(records.transactions),
        replays=SqlReplays(records.transactions),
        work=_work_parts(folder, settings, SqlLedger(records.transactions)),
    )


def local_files(settings: Settings) -> "LocalFiles":
    """The files of this machine, read within the limits of the settings."""
    from conspectus.sources.files import LocalFiles

    return LocalFiles.under(settings)


def local_counter(tokenizer: str) -> CountTokens:
    """What counts tokens as that tokenizer does. Raises UnknownTokenizer."""
    from conspectus.providers.tokenizers import counter

    return counter(tokenizer)


def local_archives(settings: Settings) -> "LocalArchives":
    """The exports of chat platforms on this machine, read within the limits of the settings."""
    from conspectus.sources.chats.archives import LocalArchives

    return LocalArchives.under(settings)


def _work_parts(folder: Path, settings: Settings, ledger: Ledger) -> WorkParts:
    from conspectus.sources.job_files import LocalJobFiles

    allow = tuple(filter(None, (entry.strip() for entry in settings.fetch_allow.split(","))))

    def make_fetcher() -> Fetcher:
        from conspectus.sources.web import FetchLimits, WebFetcher

        size, redirects = settings.fetch_max_bytes, settings.fetch_max_redirects
        return WebFetcher(FetchLimits(size, redirects, settings.fetch_seconds, allow))

    def connector_for(connection: Connection, fetcher: Fetcher) -> Connector:
        from conspectus.sources.addresses import Boundary
        from conspectus.sources.connectors.choice import Connectors

        made = Connectors(folder / COPIES, local_files(settings), Boundary.from_entries(allow))
        return made.of(connection, fetcher)

    async def forget_connection(connection: Connection) -> None:
        await asyncio.to_thread(shutil.rmtree, folder / COPIES / connection.id, ignore_errors=True)

    return WorkParts(
        ledger=ledger,
        files=LocalJobFiles(folder),
        turn=lambda: turn(folder / JOBS_LOCK),
        open_jobs=partial(_open_jobs, folder / JOBS, settings.job_workers),
        make_fetcher=make_fetcher,
        connector_for=connector_for,
        forget_connection=forget_connection,
    )


async def _open_jobs(database: Path, workers: int) -> Jobs:
    """DBOS, or where this process has it already, for another store, what needs no more than the ledger."""
    from conspectus.ingest.job_runner import InProcessJobs

    dbos_jobs = await asyncio.to_thread(importlib.import_module, "conspectus.providers.dbos_jobs")
    url = f"sqlite:///{quote(str(database))}"
    jobs: Jobs | None = await asyncio.to_thread(dbos_jobs.claimed, url, workers=workers)
    return jobs or InProcessJobs(workers=workers)


async def _open_segments(
    folder: Path, collection: Collection, space: EmbeddingSpace | None, reader: Reader, settings: Settings
) -> Index:
    """The embedded index, built anew from the records where its files cannot be trusted."""
    from conspectus.index.segments.build import Options
    from conspectus.index.segments.builders import SubprocessBuilder
    from conspectus.index.segments.manifest import forget
    from conspectus.index.segments.store import SegmentsIndex

    directory = index_folder(folder, collection, space)
    await asyncio.to_thread(_adopt, folder / INDEXES / collection.id, directory.parent)
    command = [sys.executable, "-c", CHILD, str(folder), collection.id]
    command += [json.dumps(None if space is None else asdict(space))]
    analyse = Analyzer(language=collection.language).terms

    async def attempt() -> Index:
        return await SegmentsIndex.open(
            directory,
            reader,
            analyse,
            dimensions=space.dimensions if space else 0,
            builder=SubprocessBuilder(command),
            options=Options(tail_chunks=settings.tail_chunks),
        )

    try:
        return await attempt()
    except IndexDamaged:
        await asyncio.to_thread(forget, directory)
        return await attempt()


async def build(folder: str, name: str, space: str) -> None:
    """The child of a SubprocessBuilder: build what the line on standard input asks for."""
    from conspectus.index.segments.builders import answer
    from conspectus.records.store import open_records

    def write(line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    records = await open_records(Path(folder) / RECORDS)
    try:
        collection = await records.collection(name)
        if collection is None:
            raise NotFound("collection", name)
        given = json.loads(space)
        reader = records.reader(collection.id, None if given is None else EmbeddingSpace(**given))
        analyse = Analyzer(language=collection.language).terms
        await answer(reader, analyse, sys.stdin.readline(), write=write)
    finally:
        await records.close()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise StorageError(f"{folder} cannot be made a folder for the store: {fault.strerror}") from fault


def index_folder(folder: Path, collection: Collection, space: EmbeddingSpace | None) -> Path:
    """Where the index of a collection in a space lies: not where that of a deleted namesake did."""
    name = "words" if space is None else space.name
    made = f"{collection.created:%Y%m%dT%H%M%S%f}"
    return folder / INDEXES / f"{collection.id}-{made}" / "".join(c if c.isalnum() else "-" for c in name)


def _adopt(old: Path, new: Path) -> None:
    """Keep what an earlier version, in which no collection could be deleted, built under the id alone."""
    if old.is_dir() and not new.exists():
        old.rename(new)


def _setting(space: EmbeddingSpace) -> str:
    """The setting whose embedder makes the vectors of a space."""
    if space.model == MINILM_MODEL:
        return MINILM
    return space.model if space.model.startswith(STATIC) else f"{space.model}@{space.dimensions}"


def now() -> datetime:
    """The current instant."""
    return datetime.now(UTC)
