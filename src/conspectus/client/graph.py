"""Graphs of a server."""

from datetime import datetime
from typing import Final

from conspectus.client.collections import in_collection
from conspectus.client.operations import derive_client
from conspectus.client.request import instant_json, long_write_request, path_of, read_request
from conspectus.client.transport import RemoteService
from conspectus.engine.graph import GraphService
from conspectus.model.graph import GraphForm
from conspectus.model.trust import MinTrust
from conspectus.ports import Progress

EXTRACTION_PROGRESS: Final = "looking for names"


@derive_client
class RemoteGraph(RemoteService, GraphService):
    """Graphs of a server."""

    async def export(
        self,
        format: GraphForm = "json",
        *,
        graph: str = "default",
        collection: str = "default",
        at: datetime | None = None,
        min_trust: MinTrust | None = None,
    ) -> str:
        path = path_of("graphs", ("graph", graph), "export")
        fields = {"collection": collection, "at": instant_json(at), "min_trust": min_trust}
        request = read_request(path, format=format, **fields)
        return b"".join([piece async for piece in self._channel.pieces(request)]).decode("utf-8")

    async def wait_until_extracted(
        self, *, collection: str = "default", progress: Progress | None = None
    ) -> int:
        if progress is not None:
            progress(EXTRACTION_PROGRESS, 0, 0)
        return await self._channel.member(
            int, "read", long_write_request(in_collection(collection, "entities", "wait"))
        )
