"""Numbers for people, and what has to hold at every moment."""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Connection, String, and_, cast, exists, func, or_, select

from conspectus.model.ids import CollectionId
from conspectus.records.core.collections import state
from conspectus.records.core.embeddings import count_unembedded
from conspectus.records.tables.core import changes, chunks, collections, counters, documents, sources, vectors
from conspectus.text.hashing import content_hash

BATCH = 1_000


def counts(connection: Connection, collection: CollectionId) -> dict[str, int]:
    """Sources, documents, chunks, vectors that answer, chunks without one, documents in error."""
    space = state(connection, collection)[1]
    own = documents.c.collection == collection
    in_error = func.count().filter(documents.c.status == "error")
    totals = select(func.count(), func.coalesce(func.sum(documents.c.chunks), 0), in_error).where(own)
    of_documents, of_chunks, errors = connection.execute(totals).one()
    of_sources = select(func.count()).select_from(sources).where(sources.c.collection == collection)
    numbers = {
        "sources": connection.execute(of_sources).scalar_one(),
        "documents": of_documents,
        "chunks": of_chunks,
        "vectors": 0,
        "pending": 0,
        "error": errors,
    }
    if space is not None:
        joined = documents.join(chunks, chunks.c.document == documents.c.number)
        joined = joined.join(vectors, vectors.c.chunk == chunks.c.id)
        answering = select(func.count()).select_from(joined).where(own, vectors.c.space == space.name)
        numbers["vectors"] = connection.execute(answering).scalar_one()
        numbers["pending"] = count_unembedded(connection, collection, space=space)
    return numbers


def problems(connection: Connection) -> list[str]:
    """Every broken invariant, one line each."""
    broken = (_documents, _gaps, _texts, _history, _counters)
    return [line for each in broken for line in each(connection)]


def _documents(connection: Connection) -> Iterator[str]:
    of_chunks = (
        select(
            chunks.c.document.label("document"),
            func.count().label("number"),
            func.min(chunks.c.start).label("start"),
            func.max(chunks.c.end).label("end"),
            func.max(chunks.c.id).label("last"),
        )
        .group_by(chunks.c.document)
        .subquery()
    )
    joined = documents.outerjoin(of_chunks, of_chunks.c.document == documents.c.number)
    without = and_(of_chunks.c.number.is_(None), documents.c.chunks != 0)
    differing = or_(
        of_chunks.c.number != documents.c.chunks,
        of_chunks.c.start != 0,
        of_chunks.c.end != documents.c.characters,
        of_chunks.c.last != func.coalesce(documents.c.last_chunk, -1),
    )
    for row in connection.execute(select(documents.c.id).select_from(joined).where(or_(without, differing))):
        yield f"document {row.id}: its chunks are not those it was written with"


def _gaps(connection: Connection) -> Iterator[str]:
    before = chunks.alias("before")
    joined = chunks.outerjoin(
        before, and_(before.c.document == chunks.c.document, before.c.position == chunks.c.position - 1)
    )
    broken = or_(before.c.id.is_(None), before.c.id != chunks.c.id - 1, before.c.end < chunks.c.start)
    chosen = select(chunks.c.id).select_from(joined).where(chunks.c.position > 0, broken)
    for row in connection.execute(chosen):
        yield f"chunk {row.id}: does not continue the chunk before it"


def _texts(connection: Connection) -> Iterator[str]:
    chosen = select(chunks.c.id, chunks.c.text, chunks.c.content_hash)
    for row in connection.execute(chosen, execution_options={"yield_per": BATCH}):
        if content_hash(row.text) != row.content_hash:
            yield f"chunk {row.id}: its text is not the one it was written with; add its document again"


def _history(connection: Connection) -> Iterator[str]:
    newest = (
        select(func.coalesce(func.max(changes.c.sequence), 0))
        .where(changes.c.collection == collections.c.id)
        .correlate(collections)
        .scalar_subquery()
    )
    for row in connection.execute(select(collections.c.name).where(collections.c.sequence != newest)):
        yield f"collection {row.name}: its sequence is not that of its newest change"
    unfinished = (
        select(documents.c.id)
        .join(collections, collections.c.id == documents.c.collection)
        .where(documents.c.status == "embedded", collections.c.model.is_not(None))
        .where(exists().where(chunks.c.document == documents.c.number).where(~_has_vector()))
    )
    for row in connection.execute(unfinished):
        yield f"document {row.id}: is called embedded and lacks vectors"


def _has_vector() -> ColumnElement[bool]:
    name = collections.c.model + "/" + cast(collections.c.dimensions, String) + "/" + collections.c.version
    return exists().where(vectors.c.chunk == chunks.c.id, vectors.c.space == name)


def _counters(connection: Connection) -> Iterator[str]:
    used = {"change": changes.c.sequence, "chunk": chunks.c.id, "document": documents.c.number}
    for name, column in used.items():
        value = connection.execute(
            select(counters.c.value).where(counters.c.name == name)
        ).scalar_one_or_none()
        newest = connection.execute(select(func.coalesce(func.max(column), 0))).scalar_one()
        if value is None or value < newest:
            yield f"counter {name}: would give out numbers that are in use"
