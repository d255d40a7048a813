"""Jobs of a server."""

import time
from collections.abc import Sequence
from typing import Final

from conspectus.client.collections import in_collection, present
from conspectus.client.operations import derive_client
from conspectus.client.request import Request, path_of, read_request
from conspectus.client.transport import RemoteService
from conspectus.engine.jobs import JobService
from conspectus.errors import InvalidInput
from conspectus.model.jobs import FINISHED, Job, Upload
from conspectus.model.reports import FilesPreview

POLL_SECONDS: Final = 20.0
"""Maximum seconds of one request that waits for a job to end."""


@derive_client
class RemoteJobs(RemoteService, JobService):
    """Jobs of a server. Raises NotFound for a job that is not visible."""

    async def ingest_files(
        self, files: Sequence[Upload], *, collection: str = "default", source: str = "uploads"
    ) -> Job:
        if not files:
            raise InvalidInput("files", "must be at least one")
        path = in_collection(collection, "ingest", "files")
        request = Request("POST", path, present(source=source), uploads=files, writes=True, unhurried=True)
        return await self._channel.one(Job, request)

    async def preview_files(
        self,
        files: Sequence[Upload],
        *,
        collection: str = "default",
        source: str = "uploads",
        limit: int = 100,
    ) -> FilesPreview:
        if not files:
            raise InvalidInput("files", "must be at least one")
        path = in_collection(collection, "ingest", "preview")
        fields = present(source=source, limit=limit)
        return await self._channel.one(
            FilesPreview, Request("POST", path, fields, uploads=files, unhurried=True)
        )

    async def get(self, job: str) -> Job:
        return await self._channel.one(Job, read_request(path_of("jobs", ("job", job))))

    async def wait(self, job: str, *, timeout: float | None = None) -> Job:
        path = path_of("jobs", ("job", job))
        give_up = None if timeout is None else time.monotonic() + timeout
        while True:
            left = POLL_SECONDS if give_up is None else max(0.0, give_up - time.monotonic())
            current = await self._channel.one(Job, read_request(path, wait=min(left, POLL_SECONDS)))
            if current.state in FINISHED or (give_up is not None and time.monotonic() >= give_up):
                return current
