"""Vectors that come with documents: in one transaction with them, and before any that is made for them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.samples import OTHER_SPACE, SHELF, SPACE, notes, prepared, shelf, vector

from conspectus import Settings
from conspectus.errors import InvalidInput
from conspectus.model.ids import ChunkId, DocumentId
from conspectus.model.records import PreparedDocument
from conspectus.records.store import SqlRecords, open_records

SETTINGS = replace(Settings(), log_level="critical")


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await open_records(tmp_path / "records.sqlite")
    await opened.create_collection(shelf())
    await opened.put_source(notes())
    yield opened
    await opened.close()


def prepare_with_vector(key: str, *texts: str, to: float) -> PreparedDocument:
    return replace(prepared(key, *texts, metadata={"to": to}), vector=vector(to))


async def list_vectors(records: SqlRecords, key: str) -> list[bytes | None]:
    ids = [row.chunk.id for row in await records.document_chunks(DocumentId(key))]
    return [row.vector for row in await records.reader(SHELF, SPACE).chunks(min(ids), max(ids))]


async def test_all_chunks_have_it_when_they_are_there(records: SqlRecords) -> None:
    await records.write(
        [
            prepare_with_vector("a", "one ", "two", to=1),
            prepared("b", "three"),
            prepare_with_vector("empty", to=2),
        ]
    )
    assert await list_vectors(records, "a") == [vector(1)] * 2
    assert [document.status for document in await records.documents([DocumentId("a"), DocumentId("b")])] == [
        "embedded",
        "pending",
    ]
    assert [row.chunk.text for row in await records.list_unembedded(SHELF, SPACE, limit=9)] == ["three"]
    assert (await records.counts(SHELF))["vectors"] == 2
    assert await records.check() == []


async def test_a_vector_that_was_made_meanwhile_does_not_replace_it(records: SqlRecords) -> None:
    await records.write([prepared("a", "one ", "two")])
    waiting = await records.list_unembedded(SHELF, SPACE, limit=9)
    await records.write([prepare_with_vector("a", "one ", "two", to=5)])
    assert await records.put_vectors(SHELF, SPACE, [(row.chunk.id, vector(9)) for row in waiting]) == 0
    assert await list_vectors(records, "a") == [vector(5)] * 2
    assert await records.put_vectors(SHELF, OTHER_SPACE, [(waiting[0].chunk.id, vector(9))]) == 1


async def test_what_failed_is_mended_by_it(records: SqlRecords) -> None:
    await records.write([prepared("a", "one")])
    await records.fail(DocumentId("a"), "refused")
    await records.write([prepare_with_vector("a", "one", to=3)])
    [document] = await records.documents([DocumentId("a")])
    assert (document.status, document.error, await list_vectors(records, "a")) == (
        "embedded",
        None,
        [vector(3)],
    )


async def test_the_history_tells_indexes_of_it(records: SqlRecords) -> None:
    await records.write([prepare_with_vector("a", "one", to=1)])
    reader = records.reader(SHELF, SPACE)
    before = await reader.last_sequence()
    await records.write([prepare_with_vector("a", "one", to=2)])
    changes = await reader.changes_since(before, limit=9)
    assert [(change.operation, change.first) for change in changes] == [("put", ChunkId(1))]


async def test_another_size_leaves_nothing_of_the_batch(records: SqlRecords) -> None:
    wrong = replace(prepared("b", "two"), vector=vector(1, dimensions=3))
    with pytest.raises(InvalidInput, match="has 3 numbers, but those of the collection have 4"):
        await records.write([prepare_with_vector("a", "one", to=1), wrong])
    assert await records.documents([DocumentId("a")]) == []


async def test_two_versions_in_one_batch_leave_the_last(records: SqlRecords) -> None:
    await records.write(
        [
            prepare_with_vector("a", "one", to=1),
            prepare_with_vector("a", "one", to=2),
            prepare_with_vector("a", "other", to=3),
        ]
    )
    assert await list_vectors(records, "a") == [vector(3)]
