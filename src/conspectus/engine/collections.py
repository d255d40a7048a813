"""Collections and sources."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from conspectus.access.policy import require_account, require_embedder, require_scope
from conspectus.access.reader import SourceRef
from conspectus.engine.context import EngineContext
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.ingest.prepare import DocumentLimits, named, storable
from conspectus.model.ids import LOCAL, CollectionId, SourceId, is_stable_id, is_uuid
from conspectus.model.query import EVERYWHERE
from conspectus.model.records import (
    SOURCE_KINDS,
    Collection,
    Metadata,
    Receipt,
    Source,
    SourceKind,
)
from conspectus.text.hashing import stable_id

KNOWN_BY = ("wiki", "space")
"""Metadata by which a connection knows the sources that it writes into."""

_NO_ID: Final = "has the form of an id; choose another name"
ONE_SIZE: Final = ("static:", "vectors:")
"""Embedders whose name decides the size of their vectors; those of vendors take one after `@`."""


class Catalog(EngineContext):
    """What there is to write into and to ask."""

    async def collection(
        self, name: str = "default", *, words_only: bool = False, language: str | None = None
    ) -> Collection:
        """The collection of that name, made with the embedder of the settings if it is new.

        `language` is a Snowball language or `none`; it and `words_only` matter only when it is made. Raises
        NotFound for an unknown name that has the form of an id: that is never made into a name.
        """
        found = await self._sight.find(name)
        if found is not None:
            return found.shown
        if is_uuid(name):
            raise NotFound("collection", name)
        embedder = "none" if words_only else None
        return await self._make_collection(name, embedder=embedder, language=language, description="")

    async def create_collection(
        self,
        name: str,
        *,
        embedder: str | None = None,
        dimensions: int | None = None,
        language: str | None = None,
        description: str = "",
    ) -> Collection:
        """Make a collection; `embedder` is as in the settings, which decide where it is not given.

        Raises Conflict if there is one of that name, InvalidInput if the embedder's vectors have other
        `dimensions` than asked for.
        """
        if is_uuid(name):
            raise InvalidInput("collection", _NO_ID)
        own = self._sight.own_name(name)
        found = await self._sight.find(own)
        if found is not None and found.collection.name == own:
            raise Conflict("collection", name, "exists already")
        chosen = self._sized(embedder or self._parts.settings.embedder, dimensions)
        return await self._make_collection(name, embedder=chosen, language=language, description=description)

    async def collections(self) -> Sequence[Collection]:
        """Every collection of which anything can be seen, by name."""
        return [place.shown for place in await self._sight.places()]

    async def find_collection(self, name: str) -> Collection:
        """The collection of that name or id. Raises NotFound."""
        return (await self._sight.place(name)).shown

    async def update_collection(
        self, name: str, *, rename: str | None = None, description: str | None = None
    ) -> Collection:
        """Change what is given; the name only by the account that it belongs to.

        Raises NotFound, or Conflict if the new name is taken.
        """
        place = await self._place(name, "manager", "change a collection")
        new = None
        if rename is not None:
            require_account(self._person, place.collection, "rename a collection")
            new = await self._free_name(rename, place.collection)
        return await self._core.records.change_collection(
            place.collection.id, name=new, description=description
        )

    async def delete_collection(self, name: str, *, purge: bool = False) -> Receipt:
        """Delete a collection with everything in it. Raises NotFound."""
        place = await self._place(name, "owner", "delete a collection")
        collection = place.collection
        async with self._purging(purge, collection.id):
            # Once the collection is gone nobody knows of its index: what keeps that from going comes first.
            await self._forget_index(collection)
            receipt = await self._core.records.delete_collection(collection.id)
            # Someone may have asked meanwhile, and have built it for that.
            await self._forget_index(collection)
        return Receipt(receipt.documents, receipt.chunks, receipt.vectors, purge)

    async def _forget_index(self, collection: Collection) -> None:
        await self._core.shelves.drop(collection)
        await self._parts.indexes.forget(collection, collection.space)

    async def source(
        self,
        name: str,
        *,
        collection: str = "default",
        metadata: Mapping[str, Any] | None = None,
        kind: SourceKind = "manual",
    ) -> Source:
        """The source of that name, made if it is new; `metadata`, where given, replaces what it has.

        Raises NotFound for a name that has the form of an id and is none.
        """
        return (await self._shelved(name, collection, metadata, kind))[0]

    async def _shelved(
        self, name: str, collection: str, metadata: Mapping[str, Any] | None, kind: SourceKind
    ) -> tuple[Source, SourceRef]:
        """The source of that name with its collection, both made if they are new."""
        if kind not in SOURCE_KINDS:
            raise InvalidInput("kind", f"must be one of {', '.join(SOURCE_KINDS)}")
        place = await self._sight.find(collection)
        if place is None:
            home = await self.collection(collection)
            place = await self._sight.place(home.id)
        found = await self._sight.source(place, name)
        if found is not None and metadata is None:
            return found, place
        return await self._put_source(place, found, name, metadata=metadata or {}, kind=kind), place

    async def _put_source(
        self,
        place: SourceRef,
        found: Source | None,
        name: str,
        *,
        metadata: Mapping[str, Any],
        kind: SourceKind,
    ) -> Source:
        """A new source, or the one that was found with other metadata."""
        require_scope(self._person, "write", "write")
        told = self._storable(metadata)
        if found is not None and found.metadata == told:
            return found
        if found is not None:
            place.require("manager", "change a source", source=found.id)
            _keep_known(place, found, told)
            return await self._core.records.change_source(found.id, metadata=told)
        if is_stable_id(name):
            raise NotFound("source", name)
        place.require("manager", "make a source")
        home = place.collection.id
        source_id = stable_id("source", home, name)
        if await self._sight.source(place, source_id) is not None:
            source_id = stable_id("source", home, name, self._parts.clock().isoformat())
        return await self._core.records.put_source(
            Source(SourceId(source_id), home, named("source", name), told, kind)
        )

    async def sources(self, *, collection: str = "default") -> Sequence[Source]:
        """The sources of a collection that can be seen, by name."""
        return await self._sight.sources(await self._sight.place(collection))

    async def find_source(self, source: str, *, collection: str | None = None) -> Source:
        """The source of that id, or of that name in a collection. Raises NotFound."""
        return (await self._source(source, collection))[0]

    async def update_source(
        self,
        source: str,
        *,
        collection: str | None = None,
        rename: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Source:
        """Change what is given; the name only by managers of the whole collection, who see which are taken.

        Raises NotFound, or Conflict if the new name is taken.
        """
        found, place = await self._source(source, collection)
        self._may_write(place, found, "change a source")
        new = None
        if rename is not None:
            place.require("manager", "rename a source")
            new = named("source", rename)
            if is_stable_id(new):
                raise InvalidInput("source", _NO_ID)
        told = None if metadata is None else self._storable(metadata)
        _keep_known(place, found, told)
        return await self._core.records.change_source(found.id, name=new, metadata=told)

    async def delete_source(
        self, source: str, *, collection: str | None = None, purge: bool = False
    ) -> Receipt:
        """Delete a source with its documents, and say how many of each thing went. Raises NotFound."""
        found, place = await self._source(source, collection)
        self._may_write(place, found, "delete a source")
        async with self._purging(purge, found.collection):
            receipt = await self._core.records.delete_source(found.id)
        return Receipt(receipt.documents, receipt.chunks, receipt.vectors, purge)

    def _may_write(self, place: SourceRef, source: Source, action: str) -> None:
        require_scope(self._person, "write", "write")
        place.require("manager", action, source=source.id)

    async def _place(self, name: str, needed: Any, action: str) -> SourceRef:
        place = await self._sight.place(name)
        require_scope(self._person, "write", "write")
        place.require(needed, action)
        return place

    async def _source(self, source: str, collection: str | None) -> tuple[Source, SourceRef]:
        places = [await self._sight.place(collection)] if collection else await self._sight.places()
        for place in places:
            found = await self._sight.source(place, source)
            if found is not None and (collection or found.id == source):
                return found, place
        raise NotFound("source", source)

    async def _make_collection(
        self, name: str, *, embedder: str | None, language: str | None, description: str
    ) -> Collection:
        require_scope(self._person, "write", "write")
        usual = self._parts.settings.embedder
        require_embedder(self._person, embedder or usual, usual)
        made = self._parts.embedder_named(embedder or usual)
        chosen = self._parts.settings.default_language if language is None else language
        whole = self._sight.own_name(named("collection", name))
        now = self._parts.clock()
        new = Collection(
            id=await self._free_id(whole, now),
            name=await self._free_name(whole),
            space=made.space if made else None,
            language=None if chosen == "none" else chosen,
            created=now,
            owner=self._person.id,
            description=description,
        )
        return await self._core.records.create_collection(new)

    async def _free_id(self, name: str, now: datetime) -> CollectionId:
        """The same for the same name, unless a collection that was renamed has that one."""
        plain = stable_id("collection", name)
        taken = await self._sight.is_known(plain)
        return CollectionId(stable_id("collection", name, now.isoformat()) if taken else plain)

    async def _free_name(self, name: str, renamed: Collection | None = None) -> str:
        """A collection's whole name, if it stands for nothing else. Raises InvalidInput or Conflict."""
        if name == EVERYWHERE:
            raise InvalidInput("collection", f"{name!r} stands for all collections")
        if is_uuid(name):
            raise InvalidInput("collection", _NO_ID)
        whole = named("collection", name)
        if renamed is not None and renamed.owner != LOCAL:
            prefix = renamed.name.partition("/")[0]
            whole = whole if whole.startswith(f"{prefix}/") else f"{prefix}/{whole}"
        elif self._person.owner:
            await self._not_anothers(whole)
        return whole

    async def _not_anothers(self, name: str) -> None:
        """The store's own collections are called like no other's: neither by an account nor by an id."""
        prefix, slash, _ = name.partition("/")
        user = await self._parts.accounts.user(prefix) if slash else None
        if user is not None and user.name == prefix and not user.owner:
            raise Conflict("collection", name, "begins with the name of an account, which alone can make it")
        found = await self._sight.find(name)
        if found is not None and found.collection.id == name:
            raise Conflict("collection", name, "is the id of another")

    def _sized(self, embedder: str, dimensions: int | None) -> str:
        """The setting of an embedder whose vectors have these dimensions."""
        if dimensions is None or embedder == "none":
            return embedder
        name, _, size = embedder.partition("@")
        if size or (":" in name and not name.startswith(ONE_SIZE)):
            return f"{name}@{dimensions}"
        made = self._parts.embedder_named(embedder)
        if made is None or made.space.dimensions != dimensions:
            has = made.space.dimensions if made else 0
            raise InvalidInput("dimensions", f"{embedder} makes vectors of {has}, not of {dimensions}")
        return embedder

    def _storable(self, metadata: Mapping[str, Any]) -> Metadata:
        settings = self._parts.settings
        limits = DocumentLimits(
            settings.max_document_characters, settings.max_metadata_bytes, settings.max_metadata_depth
        )
        return storable(metadata, limits)


def _keep_known(place: SourceRef, source: Source, told: Metadata | None) -> None:
    """Raise NotAllowed where a manager of one source would have a connection write something else into it."""
    changed = told is not None and any(told.get(key) != source.metadata.get(key) for key in KNOWN_BY)
    if changed:
        place.require("manager", "change what a connection knows a source by")
