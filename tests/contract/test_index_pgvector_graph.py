"""Vectors of the index in PostgreSQL that are linked to a graph, and those that came since."""

import asyncio
import itertools
from functools import partial

import numpy as np
import psycopg
import pytest
from sqlalchemy import Connection, text
from tests.pgvector_options import options_at
from tests.support.in_memory_index import MemoryIndex
from tests.support.journal import Journal, make_chunk, unit
from tests.waiting import until

from conspectus.index.pgvector.database import rows_of
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.index.pgvector.store import PgvectorIndex
from conspectus.index.pgvector.tables import Tables
from conspectus.model.filter import EVERYTHING, Eq, Filter, Not
from conspectus.ports import Probe, Vectors

DIMENSIONS = 8
FILTERS: tuple[Filter, ...] = (EVERYTHING, Eq(("n",), 1), Not(Eq("thread", "t")), Not(Eq(("n",), 1)))


def vector(number: int) -> Vectors:
    return unit(np.random.default_rng(number).standard_normal(DIMENSIONS))


def put_chunks(journal: Journal, first: int, count: int, *, seed: int = 0) -> None:
    """Chunks of which a few have no vector, and a few are more than SQL can judge."""
    journal.put(
        make_chunk(
            number,
            "a fox",
            vector=None if number % 11 == 0 else vector(number + seed),
            metadata={"n": number % 3},
            thread="t" * 2_000 if number % 4 == 0 else "t" if number % 2 else None,
        )
        for number in range(first, first + count)
    )


async def catch_up(index: PgvectorIndex, journal: Journal, limit: int = 1_000) -> None:
    while changes := await journal.changes_since(index.applied_sequence(), limit=limit):
        await index.apply(changes)


async def graph_details(index: PgvectorIndex) -> tuple[str, str]:
    """Whether there is a graph, and how many vectors came since."""
    status_details = (await index.status()).details
    return status_details["graph"], status_details["loose"]


async def is_at_rest(index: PgvectorIndex) -> bool:
    return "building" not in (await index.status()).details


async def assert_right(index: PgvectorIndex, journal: Journal) -> None:
    reference = MemoryIndex(journal, str.split)
    await reference.apply(await journal.changes_since(0, limit=10**6))
    for number, where in itertools.product(range(12), FILTERS):
        probe = Probe(where, None, vector(10_000 + number), 10)
        candidates, expected = await index.search(probe), await reference.search(probe)
        assert candidates.ids.tolist() == expected.ids.tolist(), (number, where)
        assert np.array_equal(candidates.cosine, expected.cosine, equal_nan=True)
    assert await index.check() == []


async def open_index(options: PgvectorOptions, journal: Journal) -> PgvectorIndex:
    return await PgvectorIndex.open(options, journal, str.split)


async def test_what_came_since_is_found_beside_the_graph(postgres_url: str) -> None:
    journal = Journal(batch=50)
    async with options_at(postgres_url, DIMENSIONS, graph_from=100, max_listed=20) as options:
        index = await open_index(options, journal)
        put_chunks(journal, 0, 200)
        await catch_up(index, journal)
        assert await graph_details(index) == ("yes", "0")
        put_chunks(journal, 200, 60)
        await catch_up(index, journal)
        put_chunks(journal, 5, 20, seed=1)
        journal.remove(range(30, 40))
        await catch_up(index, journal)
        assert await graph_details(index) == ("yes", str(60 - 5 + 20 - 2))
        await assert_right(index, journal)
        put_chunks(journal, 300, 40)
        await catch_up(index, journal)
        await until(partial(is_at_rest, index))
        assert await graph_details(index) == ("yes", "0")
        await assert_right(index, journal)
        await index.close()


