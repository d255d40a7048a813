"""Taking changes into the tables: what is out of date goes, what is new comes, and the state says so."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from conspectus.index.changes import Range
from conspectus.index.pgvector.database import Rows
from conspectus.index.pgvector.postings import packed
from conspectus.index.pgvector.rows import Prepared, sent
from conspectus.index.pgvector.state import PgvectorState
from conspectus.index.pgvector.tables import COLUMNS, KINDS, Tables

MERGED_FROM = 16
"""So many batches of a level become one of the next."""


@dataclass(slots=True)
class PgvectorDraft:
    """What is to be written: rows in place of all that was in certain ranges, up to a change."""

    applied: int
    ranges: Sequence[Range] = ()
    rows: dict[int, Prepared] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Old:
    chunk: int
    row: int
    words: int
    vector: int | None
    length: int
    in_thread: bool
    odd: bool


def write(cursor: Rows, tables: Tables, state: PgvectorState, draft: PgvectorDraft) -> PgvectorState:
    """The state after a draft; it has to be written, in the same transaction."""
    old = {each.chunk: each for each in _taken_out(cursor, tables, draft.ranges)}
    numbered, end = _numbered(draft, old, state.rows)
    fresh = {row: prepared for row, prepared in numbered.items() if row >= state.rows}
    version = state.version + 1
    gone = [each.row for each in old.values() if each.row not in numbered]
    if gone:
        cursor.execute(f"INSERT INTO {tables.dead} SELECT %s, unnest(%s::integer[])", (version, gone))
    loose = _put_vectors(cursor, tables, numbered, old, version=version)
    _copy(cursor, tables.rows, [KINDS[name] for name in COLUMNS], _table_rows(numbered), COLUMNS)
    if fresh:
        _put_words(cursor, tables, fresh, end)
    _put_values(cursor, tables, draft.rows.values())
    return replace(_counted(state, draft, old.values(), version, end), loose=state.loose + loose)


def merge(cursor: Rows, tables: Tables) -> None:
    """Make one batch of many, so that a question reads few; every row keeps its number."""
    level = 0
    while True:
        cursor.execute(
            f"SELECT min(first), max(last), count(*) FROM {tables.batches} WHERE level = %s", (level,)
        )
        first, last, count = cursor.fetchone() or (0, 0, 0)
        if count < MERGED_FROM:
            return
        level += 1
        given = {"first": first, "last": last, "level": level}
        cursor.execute(_MERGED_POSTINGS.format(table=tables.postings), given)
        cursor.execute(_MERGED_BATCHES.format(table=tables.batches), given)


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


def _taken_out(cursor: Rows, tables: Tables, ranges: Sequence[Range]) -> list[_Old]:
    if not ranges:
        return []
    cursor.execute(
        f"DELETE FROM {tables.rows} r USING unnest(%s::bigint[], %s::bigint[]) AS gone (first, last)"
        " WHERE r.chunk BETWEEN gone.first AND gone.last"
        " RETURNING r.chunk, r.row, r.words, r.vector, r.length, r.thread IS NOT NULL, r.odd IS NOT NULL",
        ([first for first, _ in ranges], [last for _, last in ranges]),
    )
    return [_Old(*row) for row in cursor]


def _numbered(draft: PgvectorDraft, old: Mapping[int, _Old], end: int) -> tuple[dict[int, Prepared], int]:
    """Each row under its number: that of the row it replaces if the words are the same, else a new one."""
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
    """Write what is new, and say how many that were."""
    if not tables.dimensions:
        return 0
    stored = {each.row: each.vector for each in old.values() if each.vector is not None}
    wanted = {row: each.columns["vector"] for row, each in numbered.items() if each.vector is not None}
    gone = [row for row, vector in stored.items() if wanted.get(row) != vector]
    if gone:
        cursor.execute(f"DELETE FROM {tables.vectors} WHERE row = ANY(%s::integer[])", (gone,))
    changed = [row for row in wanted if stored.get(row) != wanted[row]]
    fresh = [(row, version, sent(numbered[row].vector or b"")) for row in changed]
    _copy(cursor, tables.vectors, ["integer", "bigint", "bytea"], fresh, ("row", "version", "vector"))
    return len(fresh)


def _put_words(cursor: Rows, tables: Tables, fresh: Mapping[int, Prepared], end: int) -> None:
    first = end - len(fresh)
    chunks = array("q", (each.chunk for each in fresh.values())).tobytes()
    lengths = array("I", (each.length for each in fresh.values())).tobytes()
    cursor.execute(
        f"INSERT INTO {tables.batches} VALUES (%s, %s, 0, %s, %s)", (first, end - 1, chunks, lengths)
    )
    postings = packed({row: each.counts for row, each in fresh.items()})
    kinds, names = ["integer", "bytea", "bytea", "bytea"], ("first", "term", "rows", "counts")
    _copy(cursor, tables.postings, kinds, [(first, *posting) for posting in postings], names)


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


def _copy(
    cursor: Rows, table: str, kinds: Sequence[str], rows: Iterable[tuple[Any, ...]], names: Sequence[str]
) -> None:
    statement = f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
    with cursor.copy(statement) as copy:
        copy.set_types(kinds)
        for row in rows:
            copy.write_row(row)


def _counted(
    state: PgvectorState, draft: PgvectorDraft, old: Iterable[_Old], version: int, end: int
) -> PgvectorState:
    """The numbers of the new state."""
    old, rows = list(old), draft.rows.values()
    return replace(
        state,
        version=version,
        applied=max(state.applied, draft.applied),
        rows=end,
        total=state.total + len(rows) - len(old),
        length=state.length + sum(row.length for row in rows) - sum(each.length for each in old),
        vectors=state.vectors
        + sum(row.vector is not None for row in rows)
        - sum(each.vector is not None for each in old),
        threads=state.threads
        + sum(row.columns["thread"] is not None for row in rows)
        - sum(each.in_thread for each in old),
        odd=state.odd + sum(row.columns["odd"] is not None for row in rows) - sum(each.odd for each in old),
        replaced=state.replaced + len(old),
    )
