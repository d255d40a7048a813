"""Comparing the rows of the index with the records."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from conspectus.index.changes import untouched_since
from conspectus.index.pgvector.database import rows_of
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.index.pgvector.rows import signed_checksum
from conspectus.index.pgvector.state import PgvectorState, read_state
from conspectus.model.ids import ChunkId
from conspectus.model.index import Disagreement, IndexedChunk
from conspectus.ports import Ids, Reader


@dataclass(frozen=True, slots=True)
class Stored:
    """What is in the index in one state, by chunk; `sound` says that the vector is there if it should be."""

    state: PgvectorState
    chunks: Ids
    checksums: Ids
    sound: NDArray[np.bool_]


def stored(connection: Connection, place: PgvectorOptions, identity: str) -> Stored:
    """Read what is to be compared, all of one moment."""
    cursor = rows_of(connection)
    state = read_state(cursor, place.name, identity)
    if not state.generation:
        nothing = np.zeros(0, np.int64)
        return Stored(state, nothing, nothing, np.zeros(0, np.bool_))
    tables = place.tables(state)
    joined, sound = "", "true"
    if tables.dimensions:
        joined = f"LEFT JOIN {tables.vectors} v ON v.row = r.row"
        sound = "(r.vector IS NULL) = (v.row IS NULL)"
    cursor.execute(
        "SELECT coalesce(string_agg(int8send(r.chunk) || int8send(r.checksum) ||"
        f" int8send(({sound})::integer::bigint), '' ORDER BY r.chunk), '') FROM {tables.rows} r {joined}"
    )
    found = cursor.fetchone()
    numbers = np.frombuffer(found[0] if found else b"", ">i8").astype(np.int64).reshape(-1, 3)
    return Stored(state, numbers[:, 0], numbers[:, 1], numbers[:, 2] > 0)


async def differences(held: Stored, reader: Reader) -> list[Disagreement]:
    """Every row against the records; what changed after the state is left out."""
    found: list[Disagreement] = []
    seen = np.zeros(len(held.chunks), np.bool_)
    async for batch in reader.scan():
        found += _compared(batch, held, seen)
    found += [Disagreement(ChunkId(i), "ghost", "not in the records") for i in held.chunks[~seen].tolist()]
    return await untouched_since(held.state.applied, found, reader)


def _compared(batch: Sequence[IndexedChunk], held: Stored, seen: NDArray[np.bool_]) -> list[Disagreement]:
    found = []
    for chunk in batch:
        number = chunk.chunk.id
        place = int(np.searchsorted(held.chunks, number))
        if place == len(held.chunks) or held.chunks[place] != number:
            found.append(Disagreement(number, "missing", "not in the index"))
            continue
        seen[place] = True
        if int(held.checksums[place]) != signed_checksum(chunk):
            found.append(Disagreement(number, "stale", "the records hold another version"))
        elif not held.sound[place]:
            found.append(Disagreement(number, "damaged", "its vector is missing, or should not be there"))
    return found
