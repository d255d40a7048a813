"""What every record store must do. Subclass `RecordsContract`, give it `records`, let pytest collect it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.filter import EVERYTHING, And, Eq, Exists, Filter, In, Not, Or, Overlaps
from conspectus.model.ids import ChunkId, CollectionId, DocumentId, SourceId
from conspectus.model.records import (
    Document,
    DocumentSort,
    Period,
    PreparedChunk,
    PreparedDocument,
    Receipt,
    Source,
)
from conspectus.ports import Records
from conspectus.text.hashing import content_hash
from tests.contracts.records_history_contract import HistoryContract
from tests.contracts.records_relations_contract import RelationsContract
from tests.contracts.records_threads_contract import ThreadsContract
from tests.contracts.records_timeline_contract import TimelineContract
from tests.support.samples import NOON, NOTES, SHELF, SPACE, notes, prepared, shelf, vector

NOBODY = DocumentId("nobody")


async def put(records: Records, *batch: PreparedDocument) -> list[str]:
    """Write a batch and say what became of each document."""
    return [written.outcome for written in (await records.write(batch)).written]


async def only(records: Records, key: str) -> Document:
    """The stored document of that id."""
    [document] = await records.documents([DocumentId(key)])
    return document


async def chunk_ids(records: Records, key: str) -> list[ChunkId]:
    """The ids of a document's chunks by position."""
    return [stored.chunk.id for stored in await records.document_chunks(DocumentId(key))]


async def keys_of(records: Records) -> list[str]:
    """The keys of all documents of the shelf, read in pages of two."""
    keys: list[str] = []
    cursor: str | None = None
    while True:
        documents, cursor = await records.list(SHELF, EVERYTHING, after=cursor, limit=2)
        keys += [document.key for document in documents]
        if cursor is None:
            return keys


async def keys_sorted_by(records: Records, sort: DocumentSort) -> list[str]:
    """The keys of all documents in an order, read in pages of two."""
    keys: list[str] = []
    cursor: str | None = None
    while True:
        documents, cursor = await records.list(SHELF, EVERYTHING, after=cursor, limit=2, sort=sort)
        keys += [document.key for document in documents]
        if cursor is None:
            return keys


