"""Creation of collections and sources, and the sources that a user may write to."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import require_embedder, require_scope
from conspectus.access.reader import AuthorizedReader
from conspectus.engine.components import EngineComponents
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.ingest.column_rules import screen_column
from conspectus.ingest.document_fields import check_name, storable
from conspectus.model.access import Person
from conspectus.model.ids import LOCAL, CollectionId, SourceId, is_stable_id, is_uuid
from conspectus.model.query import EVERYWHERE
from conspectus.model.records import SOURCE_KINDS, Collection, Metadata, Source, SourceKind
from conspectus.text.hashing import stable_id

T = TypeVar("T")
CONNECTION_FIELDS = ("wiki", "space")
"""Metadata by which a connection identifies the sources that it writes to."""

ACCOUNT_KINDS: Final = frozenset[SourceKind]({"memory", "graph"})
"""Kinds of sources whose names may contain the name of an account."""
NO_ID: Final = "has the form of an id; choose another name"


class SourceWriter:
    """Creates collections and sources, and finds those that the user may write to."""

    def __init__(self, parts: EngineComponents, person: Person, authorized: AuthorizedReader) -> None:
        self._parts = parts
        self._person = person
        self._authorized = authorized

    async def collection(
        self, name: str, *, words_only: bool = False, language: str | None = None
    ) -> Collection:
        """Return the collection of that name; create it with the embedder of the settings if it is new.

        Raises NotFound for an unknown name that has the form of an id, which cannot be a name.
        """
        access = await self._authorized.find(name)
        if access is not None:
            return access.redacted
        if is_uuid(name):
            raise NotFound("collection", name)
        embedder = "none" if words_only else None
        return await self.make_collection(name, embedder=embedder, language=language, description="")

    async def writable(
        self, source: str, collection: str, kind: SourceKind = "manual"
    ) -> tuple[Source, CollectionAccess]:
        """Return a source to write to. It is created if the user may do so."""
        stored, access = await self.source(source, collection, None, kind)
        require_scope(self._person, "write", "write")
        access.require("editor", "add documents", source=stored.id)
        return stored, access

    async def source(
        self, name: str, collection: str, metadata: Mapping[str, Any] | None, kind: SourceKind
    ) -> tuple[Source, CollectionAccess]:
        """Return the source of that name with its collection. Both are created if they are new."""
        if kind not in SOURCE_KINDS:
            raise InvalidInput("kind", f"must be one of {', '.join(SOURCE_KINDS)}")
        access, stored = await self._authorized.find_with_source(collection, name)
        if access is None:
            stored_collection = await self.collection(collection)
            access = await self._authorized.collection(stored_collection.id)
            stored = await self._authorized.source(access, name)
        if stored is not None and metadata is None:
            return stored, access
        return await self._put_source(access, stored, name, metadata=metadata or {}, kind=kind), access

    async def _put_source(
        self,
        access: CollectionAccess,
        existing: Source | None,
        name: str,
        *,
        metadata: Mapping[str, Any],
        kind: SourceKind,
    ) -> Source:
        """Create a source, or update the metadata of an existing one."""
        require_scope(self._person, "write", "write")
        stored = self._screen("sources.metadata", self.storable(metadata), access.collection.id)
        if existing is not None and existing.metadata == stored:
            return existing
        if existing is not None:
            access.require("manager", "change a source", source=existing.id)
            require_same_connection(access, existing, stored)
            return await self._parts.records.change_source(existing.id, metadata=stored)
        if is_stable_id(name):
            raise NotFound("source", name)
        access.require("manager", "make a source")
        collection_id = access.collection.id
        column = "users.name" if kind in ACCOUNT_KINDS else "sources.name"
        self._screen(column, unquote(name), collection_id, field="source")
        source_id = stable_id("source", collection_id, name)
        if await self._authorized.source(access, source_id) is not None:
            source_id = stable_id("source", collection_id, name, self._parts.clock().isoformat())
        return await self._parts.records.put_source(
            Source(SourceId(source_id), collection_id, check_name("source", name), stored, kind)
        )

    async def make_collection(
        self, name: str, *, embedder: str | None, language: str | None, description: str
    ) -> Collection:
        """Create a collection. Raises InvalidInput, Conflict or PermissionDenied."""
        require_scope(self._person, "write", "write")
        default_embedder = self._parts.settings.embedder
        require_embedder(self._person, embedder or default_embedder, default_embedder)
        loaded = await self._parts.load_embedder(embedder or default_embedder)
        language_name = self._parts.settings.default_language if language is None else language
        full_name = self._authorized.qualify_name(check_name("collection", name))
        now, id_of_name = self._parts.clock(), stable_id("collection", full_name)
        # A collection that was renamed may have the id that follows from the name.
        is_id_in_use = await self._authorized.exists(id_of_name)
        collection_id = CollectionId(
            stable_id("collection", full_name, now.isoformat()) if is_id_in_use else id_of_name
        )
        self._screen("collections.name", name, collection_id, field="collection")
        new = Collection(
            id=collection_id,
            name=await self.free_name(full_name),
            space=loaded.space if loaded else None,
            language=None if language_name == "none" else language_name,
            created=now,
            owner=self._person.id,
            description=self._screen("collections.description", description, collection_id),
        )
        return await self._parts.records.create_collection(new)

    async def free_name(self, name: str, renamed: Collection | None = None) -> str:
        """Return the full name of a new or renamed collection. Raises InvalidInput or Conflict."""
        if name == EVERYWHERE:
            raise InvalidInput("collection", f"{name!r} is reserved for all collections")
        if is_uuid(name):
            raise InvalidInput("collection", NO_ID)
        full_name = check_name("collection", name)
        if renamed is not None and renamed.owner != LOCAL:
            prefix = renamed.name.partition("/")[0]
            full_name = full_name if full_name.startswith(f"{prefix}/") else f"{prefix}/{full_name}"
        elif self._person.owner:
            await self._refuse_names_of_others(full_name)
        return full_name

    async def _refuse_names_of_others(self, name: str) -> None:
        """Raise Conflict for a name that begins with that of another account, or is a collection's id."""
        prefix, slash, _ = name.partition("/")
        user = await self._parts.accounts.user(prefix) if slash else None
        if user is not None and user.name == prefix and not user.owner:
            raise Conflict(
                "collection", name, "begins with the name of another account; only that account can create it"
            )
        access = await self._authorized.find(name)
        if access is not None and access.collection.id == name:
            raise Conflict("collection", name, "is the id of another collection; choose another name")

    def _screen(self, column: str, value: T, collection: CollectionId, *, field: str = "") -> T:
        setting, origin = self._parts.settings.sensitive, self._person.origin
        return screen_column(setting, column, value, collection, origin=origin, field=field)

    def storable(self, metadata: Mapping[str, Any]) -> Metadata:
        """Return storable metadata. Raises InvalidInput or TooLarge."""
        return storable(metadata, self._parts.settings)


def require_same_connection(access: CollectionAccess, source: Source, new: Metadata | None) -> None:
    """Raise PermissionDenied if a source manager would change metadata that a connection uses."""
    changed = new is not None and any(new.get(key) != source.metadata.get(key) for key in CONNECTION_FIELDS)
    if changed:
        access.require("manager", "change metadata that a connection uses")
