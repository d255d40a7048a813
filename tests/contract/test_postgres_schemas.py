"""A store that lies in a schema of its own, one with a name that has to be quoted, or in several."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.stores import SETTINGS
from tests.support.postgres_server import PostgresProcess
from tests.support.samples import notes, prepared, shelf

import conspectus
from conspectus.errors import StorageError
from conspectus.records.store import open_records
from conspectus.testing.embedders import HashedEmbedder

PGVECTOR = replace(SETTINGS, index="pgvector")
BROKEN = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{}'::regclass"
FILE = "SELECT pg_relation_filenode('documents')"


@pytest.fixture
def nowhere(postgres: PostgresProcess) -> Iterator[str]:
    """An empty database."""
    with postgres.fresh(empty=True) as url:
        yield url


def let(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def look_in(url: str, schemas: str) -> None:
    """Have all who connect from now on look in these schemas, in this order."""
    let(url, f"ALTER DATABASE {url.partition('@/')[2].partition('?')[0]} SET search_path = {schemas}")


async def test_a_schema_whose_name_has_to_be_quoted(nowhere: str, tmp_path: Path) -> None:
    let(nowhere, 'CREATE SCHEMA "My Schema"')
    look_in(nowhere, '"My Schema"')
    settings = replace(PGVECTOR, cache=str(tmp_path))
    async with conspectus.open(nowhere, settings=settings, embedder=HashedEmbedder()) as engine:
        (written,) = await engine.add("the fox", wait=True)
        assert len((await engine.retrieve("fox")).hits) == 1
        await engine.documents.delete(written.id, purge=True)
        assert (await engine.maintenance.check()).records == ()
        let(nowhere, BROKEN.format('"My Schema".pk_documents'))
        (fault,) = (await engine.maintenance.check()).records
        assert fault.endswith('run REINDEX INDEX "My Schema".pk_documents')


async def test_tables_that_are_not_in_the_first_schema_are_erased_and_looked_at(nowhere: str) -> None:
    records = await open_records(nowhere, connections=2)
    await records.create_collection(shelf())
    await records.put_source(notes())
    await records.write([prepared("a", "x")])
    await records.close()
    let(nowhere, "CREATE SCHEMA first")
    look_in(nowhere, "first, public")
    with psycopg.connect(nowhere, autocommit=True) as other:
        before = other.execute(FILE).fetchone()
        records = await open_records(nowhere, connections=2)
        await records.purge()
        assert other.execute(FILE).fetchone() != before
    let(nowhere, BROKEN.format("pk_documents"))
    assert await records.check() == [
        "the index public.pk_documents is not valid; run REINDEX INDEX public.pk_documents"
    ]
    await records.close()


async def test_vectors_in_a_schema_where_nobody_looks_are_named(nowhere: str, tmp_path: Path) -> None:
    let(nowhere, 'CREATE SCHEMA "Extra"', 'CREATE EXTENSION vector SCHEMA "Extra"')
    settings = replace(PGVECTOR, cache=str(tmp_path))
    async with conspectus.open(nowhere, settings=settings, embedder=HashedEmbedder()) as engine:
        with pytest.raises(StorageError, match='in the schema "Extra", which is not in the search path'):
            await engine.add("the fox")
    look_in(nowhere, 'public, "Extra"')
    async with conspectus.open(nowhere, settings=settings, embedder=HashedEmbedder()) as engine:
        assert len((await engine.retrieve("fox")).hits) == 1
