"""Copies of the tables of a pgvector index without what deleted and undone writes left in them.

New tables hold only rows that are alive. A rewrite by `VACUUM FULL` keeps rows that an open transaction may
still see, and needs a new HNSW graph, which takes most of the time of a build. The graph of a copy is built
in the background; until then vectors are scanned.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from conspectus.index.pgvector.database import Rows, rows_of
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.index.pgvector.state import PgvectorState, write_state
from conspectus.index.pgvector.tables import COLUMNS, Tables

_BATCHES_WITH_DEAD_ROWS = """
SELECT first, last FROM {batches} b WHERE EXISTS (SELECT FROM {dead} d WHERE d.row BETWEEN b.first AND b.last)
"""
_COPY_USED_VALUES = """
INSERT INTO {after} SELECT * FROM {before} WHERE fact IN (SELECT unnest(facts) FROM {rows})
"""


def compact(
    options: PgvectorOptions, state: PgvectorState, generation: int, connection: Connection
) -> PgvectorState:
    """Copy everything that is alive to the tables of a new generation. The caller excludes other writers."""
    cursor = rows_of(connection)
    compacted = replace(state, generation=generation, graph=0, loose=state.vectors, replaced=0)
    before, after = options.tables(state), options.tables(compacted)
    after.create(cursor)
    columns = ", ".join(COLUMNS)
    cursor.execute(f"INSERT INTO {after.rows} ({columns}) SELECT {columns} FROM {before.rows}")
    cursor.execute(f"INSERT INTO {after.dead} SELECT * FROM {before.dead}")
    cursor.execute(f"INSERT INTO {after.batches} SELECT * FROM {before.batches}")
    cursor.execute(_COPY_USED_VALUES.format(before=before.values, after=after.values, rows=after.rows))
    if options.dimensions:
        cursor.execute(f"INSERT INTO {after.vectors} SELECT * FROM {before.vectors}")
    _copy_postings(cursor, before, after)
    after.finish(cursor)
    write_state(cursor, options.name, compacted)
    return compacted


def _copy_postings(cursor: Rows, before: Tables, after: Tables) -> None:
    """Copy the postings without dead rows."""
    dead = np.array([row for (row,) in cursor.execute(f"SELECT row FROM {before.dead}")], np.int64)
    batches = cursor.execute(
        _BATCHES_WITH_DEAD_ROWS.format(batches=before.batches, dead=before.dead)
    ).fetchall()
    cursor.execute(
        f"INSERT INTO {after.postings} SELECT * FROM {before.postings} WHERE first <> ALL(%s::integer[])",
        ([first for first, _ in batches],),
    )
    for first, last in batches:
        is_alive = np.ones(last - first + 1, bool)
        is_alive[dead[(dead >= first) & (dead <= last)] - first] = False
        _copy_batch(cursor, before, after, first, is_alive)


def _copy_batch(cursor: Rows, before: Tables, after: Tables, first: int, is_alive: NDArray[np.bool_]) -> None:
    """Copy the postings of a batch that has dead rows; those without any are copied as they are."""
    query = f"SELECT term, rows, counts FROM {before.postings} WHERE first = %s"
    postings = cursor.execute(query, (first,)).fetchall()
    if not postings:
        return
    terms, rows, counts = (list(column) for column in zip(*postings, strict=True))
    offsets = np.frombuffer(b"".join(rows), "<u4").astype(np.int64) - first
    starts = np.cumsum([0, *(len(term_rows) // 4 for term_rows in rows[:-1])])
    with_dead_rows = np.flatnonzero(np.add.reduceat(~is_alive[offsets], starts))
    changed = [terms[number] for number in with_dead_rows]
    cursor.execute(
        f"INSERT INTO {after.postings} SELECT * FROM {before.postings}"
        " WHERE first = %s AND term <> ALL(%s::bytea[])",
        (first, changed),
    )
    shortened = [
        (terms[number], *_select_alive(rows[number], counts[number], first, is_alive))
        for number in with_dead_rows
    ]
    remaining = [posting for posting in shortened if posting[1]]
    if remaining:
        cursor.execute(
            f"INSERT INTO {after.postings} SELECT %s, * FROM unnest(%s::bytea[], %s::bytea[], %s::bytea[])",
            (first, *map(list, zip(*remaining, strict=True))),
        )


def _select_alive(rows: bytes, counts: bytes, first: int, is_alive: NDArray[np.bool_]) -> Sequence[bytes]:
    """Return the rows of a posting that are alive, and their counts."""
    numbers = np.frombuffer(rows, "<u4")
    alive = is_alive[numbers.astype(np.int64) - first]
    return numbers[alive].tobytes(), np.frombuffer(counts, "<u2")[alive].tobytes()
