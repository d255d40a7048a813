"""Checks of documents at the remotes of connections with `verify`: what a person may open there now."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, TypeAlias

from conspectus.deferred import dataclass
from conspectus.engine.components import WorkParts
from conspectus.engine.credentials import ConnectionCredentials
from conspectus.errors import ConspectusError, InvalidInput, NotFound
from conspectus.model.connections import Connection, ConnectorEntry
from conspectus.model.ids import CollectionId, DocumentId, UserId
from conspectus.model.records import Document
from conspectus.model.viewers import OpenableDocuments
from conspectus.ports.accounts import Accounts
from conspectus.ports.connectors import Connector, Verifying
from conspectus.ports.web import Fetcher
from conspectus.settings import Settings

logger = logging.getLogger(__name__)

_Key: TypeAlias = tuple[str, UserId, DocumentId]

MAX_CACHED_ANSWERS: Final = 100_000
NO_ANSWER: Final = "the remote of a connection could not say what you may open now; its documents are hidden"
"""The notice of a failure. It repeats no answer of a remote, which may name what is hidden."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """Whether a remote lets a user open a document, until an instant of the monotonic clock."""

    is_open: bool
    until: float


class ConnectorChecks:
    """Asks connectors in batches, within the seconds of the settings for all batches of a call.

    Answers are cached for some seconds. A remote that gave none is not asked again for as long.
    """

    def __init__(
        self, work: WorkParts, accounts: Accounts, settings: Settings, fetcher: Callable[[], Fetcher]
    ) -> None:
        self.max_documents = settings.verify_max_documents
        self._work = work
        self._accounts = accounts
        self._timeout_seconds = settings.verify_timeout_seconds
        self._cache_seconds = settings.verify_cache_seconds
        self._fetcher = fetcher
        self._credentials = ConnectionCredentials(work)
        self._answers: OrderedDict[_Key, _Answer] = OrderedDict()
        self._failed_until: dict[str, float] = {}

    async def list_verifying(self, collection: CollectionId) -> Sequence[str]:
        """Return the connections of a collection whose remote is asked before a document is shown."""
        connections = await self._work.job_store.connections(collection)
        return [connection.id for connection in connections if connection.options.get("verify")]

    async def list_openable(
        self, people: Sequence[UserId], connection: str, documents: Sequence[Document]
    ) -> OpenableDocuments:
        """Return the documents of one connection that each of the people may open at its remote now."""
        answers = {user: self._cached_answers(connection, user, documents) for user in people}
        failure = ""
        if any(len(by_document) < len(documents) for by_document in answers.values()):
            failure = await self._complete_answers(answers, connection, documents)
        openable = [
            document.id
            for document in documents
            if all(by_document.get(document.id, False) for by_document in answers.values())
        ]
        return OpenableDocuments(frozenset(openable), failure)

    def _cached_answers(
        self, connection: str, user: UserId, documents: Sequence[Document]
    ) -> dict[DocumentId, bool]:
        now = monotonic()
        answers: dict[DocumentId, bool] = {}
        for document in documents:
            answer = self._answers.get((connection, user, document.id))
            if answer is not None and now < answer.until:
                answers[document.id] = answer.is_open
        return answers

    async def _complete_answers(
        self,
        answers: dict[UserId, dict[DocumentId, bool]],
        connection: str,
        documents: Sequence[Document],
    ) -> str:
        """Add what the remote answers in time; return why it did not, as people may read it."""
        if monotonic() < self._failed_until.get(connection, 0.0):
            return NO_ANSWER
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._ask_remote(answers, await self._find(connection, documents[0]), documents)
        except (ConspectusError, TimeoutError) as fault:
            code = fault.code if isinstance(fault, ConspectusError) else "timed_out"
            logger.warning(
                "remote_check_failed connection=%(connection)s code=%(code)s",
                {"connection": connection, "code": code},
            )
            self._failed_until[connection] = monotonic() + self._cache_seconds
            return NO_ANSWER
        self._failed_until.pop(connection, None)
        return ""

    async def _ask_remote(
        self,
        answers: dict[UserId, dict[DocumentId, bool]],
        connection: Connection,
        documents: Sequence[Document],
    ) -> None:
        credentials = await self._credentials.open(connection)
        connector = self._work.connectors.create(connection, self._fetcher(), credentials)
        try:
            verifying = require_verifying(connector, connection)
            for user, by_document in answers.items():
                remaining = [document for document in documents if document.id not in by_document]
                for start in range(0, len(remaining), self.max_documents):
                    batch = remaining[start : start + self.max_documents]
                    openable = await self._list_openable_batch(verifying, connection.id, user, batch)
                    by_document |= {document.id: document.id in openable for document in batch}
        finally:
            await connector.close()

    async def _list_openable_batch(
        self, connector: Verifying, connection: str, user: UserId, documents: Sequence[Document]
    ) -> set[DocumentId]:
        """Return what a user may open under any of their names at the remote, and cache it."""
        entries = [entry_of(document) for document in documents]
        keys: set[str] = set()
        for name in await self._accounts.list_remote_names(connection, user):
            keys |= set(await connector.list_openable(name, entries))
        until = monotonic() + self._cache_seconds
        for document in documents:
            key = (connection, user, document.id)
            self._answers[key] = _Answer(document.key in keys, until)
            self._answers.move_to_end(key)
        while len(self._answers) > MAX_CACHED_ANSWERS:
            self._answers.popitem(last=False)
        return {document.id for document in documents if document.key in keys}

    async def _find(self, connection: str, document: Document) -> Connection:
        for stored in await self._work.job_store.connections(document.collection):
            if stored.id == connection:
                return stored
        raise NotFound("connection", connection)


def entry_of(document: Document) -> ConnectorEntry:
    """Return a stored page as an entry of its connector."""
    space, revision = str(document.metadata.get("space", "")), str(document.metadata.get("revision", ""))
    return ConnectorEntry(document.key, space, revision, document.title)


def require_verifying(connector: Connector, connection: Connection) -> Verifying:
    """Return a connector that can check documents at its remote. Raises InvalidInput for another one."""
    if not isinstance(connector, Verifying):
        raise InvalidInput("options", f"{connection.connector} cannot verify: its remote cannot be asked")
    return connector
