"""Retention rules of a server."""

from conspectus.client.encode import encoded
from conspectus.client.memory import scope_json, scope_query
from conspectus.client.operations import derived
from conspectus.client.request import Request, remove
from conspectus.client.service import RemoteService
from conspectus.engine.retention import RetentionService
from conspectus.model.memory import MEMORY, Retention, Scope
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
