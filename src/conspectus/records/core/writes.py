"""Adding and replacing documents: a batch is written completely in one transaction, or not at all."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from typing import Any

from sqlalchemy import Connection, bindparam, case, delete, exists, select, update

from conspectus.errors import Conflict, InvalidInput, NotFound, PreconditionFailed
from conspectus.model.ids import CollectionId, DocumentId
from conspectus.model.index import IndexedChunk, IndexUpdate, WriteResult
from conspectus.model.records import (
    Change,
    Collection,
    Document,
    PreparedDocument,
    Written,
)
from conspectus.records.core.changes import ChangeRange, append, appended_changes, note_update
from conspectus.records.core.counters import allocate_written
from conspectus.records.core.dialects import json_list, json_list_param
from conspectus.records.core.embeddings import ClientVector, check_vector, store_vectors_with_chunks
from conspectus.records.core.levels import (
    at_most,
    lower_edges,
    lowered_origin,
    lowered_trust,
)
from conspectus.records.core.outdated_summaries import forget_summaries
from conspectus.records.core.planned_writes import (
    Applied,
    CollectionsById,
    Inserted,
    Owners,
    Placed,
    Planned,
    Span,
    Stored,
)
from conspectus.records.core.rows import (
    COLLECTION_COLUMNS,
    chunk_values,
    document_values,
    mention_values,
    to_collection,
)
from conspectus.records.core.statements import (
    IDS,
    MAX_BLOCK_VALUES,
    MAX_SINGLE_INSERT_ROWS,
    PreparedStatement,
    execute_batch,
    execute_in_blocks,
    fetch_in_blocks,
    fetch_rows,
    prepare,
    prepare_inserts,
)
from conspectus.records.tables.core import PENDING, chunks, collections, documents, sources, vectors
from conspectus.records.tables.graph import mentions

_STORED = select(
    documents.c.id,
    documents.c.number,
    documents.c.collection,
    documents.c.fingerprint,
    documents.c.status,
    documents.c.error,
    documents.c.chunks,
    documents.c.last_chunk,
    documents.c.title,
    documents.c.author,
    documents.c.kind,
    documents.c.recorded,
    documents.c.trust,
    documents.c.origin,
    case((documents.c.kind == "quarantined", documents.c.metadata)),
).where(documents.c.id.in_(json_list_param("ids")))
_SPANS = (
    select(
        chunks.c.document,
        chunks.c.start,
        chunks.c.end,
        chunks.c.content_hash,
        chunks.c.page,
        chunks.c.heading,
    )
    .where(chunks.c.document.in_(IDS))
    .order_by(chunks.c.document, chunks.c.position)
)
_LACKS = select(documents.c.number).where(documents.c.collection == bindparam("of"), PENDING).limit(1)
_OWNERS = (
    select(
        *COLLECTION_COLUMNS,
        exists().where(documents.c.collection == collections.c.id, PENDING).label("lacking"),
        sources.c.id,
    )
    .join(sources, sources.c.collection == collections.c.id)
    .where(sources.c.id.in_(json_list_param("sources")))
)
"""Collections by source, and whether a chunk of theirs lacks a vector."""
_PARENTS = select(documents.c.id, documents.c.source).where(documents.c.id.in_(json_list_param("ids")))
_CHANGE = (
    update(documents)
    .where(documents.c.number == bindparam("at"))
    .values(trust=lowered_trust(documents.c.trust), origin=lowered_origin(documents.c.origin))
)
_DROP = delete(chunks).where(chunks.c.document.in_(IDS))

DeleteExtracted = Callable[[Connection, Sequence[DocumentId]], Sequence[ChangeRange]]
"""Deletes the facts that were extracted from memories. Returns the changes."""


def write(
    delete_extracted: DeleteExtracted,
    connection: Connection,
    batches: Sequence[Sequence[PreparedDocument]],
) -> list[WriteResult]:
    """Add or replace the documents of callers in order. Raises NotFound, Conflict or InvalidInput."""
    every = [prepared for batch in batches for prepared in batch]
    if not every:
        return [WriteResult(()) for _ in batches]
    for prepared in every:
        _check_spans(prepared)
    rounds: list[Applied] = []
    written: list[Written] = []
    parts = list(_rounds(every))
    for part in parts:
        plan, owners = _plan(connection, part)
        only_adds = len(parts) == 1 and all(planned.outcome == "added" for planned in plan)
        outdated = [planned.prepared.document.id for planned in plan if planned.outdates_facts]
        deleted = delete_extracted(connection, outdated) if outdated else []
        lower_edges(connection, [planned.prepared.document for planned in plan if planned.has_another_level])
        done = _apply(connection, plan, owners, only_adds=only_adds)
        done = replace(done, steps=[*deleted, *done.steps])
        rounds.append(replace(done, lacking=owners.lacking if only_adds else None))
        written += [planned.written() for planned in plan]
    made_before = appended_changes(connection)
    steps = [step for applied in rounds for step in applied.steps]
    first = rounds[0]
    changes = append(connection, steps, numbers=first.numbers, mentioned=first.mentioned, after=first.left)
    collections = {name: collection for applied in rounds for name, collection in applied.collections.items()}
    results: dict[CollectionId, WriteResult] = {}
    for name, collection in collections.items():
        change = _update_of(collection, rounds, changes.get(name, ()))
        note_update(connection, change, first=name not in made_before)
        lacking = _lacks_vectors(connection, collection, rounds)
        results[name] = WriteResult((), change, lacking, len(rounds) == 1 and name in first.mentioned)
    rest = iter(written)
    return [replace(_shared(batch, results), written=list(islice(rest, len(batch)))) for batch in batches]


def _shared(batch: Sequence[PreparedDocument], results: Mapping[CollectionId, WriteResult]) -> WriteResult:
    """Return the result of the collection that documents have in common."""
    places = {prepared.document.collection for prepared in batch}
    return results[places.pop()] if len(places) == 1 else WriteResult(())


def _update_of(collection: Collection, rounds: Sequence[Applied], changes: Sequence[Change]) -> IndexUpdate:
    """Return the effect of a write on one of its collections."""
    after = replace(collection, sequence=changes[-1].sequence) if changes else collection
    inserted_here = [
        inserted for inserted in rounds[0].inserted if inserted.placed.document.collection == collection.id
    ]

    def put() -> list[IndexedChunk]:
        return [chunk for inserted in inserted_here for chunk in inserted.chunks(collection.space)]

    is_known = len(rounds) == 1 and collection.id not in rounds[0].partial
    return IndexUpdate(after, collection.sequence, changes, put if is_known else None)


def _lacks_vectors(connection: Connection, collection: Collection, rounds: Sequence[Applied]) -> bool:
    inserted_here = (
        inserted
        for done in rounds
        for inserted in done.inserted
        if inserted.placed.document.collection == collection.id
    )
    if any(inserted.row["status"] == "pending" for inserted in inserted_here):
        return True
    lacking_collections = rounds[0].lacking
    if lacking_collections is None:
        return collection.space is not None and bool(fetch_rows(connection, _LACKS, {"of": collection.id}))
    return collection.space is not None and collection.id in lacking_collections


def _rounds(batch: Sequence[PreparedDocument]) -> Iterator[list[PreparedDocument]]:
    """Split a batch before repeated documents, so that a later version sees the earlier one."""
    current: dict[DocumentId, PreparedDocument] = {}
    for prepared in batch:
        if prepared.document.id in current or len(current) == MAX_BLOCK_VALUES:
            yield list(current.values())
            current = {}
        current[prepared.document.id] = prepared
    if current:
        yield list(current.values())


def _plan(connection: Connection, part: Sequence[PreparedDocument]) -> tuple[list[Planned], Owners]:
    """Return the planned writes, and their collections."""
    ids = [prepared.document.id for prepared in part]
    statements = [
        prepare(connection, _STORED, {"ids": json_list(ids)}),
        prepare(connection, _OWNERS, {"sources": json_list({prepared.document.source for prepared in part})}),
    ]
    known_rows, owners = execute_batch(connection, statements)
    stored = {DocumentId(name): Stored(*fields) for name, *fields in known_rows}
    collections = _check_references(connection, [prepared.document for prepared in part], stored, owners)
    for prepared in part:
        stored_version = stored.get(prepared.document.id)
        if prepared.if_match is not None and (
            stored_version is None or stored_version.fingerprint != prepared.if_match
        ):
            raise PreconditionFailed("document", prepared.document.id)
    spans = _spans(connection, part, stored)
    plan = [_planned(prepared, stored.get(prepared.document.id), spans=spans) for prepared in part]
    lacking = {row[0] for row in owners if row[-2]}
    return plan, Owners(collections, lacking, {row[0]: row[-3] for row in owners if row[-3] is not None})


def _planned(
    prepared: PreparedDocument, stored: Stored | None, *, spans: Mapping[int, Sequence[Span]]
) -> Planned:
    if stored is None:
        return Planned(prepared, stored, "added")
    prepared = at_most(prepared, (stored.origin, stored.trust))
    fresh = [
        (chunk.start, chunk.end, chunk.content_hash, chunk.page, chunk.heading) for chunk in prepared.chunks
    ]
    if spans.get(stored.number, []) != fresh or not stored.same_search_context(prepared.document):
        return Planned(prepared, stored, "replaced")
    same = stored.fingerprint == prepared.document.fingerprint
    return Planned(prepared, stored, "unchanged" if same and stored.status != "error" else "updated")


def _spans(
    connection: Connection, part: Sequence[PreparedDocument], stored: Mapping[DocumentId, Stored]
) -> Mapping[int, Sequence[Span]]:
    """Return the stored chunk ranges by document number, without documents that have no chunks."""
    stored_documents = [stored[prepared.document.id] for prepared in part if prepared.document.id in stored]
    spans: dict[int, list[Span]] = {}
    for number, *span in fetch_in_blocks(
        connection, _SPANS, [document.number for document in stored_documents]
    ):
        spans.setdefault(number, []).append(tuple(span))
    return spans


def _apply(connection: Connection, plan: Sequence[Planned], owners: Owners, *, only_adds: bool) -> Applied:
    collections = owners.collections
    for planned in plan:
        if planned.prepared.vector is not None:
            check_vector(planned.prepared.vector, collections[planned.prepared.document.collection].space)
    replaced = [planned.stored for planned in plan if planned.stored and planned.outcome == "replaced"]
    updated = [planned.stored for planned in plan if planned.stored and planned.outcome == "updated"]
    gone = [stored.number for stored in replaced]
    forget_summaries(connection, gone)
    execute_in_blocks(connection, _DROP, gone)
    fresh = [planned for planned in plan if planned.outcome in {"added", "replaced"}]
    steps = [step for stored in replaced for step in stored.step("remove")]
    # Chunks of one collection that are only added are one change.
    placed, numbers = _allocate_numbers(connection, fresh, changes=int(only_adds))
    mentioned = _mentioned(placed, owners.mentioned)
    inserted, left = _insert(connection, placed, collections, mentioned.keys())
    if not only_adds:
        execute_batch(connection, left)
        left = []
    steps += [
        ChangeRange(placed_document.document.collection, "put", placed_document.first, placed_document.last)
        for placed_document in (done.placed for done in inserted)
        if placed_document.prepared.chunks
    ]
    _update_fields(connection, [planned for planned in plan if planned.outcome == "updated"], collections)
    again = [step for stored in updated for step in stored.step("put")]
    partial = {step.collection for step in again}
    return Applied(collections, [*steps, *again], inserted, partial, numbers, mentioned, left)


def _mentioned(placed: Sequence[Placed], before: Mapping[CollectionId, int]) -> dict[CollectionId, int]:
    """Return the last chunks of collections of which every chunk has its mentions with those given."""
    last: dict[CollectionId, int | None] = {**before}
    for placed_document in placed:
        of = placed_document.document.collection
        if placed_document.prepared.chunks:
            follows = (
                placed_document.prepared.mentions is not None and last.get(of) == placed_document.first - 1
            )
            last[of] = placed_document.last if follows else None
    return {of: chunk for of, chunk in last.items() if chunk is not None and chunk != before[of]}


def _insert(
    connection: Connection,
    placed: Sequence[Placed],
    collections: CollectionsById,
    mentioned: Set[CollectionId],
) -> tuple[list[Inserted], list[PreparedStatement]]:
    """Insert new documents and chunks under their numbers; small inserts are returned."""
    spaced = [
        (placed_document, collections[placed_document.document.collection].space)
        for placed_document in placed
    ]
    rows = [
        Inserted(
            placed_document, {**document_values(placed_document.document), **placed_document.progress(space)}
        )
        for placed_document, space in spaced
    ]
    added = [
        {**inserted.row, "number": inserted.placed.number}
        for inserted in rows
        if inserted.placed.stored is None
    ]
    replaced = [
        {**_changeable(inserted.row), "at": inserted.placed.number}
        for inserted in rows
        if inserted.placed.stored is not None
    ]
    pieces = [
        chunk_values(chunk, placed_document.first + chunk.position, placed_document.number)
        for placed_document in placed
        for chunk in placed_document.prepared.chunks
    ]
    left = prepare_inserts(connection, documents, added)
    if replaced:
        execute_batch(connection, left)
        left = []
        connection.execute(_CHANGE, replaced)
    brought = [
        {"chunk": chunk, "space": space.name, "vector": vector}
        for placed_document, space in spaced
        if space is not None
        for chunk, vector in enumerate(placed_document.vectors(space), start=placed_document.first)
    ]
    for table, new in ((chunks, pieces), (vectors, brought), (mentions, _mention_rows(placed, mentioned))):
        if len(new) > MAX_SINGLE_INSERT_ROWS:
            # Documents are inserted now, because later rows refer to them.
            execute_batch(connection, left)
            left = []
        left += prepare_inserts(connection, table, new)
    return rows, left


def _mention_rows(placed: Sequence[Placed], mentioned: Set[CollectionId]) -> list[dict[str, object]]:
    return [
        mention_values(mention, chunk, placed_document.document.collection, placed_document.document.source)
        for placed_document in placed
        if placed_document.document.collection in mentioned
        for chunk, chunk_mentions in enumerate(
            placed_document.prepared.mentions or (), start=placed_document.first
        )
        for mention in chunk_mentions
    ]


def _allocate_numbers(
    connection: Connection, fresh: Sequence[Planned], *, changes: int
) -> tuple[list[Placed], Mapping[CollectionId, int]]:
    """Allocate the numbers of the documents, and of the changes of each collection."""
    by_collection: dict[CollectionId, list[Planned]] = {}
    for document in fresh:
        by_collection.setdefault(document.prepared.document.collection, []).append(document)
    amounts_by_collection = {}
    for collection, planned in by_collection.items():
        size = sum(len(document.prepared.chunks) for document in planned)
        new = sum(document.stored is None for document in planned)
        amounts_by_collection[collection] = {"chunk": size, "document": new, "change": changes if size else 0}
    first_numbers = allocate_written(connection, amounts_by_collection)
    placed = []
    for collection, planned in by_collection.items():
        chunk, number = first_numbers[collection]["chunk"], first_numbers[collection]["document"]
        for document in planned:
            document_number = number if document.stored is None else document.stored.number
            number += document.stored is None
            placed.append(Placed(document.prepared, document_number, chunk, document.stored))
            chunk += len(document.prepared.chunks)
    numbers = {
        name: first_numbers[name]["change"]
        for name, amounts in amounts_by_collection.items()
        if amounts["change"]
    }
    return placed, numbers


def _update_fields(connection: Connection, updated: Sequence[Planned], collections: CollectionsById) -> None:
    client_vectors: list[ClientVector] = []
    rows: dict[bool, list[dict[str, object]]] = {True: [], False: []}
    for planned in updated:
        if planned.stored is None:
            continue
        space = collections[planned.prepared.document.collection].space
        brought = planned.client_vector(space)
        client_vectors += [brought] if brought else []
        values = {**document_values(planned.prepared.document), **planned.progress(space, brought)}
        rows[brought is not None].append({**_changeable(values), "at": planned.stored.number})
    for alike in filter(None, rows.values()):
        connection.execute(_CHANGE, alike)
    store_vectors_with_chunks(connection, client_vectors)


def _changeable(values: Mapping[str, object]) -> dict[str, object]:
    """Return the columns of a stored document that change, with its new level apart, which only lowers it."""
    apart = {"id", "recorded", "trust", "origin"}
    levels = {"new_trust": values["trust"], "new_origin": values["origin"]}
    return {name: value for name, value in values.items() if name not in apart} | levels


def _check_references(
    connection: Connection,
    batch: Sequence[Document],
    stored: Mapping[DocumentId, Stored],
    rows: Sequence[Sequence[Any]],
) -> CollectionsById:
    """Return the rows of the collections that are written to, by their sources."""
    owners: dict[str, str] = {row[-1]: row[0] for row in rows}
    parent_ids = {document.parent for document in batch if document.parent is not None}
    parents: dict[str, str] = {}
    if parent_ids:
        parents = dict(fetch_rows(connection, _PARENTS, {"ids": json_list(parent_ids)}))
    for document in batch:
        if document.source not in owners:
            raise NotFound("source", document.source)
        if owners[document.source] != document.collection:
            raise Conflict("source", document.source, "belongs to another collection")
        stored_document = stored.get(document.id)
        if stored_document is not None and stored_document.collection != document.collection:
            raise Conflict("document", document.id, "is stored in another collection")
        if document.parent == document.id:
            raise Conflict("document", document.id, "cannot be its own parent")
        if document.parent is not None and parents.get(document.parent) != document.source:
            raise NotFound("parent document", document.parent)
        parents[document.id] = document.source
    return {row[0]: to_collection(row[:-2]) for row in rows}


def _check_spans(prepared: PreparedDocument) -> None:
    """Check that chunks cover the text from beginning to end, so that it can be restored."""
    covered = 0
    for position, chunk in enumerate(prepared.chunks):
        if chunk.position != position or chunk.start > covered or chunk.end < covered:
            raise InvalidInput("chunks", f"number {position} leaves a gap or is out of order")
        if chunk.end - chunk.start != len(chunk.text):
            raise InvalidInput("chunks", f"number {position} is not as long as its span")
        covered = chunk.end
    if prepared.chunks and covered != prepared.document.characters:
        raise InvalidInput("chunks", f"end at {covered} of {prepared.document.characters} characters")
