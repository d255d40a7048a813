"""Relations between documents: one supersedes, amends or duplicates another."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.ids import DocumentId

RelationKind = Literal["supersedes", "amends", "duplicates"]
RelationBasis = Literal["text", "version", "person"]
"""What a relation follows from: the text of a document, the versions in two names, or a person."""
EVERY_SOURCE = "*"
"""Stands for all sources of a collection among those that a writer may edit."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a document states about another one, by the normalized name `target` of that document.

    With `is_inverse`, the other document supersedes, amends or duplicates this one. An empty target means
    that the document says that it is superseded, and not by what.
    """

    kind: RelationKind
    target: str
    is_inverse: bool = False
    basis: RelationBasis = "text"


@dataclass(frozen=True, slots=True)
class StoredStatement:
    """A statement of a stored document, with the sources that its writer could edit when it was written.

    `editable` has ids of sources, or `*` for all of the collection.
    """

    document: DocumentId
    statement: Statement
    editable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RelationRows:
    """Statements of documents, and the documents that have the names in them."""

    statements: tuple[StoredStatement, ...] = ()
    named: Mapping[str, tuple[DocumentId, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Successor:
    """A document that supersedes another, and is not superseded itself."""

    document: DocumentId
    name: Annotated[str, Example("Handbook 2026 (handbook-2026.md)")]


@dataclass(frozen=True, slots=True)
class DocumentRelation:
    """A `document` supersedes, amends or duplicates the `other` one, or claims to.

    `name` and `other_name` are titles with keys. A claim without effect has a `reason`: the documents are
    treated as if they were not related.
    """

    kind: RelationKind
    document: DocumentId
    name: Annotated[str, Example("Handbook 2026 (handbook-2026.md)")]
    other: DocumentId
    other_name: Annotated[str, Example("Handbook (handbook.md)")]
    basis: RelationBasis
    reason: Annotated[str, Example("it is untrusted, and the other is trusted")] = ""

    @property
    def is_effective(self) -> bool:
        """Whether the relation has an effect."""
        return not self.reason
