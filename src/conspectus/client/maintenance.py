"""Maintenance of a server."""

from conspectus.client.collections import in_collection
from conspectus.client.operations import derive_client
from conspectus.client.request import long_write_request, read_request
from conspectus.client.transport import RemoteService
from conspectus.engine.maintenance import MaintenanceService
from conspectus.model.reports import Status
from conspectus.ports import Progress


@derive_client
class RemoteMaintenance(RemoteService, MaintenanceService):
    """Maintenance of a server."""

    async def status(self, *, collection: str | None = None) -> Status:
        path = "/status" if collection is None else in_collection(collection, "status")
        return await self._channel.one(Status, read_request(path))

    async def reindex(self, *, collection: str = "default", progress: Progress | None = None) -> None:
        await self._channel.answer(long_write_request(in_collection(collection, "reindex")))
