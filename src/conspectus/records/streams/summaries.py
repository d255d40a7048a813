"""Stored summaries of captions."""

import json
from collections.abc import Collection, Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select

from conspectus.errors import NotFound, PreconditionFailed
from conspectus.model.ids import DocumentId, SourceId, UserId
from conspectus.model.records import EmbeddingSpace
from conspectus.ports.streams import NewSummary, SavedSummary, SummaryBounds
from conspectus.records.core.rows import columns_of
from conspectus.records.core.statements import IDS, execute_in_blocks, fetch_in_blocks, insert_rows
from conspectus.records.core.store_methods import SqlStore, reading, writing
from conspectus.records.tables.core import chunks, documents, sources, vectors
from conspectus.records.tables.streams import (
    standing_summaries,
    summaries,
    summary_borders,
    summary_captions,
    summary_parts,
)
from conspectus.text.times import from_microseconds

_CAPTIONS = select(documents.c.id, documents.c.number, documents.c.fingerprint).where(
    documents.c.id.in_(IDS), documents.c.source == bindparam("source")
)
_PARTS = select(summaries.c.id).where(summaries.c.id.in_(IDS))
_VECTORS = (
    select(documents.c.id, vectors.c.vector)
    .select_from(documents.join(chunks, chunks.c.document == documents.c.number))
    .join(vectors, vectors.c.chunk == chunks.c.id)
    .where(documents.c.id.in_(IDS), chunks.c.position == 0, vectors.c.space == bindparam("space"))
)
_DELETE = delete(summaries).where(summaries.c.id.in_(IDS))
_DROP_BORDER = delete(summary_borders).where(
    summary_borders.c.source == bindparam("source"),
    summary_borders.c.recipe == bindparam("recipe"),
    summary_borders.c.first == bindparam("at"),
    summary_borders.c.first_id == bindparam("at_id"),
)


def _text(connection: Connection, summary: str) -> str | None:
    """Return the summary of that id."""
    text: str | None = connection.execute(select(summaries.c.text).where(summaries.c.id == summary)).scalar()
    return text


def _find_stored(connection: Connection, summaries: Sequence[str]) -> set[str]:
    """Return those of the ids that are stored."""
    return {row.id for row in fetch_in_blocks(connection, _PARTS, summaries)}


def _add(connection: Connection, source: SourceId, summary: NewSummary) -> None:
    if _text(connection, summary.id) is not None:
        return
    made_of = dict(summary.captions)
    captions = fetch_in_blocks(connection, _CAPTIONS, made_of, source=source)
    numbers = [row.number for row in captions if row.fingerprint == made_of[row.id]]
    parts = _find_stored(connection, summary.parts)
    if len(numbers) < len(made_of) or len(parts) < len(summary.parts):
        raise PreconditionFailed("stream", source)
    stored = {"id": summary.id, "source": source, "recipe": summary.recipe, "text": summary.text}
    connection.execute(insert(summaries), stored)
    of_captions = [{"summary": summary.id, "document": number} for number in numbers]
    of_parts = [{"summary": summary.id, "part": part} for part in parts]
    insert_rows(connection, summary_captions, of_captions)
    insert_rows(connection, summary_parts, of_parts)


def _borders(connection: Connection, source: SourceId, recipe: str) -> list[SummaryBounds]:
    """Return the boundaries of the batches of a request, in order."""
    of_request = (summary_borders.c.source == source, summary_borders.c.recipe == recipe)
    ordered = select(summary_borders).where(*of_request)
    ordered = ordered.order_by(summary_borders.c.first, summary_borders.c.first_id)
    return [
        SummaryBounds((row.first, row.first_id), (row.last, row.last_id), bool(row.full))
        for row in connection.execute(ordered)
    ]


def _set_boundaries(
    connection: Connection, source: SourceId, recipe: str, borders: Sequence[SummaryBounds]
) -> None:
    before, after = set(_borders(connection, source, recipe)), set(borders)
    request_key = {"source": source, "recipe": recipe}
    gone = [{**request_key, "at": bounds.first[0], "at_id": bounds.first[1]} for bounds in before - after]
    fresh = [
        {
            **request_key,
            "first": bounds.first[0],
            "first_id": bounds.first[1],
            "last": bounds.last[0],
            "last_id": bounds.last[1],
            "full": int(bounds.full),
        }
        for bounds in after - before
    ]
    for statement, rows in ((_DROP_BORDER, gone), (insert(summary_borders), fresh)):
        if rows:
            connection.execute(statement, rows)


def _tidy(connection: Connection, source: SourceId, recipe: str, used: Collection[str]) -> int:
    of_request = (summaries.c.source == source, summaries.c.recipe == recipe)
    stored = connection.execute(select(summaries.c.id).where(*of_request)).scalars()
    stale = [summary for summary in stored if summary not in used]
    execute_in_blocks(connection, _DELETE, stale)
    return len(stale)


def _vectors(
    connection: Connection, documents: Sequence[DocumentId], space: EmbeddingSpace
) -> dict[DocumentId, bytes]:
    rows = fetch_in_blocks(connection, _VECTORS, documents, space=space.name)
    return {DocumentId(row.id): row.vector for row in rows}


def _find_standing(connection: Connection, source: SourceId) -> SavedSummary | None:
    of_stream = standing_summaries.c.source == source
    row = connection.execute(select(standing_summaries).where(of_stream)).first()
    if row is None:
        return None
    return SavedSummary(UserId(row.owner), json.loads(row.request), from_microseconds(row.since))


def _set_standing(connection: Connection, source: SourceId, standing: SavedSummary | None) -> None:
    connection.execute(delete(standing_summaries).where(standing_summaries.c.source == source))
    if standing is None:
        return
    if connection.execute(select(sources.c.id).where(sources.c.id == source)).first() is None:
        raise NotFound("source", source)
    connection.execute(insert(standing_summaries), {"source": source, **columns_of(standing)})


class SqlSummaries(SqlStore):
    """The methods of the port `Summaries`, each as one transaction; see the port for their docs."""

    text = reading(_text)
    select_stored = reading(_find_stored)
    add = writing(_add, rows=sources)
    borders = reading(_borders)
    set_boundaries = writing(_set_boundaries, rows=sources)
    tidy = writing(_tidy, rows=sources)
    vectors = reading(_vectors)
    get_live_summary = reading(_find_standing)
    set_live_summary = writing(_set_standing, rows=sources)