class RecordsContract(HistoryContract, RelationsContract, ThreadsContract, TimelineContract):
    """The behaviour of every record store, as tests. Fixture to override: `records`, an empty store."""

    async def test_collections_are_found_by_name(self, records: Records) -> None:
        """Creating one again gives back the stored one, whatever else was asked for."""
        assert await records.collection("shelf") is None
        first = await records.create_collection(shelf())
        again = await records.create_collection(replace(shelf(), id=CollectionId("other"), space=None))
        words_only = await records.create_collection(shelf("Äpfel 🍏", None))
        assert (first, again) == (shelf(), shelf())
        assert await records.collections() == [shelf(), words_only]

    async def test_what_is_unknown_is_an_error(self, records: Records) -> None:
        """A name that nothing has is never an empty success."""
        gone = CollectionId("gone")
        for attempt in (
            records.state(gone),
            records.sources(gone),
            records.counts(gone),
            records.count(gone, EVERYTHING),
            records.list(gone, EVERYTHING),
            records.delete_collection(gone),
            records.switch_space(gone, SPACE),
            records.list_unembedded(gone, SPACE, limit=1),
            records.put_source(notes("a", gone)),
            records.reader(gone, SPACE).last_sequence(),
            records.text(NOBODY),
            records.document_chunks(NOBODY),
        ):
            with pytest.raises(NotFound):
                await attempt

    async def test_a_source_keeps_its_id(self, records: Records, stocked: None) -> None:
        """Putting a known name replaces the metadata and nothing else."""
        again = Source(SourceId("other"), SHELF, NOTES, {"b": [1, None, "ü"], "a": {"c": True}})
        assert await records.put_source(again) == replace(again, id=NOTES)
        assert await records.sources(SHELF) == [replace(again, id=NOTES)]

    async def test_a_document_comes_back_as_it_was(self, records: Records, stocked: None) -> None:
        """Every field, times in any zone, and text that databases like to spoil."""
        full = prepared(
            "full",
            "naïve 🏴󠁧󠁢󠁥󠁮󠁧󠁿 \r\n\t'; DROP TABLE chunks; -- ",
            "\u202e% _ \\ end",
            kind="message",
            metadata={"ids": [1, 2**80, 0.1, None], "ü": {"nested": {"x": False}}},
            author="Ada",
            role="user",
            occurred=Period(NOON - timedelta(days=900_00), NOON + timedelta(microseconds=1)),
            sequence=-(2**63),
            thread="t 1",
            syntax="markdown",
        )
        assert await put(records, full) == ["added"]
        assert await only(records, "full") == replace(full.document, chunks=2)
        assert await records.text(DocumentId("full")) == "".join(chunk.text for chunk in full.chunks)
        stored = await records.document_chunks(DocumentId("full"))
        assert [stored_chunk.chunk.content_hash for stored_chunk in stored] == [
            chunk.content_hash for chunk in full.chunks
        ]
        assert [stored_chunk.chunk.tokens for stored_chunk in stored] == [
            chunk.tokens for chunk in full.chunks
        ]

    async def test_overlapping_chunks_give_the_text_back(self, records: Records, stocked: None) -> None:
        """Each piece adds only what lies beyond the one before."""
        text, spans = "0123456789", [(0, 5), (3, 6), (3, 9), (9, 10)]
        chunks = tuple(
            PreparedChunk(number, text[start:end], start, end, 1, content_hash(text[start:end]))
            for number, (start, end) in enumerate(spans)
        )
        await put(records, PreparedDocument(prepared("a", text).document, chunks))
        assert await records.text(DocumentId("a")) == text

    async def test_chunks_with_a_gap_are_refused(self, records: Records, stocked: None) -> None:
        """Text that could not be given back is not taken."""
        good = prepared("a", "one ", "two")
        first, second = good.chunks
        for chunks in (
            (second,),
            (first, replace(second, start=5)),
            (first, replace(second, position=2)),
            (first,),
            (first, replace(second, text="longer than its span")),
        ):
            with pytest.raises(InvalidInput):
                await records.write([PreparedDocument(good.document, chunks)])
        assert await records.count(SHELF, EVERYTHING) == 0

    async def test_what_cannot_be_stored_is_refused(self, records: Records, stocked: None) -> None:
        """Half surrogates, numbers over 64 bits and what is not JSON."""
        for bad in (
            prepared("a", "x\ud800"),
            prepared("a", "x", sequence=2**63),
            prepared("a", "x", metadata={"x": float("nan")}),
            prepared("a", "x", metadata={"x": object()}),
            prepared("a", "x", recorded=NOON.replace(tzinfo=None)),
        ):
            with pytest.raises(InvalidInput):
                await put(records, prepared("fine", "text"), bad)
        assert await records.count(SHELF, EVERYTHING) == 0

    async def test_outcomes(self, records: Records, stocked: None) -> None:
        """Added, unchanged, fields only, new text; the recording time stays that of the first writing."""
        later = NOON + timedelta(hours=1)
        assert await put(records, prepared("a", "one ", "two")) == ["added"]
        before = await chunk_ids(records, "a")
        assert await put(records, prepared("a", "one ", "two", recorded=later)) == ["unchanged"]
        assert await put(records, prepared("a", "one ", "two", thread="B", recorded=later)) == ["updated"]
        assert await chunk_ids(records, "a") == before
        assert await put(records, prepared("a", "one two", recorded=later, updated=later)) == ["replaced"]
        document = await only(records, "a")
        assert (document.recorded, document.updated, document.chunks) == (NOON, later, 1)
        assert min(await chunk_ids(records, "a")) > max(before)
        assert await put(records, prepared("a")) == ["replaced"]
        assert (await records.text(DocumentId("a")), (await only(records, "a")).status) == ("", "embedded")

    async def test_a_batch_is_taken_in_order(self, records: Records, stocked: None) -> None:
        """A document that comes twice ends as its later version, and parents may come just before."""
        batch = (prepared("a", "old"), prepared("b", "x", parent="a"), prepared("a", "new"))
        assert await put(records, *batch) == ["added", "added", "replaced"]
        assert await records.text(DocumentId("a")) == "new"
        assert await put(records) == []

    async def test_references_are_checked(self, records: Records, stocked: None) -> None:
        """A refused document takes the whole batch along."""
        await records.create_collection(shelf("elsewhere"))
        await records.put_source(notes("far", CollectionId("elsewhere")))
        far = prepared("far", "x", collection="elsewhere", source="far")
        await put(records, far, prepared("a", "x"))
        fine = prepared("fine", "x")
        for bad, error in (
            (prepared("b", "x", source="nowhere"), NotFound),
            (prepared("b", "x", parent="nobody"), NotFound),
            (prepared("b", "x", parent="b"), Conflict),
            (prepared("b", "x", parent="far"), NotFound),
            (prepared("b", "x", source="far"), Conflict),
            (prepared("far", "x"), Conflict),
            (replace(fine, document=replace(fine.document, id=DocumentId("b"), key="a")), Conflict),
        ):
            with pytest.raises(error):
                await put(records, fine, bad)
        assert await records.documents([DocumentId("fine"), DocumentId("b")]) == []

    async def test_lookups_keep_the_order_asked(self, records: Records, stocked: None) -> None:
        """What does not exist is left out; what is asked twice comes twice."""
        await put(records, prepared("a", "1"), prepared("b", "2"))
        ids = [DocumentId(key) for key in ("b", "nobody", "a", "b")]
        assert [document.id for document in await records.documents(ids)] == ["b", "a", "b"]
        [first], [second] = await chunk_ids(records, "a"), await chunk_ids(records, "b")
        chunks = await records.hydrate([second, ChunkId(10**9), first])
        assert [stored.chunk.id for stored in chunks] == [second, first]
        assert await records.hydrate([]) == []

    async def test_many_ids_at_once(self, records: Records, stocked: None) -> None:
        """More than a database takes in one statement."""
        await put(records, prepared("a", "1"))
        ids = [DocumentId(f"no{number}") for number in range(70_000)]
        assert [document.id for document in await records.documents([*ids, DocumentId("a")])] == ["a"]
        assert (await records.delete([*ids, DocumentId("a")])).documents == 1

    async def test_pages(self, records: Records, stocked: None) -> None:
        """In order of recording, then id; nothing twice, nothing missed, no page after the last."""
        minutes = {"c": 0, "a": 1, "b": 1, "e": 2, "d": 2, "f": -1}
        for key, minute in minutes.items():
            await put(records, prepared(key, "x", recorded=NOON + timedelta(minutes=minute)))
        assert await keys_of(records) == ["f", "c", "a", "b", "d", "e"]
        for limit in (6, 7):
            assert (await records.list(SHELF, EVERYTHING, limit=limit))[1] is None
        for bad in ("", "x", "bm90IGEgY3Vyc29y", "é"):
            with pytest.raises(InvalidInput):
                await records.list(SHELF, EVERYTHING, after=bad)
        with pytest.raises(InvalidInput):
            await records.list(SHELF, EVERYTHING, limit=0)

    async def test_pages_in_other_orders(self, records: Records, stocked: None) -> None:
        """By title or else key, size and change, from either end, in pages that stay right under writes."""
        for key, title, size, minute in (
            ("a", "Über", 3, 0),
            ("b", "", 1, 3),
            ("c", "apple", 2, 1),
            ("d", "Banana", 2, 2),
            ("e", "x" * 500, 5, 4),
        ):
            changed = NOON + timedelta(minutes=minute)
            await put(records, prepared(key, "x" * size, title=title, recorded=changed, updated=changed))
        orders: dict[DocumentSort, str] = {
            "title": "cbdea", "size": "bcdae", "changed": "acdbe", "added": "acdbe"
        }  # fmt: skip
        for sort, keys in orders.items():
            assert await keys_sorted_by(records, sort) == list(keys)
            assert await keys_sorted_by(records, cast(DocumentSort, f"-{sort}")) == list(reversed(keys))
        first, cursor = await records.list(SHELF, EVERYTHING, limit=2, sort="title")
        await put(records, prepared("f", "x", title="Aardvark"), prepared("g", "x", title="carrot"))
        await records.delete([first[1].id])
        rest, _ = await records.list(SHELF, EVERYTHING, after=cursor, sort="title")
        assert [document.key for document in (*first, *rest)] == [*"cbdgea"]
        for other in ("-title", "size", "added"):
            with pytest.raises(InvalidInput):
                await records.list(SHELF, EVERYTHING, after=cursor, sort=other)

    async def test_a_range_of_keys(self, records: Records, stocked: None) -> None:
        """By code point, of one source, from the first key to before the last."""
        for key in ("a/1", "a/2", "a", "a0", "B", "ä"):
            await put(records, prepared(key, "x"))
        [home] = {document.source for document in (await records.list(SHELF, EVERYTHING))[0]}
        documents = await records.list_by_key(home, limit=10)
        assert [document.key for document in documents] == ["B", "a", "a/1", "a/2", "a0", "ä"]
        documents = await records.list_by_key(home, start="a/", end="a0", limit=10)
        assert [document.key for document in documents] == ["a/1", "a/2"]
        assert [document.key for document in await records.list_by_key(home, start="a0", limit=1)] == ["a0"]
        assert not await records.list_by_key(SourceId("other"), limit=10)

    async def test_a_filter_is_applied_before_the_limit(self, records: Records, stocked: None) -> None:
        """Also where only Python can say whether it matches."""
        batch = [
            prepared(f"{number:04}", "x", metadata={"rare": number % 400 == 399}) for number in range(1200)
        ]
        await put(records, *batch)
        rare = Eq(("rare",), True)
        first, cursor = await records.list(SHELF, rare, limit=2)
        rest, end = await records.list(SHELF, rare, after=cursor, limit=2)
        assert [document.key for document in (*first, *rest)] == ["0399", "0799", "1199"]
        assert (end, await records.count(SHELF, rare)) == (None, 3)
        assert await records.list(SHELF, rare, status="pending", limit=2) == (first, cursor)
        assert await records.list(SHELF, rare, status="error") == ([], None)
        counted = [
            await records.count(SHELF, condition, status="embedded") for condition in (rare, EVERYTHING)
        ]
        assert (await records.count(SHELF, EVERYTHING, status="pending") > 3, counted) == (True, [0, 0])

    async def test_filters_of_every_kind(self, records: Records, stocked: None) -> None:
        """Also deep, wide and huge ones."""
        hour = Period(NOON, NOON + timedelta(hours=1))
        await put(records, prepared("a", "x", author="Ada", occurred=hour), prepared("b", "x"))
        nested: Filter = Eq("author", "Ada")
        for _ in range(100):
            nested = Not(nested)
        for where, number in (
            (Not(Eq("author", "Ada")), 1),
            (Overlaps(NOON, NOON + timedelta(minutes=1)), 1),
            (Overlaps(hour.end, None), 0),
            (Not(Exists("position")), 2),
            (nested, 1),
            (Or(tuple(Eq("author", str(number)) for number in range(3000))), 0),
            (And(tuple(Not(Eq("author", str(number))) for number in range(3000))), 2),
            (In("document", tuple(str(number) for number in range(50_000))), 0),
            (And(tuple(In("document", ("a", *map(str, range(5000)))) for _ in range(12))), 1),
            (Or(tuple(In("sequence", (7.5, *range(500))) for _ in range(12))), 0),
            (In("document", ("\ud800", "a", "\x00")), 1),
            (Not(In("document", ("\ud800", "a"))), 1),
            (Eq("sequence", 10**30), 0),
            (Eq("file", "a" * 60_000), 0),
            (Eq("folder", "a" * 60_000), 0),
            (Not(Eq("title", "a" * 60_000)), 2),
        ):
            assert await records.count(SHELF, where) == number, where

    async def test_deleting_takes_everything_along(self, records: Records, stocked: None) -> None:
        """Children of children, chunks and vectors, with exact counts; once."""
        await put(records, prepared("a", "1 ", "2"), prepared("b", "3", parent="a"))
        await put(records, prepared("c", "4", parent="b"), prepared("d", "5"))
        [only_chunk] = await chunk_ids(records, "c")
        await records.put_vectors(SHELF, SPACE, [(only_chunk, vector(1))])
        ids = [DocumentId("a"), DocumentId("b"), NOBODY]
        assert await records.delete(ids) == Receipt(documents=3, chunks=4, vectors=1)
        assert await records.delete(ids) == Receipt()
        assert [document.key for document in (await records.list(SHELF, EVERYTHING))[0]] == ["d"]
        assert await records.hydrate([only_chunk]) == []
        assert await records.check() == []

    async def test_parents_in_a_circle(self, records: Records, stocked: None) -> None:
        """They go together."""
        await put(records, prepared("a", "1"), prepared("b", "2", parent="a"))
        await put(records, prepared("a", "1", parent="b"))
        assert (await records.delete([DocumentId("b")])).documents == 2

    async def test_deleting_a_collection(self, records: Records, stocked: None) -> None:
        """Others keep what they have."""
        await records.create_collection(shelf("elsewhere"))
        await records.put_source(notes("far", CollectionId("elsewhere")))
        await put(records, prepared("a", "1 ", "2"), prepared("z", "3", collection="elsewhere", source="far"))
        assert await records.delete_collection(SHELF) == Receipt(documents=1, chunks=2)
        assert [collection.name for collection in await records.collections()] == ["elsewhere"]
        assert await records.text(DocumentId("z")) == "3"
        assert await records.check() == []

    async def test_neighbors(self, records: Records, stocked: None) -> None:
        """By sequence, event time, order of storing, in source and thread; empty texts do not count."""
        early, late = (Period(NOON + timedelta(hours=hour), NOON + timedelta(hours=9)) for hour in (1, 2))
        await records.put_source(notes("other"))
        await put(
            records,
            prepared("d", "4 ", "5", thread="t", sequence=7),
            prepared("b", "2", thread="t", sequence=5, occurred=early),
            prepared("c", "3", thread="t", sequence=5, occurred=late),
            prepared("a", "1", thread="t", sequence=5, occurred=early),
            prepared("empty", thread="t", sequence=6),
            prepared("elsewhere", "0", thread="t", sequence=5, occurred=early, source="other"),
            prepared("alone", "x", "y"),
        )
        order = [chunk for key in "bacd" for chunk in await chunk_ids(records, key)]
        assert await self.links(records, order) == list(zip([None, *order], [*order[1:], None], strict=False))
        alone = await chunk_ids(records, "alone")
        assert await self.links(records, alone) == [(None, alone[1]), (alone[0], None)]
        await records.delete([DocumentId("a")])
        assert await self.links(records, [order[0]]) == [(None, order[2])]

    @staticmethod
    async def links(records: Records, ids: Sequence[ChunkId]) -> list[tuple[ChunkId | None, ChunkId | None]]:
        """What lies before and after each chunk."""
        return [(stored.previous, stored.next) for stored in await records.hydrate(ids)]

    async def test_writers_at_once(self, records: Records, stocked: None) -> None:
        """All succeed, and a reader sees whole documents only."""

        async def write(number: int) -> None:
            for version in range(5):
                words = f"{number}.{version} "
                await put(records, prepared(f"d{number}", *[words] * (version + 1)))

        async def read() -> None:
            for _ in range(40):
                text = await records.text(DocumentId("d0"))
                assert len(text.split()) == int(text.split()[0].partition(".")[2]) + 1

        await write(0)
        await asyncio.gather(*(write(number) for number in range(8)), read(), read())
        assert await records.count(SHELF, EVERYTHING) == 8
        assert await records.check() == []
