"""What every record store must do for embedders and indexes: vectors, spaces, changes, the reader."""

from dataclasses import replace
from datetime import timedelta, timezone

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import ChunkId, CollectionId, DocumentId, SourceId
from conspectus.model.records import Change, EmbeddingSpace, Period, PreparedDocument
from conspectus.ports import Reader, Records
from tests.support.samples import NOON, OTHER_SPACE, SHELF, SPACE, notes, prepared, shelf, vector


async def texts_waiting(records: Records, space: EmbeddingSpace = SPACE, limit: int = 100) -> list[str]:
    """The texts of chunks that lack a vector."""
    return [stored.chunk.text for stored in await records.list_unembedded(SHELF, space, limit=limit)]


async def embed_all(records: Records, space: EmbeddingSpace = SPACE) -> int:
    """Give every chunk that lacks one a vector."""
    waiting = await records.list_unembedded(SHELF, space, limit=1000)
    return await records.put_vectors(
        SHELF, space, [(stored.chunk.id, vector(stored.chunk.id)) for stored in waiting]
    )


async def status_of(records: Records, key: str) -> str:
    """The status of a document."""
    [document] = await records.documents([DocumentId(key)])
    return document.status


async def changes_of(reader: Reader, after: int = 0, limit: int = 100) -> list[tuple[str, int, int]]:
    """The history after a sequence, without its numbers."""
    changes = await reader.changes_since(after, limit=limit)
    return [(change.operation, change.first, change.last) for change in changes]


def replayed(changes: list[Change]) -> set[int]:
    """The chunks that exist according to the history."""
    live: set[int] = set()
    for change in changes:
        numbers = range(change.first, change.last + 1)
        live = live.union(numbers) if change.operation == "put" else live.difference(numbers)
    return live


