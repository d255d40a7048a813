"""A collection with what one person may do in it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from conspectus.access.policy import (
    can_see_source,
    require_role,
    restrict_filter,
    role_on,
    select_counted_sources,
)
from conspectus.deferred import dataclass
from conspectus.errors import NotFound
from conspectus.model.access import Access, Role
from conspectus.model.filter import EVERYTHING, Filter, In, Or
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Collection, Document, Source


@dataclass(frozen=True, slots=True)
class CollectionAccess:
    """A collection with the roles of one person in it."""

    collection: Collection
    roles: Access

    @property
    def sees_all(self) -> bool:
        """Whether the person may read all sources of the collection."""
        return self.roles.is_whole

    @property
    def redacted(self) -> Collection:
        """The collection without numbers that reveal how much the person may not read."""
        return self.collection if self.sees_all else replace(self.collection, sequence=0)

    @property
    def readable_sources(self) -> tuple[SourceId, ...] | None:
        """The sources that the person may read; None: all."""
        return None if self.sees_all else tuple(sorted(self.roles.sources))

    def restrict_filter(self, where: Filter = EVERYTHING) -> Filter:
        """Restrict a filter to what the person may read here."""
        return restrict_filter(self.roles, where)

    def select_counted_sources(self, where: Filter) -> tuple[SourceId, ...]:
        """Return the sources in a filter that the person may read."""
        return select_counted_sources(self.roles, where)

    def can_see_document(self, document: Document, *, quarantined: bool = False) -> bool:
        """Return whether the person may read a document of this collection, or could after its release."""
        return (quarantined or document.kind != "quarantined") and can_see_source(self.roles, document.source)

    def restrict_to_unverified(self, openable: Iterable[DocumentId] = ()) -> Filter:
        """Return the filter of what no remote is asked for, and of the documents that remotes let open."""
        unverified = self.roles.unverified or EVERYTHING
        documents = tuple(sorted(openable))
        return Or((unverified, In("document", documents))) if documents else unverified

    def visible(self, sources: Sequence[Source]) -> list[Source]:
        """Return the readable sources among these sources of the collection."""
        if self.sees_all:
            return list(sources)
        return [source for source in sources if role_on(self.roles, source.id) is not None]

    def require(self, needed: Role, action: str, *, source: SourceId | None = None) -> None:
        """Raise PermissionDenied unless the person's role on the source or collection is high enough."""
        require_role(role_on(self.roles, source), needed, action)

    def require_visible(self, source: Source) -> None:
        """Raise NotFound for a source of another collection, and for one that the person may not read."""
        if source.collection != self.collection.id or role_on(self.roles, source.id) is None:
            raise NotFound("source", source.name)
