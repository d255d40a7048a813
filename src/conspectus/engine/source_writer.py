"""Collections and sources that are made when something is first written into them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from conspectus.access.policy import require_embedder, require_scope
from conspectus.access.reader import AuthorizedReader, SourceRef
from conspectus.engine.components import EngineCore
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.ingest.prepare import DocumentLimits, named, storable
from conspectus.model.access import Person
from conspectus.model.ids import LOCAL, CollectionId, SourceId, is_stable_id, is_uuid
from conspectus.model.query import EVERYWHERE
from conspectus.model.records import SOURCE_KINDS, Collection, Metadata, Source, SourceKind
from conspectus.text.hashing import stable_id

KNOWN_BY = ("wiki", "space")
"""Metadata by which a connection knows the sources that it writes into."""

NO_ID: Final = "has the form of an id; choose another name"


class SourceWriter:
    """Makes collections and sources, and finds those that a person may write into."""

    def __init__(self, core: EngineCore, person: Person, sight: AuthorizedReader) -> None:
        self._core = core
        self._parts = core.parts
        self._person = person
        self._sight = sight

    async def collection(
        self, name: str, *, words_only: bool = False, language: str | None = None
    ) -> Collection:
        """The collection of that name, made with the embedder of the settings if it is new.

        Raises NotFound for an unknown name that has the form of an id: that is never made into a name.
        """
        found = await self._sight.find(name)
        if found is not None:
            return found.shown
        if is_uuid(name):
            raise NotFound("collection", name)
        embedder = "none" if words_only else None
        return await self.make_collection(name, embedder=embedder, language=language, description="")

    async def writable(
        self, source: str, collection: str, kind: SourceKind = "manual"
    ) -> tuple[Source, SourceRef]:
        """A source to write into, made where the person may make it."""
        found, place = await self.source(source, collection, None, kind)
        require_scope(self._person, "write", "write")
        place.require("editor", "add documents", source=found.id)
        return found, place

    async def source(
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
        told = self.storable(metadata)
        if found is not None and found.metadata == told:
            return found
        if found is not None:
            place.require("manager", "change a source", source=found.id)
            keep_known(place, found, told)
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

    async def make_collection(
        self, name: str, *, embedder: str | None, language: str | None, description: str
    ) -> Collection:
        """Make a collection. Raises InvalidInput, Conflict or NotAllowed."""
        require_scope(self._person, "write", "write")
        usual = self._parts.settings.embedder
        require_embedder(self._person, embedder or usual, usual)
        made = self._parts.embedder_named(embedder or usual)
        chosen = self._parts.settings.default_language if language is None else language
        whole = self._sight.own_name(named("collection", name))
        now = self._parts.clock()
        new = Collection(
            id=await self._free_id(whole, now),
            name=await self.free_name(whole),
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

    async def free_name(self, name: str, renamed: Collection | None = None) -> str:
        """A collection's whole name, if it stands for nothing else. Raises InvalidInput or Conflict."""
        if name == EVERYWHERE:
            raise InvalidInput("collection", f"{name!r} stands for all collections")
        if is_uuid(name):
            raise InvalidInput("collection", NO_ID)
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

    def storable(self, metadata: Mapping[str, Any]) -> Metadata:
        """Metadata as it is stored. Raises InvalidInput or TooLarge."""
        settings = self._parts.settings
        limits = DocumentLimits(
            settings.max_document_characters, settings.max_metadata_bytes, settings.max_metadata_depth
        )
        return storable(metadata, limits)


def keep_known(place: SourceRef, source: Source, told: Metadata | None) -> None:
    """Raise NotAllowed where a manager of one source would have a connection write something else into it."""
    changed = told is not None and any(told.get(key) != source.metadata.get(key) for key in KNOWN_BY)
    if changed:
        place.require("manager", "change what a connection knows a source by")
