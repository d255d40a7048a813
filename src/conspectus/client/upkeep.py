"""Looking after the store of a server."""

from conspectus.client.asking import Asking
from conspectus.client.catalog import in_collection
from conspectus.client.request import Request, get, work
from conspectus.model.reports import CheckReport, Status
from conspectus.ports import Progress


class Upkeep(Asking):
    """Numbers, checks, and building anew."""

    async def status(self, *, collection: str | None = None) -> Status:
        """Sizes and counts of one collection, or of all that can be seen as a whole.

        Only the owner of the store is told where it is and how many bytes it takes.
        """
        path = "/status" if collection is None else in_collection(collection, "status")
        return await self._channel.one(Status, get(path))

    async def check(self) -> CheckReport:
        """Compare records and indexes, and let the database check itself; reports, repairs nothing."""
        return await self._channel.one(CheckReport, Request("GET", "/check", unhurried=True))

    async def reindex(self, *, collection: str = "default", progress: Progress | None = None) -> None:
        """Build the collection's index anew from the records; the old one answers meanwhile."""
        await self._channel.answer(work(in_collection(collection, "reindex")))

    async def reembed(
        self, embedder: str, *, collection: str = "default", progress: Progress | None = None
    ) -> int:
        """Move a collection to another embedder's space and say how many vectors were made for it.

        The old space answers until every vector and the index over them are there. A run that was killed
        goes on where it was when it is called again.
        """
        request = work(in_collection(collection, "reembed"), {"embedder": embedder})
        return await self._channel.member(int, "embedded", request)
