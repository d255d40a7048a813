"""Writes of the pgvector index: the statements of a draft, and merges of batches."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from psycopg.types.numeric import Int4

from conspectus.deferred import dataclass
from conspectus.index.changes import Range
from conspectus.index.pgvector.database import Rows
from conspectus.index.pgvector.drafts import PgvectorDraft
from conspectus.index.pgvector.inserts import FEW, insert_rows
from conspectus.index.pgvector.postings import pack_postings
from conspectus.index.pgvector.rows import Prepared, to_binary
from conspectus.index.pgvector.state import PgvectorState
from conspectus.index.pgvector.tables import COLUMNS, KINDS, Tables

MERGED_FROM = 16
"""Number of batches of one level that are merged into one of the next level."""


@dataclass(frozen=True, slots=True)
class _Old:
    """A row that a write replaces or deletes."""

    chunk: int
    row: int
    words: int
    vector: int | None
    length: int
    in_thread: bool
    odd: bool


def write(cursor: Rows, tables: Tables, state: PgvectorState, draft: PgvectorDraft) -> PgvectorState:
    """Write a draft in the transaction of the cursor. Returns the new state."""
    old = {old_row.chunk: old_row for old_row in _delete_rows(cursor, tables, draft.ranges)}
    numbered, end = _number_rows(draft, old, state.rows)
    fresh = {row: prepared for row, prepared in numbered.items() if row >= state.rows}
    version = state.version + 1
    gone = [old_row.row for old_row in old.values() if old_row.row not in numbered]
    if gone:
        cursor.execute(f"INSERT INTO {tables.dead} SELECT %s, unnest(%s::integer[])", (version, gone))
    loose = _put_vectors(cursor, tables, numbered, old, version=version)
    insert_rows(cursor, tables.rows, [KINDS[name] for name in COLUMNS], list(_table_rows(numbered)), COLUMNS)
    if fresh:
        _put_words(cursor, tables, fresh, end)
    _put_values(cursor, tables, draft.rows.values())
    return replace(_update_counts(state, draft, old.values(), version, end), loose=state.loose + loose)


def merge(cursor: Rows, tables: Tables) -> None:
    """Merge batches, so that a query reads few. Row numbers do not change."""
    level = 0
    while True:
        cursor.execute(
            f"SELECT min(first), max(last), count(*) FROM {tables.batches} WHERE level = %s", (level,)
        )
        first, last, count = cursor.fetchone() or (0, 0, 0)
        if count < MERGED_FROM:
            return
        level += 1
        parameters = {"first": first, "last": last, "level": level}
        cursor.execute(_MERGED_POSTINGS.format(table=tables.postings), parameters)
        cursor.execute(_MERGED_BATCHES.format(table=tables.batches), parameters)


_MERGED_POSTINGS = """
WITH gone AS (
    DELETE FROM {table} WHERE first BETWEEN %(first)s AND %(last)s RETURNING first, term, rows, counts
)
INSERT INTO {table} (first, term, rows, counts)
SELECT %(first)s, term, string_agg(rows, '' ORDER BY first), string_agg(counts, '' ORDER BY first)
FROM gone GROUP BY term
"""
_MERGED_BATCHES = """
WITH gone AS (
    DELETE FROM {table} WHERE first BETWEEN %(first)s AND %(last)s RETURNING first, chunks, lengths
)
INSERT INTO {table} (first, last, level, chunks, lengths)
SELECT %(first)s, %(last)s, %(level)s,
    string_agg(chunks, '' ORDER BY first), string_agg(lengths, '' ORDER BY first)
