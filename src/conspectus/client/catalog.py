"""Collections and sources of a server."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from conspectus.client.desk import Desk
from conspectus.client.encode import encoded, metadata_json
from conspectus.client.request import Request, get, path_of, post, remove
from conspectus.errors import NotFound
from conspectus.model.records import Collection, Json, Receipt, Source, SourceKind

T = TypeVar("T")
BELOW: Final = frozenset({"connections", "documents", "grants", "names", "sources", "status"})
"""What the path of a collection is continued with."""


class Catalog(Desk):
    """What there is to write into and to ask."""

    async def collection(
        self, name: str = "default", *, words_only: bool = False, language: str | None = None
    ) -> Collection:
        """The collection of that name, made with the embedder of the server's settings if it is new."""
        embedder = "none" if words_only else None
        body = given(name=name, embedder=embedder, language=language)
        return await self._channel.one(Collection, post("/collections", {**body, "get": True}))

    async def create_collection(
        self,
        name: str,
        *,
        embedder: str | None = None,
        dimensions: int | None = None,
        language: str | None = None,
        description: str = "",
    ) -> Collection:
        """Make a collection. Raises Conflict if there is one of that name."""
        body = given(
            name=name, embedder=embedder, dimensions=dimensions, language=language, description=description
        )
        return await self._channel.one(Collection, post("/collections", body))

    async def collections(self) -> Sequence[Collection]:
        """Every collection of which anything can be seen, by name."""
        return await self._channel.several(Collection, get("/collections"))

    async def find_collection(self, name: str) -> Collection:
        """The collection of that name or id. Raises NotFound."""
        return await self._channel.one(Collection, get(in_collection(await self._unmistakable(name))))

    async def update_collection(
        self, name: str, *, rename: str | None = None, description: str | None = None
    ) -> Collection:
        """Change what is given. Raises NotFound, or Conflict if the new name is taken."""
        body = given(rename=rename, description=description)
        return await self._channel.one(Collection, Request("PATCH", in_collection(name), body, writes=True))

    async def delete_collection(self, name: str, *, purge: bool = False) -> Receipt:
        """Delete a collection with everything in it. Raises NotFound."""
        path = in_collection(await self._unmistakable(name))
        return await self._channel.one(Receipt, remove(path, purge=purge))

    async def source(
        self,
        name: str,
        *,
        collection: str = "default",
        metadata: Mapping[str, Any] | None = None,
        kind: SourceKind = "manual",
    ) -> Source:
        """The source of that name, made if it is new; `metadata`, where given, replaces what it has."""
        told = None if metadata is None else metadata_json(metadata)
        body = given(name=name, metadata=told, kind=kind)
        request = replace(post(in_collection(collection, "sources"), body), repeatable=True)
        return await self._made(collection, Source, request)

    async def sources(self, *, collection: str = "default") -> Sequence[Source]:
        """The sources of a collection that can be seen, by name."""
        return await self._channel.several(Source, get(in_collection(collection, "sources")))

    async def find_source(self, source: str, *, collection: str | None = None) -> Source:
        """The source of that id, or of that name in a collection. Raises NotFound."""
        if collection is None:
            return await self._channel.one(Source, get(path_of("sources", ("source", source))))
        for each in await self.sources(collection=collection):
            if source in {each.id, each.name}:
                return each
        raise NotFound("source", source)

    async def update_source(
        self,
        source: str,
        *,
        collection: str | None = None,
        rename: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Source:
        """Change what is given. Raises NotFound, or Conflict if the new name is taken."""
        path = await self._source_path(source, collection)
        body = given(rename=rename, metadata=None if metadata is None else metadata_json(metadata))
        return await self._channel.one(Source, Request("PATCH", path, body, writes=True))

    async def delete_source(
        self, source: str, *, collection: str | None = None, purge: bool = False
    ) -> Receipt:
        """Delete a source with its documents, and say how many of each thing went. Raises NotFound."""
        path = await self._source_path(source, collection)
        return await self._channel.one(Receipt, remove(path, purge=purge))

    async def _unmistakable(self, name: str) -> str:
        """The name, or the id where the name looks like the path of something in another collection."""
        if not BELOW.intersection(name.split("/")[1:]):
            return name
        for each in await self.collections():
            if name in {each.id, each.name}:
                return each.id
        raise NotFound("collection", name)

    async def _made(self, collection: str, kind: type[T], request: Request) -> T:
        """What a request to a collection answers, which is made first if it is new."""
        try:
            return await self._channel.one(kind, request)
        except NotFound as fault:
            if fault.kind != "collection":
                raise
        await self.collection(collection)
        return await self._channel.one(kind, request)

    async def _source_path(self, source: str, collection: str | None) -> str:
        found = source if collection is None else (await self.find_source(source, collection=collection)).id
        return path_of("sources", ("source", found))


def given(**fields: object) -> dict[str, Json]:
    """The fields that are not None, as the body of a request."""
    return {name: encoded(value) for name, value in fields.items() if value is not None}


def in_collection(name: str, *parts: tuple[str, str] | str) -> str:
    """The path of a collection, or of something in it. Raises NotFound for an empty name."""
    return path_of("collections", ("collection", name), *parts)
