"""Collections and sources of a server."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from conspectus.client.operations import derive_client
from conspectus.client.request import (
    Request,
    delete_request,
    metadata_json,
    path_of,
    read_request,
    to_json,
    write_request,
)
from conspectus.client.transport import RemoteService
from conspectus.engine.collections import CollectionService
from conspectus.errors import NotFound
from conspectus.model.records import Collection, Json, Receipt, Source, SourceKind

BELOW: Final = frozenset({"connections", "documents", "entities", "grants", "sources", "status"})
"""Path segments that may follow the path of a collection."""


@derive_client
class RemoteCollections(RemoteService, CollectionService):
    """Collections and sources of a server."""

    async def get_or_create(
        self, name: str = "default", *, words_only: bool = False, language: str | None = None
    ) -> Collection:
        embedder = "none" if words_only else None
        body = present(name=name, embedder=embedder, language=language)
        return await self._channel.one(Collection, write_request("/collections", {**body, "get": True}))

    async def create(
        self,
        name: str,
        *,
        embedder: str | None = None,
        dimensions: int | None = None,
        language: str | None = None,
        description: str = "",
    ) -> Collection:
        body = present(
            name=name, embedder=embedder, dimensions=dimensions, language=language, description=description
        )
        return await self._channel.one(Collection, write_request("/collections", body))

    async def get(self, collection: str) -> Collection:
        path = in_collection(await self._unmistakable(collection))
        return await self._channel.one(Collection, read_request(path))

    async def delete(self, collection: str, *, purge: bool = False) -> Receipt:
        path = in_collection(await self._unmistakable(collection))
        return await self._channel.one(Receipt, delete_request(path, purge=purge))

    async def get_or_create_source(
        self,
        name: str,
        *,
        collection: str = "default",
        metadata: Mapping[str, Any] | None = None,
        kind: SourceKind = "manual",
    ) -> Source:
        stored = None if metadata is None else metadata_json(metadata)
        body = present(name=name, metadata=stored, kind=kind)
        request = replace(write_request(in_collection(collection, "sources"), body), repeatable=True)
        try:
            return await self._channel.one(Source, request)
        except NotFound as fault:
            if fault.kind != "collection":
                raise
        await self.get_or_create(collection)
        return await self._channel.one(Source, request)

    async def get_source(self, source: str, *, collection: str | None = None) -> Source:
        if collection is None:
            return await self._channel.one(Source, read_request(path_of("sources", ("source", source))))
        for stored in await self.list_sources(collection=collection):
            if source in {stored.id, stored.name}:
                return stored
        raise NotFound("source", source)

    async def update_source(
        self,
        source: str,
        *,
        collection: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Source:
        path = await self._source_path(source, collection)
        body = present(name=name, metadata=None if metadata is None else metadata_json(metadata))
        return await self._channel.one(Source, Request("PATCH", path, body, writes=True))

    async def delete_source(
        self, source: str, *, collection: str | None = None, purge: bool = False
    ) -> Receipt:
        path = await self._source_path(source, collection)
        return await self._channel.one(Receipt, delete_request(path, purge=purge))

    async def _unmistakable(self, name: str) -> str:
        """Return the name, or the id if the name looks like the path of something in another collection."""
        if not BELOW.intersection(name.split("/")[1:]):
            return name
        for collection in await self.list():
            if name in {collection.id, collection.name}:
                return collection.id
        raise NotFound("collection", name)

    async def _source_path(self, source: str, collection: str | None) -> str:
        source_id = (
            source if collection is None else (await self.get_source(source, collection=collection)).id
        )
        return path_of("sources", ("source", source_id))


def present(**fields: object) -> dict[str, Json]:
    """Return the fields that are not None, as the body of a request."""
    return {name: to_json(value) for name, value in fields.items() if value is not None}


def in_collection(name: str, *parts: tuple[str, str] | str) -> str:
    """Return the path of a collection, or of something in it. Raises NotFound for an empty name."""
    return path_of("collections", ("collection", name), *parts)
