"""Everything that an engine on this machine is put together from."""

import asyncio
import importlib
import importlib.metadata
import shutil
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from conspectus.bootstrap.indexes import Indexes, indexes_of
from conspectus.bootstrap.models import Models
from conspectus.bootstrap.names import extractor_of
from conspectus.bootstrap.places import Place, place_of
from conspectus.engine import Parts
from conspectus.engine.parts import AlertParts, NameParts, WorkParts
from conspectus.errors import StorageError
from conspectus.model.wiki import Connection
from conspectus.ports import CountTokens
from conspectus.ports.alerts import Poster
from conspectus.ports.captions import CaptionReader
from conspectus.ports.jobs import Jobs
from conspectus.ports.web import Connector, Fetcher
from conspectus.records.turns import turn
from conspectus.settings import Settings

if TYPE_CHECKING:
    from conspectus.records.transactions import Transactions
    from conspectus.sources.chats.archives import LocalArchives
    from conspectus.sources.files import LocalFiles

EMBEDDING = "embedding.lock"
JOBS = "jobs.sqlite"
JOBS_LOCK = "jobs.lock"
ALERTS_LOCK = "alerts.lock"
NAMES_LOCK = "names.lock"
KEEPING_LOCK = "keeping.lock"
COPIES = "wikis"


async def parts_of(place: Place, settings: Settings, models: Models) -> Parts:
    """The adapters of the store at a place, which is made if there is none."""
    from conspectus.records.accounts import SqlAccounts
    from conspectus.records.graphs import SqlGraphs
    from conspectus.records.memories import SqlMemories
    from conspectus.records.replays import SqlReplays
    from conspectus.records.request_log import SqlRequestLog
    from conspectus.records.store import open_records
    from conspectus.records.summaries import SqlSummaries

    folder = place.folder
    await asyncio.to_thread(_make, folder)
    indexes = indexes_of(place, settings)
    busy, connections = settings.busy_seconds, settings.database_connections
    records = await open_records(place.records, busy_seconds=busy, connections=connections)
    return Parts(
        path=records.transactions.database.name if place.is_shared else str(folder),
        version=importlib.metadata.version("conspectus"),
        settings=settings,
        records=records,
        accounts=SqlAccounts(records.transactions),
        files=local_files(settings),
        archives=local_archives(settings),
        captions=_local_captions(settings),
        clock=now,
        turn=lambda: turn(folder / EMBEDDING),
        open_index=indexes.open,
        embedder_named=models.embedders.named,
        embedder_for=models.embedders.of,
        release=partial(_release, models, indexes),
        counter=cache(local_counter),
        size=partial(_bytes_below, folder),
        forget_index=indexes.forget,
        request_log=SqlRequestLog(records.transactions),
        replays=SqlReplays(records.transactions),
        summaries=SqlSummaries(records.transactions),
        memories=SqlMemories(records.transactions),
        graphs=SqlGraphs(records.transactions, most=settings.max_walked),
        keeping=lambda: turn(folder / KEEPING_LOCK),
        names=_name_parts(folder, settings, records.transactions),
        alerts=_alert_parts(folder, settings, records.transactions),
        work=_work_parts(folder, settings, records.transactions),
    )


async def prepare(path: str | Path, settings: Settings) -> None:
    """Bring the records of a store to the newest version, and make them if there are none."""
    from conspectus.records.store import open_records

    place = place_of(path, settings)
    await asyncio.to_thread(_make, place.folder)
    await (await open_records(place.records, busy_seconds=settings.busy_seconds, connections=2)).close()


async def _release(models: Models, indexes: Indexes) -> None:
    try:
        await models.close()
    finally:
        await indexes.close()


def _bytes_below(folder: Path) -> int:
    from conspectus.index.segments.store import bytes_below

    return bytes_below(folder)


def _local_captions(settings: Settings) -> CaptionReader:
    from conspectus.sources.subtitles.reader import LocalCaptions

    return LocalCaptions.under(settings)


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


def _work_parts(folder: Path, settings: Settings, transactions: "Transactions") -> WorkParts:
    from conspectus.records.ledger import SqlLedger
    from conspectus.sources.job_files import LocalJobFiles

    allow = _allowed(settings)

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
        ledger=SqlLedger(transactions),
        files=LocalJobFiles(folder),
        turn=lambda: turn(folder / JOBS_LOCK),
        open_jobs=partial(_open_jobs, folder / JOBS, settings.job_workers),
        make_fetcher=make_fetcher,
        connector_for=connector_for,
        forget_connection=forget_connection,
    )


def _alert_parts(folder: Path, settings: Settings, transactions: "Transactions") -> AlertParts:
    from conspectus.records.alerts import SqlAlerts

    def make_poster() -> Poster:
        from conspectus.sources.addresses import Boundary
        from conspectus.sources.webhooks import WebhookPoster

        boundary = Boundary.from_entries(_allowed(settings))
        return WebhookPoster(boundary, key=settings.webhook_key, seconds=settings.webhook_seconds)

    return AlertParts(SqlAlerts(transactions), lambda: turn(folder / ALERTS_LOCK), make_poster)


def _name_parts(folder: Path, settings: Settings, transactions: "Transactions") -> NameParts:
    from conspectus.records.mentions import SqlNames

    rows = SqlNames(transactions)
    return NameParts(rows, lambda: turn(folder / NAMES_LOCK), partial(extractor_of, settings, None))


def _allowed(settings: Settings) -> tuple[str, ...]:
    """What may be asked although it is not public."""
    return tuple(filter(None, (entry.strip() for entry in settings.fetch_allow.split(","))))


async def _open_jobs(database: Path, workers: int) -> Jobs:
    """DBOS, or where this process has it already, for another store, what needs no more than the ledger."""
    from conspectus.ingest.job_runner import InProcessJobs

    dbos_jobs = await asyncio.to_thread(importlib.import_module, "conspectus.providers.dbos_jobs")
    url = f"sqlite:///{quote(str(database))}"
    jobs: Jobs | None = await asyncio.to_thread(dbos_jobs.claimed, url, workers=workers)
    return jobs or InProcessJobs(workers=workers)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise StorageError(f"{folder} cannot be made a folder for the store: {fault.strerror}") from fault


def now() -> datetime:
    """The current instant."""
    return datetime.now(UTC)
