"""The components of an engine on this machine."""

import asyncio
import importlib.metadata
import os
import re
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from conspectus.bootstrap.indexes import Indexes, choose_index, indexes_of, text_analysis
from conspectus.bootstrap.models import Models, extractor_of
from conspectus.bootstrap.store_address import StoreAddress, address_of
from conspectus.engine import EngineComponents
from conspectus.engine.components import AlertParts, EmbeddingParts, NameParts, WorkParts
from conspectus.errors import InvalidInput, StorageError, optional
from conspectus.ingest.sensitive import screens
from conspectus.ports import CountTokens
from conspectus.ports.identities import CodeFlow, GroupDirectory, TokenVerifier
from conspectus.ports.imports import ForeignPlace, ForeignReader
from conspectus.ports.jobs import JobFiles, Jobs, Lock, Turn, Turns
from conspectus.ports.sealing import Sealer
from conspectus.ports.streams import CaptionReader, Poster
from conspectus.ports.web import Fetcher
from conspectus.private import make_folder
from conspectus.settings import Settings

if TYPE_CHECKING:
    from conspectus.records.core.transactions import Transactions
    from conspectus.records.store import SqlRecords
    from conspectus.sources.chats.archives import LocalArchives
    from conspectus.sources.files.local_files import LocalFiles

EMBEDDING_LOCK = "embedding"
JOBS_LOCK = "jobs"
ALERTS_LOCK = "alerts"
NAMES_LOCK = "names"
UPLOADS_FOLDER = "uploads"
WIKI_COPIES_FOLDER = "wikis"
MAX_ISSUER_BYTES = 1_000_000
"""Largest metadata or set of keys that is read from an issuer of tokens."""
ISSUER_SECONDS = 10.0


async def components_at(address: StoreAddress, settings: Settings, models: Models) -> EngineComponents:
    """Return the adapters of the store at an address. The store is created if it is missing."""
    from conspectus.records import answers, experiments, feedback
    from conspectus.records.accounts.store import SqlAccounts
    from conspectus.records.graph.store import SqlGraphs
    from conspectus.records.jobs import chats, idempotency, rates, request_log
    from conspectus.records.memories.store import SqlMemories
    from conspectus.records.streams.summaries import SqlSummaries

    records, turns, indexes = await _open_records(address, settings)
    transactions, alone = records.transactions, not (address.is_shared or settings.workers > 1)
    return EngineComponents(
        path=transactions.database.name if address.is_shared else str(address.folder),
        version=partial(importlib.metadata.version, "conspectus"),
        settings=settings,
        records=records,
        accounts=SqlAccounts(transactions),
        make_files=cache(partial(local_files, settings)),
        make_archives=cache(partial(local_archives, settings)),
        make_captions=cache(partial(_open_captions, settings)),
        clock=now,
        embedding=_make_embedding_parts(address, turns),
        open_index=indexes.open,
        texts=text_analysis(),
        embedder_by_name=models.embedders.by_name,
        load_embedder=models.embedders.load,
        embedder_for=models.embedders.of,
        release=partial(_release, models, indexes),
        counter=cache(local_counter),
        size=partial(_store_bytes, address, transactions),
        indexes=indexes,
        request_log=request_log.SqlRequestLog(transactions),
        idempotency=idempotency.SqlIdempotencyStore(
            transactions, seconds=settings.lease_seconds, alone=alone
        ),
        rate_counters=rates.SqlRateCounters(transactions),
        chat_registry=None if alone else chats.SqlChatRegistry(transactions),
        summaries=SqlSummaries(transactions),
        feedback=feedback.SqlFeedback(transactions),
        answers=answers.SqlAnswers(transactions),
        experiments=experiments.SqlExperiments(transactions),
        memories=SqlMemories(transactions),
        graphs=SqlGraphs(transactions, maximum=settings.max_traversal_nodes),
        turns=turns,
        names=_name_parts(partial(turns, NAMES_LOCK), settings, transactions),
        alerts=_alert_parts(partial(turns, ALERTS_LOCK), settings, transactions),
        work=_work_parts(address, settings, transactions, turns),
        make_token_verifier=partial(_make_token_verifier, settings),
        make_code_flow=partial(_make_code_flow, settings),
        make_group_directory=partial(_make_group_directory, settings),
    )


