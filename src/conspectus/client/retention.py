"""Retention rules of a server."""

from collections.abc import Sequence

from conspectus.client.encode import encoded
from conspectus.client.memory import scope_json, scope_of, scope_query
from conspectus.client.operations import derived
from conspectus.client.request import Request, get, post, remove, work
from conspectus.client.service import RemoteService
from conspectus.engine.retention import RetentionService
from conspectus.model.jobs import Job
from conspectus.model.memory import MEMORY, MemoryReceipt, Retention, RetentionRule, Scope
from conspectus.model.records import Json


@derived
class RemoteRetention(RemoteService, RetentionService):
    """Retention rules of a server."""

    async def set(self, retention: Retention | None, *, scope: Scope, collection: str = MEMORY) -> None:
        if retention is None:
            request = remove("/memories/retention", **scope_query(scope, collection))
        else:
            kept = {"days": encoded(retention.days), "most": encoded(retention.most)}
            body: Json = {**scope_json(scope, collection), **kept}
            request = Request("PUT", "/memories/retention", body, writes=True)
        await self._channel.answer(request)

    async def list(self, *, collection: str = MEMORY) -> Sequence[RetentionRule]:
        return await self._channel.several(RetentionRule, get("/memories/retention", collection=collection))

    async def apply(
        self, *, collection: str = MEMORY, scope: Scope | None = None, preview: bool = False
    ) -> MemoryReceipt:
        body: Json = {
            "collection": encoded(collection),
            "scope": scope_of(scope),
            "preview": preview,
        }
        return await self._channel.one(MemoryReceipt, work("/memories/retention/apply", body))

    async def start_job(self, *, collection: str = MEMORY) -> Job:
        body: Json = {"collection": encoded(collection)}
        return await self._channel.one(Job, post("/memories/retention/start", body))
