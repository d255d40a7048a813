"""Adding and replacing documents: a batch is written completely in one transaction, or not at all."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
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
    PreparedChunk,
    PreparedDocument,
    Written,
)
from conspectus.records.core.changes import ChangeRange, append, list_appended_changes, note_update
from conspectus.records.core.counters import allocate_written
from conspectus.records.core.dialects import json_list, json_list_param
from conspectus.records.core.embeddings import ClientVector, check_vector, store_vectors_with_chunks
from conspectus.records.core.levels import (
    lower_edges,
    lower_origin,
    lower_trust,
    with_level_at_most,
)
from conspectus.records.core.outdated_summaries import forget_summaries
from conspectus.records.core.planned_writes import (
    AppliedPlan,
    BatchCollections,
    CollectionsById,
    InsertedDocument,
    NumberedDocument,
    PlannedWrite,
    Span,
    StoredVersion,
)
from conspectus.records.core.relations import insert_relations, replace_relations
from conspectus.records.core.rows import (
    COLLECTION_COLUMNS,
    NAMES_TO,
    chunk_values,
    document_values,
    mention_values,
    to_box_text,
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
        chunks.c.table_header,
        chunks.c.box,
    )
    .where(chunks.c.document.in_(IDS))
    .order_by(chunks.c.document, chunks.c.position)
)
_ANY_PENDING = select(documents.c.number).where(documents.c.collection == bindparam("of"), PENDING).limit(1)
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
_UPDATE_DOCUMENT = (
    update(documents)
    .where(documents.c.number == bindparam("at"))
    .values(trust=lower_trust(documents.c.trust), origin=lower_origin(documents.c.origin))
)
_DELETE_CHUNKS = delete(chunks).where(chunks.c.document.in_(IDS))

DeleteExtracted = Callable[[Connection, Sequence[DocumentId]], Sequence[ChangeRange]]
"""Deletes the facts that were extracted from memories. Returns the changes."""


def write(
    delete_extracted: DeleteExtracted,
    connection: Connection,
    batches: Sequence[Sequence[PreparedDocument]],
) -> list[WriteResult]:
    """Add or replace the documents of callers in order. Raises NotFound, Conflict or InvalidInput."""
    all_prepared = [prepared for batch in batches for prepared in batch]
    if not all_prepared:
        return [WriteResult(()) for _ in batches]
    for prepared in all_prepared:
        _check_spans(prepared)
    applied_plans: list[AppliedPlan] = []
    outcomes: list[Written] = []
    rounds = list(_split_into_rounds(all_prepared))
    for prepared_documents in rounds:
        plan, batch_collections = _plan_round(connection, prepared_documents)
        only_adds = len(rounds) == 1 and all(planned.outcome == "added" for planned in plan)
        outdated = [planned.prepared.document.id for planned in plan if planned.outdates_facts]
        deleted = delete_extracted(connection, outdated) if outdated else []
        lower_edges(connection, [planned.prepared.document for planned in plan if planned.has_another_level])
        applied = _apply_plan(connection, plan, batch_collections, only_adds=only_adds)
        lacking = batch_collections.lacking if only_adds else None
        applied_plans.append(replace(applied, steps=[*deleted, *applied.steps], lacking=lacking))
        outcomes += [planned.to_written() for planned in plan]
    results = _append_changes(connection, applied_plans)
    remaining = iter(outcomes)
    return [
        replace(_result_for_batch(batch, results), written=list(islice(remaining, len(batch))))
        for batch in batches
    ]


def _append_changes(
    connection: Connection, applied_plans: Sequence[AppliedPlan]
) -> dict[CollectionId, WriteResult]:
    """Append the changes of all rounds to the log. Returns the results by collection, without outcomes."""
    appended_before = list_appended_changes(connection)
    steps = [step for applied in applied_plans for step in applied.steps]
    first = applied_plans[0]
    changes = append(
        connection,
        steps,
        numbers=first.change_numbers,
        last_mentioned=first.last_mentioned,
        after=first.pending_inserts,
    )
    collections: dict[CollectionId, Collection] = {}
    for applied in applied_plans:
        collections |= applied.collections
    results: dict[CollectionId, WriteResult] = {}
    for name, collection in collections.items():
        index_update = _index_update(collection, applied_plans, changes.get(name, ()))
        note_update(connection, index_update, first=name not in appended_before)
        lacks_vectors = _lacks_vectors(connection, collection, applied_plans)
        has_mentions = len(applied_plans) == 1 and name in first.last_mentioned
        results[name] = WriteResult((), index_update, lacks_vectors, has_mentions)
    return results


def _result_for_batch(
    batch: Sequence[PreparedDocument], results: Mapping[CollectionId, WriteResult]
) -> WriteResult:
    """Return the result of the only collection of a batch; an empty one for several collections."""
    collections = {prepared.document.collection for prepared in batch}
    return results[collections.pop()] if len(collections) == 1 else WriteResult(())


def _index_update(
    collection: Collection, applied_plans: Sequence[AppliedPlan], changes: Sequence[Change]
) -> IndexUpdate:
    """Return the effect of a write on one of its collections."""
    after = replace(collection, sequence=changes[-1].sequence) if changes else collection
    first = applied_plans[0]
    inserted_here = [
        inserted for inserted in first.inserted if inserted.numbered.document.collection == collection.id
    ]

    def collect_inserted_chunks() -> list[IndexedChunk]:
        return [chunk for inserted in inserted_here for chunk in inserted.chunks(collection.space)]

    is_known = len(applied_plans) == 1 and collection.id not in first.partial
    return IndexUpdate(after, collection.sequence, changes, collect_inserted_chunks if is_known else None)


def _lacks_vectors(
    connection: Connection, collection: Collection, applied_plans: Sequence[AppliedPlan]
) -> bool:
    inserted_here = (
        inserted
        for applied in applied_plans
        for inserted in applied.inserted
        if inserted.numbered.document.collection == collection.id
    )
    if any(inserted.row["status"] == "pending" for inserted in inserted_here):
        return True
    if collection.space is None:
        return False
    lacking_collections = applied_plans[0].lacking
    if lacking_collections is None:
        return bool(fetch_rows(connection, _ANY_PENDING, {"of": collection.id}))
    return collection.id in lacking_collections


def _split_into_rounds(batch: Sequence[PreparedDocument]) -> Iterator[list[PreparedDocument]]:
    """Split a batch before repeated documents, so that a later version sees the earlier one."""
    current: dict[DocumentId, PreparedDocument] = {}
    for prepared in batch:
        if prepared.document.id in current or len(current) == MAX_BLOCK_VALUES:
            yield list(current.values())
            current = {}
        current[prepared.document.id] = prepared
    if current:
        yield list(current.values())


def _plan_round(
    connection: Connection, batch: Sequence[PreparedDocument]
) -> tuple[list[PlannedWrite], BatchCollections]:
    """Return the planned writes, and their collections."""
    ids = [prepared.document.id for prepared in batch]
    source_ids = {prepared.document.source for prepared in batch}
    statements = [
        prepare(connection, _STORED, {"ids": json_list(ids)}),
        prepare(connection, _OWNERS, {"sources": json_list(source_ids)}),
    ]
    stored_rows, owner_rows = execute_batch(connection, statements)
    stored = {DocumentId(name): StoredVersion(*fields) for name, *fields in stored_rows}
    _check_references(connection, [prepared.document for prepared in batch], stored, owner_rows)
    for prepared in batch:
        stored_version = stored.get(prepared.document.id)
        fingerprint = None if stored_version is None else stored_version.fingerprint
        if prepared.if_match is not None and fingerprint != prepared.if_match:
            raise PreconditionFailed("document", prepared.document.id)
    spans = _read_spans(connection, stored.values())
    plan = [_plan_write(prepared, stored.get(prepared.document.id), spans=spans) for prepared in batch]
    return plan, _batch_collections(owner_rows)


def _batch_collections(owner_rows: Sequence[Sequence[Any]]) -> BatchCollections:
    """Convert rows of `_OWNERS`."""
    collections: dict[CollectionId, Collection] = {}
    lacking: set[CollectionId] = set()
    last_mentioned: dict[CollectionId, int] = {}
    for *columns, is_lacking, _ in owner_rows:
        collection = to_collection(columns)
        collections[collection.id] = collection
        if is_lacking:
            lacking.add(collection.id)
        names_to = columns[NAMES_TO]
        if names_to is not None:
            last_mentioned[collection.id] = names_to
    return BatchCollections(collections, lacking, last_mentioned)


def _span_of(chunk: PreparedChunk) -> Span:
    """Return what a chunk is compared with the stored one by."""
    where = (chunk.page, chunk.heading, chunk.table_header, to_box_text(chunk.box))
    return chunk.start, chunk.end, chunk.content_hash, *where


def _plan_write(
    prepared: PreparedDocument, stored: StoredVersion | None, *, spans: Mapping[int, Sequence[Span]]
) -> PlannedWrite:
    if stored is None:
        return PlannedWrite(prepared, stored, "added")
    prepared = with_level_at_most(prepared, (stored.origin, stored.trust))
    new_spans = list(map(_span_of, prepared.chunks))
    if spans.get(stored.number, []) != new_spans or not stored.same_search_context(prepared.document):
        return PlannedWrite(prepared, stored, "replaced")
    is_same = stored.fingerprint == prepared.document.fingerprint
    return PlannedWrite(prepared, stored, "unchanged" if is_same and stored.status != "error" else "updated")


def _read_spans(
    connection: Connection, stored_versions: Iterable[StoredVersion]
) -> Mapping[int, Sequence[Span]]:
    """Return the stored chunk ranges by document number, without documents that have no chunks."""
    spans: dict[int, list[Span]] = {}
    numbers = [stored.number for stored in stored_versions]
    for number, *span in fetch_in_blocks(connection, _SPANS, numbers):
        spans.setdefault(number, []).append(tuple(span))
    return spans


def _apply_plan(
    connection: Connection,
    plan: Sequence[PlannedWrite],
    batch_collections: BatchCollections,
    *,
    only_adds: bool,
) -> AppliedPlan:
    collections = batch_collections.collections
    for planned in plan:
        if planned.prepared.vector is not None:
            check_vector(planned.prepared.vector, collections[planned.prepared.document.collection].space)
    replaced = [planned.stored for planned in plan if planned.stored and planned.outcome == "replaced"]
    updated = [planned.stored for planned in plan if planned.stored and planned.outcome == "updated"]
    replaced_numbers = [stored.number for stored in replaced]
    forget_summaries(connection, replaced_numbers)
    execute_in_blocks(connection, _DELETE_CHUNKS, replaced_numbers)
    removals = [change for stored in replaced for change in stored.chunk_changes("remove")]
    to_insert = [planned for planned in plan if planned.outcome in {"added", "replaced"}]
    # Chunks of one collection that are only added are one change.
    numbered_documents, change_numbers = _allocate_numbers(connection, to_insert, changes=int(only_adds))
    last_mentioned = _find_last_mentioned(numbered_documents, batch_collections.last_mentioned)
    inserted, pending_inserts = _insert(connection, numbered_documents, collections, last_mentioned.keys())
    added = [(numbered.number, numbered.prepared) for numbered in numbered_documents if not numbered.stored]
    if any(prepared.names or prepared.statements for _, prepared in added):
        # Documents are inserted now, because these rows refer to them.
        execute_batch(connection, pending_inserts)
        pending_inserts = []
        insert_relations(connection, added)
    if not only_adds:
        execute_batch(connection, pending_inserts)
        pending_inserts = []
    additions = [
        ChangeRange(numbered.document.collection, "put", numbered.first, numbered.last)
        for numbered in numbered_documents
        if numbered.prepared.chunks
    ]
    _update_fields(connection, [planned for planned in plan if planned.outcome == "updated"], collections)
    replace_relations(
        connection,
        [
            (planned.stored.number, planned.prepared)
            for planned in plan
            if planned.stored and planned.outcome in {"replaced", "updated"}
        ],
    )
    updates = [change for stored in updated for change in stored.chunk_changes("put")]
    return AppliedPlan(
        collections=collections,
        steps=[*removals, *additions, *updates],
        inserted=inserted,
        partial={change.collection for change in updates},
        change_numbers=change_numbers,
        last_mentioned=last_mentioned,
        pending_inserts=pending_inserts,
    )


def _find_last_mentioned(
    numbered_documents: Sequence[NumberedDocument], before: Mapping[CollectionId, int]
) -> dict[CollectionId, int]:
    """Return the new last chunks up to which all chunks of a collection have their mentions.

    A collection keeps its mark only while new chunks follow it directly and bring their mentions along.
    """
    last: dict[CollectionId, int | None] = {**before}
    for numbered in numbered_documents:
        if not numbered.prepared.chunks:
            continue
        collection = numbered.document.collection
        follows = last.get(collection) == numbered.first - 1
        has_mentions = numbered.prepared.mentions is not None
        last[collection] = numbered.last if follows and has_mentions else None
    return {
        collection: chunk
        for collection, chunk in last.items()
        if chunk is not None and chunk != before[collection]
    }


def _insert(
    connection: Connection,
    numbered_documents: Sequence[NumberedDocument],
    collections: CollectionsById,
    mentioned: Set[CollectionId],
) -> tuple[list[InsertedDocument], list[PreparedStatement]]:
    """Insert new documents and chunks under their numbers; small inserts are returned."""
    inserted: list[InsertedDocument] = []
    added_rows: list[dict[str, object]] = []
    replaced_rows: list[dict[str, object]] = []
    chunk_rows: list[dict[str, object]] = []
    vector_rows: list[dict[str, object]] = []
    for numbered in numbered_documents:
        space = collections[numbered.document.collection].space
        row = {**document_values(numbered.document), **numbered.progress(space)}
        inserted.append(InsertedDocument(numbered, row))
        if numbered.stored is None:
            added_rows.append({**row, "number": numbered.number})
        else:
            replaced_rows.append({**_select_updated_columns(row), "at": numbered.number})
        chunk_rows += [
            chunk_values(chunk, numbered.first + chunk.position, numbered.number)
            for chunk in numbered.prepared.chunks
        ]
        if space is not None:
            vector_rows += [
                {"chunk": chunk, "space": space.name, "vector": vector}
                for chunk, vector in enumerate(numbered.vectors(space), start=numbered.first)
            ]
    pending_inserts = prepare_inserts(connection, documents, added_rows)
    if replaced_rows:
        execute_batch(connection, pending_inserts)
        pending_inserts = []
        connection.execute(_UPDATE_DOCUMENT, replaced_rows)
    rows_by_table = {
        chunks: chunk_rows,
        vectors: vector_rows,
        mentions: _mention_rows(numbered_documents, mentioned),
    }
    for table, rows in rows_by_table.items():
        if len(rows) > MAX_SINGLE_INSERT_ROWS:
            # Documents are inserted now, because later rows refer to them.
            execute_batch(connection, pending_inserts)
            pending_inserts = []
        pending_inserts += prepare_inserts(connection, table, rows)
    return inserted, pending_inserts


def _mention_rows(
    numbered_documents: Sequence[NumberedDocument], mentioned: Set[CollectionId]
) -> list[dict[str, object]]:
    rows = []
    for numbered in numbered_documents:
        document = numbered.document
        if document.collection not in mentioned:
            continue
        for number, chunk_mentions in enumerate(numbered.prepared.mentions or (), start=numbered.first):
            for mention in chunk_mentions:
                rows.append(mention_values(mention, number, document.collection, document.source))
    return rows


def _allocate_numbers(
    connection: Connection, to_insert: Sequence[PlannedWrite], *, changes: int
) -> tuple[list[NumberedDocument], Mapping[CollectionId, int]]:
    """Allocate the numbers of the documents, and of the changes of each collection."""
    plan_by_collection: dict[CollectionId, list[PlannedWrite]] = {}
    for planned in to_insert:
        plan_by_collection.setdefault(planned.prepared.document.collection, []).append(planned)
    amounts_by_collection = {}
    for collection, plan in plan_by_collection.items():
        new_chunks = sum(len(planned.prepared.chunks) for planned in plan)
        new_documents = sum(planned.stored is None for planned in plan)
        amounts_by_collection[collection] = {
            "chunk": new_chunks,
            "document": new_documents,
            "change": changes if new_chunks else 0,
        }
    first_numbers = allocate_written(connection, amounts_by_collection)
    numbered_documents = []
    for collection, plan in plan_by_collection.items():
        chunk, new_number = first_numbers[collection]["chunk"], first_numbers[collection]["document"]
        for planned in plan:
            number = new_number if planned.stored is None else planned.stored.number
            new_number += planned.stored is None
            numbered_documents.append(NumberedDocument(planned.prepared, number, chunk, planned.stored))
            chunk += len(planned.prepared.chunks)
    change_numbers = {
        collection: first_numbers[collection]["change"]
        for collection, amounts in amounts_by_collection.items()
        if amounts["change"]
    }
    return numbered_documents, change_numbers


def _update_fields(
    connection: Connection, updated: Sequence[PlannedWrite], collections: CollectionsById
) -> None:
    client_vectors: list[ClientVector] = []
    rows: list[dict[str, object]] = []
    rows_with_vectors: list[dict[str, object]] = []
    for planned in updated:
        if planned.stored is None:
            continue
        space = collections[planned.prepared.document.collection].space
        client_vector = planned.client_vector(space)
        values = {**document_values(planned.prepared.document), **planned.progress(space, client_vector)}
        row = {**_select_updated_columns(values), "at": planned.stored.number}
        if client_vector is None:
            rows.append(row)
        else:
            client_vectors.append(client_vector)
            rows_with_vectors.append(row)
    # The rows of a statement must have equal columns, and those with vectors have one more.
    for rows_alike in (rows_with_vectors, rows):
        if rows_alike:
            connection.execute(_UPDATE_DOCUMENT, rows_alike)
    store_vectors_with_chunks(connection, client_vectors)


def _select_updated_columns(values: Mapping[str, object]) -> dict[str, object]:
    """Return the columns of a stored document that change, with its new level apart, which only lowers it."""
    unchanged = {"id", "recorded", "trust", "origin"}
    levels = {"new_trust": values["trust"], "new_origin": values["origin"]}
    return {name: value for name, value in values.items() if name not in unchanged} | levels


def _check_references(
    connection: Connection,
    batch: Sequence[Document],
    stored: Mapping[DocumentId, StoredVersion],
    owner_rows: Sequence[Sequence[Any]],
) -> None:
    """Raise NotFound or Conflict unless sources, collections and parents of documents fit together."""
    collections_by_source: dict[str, str] = {row[-1]: row[0] for row in owner_rows}
    parent_ids = {document.parent for document in batch if document.parent is not None}
    sources_by_parent: dict[str, str] = {}
    if parent_ids:
        sources_by_parent = dict(fetch_rows(connection, _PARENTS, {"ids": json_list(parent_ids)}))
    for document in batch:
        if document.source not in collections_by_source:
            raise NotFound("source", document.source)
        if collections_by_source[document.source] != document.collection:
            raise Conflict("source", document.source, "belongs to another collection")
        stored_version = stored.get(document.id)
        if stored_version is not None and stored_version.collection != document.collection:
            raise Conflict("document", document.id, "is stored in another collection")
        if document.parent == document.id:
            raise Conflict("document", document.id, "cannot be its own parent")
        if document.parent is not None and sources_by_parent.get(document.parent) != document.source:
            raise NotFound("parent document", document.parent)
        sources_by_parent[document.id] = document.source


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
