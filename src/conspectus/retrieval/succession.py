"""Which documents supersede others, of those that one person may read, and which claims have no effect.

A claim needs an equal or higher trust level than the other document has, and a writer who may edit that one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from conspectus.model.ids import DocumentId
from conspectus.model.records import Document
from conspectus.model.relations import (
    EVERY_SOURCE,
    DocumentRelation,
    RelationRows,
    StoredStatement,
    Successor,
)
from conspectus.model.trust import TRUST
from conspectus.text.document_keys import version_of
from conspectus.text.document_names import name_with_key

MAX_VERSIONS = 50
"""Most other versions of a document that are compared with it."""
MAX_NAMESAKES = 3
"""Most documents that are named for a claim whose name several documents have."""
MAX_SUCCESSORS = 3
MAX_NAME_CHARACTERS = 80
"""Longer names of documents are cut where another document is marked with them."""

Documents = Mapping[DocumentId, Document]


def resolve_relations(rows: RelationRows, documents: Documents) -> list[DocumentRelation]:
    """Return the relations between readable pages, each once; one with an effect comes before a claim."""
    relations: dict[tuple[str, str, str], DocumentRelation] = {}
    for stored in rows.statements:
        for relation in _relations_of(stored, rows, documents):
            key = (relation.kind, relation.document, relation.other)
            earlier = relations.get(key)
            if earlier is None or (earlier.reason and not relation.reason):
                relations[key] = relation
    return list(relations.values())


def _relations_of(
    stored: StoredStatement, rows: RelationRows, documents: Documents
) -> Iterator[DocumentRelation]:
    author, statement = documents.get(stored.document), stored.statement
    if author is None or author.kind != "page":
        return
    others, ambiguity = _others(stored, author, rows, documents)
    for other in others:
        newer, older = (other, author) if statement.is_inverse else (author, other)
        yield DocumentRelation(
            kind=statement.kind,
            document=newer.id,
            name=display_name(newer),
            other=older.id,
            other_name=display_name(older),
            basis=statement.basis,
            reason=ambiguity or _reason_without_effect(stored, author, newer, older),
        )


def _others(
    stored: StoredStatement, author: Document, rows: RelationRows, documents: Documents
) -> tuple[Sequence[Document], str]:
    """Return the documents that a statement is about, and why it has no effect if they are several."""
    target = stored.statement.target
    ids = [DocumentId(target)] if stored.statement.basis == "person" else rows.named.get(target, ())
    pages = [documents[id] for id in ids if id in documents and id != author.id]
    pages = [page for page in pages if page.kind == "page"]
    if stored.statement.basis == "version":
        return _lower_versions(author, pages), ""
    likely = _most_likely(author, pages)
    if len(likely) < 2:
        return likely, ""
    return likely[:MAX_NAMESAKES], f"{len(likely)} documents have the name that it states"


def _most_likely(author: Document, pages: Sequence[Document]) -> Sequence[Document]:
    """Return those of several pages of a name that a document probably means.

    A page of a lower level than the document or another page never takes the place of that one, so that
    nobody can end a relation by a page of the same name. Then pages of the same source come first.
    """
    if len(pages) < 2:
        return pages
    levels = [TRUST.index(page.trust) for page in pages]
    lowest = max(TRUST.index(author.trust), min(levels))
    likely = [page for page, level in zip(pages, levels, strict=True) if level <= lowest]
    likely = [page for page in likely if page.source == author.source] or likely
    best = min(TRUST.index(page.trust) for page in likely)
    return [page for page in likely if TRUST.index(page.trust) == best]


def _lower_versions(author: Document, pages: Iterable[Document]) -> list[Document]:
    """Return the lower versions of a document in its source, the latest ones first."""
    own = version_of(author.title, author.key)
    lower = []
    for page in pages:
        version = version_of(page.title, page.key)
        if page.source == author.source and own and version and version[1] < own[1]:
            lower.append((version[1], page))
    lower.sort(key=lambda pair: pair[0], reverse=True)
    return [page for _, page in lower[:MAX_VERSIONS]]


def _reason_without_effect(
    stored: StoredStatement, author: Document, newer: Document, older: Document
) -> str:
    if TRUST.index(newer.trust) > TRUST.index(older.trust):
        return f"it is {newer.trust}, and the other is {older.trust}"
    is_own = older.id == author.id or older.source == author.source
    if not is_own and not {EVERY_SOURCE, older.source} & stored.editable:
        return "its writer may not edit the other document"
    return ""


def successors_of(
    relations: Iterable[DocumentRelation], documents: Documents
) -> dict[DocumentId, tuple[Successor, ...]]:
    """Return the last documents of the chains from each superseded one, the latest first.

    Documents that supersede each other in a circle do not count against each other.
    """
    newer: dict[DocumentId, set[DocumentId]] = {}
    for relation in relations:
        if relation.kind == "supersedes" and not relation.reason:
            newer.setdefault(relation.other, set()).add(relation.document)
    reached = {document: _reach(document, newer) for document in newer}
    successors = {}
    for document, others in reached.items():
        last = [other for other in others if _is_last(other, document, reached)]
        if last:
            last.sort(key=lambda id: _recency(documents[id]), reverse=True)
            named = (Successor(id, display_name(documents[id])) for id in last[:MAX_SUCCESSORS])
            successors[document] = tuple(named)
    return successors


def _reach(document: DocumentId, newer: Mapping[DocumentId, set[DocumentId]]) -> set[DocumentId]:
    """Return the documents that supersede a document directly or in a chain."""
    reached: set[DocumentId] = set()
    left = [document]
    while left:
        for other in newer.get(left.pop(), ()):
            if other not in reached:
                reached.add(other)
                left.append(other)
    return reached


def _is_last(other: DocumentId, document: DocumentId, reached: Mapping[DocumentId, set[DocumentId]]) -> bool:
    """Return whether nothing supersedes a document that it does not supersede in its turn."""
    further = reached.get(other, set())
    return document not in further and all(other in reached.get(next_one, ()) for next_one in further)


def _recency(document: Document) -> tuple[float, int, str]:
    return document.time.timestamp(), document.number, document.id


def display_name(document: Document) -> str:
    """Return the title of a document with its key on one line, cut where it is long."""
    name = name_with_key(document.title, document.location) or document.id
    return name if len(name) <= MAX_NAME_CHARACTERS else name[: MAX_NAME_CHARACTERS - 1] + "…"


def describe_relation(relation: DocumentRelation, document: DocumentId) -> str:
    """Return how a document is related to the other one, in words of a trace."""
    is_newer = document == relation.document
    verb = relation.kind if is_newer else _PASSIVE[relation.kind]
    name = relation.other_name if is_newer else relation.name
    if not relation.reason:
        return f"{verb} {name}"
    return f"claim without effect: {verb} {name} ({relation.reason})"


_PASSIVE = {
    "supersedes": "superseded by",
    "amends": "amended by",
    "duplicates": "duplicated by",
}
