"""How PostgreSQL reads the records where it has never counted them, as in a database that was just filled."""

import re
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, event, text
from tests.support.samples import SHELF, SPACE, notes, prepared, shelf

from conspectus.model.records import EmbeddingSpace
from conspectus.records.core.chunk_reads import chunks_between
from conspectus.records.store import open_records

SCANNED = re.compile(r"(Seq|Index|Index Only|Bitmap Index) Scan(?: using)? (?:on )?(\w+)")


def scanned_tables(connection: Connection, space: EmbeddingSpace | None, first: int, last: int) -> set[str]:
    """The tables and indexes that are gone through for the chunks of a range."""
    statements: list[tuple[str, Any]] = []
    event.listen(
        connection,
        "before_cursor_execute",
        lambda *arguments: statements.append((arguments[2], arguments[3])),
    )
    assert chunks_between(connection, SHELF, space=space, first=first, last=last)
    sql, values = statements[0]
    plan = [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {sql}", values)]
    return {match[2] for line in plan if (match := SCANNED.search(line))}


@pytest.mark.parametrize("space", [None, SPACE], ids=["words", "vectors"])
async def test_a_range_of_chunks_is_found_by_their_numbers_alone(
    postgres_url: str, space: EmbeddingSpace | None
) -> None:
    records = await open_records(postgres_url, connections=2)
    for table in ("documents", "chunks", "vectors"):
        alter = text(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        await records.transactions.write(partial(Connection.execute, statement=alter))
    await records.create_collection(shelf())
    await records.put_source(notes())
    await records.write([prepared(f"d{number}", "a text", "another") for number in range(500)])
    expected = {"pk_chunks", "pk_documents"} | ({"pk_vectors"} if space else set())
    for first, last in ((500, 500), (200, 400), (1, 1_000)):
        read = partial(scanned_tables, space=space, first=first, last=last)
        assert await records.transactions.read(read) == expected
    await records.close()
