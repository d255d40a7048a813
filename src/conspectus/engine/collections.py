"""Collections and sources."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import require_account, require_scope
from conspectus.engine.service import Service
from conspectus.engine.source_writer import NO_ID, require_same_connection
from conspectus.errors import Conflict, InvalidInput, NotFound, as_field
from conspectus.ingest.document_fields import check_name
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.ids import is_stable_id, is_uuid
from conspectus.model.parameters import (
    MAX_DIMENSIONS,
    CollectionName,
    Label,
    Name,
    Purge,
    SourceIdentifier,
)
from conspectus.model.records import (
    Collection,
    Receipt,
    Source,
    SourceKind,
)

FIXED_SIZE_PREFIXES: Final = ("static:", "vectors:")
"""Prefixes of embedders with a fixed vector size; those of model providers take one after `@`."""
NewCollectionName = Annotated[Name, "Name of the collection.", Example("notes")]
Language = Annotated[Label, "A Snowball language, or `none`.", Example("english")]
SourceMetadata = Annotated[Mapping[str, Any], "Metadata as JSON; replaces what is stored."]


class CollectionService(Service):
    """Collections and their sources."""

    async def get_or_create(
        self,
        name: NewCollectionName = "default",
        *,
        words_only: bool = False,
        language: Language | None = None,
    ) -> Collection:
        """Return the collection of that name; create it with the embedder of the settings if it is new.

        `language` is a Snowball language or `none`; it and `words_only` are used only when the collection is
        created. Raises NotFound for an unknown name that has the form of an id.
        """
        return await self._writer.collection(name, words_only=words_only, language=language)

    async def create(
        self,
        name: NewCollectionName,
        *,
        embedder: Annotated[Label, "Embedding model, as in the settings; `none`: no vectors."] | None = None,
        dimensions: Annotated[
            int, Range(1, MAX_DIMENSIONS), "Size of the vectors, if the embedder has several."
        ]
        | None = None,
        language: Language | None = None,
        description: Annotated[str, Length(0, 10_000), "Description of its content."] = "",
    ) -> Collection:
        """Create a collection; the settings decide the embedder if none is given.

        Raises Conflict if the name is taken, InvalidInput if the embedder's vectors have other `dimensions`.
        """
        if is_uuid(name):
            raise InvalidInput("name", NO_ID)
        qualified_name = self._authorized.qualify_name(name)
        existing = await self._authorized.find(qualified_name)
        if existing is not None and existing.collection.name == qualified_name:
            raise Conflict("collection", name, "exists already")
        sized_embedder = self._embedder_with_dimensions(embedder or self._parts.settings.embedder, dimensions)
        with as_field("name", was="collection"):
            return await self._writer.make_collection(
                name, embedder=sized_embedder, language=language, description=description
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
        full_name = None
        if name is not None:
            require_account(self._person, access.collection, "rename a collection")
            full_name = await self._writer.free_name(name, access.collection)
        id = access.collection.id
        self._context.screen_value("collections.name", name, id)
        description = self._context.screen_value("collections.description", description, id)
        changed = await self._core.records.change_collection(id, name=full_name, description=description)
        fields = {"name": name, "description": description}
        detail = ", ".join(field for field, text in fields.items() if text is not None)
        await self._context.note_change("update_collection", id, id, detail)
        return changed

    async def delete(self, collection: CollectionName, *, purge: Purge = False) -> Receipt:
        """Delete a collection with everything in it. Raises NotFound."""
        access = await self._context.collection_with_role(collection, "owner", "delete a collection")
        stored_collection = access.collection
        async with self._context.open_deletion(purge, stored_collection.id) as erasure:
            # Without the collection its index cannot be found, so the index is deleted first.
            await self._forget_index(stored_collection)
            receipt = await self._core.records.delete_collection(stored_collection.id)
            # A query may have built the index again meanwhile.
            await self._forget_index(stored_collection)
            await self._context.note_change("delete_collection", stored_collection.id, stored_collection.id)
        return replace(receipt, purged=erasure.purged, erasure_pending=erasure.pending)

    async def _forget_index(self, collection: Collection) -> None:
        await self._core.open_indexes.drop(collection)
        await self._parts.indexes.forget(collection, collection.space)

    async def get_or_create_source(
        self,
        name: Annotated[Name, "Name of the source.", Example("handbook")],
        *,
        collection: CollectionName = "default",
        metadata: SourceMetadata | None = None,
        kind: Annotated[SourceKind, "Kind of the source."] = "manual",
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
        return (await self._require_source(source, collection))[0]

    async def update_source(
        self,
        source: SourceIdentifier,
        *,
        collection: str | None = None,
        name: Annotated[Name, "New name.", Example("runbooks")] | None = None,
        metadata: SourceMetadata | None = None,
    ) -> Source:
        """Change the given fields of a source; only managers of the whole collection may change its name.

        Raises NotFound, or Conflict if the new name is taken.
        """
        stored_source, access = await self._require_source(source, collection)
        self._require_manager(access, stored_source, "change a source")
        new_name = None
        if name is not None:
            access.require("manager", "rename a source")
            new_name = check_name("source", name)
            if is_stable_id(new_name):
                raise InvalidInput("source", NO_ID)
        new_metadata = None if metadata is None else self._writer.storable(metadata)
        self._context.screen_value("sources.name", name, stored_source.collection)
        new_metadata = self._context.screen_value("sources.metadata", new_metadata, stored_source.collection)
        require_same_connection(access, stored_source, new_metadata)
        changed = await self._core.records.change_source(
            stored_source.id, name=new_name, metadata=new_metadata
        )
        fields = {"name": name, "metadata": metadata}
        detail = ", ".join(field for field, change in fields.items() if change is not None)
        await self._context.note_change("update_source", stored_source.id, stored_source.collection, detail)
        return changed

    async def delete_source(
        self, source: SourceIdentifier, *, collection: str | None = None, purge: Purge = False
    ) -> Receipt:
        """Delete a source with its documents, and return how many of each were deleted. Raises NotFound."""
        stored_source, access = await self._require_source(source, collection)
        self._require_manager(access, stored_source, "delete a source")
        async with self._context.open_deletion(purge, stored_source.collection) as erasure:
            receipt = await self._core.records.delete_source(stored_source.id)
            await self._context.note_change("delete_source", stored_source.id, stored_source.collection)
        return replace(receipt, purged=erasure.purged, erasure_pending=erasure.pending)

    def _require_manager(self, access: CollectionAccess, source: Source, action: str) -> None:
        require_scope(self._person, "write", "write")
        access.require("manager", action, source=source.id)

    async def _require_source(self, source: str, collection: str | None) -> tuple[Source, CollectionAccess]:
        for access in await self._authorized.collections(collection):
            stored_source = await self._authorized.source(access, source)
            if stored_source is not None and (collection or stored_source.id == source):
                return stored_source, access
        raise NotFound("source", source)

    def _embedder_with_dimensions(self, embedder: str, dimensions: int | None) -> str:
        """Return the setting of an embedder with this vector size."""
        if dimensions is None or embedder == "none":
            return embedder
        name, _, size = embedder.partition("@")
        if size or (":" in name and not name.startswith(FIXED_SIZE_PREFIXES)):
            return f"{name}@{dimensions}"
        embedding_model = self._parts.embedder_by_name(embedder)
        fixed_size = embedding_model.space.dimensions if embedding_model else 0
        if embedding_model is None or fixed_size != dimensions:
            raise InvalidInput(
                "dimensions", f"{embedder} makes vectors of {fixed_size} dimensions, not {dimensions}"
            )
        return embedder
