"""Violations of the invariants of the records."""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Connection, String, and_, cast, exists, func, or_, select

from conspectus.records.core.counters import ALL_COLLECTIONS
from conspectus.records.tables.core import changes, chunks, collections, counters, documents, vectors
from conspectus.text.hashing import content_hash

ROWS_PER_BATCH = 1_000


def problems(connection: Connection) -> list[str]:
    """Return every violated invariant, one line each."""
    checks = (_check_documents, _check_chunk_order, _check_texts, _check_changes, _check_counters)
    return [line for check in checks for line in check(connection)]


def _check_documents(connection: Connection) -> Iterator[str]:
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


def _check_chunk_order(connection: Connection) -> Iterator[str]:
    before = chunks.alias("before")
    joined = chunks.outerjoin(
        before, and_(before.c.document == chunks.c.document, before.c.position == chunks.c.position - 1)
    )
    broken = or_(before.c.id.is_(None), before.c.id != chunks.c.id - 1, before.c.end < chunks.c.start)
    query = select(chunks.c.id).select_from(joined).where(chunks.c.position > 0, broken)
    for row in connection.execute(query):
        yield f"chunk {row.id}: does not continue the chunk before it"


def _check_texts(connection: Connection) -> Iterator[str]:
    query = select(chunks.c.id, chunks.c.text, chunks.c.content_hash)
    for row in connection.execute(query, execution_options={"yield_per": ROWS_PER_BATCH}):
        if content_hash(row.text) != row.content_hash:
            yield f"chunk {row.id}: its text does not match its checksum; add its document again"


def _check_changes(connection: Connection) -> Iterator[str]:
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


def _check_counters(connection: Connection) -> Iterator[str]:
    of = documents.c.collection
    newest = {
        "change": select(changes.c.collection, func.max(changes.c.sequence)).group_by(changes.c.collection),
        "chunk": select(of, func.max(documents.c.last_chunk)).group_by(of),
        "document": select(of, func.max(documents.c.number)).group_by(of),
    }
    counter_rows = {(row.name, row.collection): row for row in connection.execute(select(counters))}
    for name, query in newest.items():
        ranges = counter_rows.get((name, ALL_COLLECTIONS))
        for collection, last in connection.execute(query):
            counter = counter_rows.get((name, collection))
            if counter is None or ranges is None or counter.value < (last or 0) or counter.end > ranges.value:
                yield f"counter {name} of {collection}: would give out numbers that are in use"
