"""Indexes in the database of the records that nobody needs any more, as who deleted them was killed."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import conspectus
from conspectus import Engine
from conspectus.model.ids import CollectionId
from conspectus.records.store import open_records
from conspectus.testing.embedders import HashedEmbedder
from tests.stores import SETTINGS
from tests.support.samples import SPACE

TABLES = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '^index_'"
BUILDING = "SELECT pg_advisory_xact_lock(hashtextextended('conspectus build ' || name, 0))"


@pytest.fixture
async def engine(postgres_url: str, tmp_path: Path) -> AsyncIterator[Engine]:
    settings = replace(SETTINGS, index="pgvector", cache=str(tmp_path))
    async with conspectus.open(postgres_url, settings=settings, embedder=HashedEmbedder()) as opened:
        for name in ("kept", "gone"):
            await opened.add("the fox", collection=name, wait=True)
        yield opened


def query_names(url: str, statement: str) -> list[object]:
    with psycopg.connect(url) as connection:
        return [value for (value,) in connection.execute(statement.encode())]


def index_in(line: str) -> str:
    """The index that a line of a report names."""
    return next(word.rstrip(";") for word in line.split() if word.startswith("index_"))


async def delete_half(url: str, collection: str) -> None:
    """What is there after who deletes a collection was killed before its index was gone."""
    records = await open_records(url)
    await records.delete_collection(CollectionId(collection))
    await records.close()


async def test_what_a_killed_process_left_is_named_and_deleted(engine: Engine, postgres_url: str) -> None:
    every = query_names(postgres_url, TABLES)
    await delete_half(postgres_url, (await engine.collections.get("gone")).id)
    (line,) = (await engine.maintenance.check()).records
    assert line.startswith("no collection needs the index index_")
    assert index_in(line) in query_names(postgres_url, "SELECT name FROM conspectus_indexes")
    await engine.maintenance.reindex(collection="kept")
    assert (await engine.maintenance.check()).clean
    assert query_names(postgres_url, TABLES) != every
    assert len((await engine.retrieve("fox", collection="kept")).hits) == 1


async def test_what_somebody_builds_stays(engine: Engine, postgres_url: str) -> None:
    await delete_half(postgres_url, (await engine.collections.get("gone")).id)
    with psycopg.connect(postgres_url) as builder:
        (line,) = (await engine.maintenance.check()).records
        builder.execute(f"{BUILDING} FROM (VALUES ('{index_in(line)}')) AS stray (name)".encode())
        await engine.maintenance.reindex(collection="kept")
        assert (await engine.maintenance.check()).records == (line,)


async def test_what_a_collection_moves_to_is_not_stray(engine: Engine, postgres_url: str) -> None:
    home = await engine.collections.get("kept")
    records = await open_records(postgres_url)
    waiting = await records.list_unembedded(home.id, SPACE, limit=9)
    await records.put_vectors(
        home.id, SPACE, [(missing.chunk.id, bytes(2 * SPACE.dimensions)) for missing in waiting]
    )
    names = set(query_names(postgres_url, "SELECT name FROM conspectus_indexes"))
    shelf = await engine._context.core.open_indexes.open_unlisted(home, SPACE)
    await shelf.index.rebuild()
    await shelf.index.close()
    await engine.maintenance.reindex(collection="kept")
    assert set(query_names(postgres_url, "SELECT name FROM conspectus_indexes")) > names
    await records.switch_space(home.id, SPACE)
    (line,) = (await engine.maintenance.check()).records
    assert index_in(line) in names
    await records.close()