async def test_the_first_graph_is_made_behind_the_writers(postgres_url: str) -> None:
    journal = Journal(batch=50)
    async with options_at(postgres_url, DIMENSIONS, graph_from=100) as options:
        index = await open_index(options, journal)
        put_chunks(journal, 0, 50)
        await catch_up(index, journal)
        assert await graph_details(index) == ("no", "45")
        put_chunks(journal, 50, 100)
        await catch_up(index, journal)
        await until(partial(is_at_rest, index))
        assert await graph_details(index) == ("yes", "0")
        await assert_right(index, journal)
        await index.close()


async def test_writing_goes_on_while_several_link(postgres_url: str) -> None:
    journal = Journal(batch=50)
    async with (
        options_at(postgres_url, DIMENSIONS, graph_from=10) as one,
        options_at(postgres_url, DIMENSIONS, graph_from=10) as other,
    ):
        indexes = [await open_index(one, journal), await open_index(other, journal)]
        for first in range(0, 600, 20):
            put_chunks(journal, first, 20)
            put_chunks(journal, first // 2, 3, seed=first)
            journal.remove([first // 3])
            await asyncio.gather(*(catch_up(index, journal, limit=7) for index in indexes))
        for index in indexes:
            await until(partial(is_at_rest, index))
            await assert_right(index, journal)
            await index.close()
    with psycopg.connect(postgres_url) as connection:
        count = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '^index_'"
        assert connection.execute(count).fetchone() == (6,)


async def test_what_was_deleted_hides_nothing_that_is_farther(postgres_url: str) -> None:
    """The graph offers what is deleted too, and stops when it has no memory left for more."""
    journal = Journal(batch=1_000)
    near, far = vector(1), vector(2)
    scarce = f"{postgres_url}&options=-cwork_mem%3D64kB"
    async with options_at(scarce, DIMENSIONS, graph_from=100) as options:
        index = await open_index(options, journal)
        journal.put(make_chunk(number, "a fox", vector=near) for number in range(800))
        journal.put(make_chunk(number, "a fox", vector=far) for number in range(800, 1_000))
        await catch_up(index, journal)
        journal.remove(range(800))
        await catch_up(index, journal)
        assert await graph_details(index) == ("yes", "0")
        candidates = await index.search(Probe(EVERYTHING, None, near, 10))
        assert candidates.ids.tolist() == list(range(800, 810))


async def test_an_index_of_an_older_format_is_built_anew(postgres_url: str) -> None:
    journal = Journal()
    put_chunks(journal, 0, 30)
    async with options_at(postgres_url, DIMENSIONS) as options:
        await catch_up(await open_index(options, journal), journal)
        with psycopg.connect(postgres_url) as connection:
            connection.execute("UPDATE conspectus_indexes SET format = 1")
            connection.execute("ALTER TABLE conspectus_indexes DROP COLUMN loose")
        index = await open_index(options, journal)
        assert index.applied_sequence() == 0
        await catch_up(index, journal)
        await assert_right(index, journal)


@pytest.mark.parametrize("graph", [0, 1])
async def test_linking_needs_no_shared_memory(postgres_url: str, graph: int) -> None:
    """Containers have little of it, and workers of one linking take as much as they may use, beforehand."""
    tables = Tables("index_1", 1, DIMENSIONS, graph)

    def link(connection: Connection) -> None:
        cursor = rows_of(connection)
        cursor.execute("CREATE EXTENSION vector")
        tables.create(cursor)
        numbers = f"SELECT i, 1, array_fill(i, '{{{DIMENSIONS}}}')::halfvec FROM generate_series(1, 5000) i"
        cursor.execute(f"INSERT INTO {tables.vectors} {numbers}")
        connection.execute(text("SET LOCAL min_parallel_table_scan_size = 0"))
        connection.execute(text("SET LOCAL maintenance_work_mem = '1000GB'"))
        tables.finish_vectors(cursor)
        count = cursor.execute("SELECT count(*) FROM pg_indexes WHERE indexdef ~ 'hnsw'").fetchone()
        assert count == (graph,)

    async with options_at(postgres_url, DIMENSIONS) as options:
        await options.database.write(link)
