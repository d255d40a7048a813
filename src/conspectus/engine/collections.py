"""Collections and sources."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from conspectus.access.policy import require_account, require_scope
from conspectus.access.reader import CollectionAccess
from conspectus.engine.context import Service
from conspectus.engine.source_writer import NO_ID, require_same_connection
from conspectus.errors import Conflict, InvalidInput, NotFound, as_field
from conspectus.ingest.prepare import named
from conspectus.model.annotations import Example, Length
from conspectus.model.ids import is_stable_id, is_uuid
from conspectus.model.parameters import CollectionName, Name, Purge, SourceIdentifier
from conspectus.model.records import (
    Collection,
    Receipt,
    Source,
    SourceKind,
)

ONE_SIZE: Final = ("static:", "vectors:")
"""Embedders with a fixed vector size; those of model providers take one after `@`."""


class CollectionService(Service):
    """Collections and their sources."""

    async def get_or_create(
        self, name: str = "default", *, words_only: bool = False, language: str | None = None
    ) -> Collection:
        """Return the collection of that name; create it with the embedder of the settings if it is new.

        `language` is a Snowball language or `none`; it and `words_only` are used only when the collection is
        created. Raises NotFound for an unknown name that has the form of an id.
        """
        return await self._writer.collection(name, words_only=words_only, language=language)

    async def create(
        self,
        name: str,
        *,
        embedder: str | None = None,
        dimensions: int | None = None,
        language: str | None = None,
        description: str = "",
    ) -> Collection:
        """Create a collection; the settings decide the embedder if none is given.

        Raises Conflict if the name is taken, InvalidInput if the embedder's vectors have other `dimensions`.
        """
        if is_uuid(name):
            raise InvalidInput("name", NO_ID)
        own = self._authorized.qualified_name(name)
        found = await self._authorized.find(own)
        if found is not None and found.collection.name == own:
            raise Conflict("collection", name, "exists already")
        chosen = self._sized(embedder or self._parts.settings.embedder, dimensions)
        with as_field("name", was="collection"):
            return await self._writer.make_collection(
                name, embedder=chosen, language=language, description=description
            )

    async def list(self) -> Sequence[Collection]:
        """List all collections that you may read, by name."""
        return [access.redacted for access in await self._authorized.collections()]

    async def get(self, collection: CollectionName) -> Collection:
        """Return the collection of that id or name. Raises NotFound."""
        return (await self._authorized.collection(collection)).redacted

    async def update(
        self,
        collection: CollectionName,
        *,
        name: Annotated[Name, "New name."] | None = None,
        description: Annotated[str, Length(0, 10_000), "New description.", Example("How we run our servers.")]
        | None = None,
    ) -> Collection:
        """Change the given fields of a collection; only the account that owns it may change its name.

        Raises NotFound, or Conflict if the new name is taken.
        """
        access = await self._context.collection_with_role(collection, "manager", "change a collection")
        new = None
        if name is not None:
            require_account(self._person, access.collection, "rename a collection")
            new = await self._writer.free_name(name, access.collection)
        here = access.collection.id
        self._context.screened("collections.name", name, here)
        changed = await self._core.records.change_collection(
            here, name=new, description=self._context.screened("collections.description", description, here)
        )
        fields = {"name": name, "description": description}
        detail = ", ".join(field for field, text in fields.items() if text is not None)
        await self._context.note_change("update_collection", here, here, detail)
        return changed

    async def delete(self, collection: CollectionName, *, purge: Purge = False) -> Receipt:
        """Delete a collection with everything in it. Raises NotFound."""
        access = await self._context.collection_with_role(collection, "owner", "delete a collection")
        found = access.collection
        async with self._context.purging(purge, found.id) as erasure:
            # Without the collection its index cannot be found, so the index is deleted first.
            await self._forget_index(found)
            receipt = await self._core.records.delete_collection(found.id)
            # A query may have built the index again meanwhile.
            await self._forget_index(found)
            await self._context.note_change("delete_collection", found.id, found.id)
        return replace(receipt, purged=erasure.purged, erasure_pending=erasure.pending)

    async def _forget_index(self, collection: Collection) -> None:
        await self._core.open_indexes.drop(collection)
        await self._parts.indexes.forget(collection, collection.space)

    async def get_or_create_source(
        self,
        name: str,
        *,
        collection: CollectionName = "default",
        metadata: Mapping[str, Any] | None = None,
        kind: SourceKind = "manual",
    ) -> Source:
        """Return the source of that name; create it if it is new. `metadata` replaces the stored metadata.

        Raises NotFound for an unknown name that has the form of an id.
        """
        with as_field("name", was="source"):
            return (await self._writer.source(name, collection, metadata, kind))[0]

    async def list_sources(self, *, collection: CollectionName = "default") -> Sequence[Source]:
        """List the sources of a collection that you may read, by name."""
        return await self._authorized.sources(await self._authorized.collection(collection))

    async def get_source(self, source: SourceIdentifier, *, collection: str | None = None) -> Source:
        """Return the source of that id. Raises NotFound.

        With a `collection`, the source is found by its name too.
        """
        return (await self._source(source, collection))[0]

    async def update_source(
        self,
        source: SourceIdentifier,
        *,
        collection: str | None = None,
        name: Annotated[Name, "New name.", Example("runbooks")] | None = None,
        metadata: Annotated[Mapping[str, Any] | None, "Metadata as JSON; replaces what is stored."] = None,
    ) -> Source:
        """Change the given fields of a source; only managers of the whole collection may change its name.

        Raises NotFound, or Conflict if the new name is taken.
        """
        found, access = await self._source(source, collection)
        self._may_write(access, found, "change a source")
        new = None
        if name is not None:
            access.require("manager", "rename a source")
            new = named("source", name)
            if is_stable_id(new):
                raise InvalidInput("source", NO_ID)
        stored = None if metadata is None else self._writer.storable(metadata)
        self._context.screened("sources.name", name, found.collection)
        stored = self._context.screened("sources.metadata", stored, found.collection)
        require_same_connection(access, found, stored)
        changed = await self._core.records.change_source(found.id, name=new, metadata=stored)
        fields = {"name": name, "metadata": metadata}
        detail = ", ".join(field for field, given in fields.items() if given is not None)
        await self._context.note_change("update_source", found.id, found.collection, detail)
        return changed

    async def delete_source(
        self, source: SourceIdentifier, *, collection: str | None = None, purge: Purge = False
    ) -> Receipt:
        """Delete a source with its documents, and return how many of each were deleted. Raises NotFound."""
        found, access = await self._source(source, collection)
        self._may_write(access, found, "delete a source")
        async with self._context.purging(purge, found.collection) as erasure:
            receipt = await self._core.records.delete_source(found.id)
            await self._context.note_change("delete_source", found.id, found.collection)
        return replace(receipt, purged=erasure.purged, erasure_pending=erasure.pending)

    def _may_write(self, access: CollectionAccess, source: Source, action: str) -> None:
        require_scope(self._person, "write", "write")
        access.require("manager", action, source=source.id)

    async def _source(self, source: str, collection: str | None) -> tuple[Source, CollectionAccess]:
        for access in await self._authorized.collections(collection):
            found = await self._authorized.source(access, source)
            if found is not None and (collection or found.id == source):
                return found, access
        raise NotFound("source", source)

    def _sized(self, embedder: str, dimensions: int | None) -> str:
        """Return the setting of an embedder with this vector size."""
        if dimensions is None or embedder == "none":
            return embedder
        name, _, size = embedder.partition("@")
        if size or (":" in name and not name.startswith(ONE_SIZE)):
            return f"{name}@{dimensions}"
        made = self._parts.embedder_by_name(embedder)
        if made is None or made.space.dimensions != dimensions:
            has = made.space.dimensions if made else 0
            raise InvalidInput(
                "dimensions", f"{embedder} makes vectors of {has} dimensions, not {dimensions}"
            )
        return embedder