async def prepare(path: str | Path, settings: Settings) -> None:
    """Migrate the records of a store to the newest version, or create them."""
    from conspectus.records.store import open_records

    address = address_of(path, settings)
    await asyncio.to_thread(_make_folder, address.folder)
    await (
        await open_records(address.records, busy_seconds=settings.lock_timeout_seconds, connections=2)
    ).close()


async def _open_records(address: StoreAddress, settings: Settings) -> "tuple[SqlRecords, Turns, Indexes]":
    """Open the records of a store, created if they are missing, with its locks and indexes.

    It is checked first that they fit the settings.
    """
    from conspectus.records.store import open_records

    choose_index(address, settings)
    screens(settings.sensitive)
    await asyncio.to_thread(_make_folder, address.folder)
    busy, connections = settings.lock_timeout_seconds, settings.database_connections
    if settings.row_security not in {"on", "off"}:
        raise InvalidInput("row_security", f"{settings.row_security!r} is not on or off")
    wall = settings.row_security == "on"
    records = await open_records(
        address.records, busy_seconds=busy, connections=connections, row_security=wall
    )
    turns = _turns(address, settings, records.transactions)
    return records, turns, indexes_of(address, settings, records.transactions, turns)


async def _release(models: Models, indexes: Indexes) -> None:
    try:
        await models.close()
    finally:
        await indexes.close()


async def _store_bytes(address: StoreAddress, transactions: "Transactions") -> int:
    """Return the size of the folder or database in bytes, without caches of this machine."""
    from conspectus.index.segments.store import bytes_below
    from conspectus.records.core.database import bytes_of_database

    if address.is_shared:
        return await transactions.read(bytes_of_database)
    return await asyncio.to_thread(bytes_below, address.folder)


def _open_captions(settings: Settings) -> CaptionReader:
    from conspectus.sources.caption_files import LocalCaptions

    return LocalCaptions(settings)


def local_files(settings: Settings) -> "LocalFiles":
    """Return the readers of local files, with the limits of the settings."""
    from conspectus.sources.files.local_files import LocalFiles
    from conspectus.sources.known_exports import KnownExports

    return LocalFiles(settings, KnownExports(settings))


def local_counter(tokenizer: str) -> CountTokens:
    """Return the function that counts tokens with that tokenizer. Raises UnknownTokenizer."""
    from conspectus.providers.tokenizers import counter

    return counter(tokenizer)


def local_archives(settings: Settings) -> "LocalArchives":
    """Return the reader of chat exports on this machine, with the limits of the settings."""
    from conspectus.sources.chats.archives import LocalArchives

    return LocalArchives(settings)


def foreign_reader(kind: str, at: ForeignPlace) -> ForeignReader:
    """Return the reader of a store of `chroma`, `langgraph`, `mem0` or `qdrant`."""
    from conspectus.sources.foreign_stores.readers import foreign_reader as reader_of

    return reader_of(kind, at)


def memory_files(paths: Sequence[str], settings: Settings) -> ForeignReader:
    """Return the reader of files with memories, with the limits of the settings."""
    from conspectus.sources.memory_files import memory_files as reader_of

    return reader_of(paths, settings)


def _turns(address: StoreAddress, settings: Settings, transactions: "Transactions") -> Turns:
    """Return locks by name: file locks in a folder, leases in a database."""
    if address.is_shared:
        from conspectus.records.jobs.locks import Leases

        return Leases(transactions, seconds=float(settings.lease_seconds)).turn
    from conspectus.records.jobs.locks import turn

    return lambda name: turn(address.folder / f"{name}.lock")


