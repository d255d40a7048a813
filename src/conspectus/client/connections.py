"""Asking a server for long work."""

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.client.collections import given, in_collection, made
from conspectus.client.encode import metadata_json
from conspectus.client.operations import derived
from conspectus.client.request import get, post, remove
from conspectus.client.service import RemoteService
from conspectus.engine.connections import ConnectionService
from conspectus.model.connections import Connection
from conspectus.model.jobs import Job
from conspectus.model.records import Receipt


@derived
class RemoteConnections(RemoteService, ConnectionService):
    """Connections of a server."""

    async def create(
        self, name: str, connector: str, options: Mapping[str, Any], *, collection: str = "default"
    ) -> Connection:
        body = given(name=name, connector=connector, options=metadata_json(options))
        return await made(
            self._channel, collection, Connection, post(in_collection(collection, "connections"), body)
        )

    async def list(self, *, collection: str = "default") -> Sequence[Connection]:
        return await self._channel.several(Connection, get(in_collection(collection, "connections")))

    async def delete(self, name: str, *, collection: str = "default", delete: bool = False) -> Receipt:
        path = in_collection(collection, "connections", ("connection", name))
        return await self._channel.one(Receipt, remove(path, delete=delete))

    async def sync(self, name: str, *, collection: str = "default") -> Job:
        path = in_collection(collection, "connections", ("connection", name), "sync")
        return await self._channel.one(Job, post(path))