class HistoryContract:
    """Vectors and the history that indexes follow."""

    @pytest.fixture
    def records(self) -> Records:
        """An empty store; to be overridden."""
        raise NotImplementedError

    @pytest.fixture
    async def stocked(self, records: Records) -> None:
        """A collection with one source."""
        await records.create_collection(shelf())
        await records.put_source(notes())

    @pytest.mark.usefixtures("stocked")
    async def test_a_write_tells_what_an_index_would_read(self, records: Records) -> None:
        """Every field of every chunk, and the changes, as if they were read back right after."""
        reader, east = records.reader(SHELF, SPACE), timezone(timedelta(hours=5, minutes=30))
        period = Period(NOON.astimezone(east), NOON.astimezone(east) + timedelta(microseconds=1))
        vectored = replace(prepared("given", "ä", "b"), vector=vector(3))
        embedded = replace(prepared("made", "a", "b"), embedded=(SPACE.name, (vector(1), vector(2))))
        foreign = replace(prepared("foreign", "c"), embedded=(OTHER_SPACE.name, (vector(1),)))
        full = prepared(
            "full", "d", metadata={"z": [1, {"y": None}], "a": 1.5}, occurred=period, author="ann"
        )
        later = prepared("full", "d", "e", recorded=NOON + timedelta(days=1), sequence=2**62, thread="t")
        batches = [
            [vectored, embedded, foreign, prepared("empty"), full],
            [later, prepared("new", "f")],
            [embedded],
        ]
        for batch in batches:
            before = await reader.last_sequence()
            update = (await records.write(batch)).update
            assert update is not None
            assert update.chunks is not None
            assert (update.before, update.collection) == (before, await records.collection(SHELF))
            assert list(update.changes) == await reader.changes_since(before, limit=100)
            puts = [change for change in update.changes if change.operation == "put"]
            read = [chunk for put in puts for chunk in await reader.chunks(put.first, put.last)]
            assert list(update.chunks()) == read

    @pytest.mark.usefixtures("stocked")
    async def test_a_write_that_knows_not_all_of_its_chunks_tells_none(self, records: Records) -> None:
        """Those that stay with other fields have their vectors elsewhere; those replaced twice are gone."""
        await records.write([prepared("a", "x")])
        documents = [prepared("a", "x", metadata={"n": 1})]
        twice = [prepared("b", "x"), prepared("b", "y")]
        for batch in (documents, twice):
            update = (await records.write(batch)).update
            assert update is not None
            assert update.chunks is None
        await records.create_collection(shelf("other"))
        await records.put_source(notes("there", CollectionId("other")))
        there = prepared("c", "x", collection=CollectionId("other"), source=SourceId("there"))
        assert (await records.write([prepared("d", "x"), there])).update is None

    @pytest.mark.usefixtures("stocked")
    async def test_a_write_sees_whether_texts_wait_for_vectors(self, records: Records) -> None:
        """Those of others, too, whatever it writes itself."""
        embedded = replace(prepared("made", "a"), embedded=(SPACE.name, (vector(1),)))
        assert (await records.write([embedded])).lacks_vectors is False
        assert (await records.write([prepared("other", "b")])).lacks_vectors is True
        assert (await records.write([embedded])).lacks_vectors is True
        await embed_all(records)
        assert (await records.write([embedded])).lacks_vectors is False

    async def test_an_empty_history(self, records: Records, stocked: None) -> None:
        """Sequence 0 and nothing to read."""
        reader = records.reader(SHELF, SPACE)
        assert await records.state(SHELF) == (0, SPACE)
        assert (await reader.last_sequence(), await reader.changes_since(0, limit=10)) == (0, [])
        assert [batch async for batch in reader.scan()] == []
        assert await reader.chunks(ChunkId(1), ChunkId(10)) == []

    async def test_every_write_appends_its_changes(self, records: Records, stocked: None) -> None:
        """Put, remove and put, put for fields and vectors, nothing for what changed nothing."""
        reader = records.reader(SHELF, SPACE)
        steps: list[tuple[PreparedDocument, list[tuple[str, int, int]]]] = [
            (prepared("a", "one ", "two"), [("put", 1, 2)]),
            (prepared("a", "one ", "two"), []),
            (prepared("a", "one ", "two", thread="A"), [("put", 1, 2)]),
            (prepared("a", "three"), [("remove", 1, 2), ("put", 3, 3)]),
            (prepared("a"), [("remove", 3, 3)]),
        ]
        for document, expected in steps:
            before, _ = await records.state(SHELF)
            await records.write([document])
            assert await changes_of(reader, before) == expected
        await records.write([prepared("b", "x "), prepared("c", "y")])
        before, _ = await records.state(SHELF)
        assert await embed_all(records) == 2
        await records.delete([DocumentId("b")])
        assert await changes_of(reader, before) == [("put", 4, 5), ("remove", 4, 4)]
        assert await reader.last_sequence() == (await records.state(SHELF))[0]

    async def test_changes_end_with_a_transaction(self, records: Records, stocked: None) -> None:
        """Whatever the limit; and reading on from there misses and repeats nothing."""
        reader = records.reader(SHELF, SPACE)
        for version in ("first", "second", "third"):
            await records.write([prepared(key, f"{version} {key}") for key in "abcde"])
        history = list(await reader.changes_since(0, limit=1000))
        for limit in (1, 2, 5):
            changes: list[Change] = []
            while part := await reader.changes_since(changes[-1].sequence if changes else 0, limit=limit):
                changes += part
                assert part[-1].operation == "put"
            assert changes == history
        live = [stored.chunk.id for stored in await reader.chunks(ChunkId(0), ChunkId(2**62))]
        assert replayed(history) == set(live)

    async def test_numbers_are_never_used_again(self, records: Records, stocked: None) -> None:
        """Neither those of chunks nor those of changes, also after everything was deleted."""
        await records.write([prepared("a", "x")])
        await records.delete([DocumentId("a")])
        await records.delete_collection(SHELF)
        await records.create_collection(shelf())
        await records.put_source(notes())
        await records.write([prepared("a", "x")])
        [change] = await records.reader(SHELF, SPACE).changes_since(0, limit=10)
        assert (change.sequence, change.first) > (2, 1)

    async def test_a_reader_sees_one_collection(self, records: Records, stocked: None) -> None:
        """With the vectors of one space, in order, from any place on."""
        elsewhere = CollectionId("elsewhere")
        await records.create_collection(shelf(elsewhere))
        await records.put_source(notes("far", elsewhere))
        for key in "abc":
            far = prepared(f"far {key}", "x", collection=elsewhere, source="far")
            await records.write([prepared(key, f"{key} ", "two"), far])
        await records.write([prepared("a", "new")])
        reader = records.reader(SHELF, SPACE)
        scanned = [stored async for batch in reader.scan() for stored in batch]
        ids = [stored.chunk.id for stored in scanned]
        assert ids == sorted(ids)
        assert [stored.document.key for stored in scanned] == ["b", "b", "c", "c", "a"]
        for position, after in enumerate(ids):
            rest = [stored.chunk.id async for batch in reader.scan(after) for stored in batch]
            assert rest == ids[position + 1 :]
        assert await reader.chunks(ids[0], ids[-2]) == scanned[:-1]
        await records.put_vectors(SHELF, SPACE, [(ids[1], vector(0.5))])
        assert [stored.vector for stored in await reader.chunks(ids[0], ids[1])] == [None, vector(0.5)]
        other = records.reader(SHELF, OTHER_SPACE)
        assert [stored.vector for stored in await other.chunks(ids[0], ids[1])] == [None, None]

    async def test_a_long_scan(self, records: Records, stocked: None) -> None:
        """Over documents of many sizes, one far larger than a batch."""
        sizes = [1] * 3000 + [9000] + [3] * 10
        batch = [prepared(f"{number:05}", *["word "] * size) for number, size in enumerate(sizes)]
        await records.write(batch)
        batches = [stored_batch async for stored_batch in records.reader(SHELF, None).scan()]
        owners = [stored.document.key for part in batches for stored in part]
        assert owners == [f"{number:05}" for number, size in enumerate(sizes) for _ in range(size)]
        assert len(batches) > 2

    async def test_vectors_complete_a_document(self, records: Records, stocked: None) -> None:
        """Only when all its chunks have one; those of chunks that are gone are dropped."""
        await records.write([prepared("a", "one ", "two"), prepared("b", "three")])
        assert await texts_waiting(records) == ["one ", "two", "three"]
        first, second, third = await records.list_unembedded(SHELF, SPACE, limit=3)
        pairs = [(third.chunk.id, vector(3)), (ChunkId(999), vector(9)), (first.chunk.id, vector(1))]
        assert await records.put_vectors(SHELF, SPACE, pairs) == 2
        assert [await status_of(records, key) for key in "ab"] == ["pending", "embedded"]
        assert await records.put_vectors(SHELF, SPACE, [(second.chunk.id, vector(2))] * 2) == 1
        assert await status_of(records, "a") == "embedded"
        assert (await texts_waiting(records), await records.count_unembedded(SHELF, SPACE)) == ([], 0)
        assert await records.put_vectors(SHELF, SPACE, []) == 0
        with pytest.raises(InvalidInput):
            await records.put_vectors(SHELF, SPACE, [(first.chunk.id, vector(1, dimensions=3))])

    async def test_vectors_that_come_with_a_document(self, records: Records, stocked: None) -> None:
        """Kept for each chunk in the space that answers, dropped in any other; replaced with their chunks."""
        embedded = replace(prepared("a", "one ", "two"), embedded=(SPACE.name, (vector(1), vector(2))))
        other = replace(prepared("b", "three"), embedded=(OTHER_SPACE.name, (vector(3),)))
        await records.write([embedded, other])
        assert [await status_of(records, key) for key in "ab"] == ["embedded", "pending"]
        assert await texts_waiting(records) == ["three"]
        vectors = [stored.vector async for batch in records.reader(SHELF, SPACE).scan() for stored in batch]
        assert vectors == [vector(1), vector(2), None]
        await records.write([prepared("a", "four")])
        assert await texts_waiting(records) == ["three", "four"]
        assert await records.check() == []

    async def test_those_without_a_vector_among_some(self, records: Records, stocked: None) -> None:
        """By where their documents end, from the start of a range to before its stop."""
        await records.write([prepared("a", "one ", "two"), prepared("b", "three"), prepared("c", "four")])
        first, second, third, fourth = [
            stored.chunk.id for stored in await records.list_unembedded(SHELF, SPACE, limit=4)
        ]

        async def among(start: int, stop: int, limit: int = 9) -> list[int]:
            unembedded = await records.list_unembedded(SHELF, SPACE, limit=limit, among=range(start, stop))
            return [stored.chunk.id for stored in unembedded]

        async def oldest(start: int) -> int | None:
            return await records.oldest_unembedded(SHELF, SPACE, start=start)

        assert await among(0, fourth + 1) == [first, second, third, fourth]
        assert await among(0, second) == await among(second, second) == []
        assert await among(second, third) == [first, second]
        assert await among(second, fourth, limit=2) == [first, second]
        assert [await oldest(start) for start in (0, second, third)] == [second, second, third]
        await records.put_vectors(SHELF, SPACE, [(first, vector(1)), (third, vector(3))])
        assert await among(0, fourth + 1) == [second, fourth]
        assert [await oldest(start) for start in (0, third, fourth + 1)] == [second, fourth, None]

    async def test_vectors_of_one_space_are_no_change_for_another(
        self, records: Records, stocked: None
    ) -> None:
        """Its index is only taken further, over a change that names no chunk that exists."""
        await records.write([prepared("a", "one ", "two")])
        await embed_all(records, OTHER_SPACE)
        reader, other = records.reader(SHELF, SPACE), records.reader(SHELF, OTHER_SPACE)
        [_, passed], [_, seen] = await reader.changes_since(0, limit=9), await other.changes_since(0, limit=9)
        assert passed.sequence == seen.sequence == await reader.last_sequence()
        assert await reader.chunks(passed.first, passed.last) == []
        assert len(await other.chunks(seen.first, seen.last)) == 2

    async def test_changed_fields_keep_vectors(self, records: Records, stocked: None) -> None:
        """New text does not, and neither does a new title or author: they are embedded with the text."""
        await records.write([prepared("a", "one")])
        await embed_all(records)
        await records.write([prepared("a", "one", metadata={"new": 1}, role="user", thread="t")])
        assert (await status_of(records, "a"), await texts_waiting(records)) == ("embedded", [])
        for fields in ({"title": "T"}, {"author": "A"}, {"kind": "message", "author": "A"}):
            await records.write([prepared("a", "two", **fields)])
            assert (await status_of(records, "a"), await texts_waiting(records)) == ("pending", ["two"])
            await embed_all(records)

    async def test_a_failed_document_is_left_alone(self, records: Records, stocked: None) -> None:
        """Until it is written anew; its reason is kept with it."""
        await records.write([prepared("a", "one "), prepared("b", "two")])
        await records.fail(DocumentId("a"), "refused: ü")
        await records.fail(DocumentId("gone"), "too late")
        [document] = await records.documents([DocumentId("a")])
        assert (document.status, document.error) == ("error", "refused: ü")
        for space in (SPACE, OTHER_SPACE):
            assert await texts_waiting(records, space) == ["two"]
            assert await records.count_unembedded(SHELF, space) == 1
        await records.write([prepared("a", "one ", thread="A")])
        assert (await status_of(records, "a"), await texts_waiting(records)) == ("pending", ["one ", "two"])

    async def test_a_collection_of_words_only(self, records: Records) -> None:
        """Nothing waits for vectors until it is given a space."""
        await records.create_collection(shelf(space=None))
        await records.put_source(notes())
        await records.write([prepared("a", "one"), prepared("empty")])
        assert await records.state(SHELF) == (1, None)
        assert await status_of(records, "a") == "embedded"
        assert await records.switch_space(SHELF, SPACE) == 0
        assert [await status_of(records, key) for key in ("a", "empty")] == ["pending", "embedded"]
        assert await texts_waiting(records) == ["one"]

    async def test_moving_to_another_space(self, records: Records, stocked: None) -> None:
        """The old space answers, whole, until the switch; then its vectors are gone."""
        await records.write([prepared("a", "one ", "two"), prepared("b", "three")])
        await embed_all(records)
        assert await texts_waiting(records, OTHER_SPACE, limit=2) == ["one ", "two"]
        assert await embed_all(records, OTHER_SPACE) == 3
        assert await records.count_unembedded(SHELF, OTHER_SPACE) == 0
        await records.write([prepared("a", "one ", "two", thread="A"), prepared("c", "new")])
        assert (await status_of(records, "a"), await texts_waiting(records)) == ("embedded", ["new"])
        before, _ = await records.state(SHELF)
        assert await records.switch_space(SHELF, OTHER_SPACE) == 3
        assert await records.state(SHELF) == (before, OTHER_SPACE)
        assert [await status_of(records, key) for key in "abc"] == ["embedded", "embedded", "pending"]
        counts = await records.counts(SHELF)
        assert (counts["vectors"], counts["pending"]) == (3, 1)
        assert await records.check() == []

    async def test_a_move_that_is_called_off(self, records: Records, stocked: None) -> None:
        """Everything is as before: the old vectors were there all the time."""
        await records.write([prepared("a", "one ", "two"), prepared("b", "three")])
        await embed_all(records)
        await records.write([prepared("c", "new")])
        await embed_all(records, OTHER_SPACE)
        assert await records.switch_space(SHELF, SPACE) == 4
        assert [await status_of(records, key) for key in "abc"] == ["embedded", "embedded", "pending"]
        assert await texts_waiting(records) == ["new"]
        assert len(await texts_waiting(records, OTHER_SPACE)) == 4
        assert await records.check() == []

    async def test_counts(self, records: Records, stocked: None) -> None:
        """Chunks are pending, documents are in error."""
        names = ("sources", "documents", "chunks", "vectors", "pending", "error", "unindexable")
        assert await records.counts(SHELF) == dict.fromkeys(names, 0) | {"sources": 1}
        await records.write([prepared("a", "one ", "two"), prepared("b", "three"), prepared("empty")])
        await records.fail(DocumentId("b"), "refused")
        [first, _] = await records.list_unembedded(SHELF, SPACE, limit=10)
        await records.put_vectors(SHELF, SPACE, [(first.chunk.id, vector(1))])
        expected = {"sources": 1, "documents": 3, "chunks": 3, "vectors": 1, "pending": 1, "error": 1}
        assert await records.counts(SHELF) == {**expected, "unindexable": 0}

    async def test_marks_of_chunks_that_cannot_be_analyzed(self, records: Records, stocked: None) -> None:
        """A chunk and its document have the reason until it is removed, or the text is replaced."""
        await records.write([prepared("a", "one ", "two"), prepared("b", "three")])
        [first, second, third] = await records.list_unembedded(SHELF, SPACE, limit=10)
        reader = records.reader(SHELF, SPACE)
        before = await reader.last_sequence()
        reasons = {second.chunk.id: "LookupError", third.chunk.id: "IndexError", ChunkId(10**6): "TypeError"}
        await records.mark_unindexable(SHELF, reasons)
        changes = await reader.changes_since(before, limit=10)
        assert [(change.operation, change.first, change.last) for change in changes] == [
            ("put", second.chunk.id, third.chunk.id)
        ]
        [batch] = [batch async for batch in reader.scan()]
        assert [chunk.chunk.unindexable for chunk in batch] == [None, "LookupError", "IndexError"]
        assert [chunk.term_text for chunk in batch][1:] == ["", ""]
        assert (await records.unindexable(SHELF, limit=1))[0].chunk.id == second.chunk.id
        assert (await records.counts(SHELF))["unindexable"] == 2
        assert await status_of(records, "a") == "unindexable"
        pages = [
            await records.list(SHELF, EVERYTHING, status=status) for status in ("pending", "unindexable")
        ]
        assert [[document.id for document in page] for page, _ in pages] == [[], ["a", "b"]]
        await records.mark_unindexable(SHELF, {second.chunk.id: None})
        await records.write([prepared("b", "four")])
        assert [await status_of(records, key) for key in "ab"] == ["pending", "pending"]
        assert (await records.counts(SHELF))["unindexable"] == 0
        assert first.chunk.unindexable is None
        assert await records.check() == []