def _work_parts(
    address: StoreAddress, settings: Settings, transactions: "Transactions", turns: Turns
) -> WorkParts:
    from conspectus.records.jobs.store import SqlJobStore
    from conspectus.sources.connectors.registry import InstalledConnectors

    allow, folder, shared = _list_allowed_addresses(settings), address.folder, _if_shared(address, turns)
    executor = f"{JOBS_LOCK} of {socket.gethostname()} {os.getpid()} {uuid4().hex}"

    def make_fetcher() -> Fetcher:
        from conspectus.sources.web.fetcher import WebFetcher
        from conspectus.sources.web.http_client import FetchLimits

        size, redirects = settings.max_fetch_bytes, settings.max_fetch_redirects
        return WebFetcher(FetchLimits(size, redirects, settings.fetch_timeout_seconds, allow))

    return WorkParts(
        job_store=SqlJobStore(transactions),
        files=_job_files(address, transactions),
        turn=partial(turns, executor if address.is_shared else JOBS_LOCK),
        alone=lambda job: shared(f"job {job}"),
        open_jobs=partial(_open_jobs, address, settings.job_workers, executor=executor, turns=turns),
        make_fetcher=make_fetcher,
        connectors=InstalledConnectors(folder / WIKI_COPIES_FOLDER, settings),
        make_sealer=cache(partial(_make_sealer, settings)),
    )


def _make_sealer(settings: Settings) -> Sealer:
    """Return what seals credentials with the keys of the settings. Raises InvalidInput or MissingExtra."""
    keys = re.split(r"[,\s]+", settings.secret_key.strip())
    if settings.secret_key_file:
        try:
            keys = Path(settings.secret_key_file).read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as fault:
            raise InvalidInput("secret_key_file", f"cannot be read: {type(fault).__name__}") from fault
    if not any(keys):
        raise InvalidInput(
            "secret_key", "is not set, so no credentials can be stored; set it or secret_key_file"
        )
    fernet_sealer = optional("conspectus.providers.fernet_sealer", "credentials", "cryptography")
    sealer: Sealer = fernet_sealer.FernetSealer([key for key in keys if key])
    return sealer


def _job_files(address: StoreAddress, transactions: "Transactions") -> JobFiles:
    """Return the storage of job files: in the folder of the store, or in its database."""
    if address.is_shared:
        from conspectus.records.jobs.files import SqlJobFiles

        return SqlJobFiles(transactions, address.folder / UPLOADS_FOLDER, now)
    from conspectus.sources.files.job_files import LocalJobFiles

    return LocalJobFiles(address.folder)


def _make_embedding_parts(address: StoreAddress, turns: Turns) -> EmbeddingParts:
    """Return the lock for embedding: one process per machine, because a model uses all cores."""
    turn = (
        f"{EMBEDDING_LOCK} {socket.gethostname()} {address.folder}" if address.is_shared else EMBEDDING_LOCK
    )
    return EmbeddingParts(partial(turns, turn), _if_shared(address, turns))


def _if_shared(address: StoreAddress, turns: Turns) -> Turns:
    """Return the locks if processes share the work; otherwise each process proceeds at once."""
    return turns if address.is_shared else _make_local_lock


@asynccontextmanager
async def _make_local_lock(_name: str) -> AsyncIterator[Lock]:
    """A lock that no other process uses."""
    from conspectus.records.jobs.locks import FileHold

    yield FileHold(mine=True)


def _alert_parts(turn: Turn, settings: Settings, transactions: "Transactions") -> AlertParts:
    from conspectus.records.streams.alerts import SqlAlerts

    def make_poster() -> Poster:
        from conspectus.sources.web.address_policy import AddressPolicy
        from conspectus.sources.web.webhook_poster import WebhookPoster

        boundary = AddressPolicy.from_entries(_list_allowed_addresses(settings))
        return WebhookPoster(boundary, key=settings.webhook_key, seconds=settings.webhook_timeout_seconds)

    return AlertParts(SqlAlerts(transactions), turn, make_poster)


