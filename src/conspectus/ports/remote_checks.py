"""The port of checks at remotes: what people may open there at this moment."""

from collections.abc import Sequence
from typing import Protocol

from conspectus.model.ids import CollectionId, UserId
from conspectus.model.records import Document
from conspectus.model.viewers import OpenableDocuments


class RemoteChecks(Protocol):
    """Asks the remotes of connections, within the limits of time of the settings."""

    @property
    def max_documents(self) -> int:
        """The documents that one search or page asks for, at most."""

    async def list_verifying(self, collection: CollectionId) -> Sequence[str]:
        """The connections of a collection whose remote is asked before a document is shown."""

    async def list_openable(
        self, people: Sequence[UserId], connection: str, documents: Sequence[Document]
    ) -> OpenableDocuments:
        """Those documents of one connection that each of the people may open at its remote now.

        A remote that cannot be asked in time lets nobody open anything.
        """