FROM gone
"""


def _delete_rows(cursor: Rows, tables: Tables, ranges: Sequence[Range]) -> list[_Old]:
    if not ranges:
        return []
    cursor.execute(
        f"DELETE FROM {tables.rows} r USING unnest(%s::bigint[], %s::bigint[]) AS gone (first, last)"
        " WHERE r.chunk BETWEEN gone.first AND gone.last"
        " RETURNING r.chunk, r.row, r.words, r.vector, r.length, r.thread IS NOT NULL, r.odd IS NOT NULL",
        ([first for first, _ in ranges], [last for _, last in ranges]),
    )
    return [_Old(*row) for row in cursor]


def _number_rows(draft: PgvectorDraft, old: Mapping[int, _Old], end: int) -> tuple[dict[int, Prepared], int]:
    """Number the rows: the number of the replaced row if its terms are equal, else a new one."""
    numbered = {}
    for chunk in sorted(draft.rows):
        prepared, before = draft.rows[chunk], old.get(chunk)
        if before is not None and before.words == prepared.columns["words"]:
            numbered[before.row] = prepared
        else:
            numbered[end] = prepared
            end += 1
    return numbered, end


def _put_vectors(
    cursor: Rows, tables: Tables, numbered: Mapping[int, Prepared], old: Mapping[int, _Old], *, version: int
) -> int:
    """Write new and changed vectors. Returns the number written."""
    if not tables.dimensions:
        return 0
    stored = {old_row.row: old_row.vector for old_row in old.values() if old_row.vector is not None}
    vectors = {
        row: prepared.columns["vector"] for row, prepared in numbered.items() if prepared.vector is not None
    }
    gone = [row for row, vector in stored.items() if vectors.get(row) != vector]
    if gone:
        cursor.execute(f"DELETE FROM {tables.vectors} WHERE row = ANY(%s::integer[])", (gone,))
    changed = [row for row in vectors if stored.get(row) != vectors[row]]
    fresh = [(row, version, to_binary(numbered[row].vector or b"")) for row in changed]
    insert_rows(cursor, tables.vectors, ["integer", "bigint", "halfvec"], fresh, ("row", "version", "vector"))
    return len(fresh)


def _put_words(cursor: Rows, tables: Tables, fresh: Mapping[int, Prepared], end: int) -> None:
    first = end - len(fresh)
    chunks = array("q", (prepared.chunk for prepared in fresh.values())).tobytes()
    lengths = array("I", (prepared.length for prepared in fresh.values())).tobytes()
    cursor.execute(
        f"INSERT INTO {tables.batches} VALUES (%s, %s, 0, %s, %s)", (first, end - 1, chunks, lengths)
    )
    postings = pack_postings({row: prepared.counts for row, prepared in fresh.items()})
    if not postings:
        return
    if len(fresh) <= FEW:
        statement = (
            f"INSERT INTO {tables.postings} SELECT %s, * FROM unnest(%s::bytea[], %s::bytea[], %s::bytea[])"
        )
        cursor.execute(statement, (Int4(first), *map(list, zip(*postings, strict=True))))
        return
    kinds, names = ["integer", "bytea", "bytea", "bytea"], ("first", "term", "rows", "counts")
    insert_rows(cursor, tables.postings, kinds, [(first, *posting) for posting in postings], names)


def _put_values(cursor: Rows, tables: Tables, rows: Iterable[Prepared]) -> None:
    values = {value.fact: value for row in rows for value in row.facts.values}
    if values:
        listed = list(values.values())
        cursor.execute(
            f"INSERT INTO {tables.values} SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::numeric[],"
            " %s::bytea[], %s::bigint[], %s::smallint[]) ON CONFLICT DO NOTHING",
            (
                [value.fact for value in listed],
                [value.path for value in listed],
                [value.number for value in listed],
                [value.text for value in listed],
                [value.moment for value in listed],
                [value.truth for value in listed],
            ),
        )


def _table_rows(numbered: Mapping[int, Prepared]) -> Iterable[tuple[Any, ...]]:
    for row, prepared in numbered.items():
        columns = {**prepared.columns, "row": row}
        yield tuple(columns[name] for name in COLUMNS)


def _update_counts(
    state: PgvectorState, draft: PgvectorDraft, old: Iterable[_Old], version: int, end: int
) -> PgvectorState:
    """Return the counts of the new state."""
    old, rows = list(old), draft.rows.values()
    return replace(
        state,
        version=version,
        applied=max(state.applied, draft.applied),
        rows=end,
        total=state.total + len(rows) - len(old),
        length=state.length + sum(row.length for row in rows) - sum(old_row.length for old_row in old),
        vectors=state.vectors
        + sum(row.vector is not None for row in rows)
        - sum(old_row.vector is not None for old_row in old),
        threads=state.threads
        + sum(row.columns["thread"] is not None for row in rows)
        - sum(old_row.in_thread for old_row in old),
        odd=state.odd
        + sum(row.columns["odd"] is not None for row in rows)
        - sum(old_row.odd for old_row in old),
        replaced=state.replaced + len(old),
    )
