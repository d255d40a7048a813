"""What remotes let one person open, among documents that the person may read here."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from conspectus.model.access import Access, Person
from conspectus.model.ids import CollectionId, DocumentId, SourceId
from conspectus.model.records import Document, StoredChunk
from conspectus.model.viewers import OpenableDocuments
from conspectus.ports.remote_checks import RemoteChecks


class RemoteGate:
    """Asks remotes for documents of the sources that their connections verify, and for no others."""

    def __init__(self, person: Person, checks: RemoteChecks | None) -> None:
        self.max_documents = 1 if checks is None else checks.max_documents
        self._checks = checks
        self._people = [person.id, *([] if person.seen_by is None else [person.seen_by])]
        self._verified: dict[CollectionId, Mapping[SourceId, str]] = {}

    def note_access(self, collection: CollectionId, access: Access) -> None:
        """Note which sources of a collection are verified, before any document of it is read."""
        self._verified[collection] = access.verified

    @property
    def asks_remotes(self) -> bool:
        """Whether there are verified sources in the collections that were read so far."""
        return any(self._verified.values())

    async def keep_openable(self, documents: Sequence[Document]) -> list[Document]:
        """Return the documents that need no check, or that their remote lets the person open now.

        All are asked for, in the order given, until the time of the settings is over.
        """
        openable = await self.list_openable(documents)
        return [document for document in documents if document.id in openable]

    async def keep_openable_rows(self, rows: Sequence[StoredChunk]) -> list[StoredChunk]:
        """Return the chunks of documents that `keep_openable` returns."""
        openable = await self.list_openable([row.document for row in rows])
        return [row for row in rows if row.document.id in openable]

    async def list_openable(self, documents: Sequence[Document]) -> AbstractSet[DocumentId]:
        """Return the ids of the documents that `keep_openable` returns."""
        unchecked = {document.id for document in documents if self._remote_of(document) is None}
        if len(unchecked) == len(documents):
            return unchecked
        checked = [document for document in documents if document.id not in unchecked]
        answers = await self._ask_remotes(checked)
        return unchecked.union(*(answer.documents for answer in answers))

    async def check_best(self, documents: Sequence[Document]) -> OpenableDocuments:
        """Return which of the best documents to check, at most `max_documents`, the person may open now."""
        checked = {document.id: document for document in documents if self._remote_of(document) is not None}
        answers = await self._ask_remotes(list(checked.values())[: self.max_documents])
        return OpenableDocuments(
            frozenset().union(*(answer.documents for answer in answers)),
            "; ".join(answer.failure for answer in answers if answer.failure),
        )

    async def _ask_remotes(self, documents: Sequence[Document]) -> list[OpenableDocuments]:
        """Ask each remote for its documents. Both the person and who sees as them must open one.

        Without anybody to ask, nothing is open.
        """
        if self._checks is None:
            return []
        by_remote: dict[str, dict[DocumentId, Document]] = {}
        for document in documents:
            remote = self._remote_of(document)
            if remote is not None:
                by_remote.setdefault(remote, {})[document.id] = document
        return [
            await self._checks.list_openable(self._people, remote, list(remote_documents.values()))
            for remote, remote_documents in by_remote.items()
        ]

    def _remote_of(self, document: Document) -> str | None:
        """Return the connection whose remote is asked for a document; None if it needs no check."""
        return self._verified.get(document.collection, {}).get(document.source)