def _make_token_verifier(settings: Settings) -> TokenVerifier:
    """Return what checks tokens of the issuer, to which the operator allows requests. Raises MissingExtra."""
    from conspectus.access.token_claims import rules_of
    from conspectus.providers.issuer_check import IssuerCheck
    from conspectus.providers.issuer_keys import IssuerKeys

    rules = rules_of(settings)
    if rules is None:
        raise InvalidInput("oidc_issuer", "is not set; set CONSPECTUS_OIDC_ISSUER")
    jwt_verifier = optional("conspectus.providers.jwt_verifier", "oidc", "pyjwt")
    fetcher = _make_issuer_fetcher(settings)
    keys = IssuerKeys(rules.issuer, fetcher, max_stale_seconds=settings.oidc_stale_key_hours * 3_600)
    check = IssuerCheck(
        rules.issuer,
        fetcher,
        max_skew=rules.clock_skew,
        has_device_client=bool(settings.oidc_device_client_id),
    )
    verifier: TokenVerifier = jwt_verifier.JwtVerifier(keys, rules.algorithms, check)
    return verifier


def _make_code_flow(settings: Settings) -> CodeFlow:
    """Return what signs browsers in on the pages of the issuer."""
    from conspectus.access.browser_sign_ins import CALLBACK_PATH
    from conspectus.providers.code_flow import AuthorizationCodeFlow, Client

    client = Client(
        id=settings.oidc_client_id,
        secret=settings.oidc_client_secret,
        redirect_address=f"{settings.own_address}{CALLBACK_PATH}",
        scopes=settings.oidc_sign_in_scopes,
    )
    return AuthorizationCodeFlow(settings.oidc_issuer, client, _make_issuer_fetcher(settings))


def _make_group_directory(settings: Settings) -> GroupDirectory:
    """Return the directory whose groups give memberships. Raises MissingExtra."""
    ldap_directory = optional("conspectus.providers.ldap_directory", "ldap", "ldap3")
    options = ldap_directory.DirectoryOptions(
        url=settings.ldap_url,
        name=settings.ldap_bind_dn,
        password=settings.ldap_bind_password,
        ca_file=settings.ldap_ca_file,
        subject=settings.ldap_subject,
        timeout_seconds=settings.ldap_timeout_seconds,
        max_nesting=settings.ldap_max_nesting,
        max_members=settings.ldap_max_members,
    )
    directory: GroupDirectory = ldap_directory.LdapDirectory(options)
    return directory


def _make_issuer_fetcher(settings: Settings) -> Fetcher:
    """Return the client of requests to the issuer, to whose host the operator allows them."""
    from conspectus.sources.web.fetcher import WebFetcher
    from conspectus.sources.web.http_client import FetchLimits
    from conspectus.text.urls import parse_url

    allow = (parse_url(settings.oidc_issuer).host, *_list_allowed_addresses(settings))
    return WebFetcher(FetchLimits(MAX_ISSUER_BYTES, 0, ISSUER_SECONDS, allow))


def _name_parts(turn: Turn, settings: Settings, transactions: "Transactions") -> NameParts:
    from conspectus.records.graph.mentions import SqlNames

    return NameParts(SqlNames(transactions), turn, partial(extractor_of, settings, None))


def _list_allowed_addresses(settings: Settings) -> tuple[str, ...]:
    """Return the address policy: what is allowed besides public addresses."""
    return tuple(filter(None, (entry.strip() for entry in settings.fetch_allowed_networks.split(","))))


async def _open_jobs(address: StoreAddress, workers: int, *, executor: str, turns: Turns) -> Jobs:
    """Return DBOS, or a runner without it if this process already uses DBOS for another store."""
    from conspectus.ingest.in_process_jobs import InProcessJobs

    if not address.is_shared:
        return InProcessJobs(workers=workers)
    module = "conspectus.providers.dbos_jobs"
    dbos_jobs = await asyncio.to_thread(optional, module, "postgresql", "dbos")
    sharing = dbos_jobs.SharedExecutors(executor, turns)
    claim = partial(dbos_jobs.claim_executor, address.records, workers=workers, sharing=sharing)
    jobs: Jobs | None = await asyncio.to_thread(claim)
    return jobs or InProcessJobs(workers=workers)


def _make_folder(folder: Path) -> None:
    try:
        make_folder(folder)
    except OSError as fault:
        raise StorageError(f"{folder} cannot be used as the folder of a store: {fault.strerror}") from fault


def now() -> datetime:
    """Return the current instant."""
    return datetime.now(UTC)
