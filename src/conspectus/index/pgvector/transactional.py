"""Taking changes in within the transaction that makes them, over its own connection."""

from collections.abc import Sequence

import psycopg
from sqlalchemy import Connection

from conspectus.index.bm25 import Analyse
from conspectus.index.changes import Range, put_ranges
from conspectus.index.pgvector.database import rows_of
from conspectus.index.pgvector.drafts import Drafting
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.index.pgvector.state import PgvectorState, is_free, read_state
from conspectus.index.pgvector.store import identity_of, write_draft
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change


class AtOnce:
    """An index as those see it who write the records."""

    def __init__(self, place: PgvectorOptions, analyse: Analyse) -> None:
        self._place = place
        self._identity = identity_of(analyse, place)
        self._drafting = Drafting(analyse, place.dimensions)

    def state(self, connection: Connection) -> PgvectorState | None:
        """Where the index is until this transaction writes it; None if there is none, or others write it."""
        cursor = rows_of(connection)
        if not is_free(cursor, f"write {self._place.name}"):
            return None
        state = read_state(cursor, self._place.name, self._identity)
        return state if state.generation else None

    def wanted(self, changes: Sequence[Change]) -> list[Range]:
        """The chunks to read for these changes."""
        return put_ranges(changes)

    def take_in(
        self,
        connection: Connection,
        state: PgvectorState,
        changes: Sequence[Change],
        chunks: Sequence[IndexedChunk],
    ) -> bool:
        """Whether the changes after a state, and the chunks that they put, are now in the index.

        Otherwise nothing of them is. The write itself is sound then: who takes it in later meets the fault,
        and tells it.
        """
        draft = self._drafting.draft(changes, chunks)
        attempt = connection.begin_nested()
        try:
            write_draft(rows_of(connection), self._place, state, draft)
        except psycopg.Error:
            attempt.rollback()
            return False
        attempt.commit()
        return True
