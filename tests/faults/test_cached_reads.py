"""Reads that are kept until anything is committed: they are never older than the request."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus import Engine, NewDocument
from conspectus.errors import ForkedEngine, NotFound, StorageError
from conspectus.model.access import Person
from conspectus.model.ids import ChunkId, DocumentId
from conspectus.model.records import Collection
from conspectus.records.core.inline import MAX_CACHE_BYTES, InlineReads
from conspectus.records.graph.mentions import SqlNames
from conspectus.records.store import SqlRecords, open_records
from conspectus.testing.embedders import HashedEmbedder
from tests.stores import SETTINGS
from tests.support.samples import NOTES, SHELF, notes, prepared, shelf

OTHER = """
import asyncio, sys, conspectus
from conspectus import NewDocument
from conspectus.model.access import Principal
from conspectus.testing.embedders import HashedEmbedder
from tests.stores import SETTINGS

async def main():
    async with conspectus.open(sys.argv[1], settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        print("ready", flush=True)
        for line in sys.stdin:
            await eval(line)
            print("done", flush=True)

asyncio.run(main())
"""
ADA = "Principal('user', 'ada')"


class Other:
    """Another process that has the store open, too, and does as it is told."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", OTHER, str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def do(self, call: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"engine.{call}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store that two processes have open."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
async def engine(shared: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(shared, settings=SETTINGS, embedder=HashedEmbedder()) as opened:
        yield opened


@pytest.fixture(scope="module")
def other(shared: Path) -> Iterator[Other]:
    opened = Other(shared)
    yield opened
    opened.process.communicate()


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await open_records(tmp_path / "records.sqlite")
    await opened.create_collection(shelf())
    await opened.put_source(notes())
    await opened.write([prepared("a", "one", "two"), prepared("b", "three")])
    yield opened
    await opened.close()


def inline_of(records: SqlRecords) -> InlineReads:
    inline = records.transactions.database.inline
    assert inline is not None
    return inline


async def read_texts(records: SqlRecords, *ids: int) -> list[str]:
    return [chunk.chunk.text for chunk in await records.hydrate([ChunkId(chunk) for chunk in ids])]


async def test_a_grant_of_another_process_holds_for_the_very_next_request(
    engine: Engine, other: Other
) -> None:
    await engine.add([NewDocument("an open word", key="a")], collection="wiki", wait=True)
    user = await engine.people.create_user("ada")
    ada = engine.as_person(Person(user.name, False, user.id))
    for _ in range(3):
        for _ in range(2):
            with pytest.raises(NotFound):
                await ada.retrieve("word", collection="wiki")
        other.do(f"access.grant('wiki', {ADA}, 'viewer')")
        for _ in range(2):
            assert len((await ada.retrieve("word", collection="wiki")).hits) == 1
        other.do(f"access.revoke('wiki', {ADA})")
    with pytest.raises(NotFound):
        await ada.retrieve("word", collection="wiki")


async def test_what_another_process_writes_and_deletes_is_seen_by_the_very_next_request(
    engine: Engine, other: Other
) -> None:
    async def find_herons() -> list[tuple[str, str]]:
        hits = (await engine.retrieve("heron")).hits
        return [(hit.chunk.text, hit.document.title) for hit in hits]

    added = "add([NewDocument({!r}, key='a', title={!r})], wait=True)"
    for turn in range(3):
        other.do(added.format("a heron", f"{turn}"))
        assert await find_herons() == await find_herons() == [("a heron", f"{turn}")]
        other.do(added.format("a heron", f"{turn}, again"))
        assert await find_herons() == await find_herons() == [("a heron", f"{turn}, again")]
        other.do("documents.delete_by_filter(__import__('conspectus').model.filter.EVERYTHING)")
        assert await find_herons() == await find_herons() == []


async def test_keys_and_users_are_refused_at_once_by_another_process(engine: Engine, other: Other) -> None:
    await engine.people.create_user("bob")
    key = await engine.keys.create("bob")
    for _ in range(2):
        assert (await engine.keys.authenticate(key.secret)).name == "bob"
    other.do("people.set_user_disabled('bob')")
    with pytest.raises(conspectus.errors.Unauthenticated):
        await engine.keys.authenticate(key.secret)
    other.do("people.set_user_disabled('bob', disabled=False)")
    assert (await engine.keys.authenticate(key.secret)).name == "bob"
    other.do(f"keys.revoke({key.key.id!r})")
    with pytest.raises(conspectus.errors.Unauthenticated):
        await engine.keys.authenticate(key.secret)


async def test_what_is_not_committed_and_what_is_undone_is_not_seen(
    records: SqlRecords, tmp_path: Path
) -> None:
    other = sqlite3.connect(tmp_path / "records.sqlite", isolation_level=None)
    assert await read_texts(records, 1, 2, 3) == ["one", "two", "three"]
    for end in ("ROLLBACK", "COMMIT"):
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM documents WHERE id = 'a'")
        other.execute("DELETE FROM chunks WHERE id < 3")
        assert await read_texts(records, 1, 2, 3) == ["one", "two", "three"]
        other.execute(end)
        expected = ["three"] if end == "COMMIT" else ["one", "two", "three"]
        assert await read_texts(records, 1, 2, 3) == await read_texts(records, 1, 2, 3) == expected
    other.close()


async def test_rows_come_from_memory_until_something_is_committed(records: SqlRecords) -> None:
    first = await records.hydrate([ChunkId(2), ChunkId(1)])
    again = await records.hydrate([ChunkId(1), ChunkId(3), ChunkId(2), ChunkId(99)])
    assert [row.chunk.id for row in again] == [1, 3, 2]
    assert again[0] is first[1]
    assert again[2] is first[0]
    await records.fail(DocumentId("b"), "no vector")
    later = await records.hydrate([ChunkId(1), ChunkId(3)])
    assert later[0] == first[1]
    assert later[0] is not first[1]
    assert later[1].document.error == "no vector"


async def test_a_commit_between_two_parts_of_a_read_leaves_one_view(records: SqlRecords) -> None:
    await records.hydrate([ChunkId(1)])
    inline = inline_of(records)
    version = inline.version()
    assert version is not None
    await records.delete([DocumentId("a")])
    assert inline.read(version, lambda connection: 1) is None
    inline.find_cached(version, [1])
    inline.cache(version + 1, {7: "of another version"})
    assert inline.find_cached(version, [7]) == {}


async def test_a_file_that_was_replaced_has_no_version(records: SqlRecords, tmp_path: Path) -> None:
    assert await read_texts(records, 1) == ["one"]
    path = tmp_path / "records.sqlite"
    shutil.copy(path, tmp_path / "backup")
    assert inline_of(records).version() is not None
    (tmp_path / "backup").replace(path)
    assert inline_of(records).version() is None
    assert await read_texts(records, 1) == ["one"]
    path.unlink()
    assert inline_of(records).version() is None


async def test_a_closed_store_says_so(records: SqlRecords) -> None:
    assert await read_texts(records, 1) == ["one"]
    await records.close()
    for read in (records.collection(SHELF), records.hydrate([ChunkId(1)])):
        with pytest.raises(StorageError, match="the store is closed"):
            await read
    assert inline_of(records).version() is None


def assert_refused_in_child(read: Coroutine[Any, Any, object]) -> bool:
    child = os.fork()
    if not child:
        try:
            read.send(None)
        except ForkedEngine:
            os._exit(0)
        finally:
            os._exit(1)
    read.close()
    return os.waitpid(child, 0)[1] == 0


async def test_a_store_of_the_process_that_this_was_forked_from_is_refused(records: SqlRecords) -> None:
    assert await records.collection(SHELF) == await records.collection(SHELF)
    assert assert_refused_in_child(records.collection(SHELF))
    names = SqlNames(records.transactions).passages(None, SHELF, {"ada": 1}, maximum=1)
    assert assert_refused_in_child(names)


async def test_no_more_is_kept_than_may_be(records: SqlRecords) -> None:
    large = "x" * 1_000_000
    await records.write([prepared(f"large {number}", large) for number in range(20)])
    ids = [ChunkId(4 + number) for number in range(20)]
    assert [len(row.chunk.text) for row in await records.hydrate(ids)] == [1_000_000] * 20
    inline = inline_of(records)
    version = inline.version()
    assert version is not None
    assert list(inline.find_cached(version, ids)) == ids[-(MAX_CACHE_BYTES // 1_000_000) :]


async def test_a_locked_file_is_waited_for_by_a_thread(records: SqlRecords, tmp_path: Path) -> None:
    inline = inline_of(records)
    version = inline.version()
    assert version is not None

    def refused(_: object) -> Collection:
        raise sqlite3.OperationalError("database is locked")

    assert inline.read(version, refused) is None
    assert await records.collection(SHELF) is not None
    assert (await records.sources(SHELF, names=[NOTES]))[0].id == NOTES
