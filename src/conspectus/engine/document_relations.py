"""Relations between the documents that one person may read: for hits, for windows and for filters."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.reader import AuthorizedReader
from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext
from conspectus.errors import InvalidInput, PermissionDenied
from conspectus.model.filter import And, Filter, In, Not
from conspectus.model.ids import CollectionId, DocumentId
from conspectus.model.records import Document
from conspectus.model.relations import (
    DocumentRelation,
    RelationKind,
    RelationRows,
    Statement,
    StoredStatement,
    Successor,
)
from conspectus.model.results import Hit, Retrieval
from conspectus.model.trust import HIGHEST, least
from conspectus.retrieval.succession import describe_relation, resolve_relations, successors_of

RELATE = "relate a document to another one"
MAX_ROUNDS = 32
"""Most links of a chain of documents that supersede each other."""


@dataclass(frozen=True, slots=True)
class Relations:
    """Relations of documents, and the current successors of those that are superseded."""

    relations: Sequence[DocumentRelation] = ()
    successors: Mapping[DocumentId, tuple[Successor, ...]] = field(default_factory=dict)

    def describe(self, document: DocumentId) -> tuple[str, ...]:
        """Return how a document is related to others, in words."""
        return tuple(
            describe_relation(relation, document)
            for relation in self.relations
            if document in {relation.document, relation.other}
        )


class RelationReader:
    """Reads the relations between documents that a person may read."""

    def __init__(self, authorized: AuthorizedReader) -> None:
        self._authorized = authorized

    async def read(self, access: CollectionAccess, documents: Iterable[DocumentId]) -> Relations:
        """Return the relations of documents of a collection, and of those that they lead to."""
        if not await self._authorized.has_statements(access):
            return Relations()
        statements: dict[StoredStatement, None] = {}
        named: dict[str, tuple[DocumentId, ...]] = {}
        readable: dict[DocumentId, Document] = {}
        expanded: set[DocumentId] = set()
        frontier = set(documents)
        relations: list[DocumentRelation] = []
        for _ in range(MAX_ROUNDS):
            expanded |= frontier
            rows, documents_in_rows = await self._authorized.read_relations(access, sorted(frontier))
            statements |= dict.fromkeys(rows.statements)
            named |= rows.named
            readable |= documents_in_rows
            relations = resolve_relations(RelationRows(tuple(statements), named), readable)
            frontier = {relation.document for relation in relations} - expanded
            if not frontier:
                break
        return Relations(relations, successors_of(relations, readable))

    async def list_superseded(self, access: CollectionAccess) -> list[DocumentId]:
        """Return the ids of all documents of a collection that others supersede."""
        if not await self._authorized.has_statements(access):
            return []
        rows, readable = await self._authorized.read_relations(access)
        return sorted(successors_of(resolve_relations(rows, readable), readable))

    async def restrict_to_current(self, access: CollectionAccess, filter: Filter) -> Filter:
        """Return a filter without the documents that others supersede."""
        superseded = await self.list_superseded(access)
        return And((filter, Not(In("document", tuple(superseded))))) if superseded else filter

    async def mark_hits(self, retrieval: Retrieval) -> Retrieval:
        """Return hits with the current successors of their documents."""
        marked = await self.mark(
            [
                *retrieval.hits,
                *retrieval.below_min_similarity,
                *retrieval.below_min_confidence,
                *retrieval.below_min_trust,
            ]
        )
        if not marked:
            return retrieval

        def with_marks(hits: Sequence[Hit]) -> tuple[Hit, ...]:
            return tuple(marked.get(hit.chunk.id, hit) for hit in hits)

        return replace(
            retrieval,
            hits=with_marks(retrieval.hits),
            below_min_similarity=with_marks(retrieval.below_min_similarity),
            below_min_confidence=with_marks(retrieval.below_min_confidence),
            below_min_trust=with_marks(retrieval.below_min_trust),
        )

    async def mark(self, hits: Sequence[Hit]) -> Mapping[int, Hit]:
        """Return those hits, by chunk, whose documents are related to others, with marks."""
        documents: dict[CollectionId, set[DocumentId]] = {}
        for hit in hits:
            if hit.document.kind == "page":
                documents.setdefault(hit.document.collection, set()).add(hit.document.id)
        marked: dict[int, Hit] = {}
        for collection, ids in documents.items():
            access = await self._authorized.find(collection)
            relations = Relations() if access is None else await self.read(access, ids)
            if not relations.relations:
                continue
            for hit in hits:
                described = relations.describe(hit.document.id)
                if described:
                    successors = relations.successors.get(hit.document.id, ())
                    marked[hit.chunk.id] = replace(hit, superseded_by=successors, relations=described)
        return marked


class RelationWriter:
    """Sets and deletes relations between pages that a person may edit."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    async def set(self, document: str, other: str, kind: RelationKind) -> Statement:
        """Store that a page supersedes, amends or duplicates another one, and return what is stored."""
        stored, other_stored, access = await self._editable(document, other)
        if stored.id == other_stored.id:
            raise InvalidInput("other", "is the document itself; name another one")
        statement = Statement(kind, other_stored.id, basis="person")
        editable = await self._context.list_editable(access.collection.id)
        await self._context.core.records.set_relation(stored.id, statement, editable)
        return statement

    async def delete(self, document: str, other: str, kind: RelationKind) -> bool:
        """Delete a relation that was set; return whether there was one."""
        stored, other_stored, _ = await self._editable(document, other)
        statement = Statement(kind, other_stored.id, basis="person")
        return bool(await self._context.core.records.delete_relation(stored.id, statement))

    async def _editable(self, document: str, other: str) -> tuple[Document, Document, CollectionAccess]:
        """Return two pages of a collection that the person may edit, and the access to it."""
        pairs = [await self._context.authorized.document(name) for name in (document, other)]
        for stored, access in pairs:
            self._context.require_editor(access, stored, RELATE)
            if stored.kind != "page":
                raise InvalidInput("document", f"{stored.id} is a {stored.kind}; only pages can be related")
        (stored, access), (other_stored, _) = pairs
        if stored.collection != other_stored.collection:
            raise InvalidInput("other", "is in another collection; both must be in the same one")
        level = HIGHEST[self._context.person.origin or "user"]
        if least(level, other_stored.trust) != other_stored.trust:
            raise PermissionDenied(RELATE, f"a writer of the level {other_stored.trust}")
        return stored, other_stored, access
