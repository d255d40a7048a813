"""What every keeper of the names in passages must do.

Subclass the contract, give it its fixtures, let pytest collect it.
"""

from collections.abc import Sequence

import pytest

from conspectus.errors import NotFound
from conspectus.model.graph import EntityCount
from conspectus.model.ids import ChunkId, CollectionId, DocumentId, SourceId
from conspectus.model.records import Mention
from conspectus.ports import Records
from conspectus.ports.graphs import SUBJECT, Mentioned, MentionStore, Unread
from tests.support.samples import NOTES, SHELF, notes, prepared, shelf

LETTERS = SourceId("letters")
ELSEWHERE = CollectionId("elsewhere")
MANY = 1_000


def name(text: str, *, at: int = 0, kind: str = "person", key: str | None = None) -> Mention:
    """A name that is its own key in lower case."""
    return Mention(at, at + len(text), text, text.lower() if key is None else key, kind)


async def everything(store: MentionStore, collection: CollectionId = SHELF) -> list[Unread]:
    """What is still to be looked through."""
    return list(await store.unread(collection, limit=MANY))


class NamesContract:
    """The behaviour of every keeper of names.

    Fixtures to override: `store`, and `records` on the same data, which are empty.
    """

    @pytest.fixture
    async def passages(self, records: Records) -> list[ChunkId]:
        """Four passages: two of `a` in the notes, one of `b` in the letters, one of `c` elsewhere."""
        for collection in (SHELF, ELSEWHERE):
            await records.create_collection(shelf(collection))
        for source in (notes(), notes(LETTERS), notes(SourceId("far"), ELSEWHERE)):
            await records.put_source(source)
        await records.write(
            [prepared("a", "Ada wrote. ", "Bob read."), prepared("b", "Ada!", source=LETTERS)]
        )
        await records.write([prepared("c", "Ada", collection=ELSEWHERE, source=SourceId("far"))])
        chunk_lists = [await records.document_chunks(DocumentId(document)) for document in "abc"]
        return [row.chunk.id for rows in chunk_lists for row in rows]

    @pytest.fixture
    async def read(self, store: MentionStore, passages: list[ChunkId]) -> list[ChunkId]:
        """The same with the names that they mention."""
        for collection in (SHELF, ELSEWHERE):
            await store.enable(collection, True)
        first, second, letter, far = passages
        subject = name("Ada", kind=SUBJECT)
        assert await store.put(SHELF, {first: [name("Ada", at=5), subject], second: [name("Bob")]}) == 2
        await store.put(SHELF, {letter: [name("ADA")]})
        await store.put(ELSEWHERE, {far: [name("Ada")]})
        return passages

    async def test_nothing_is_looked_through_unless_it_is_wanted(
        self, store: MentionStore, passages: list[ChunkId]
    ) -> None:
        """Nor kept: what was looked through while it was switched off is not stored."""
        assert await everything(store) == []
        assert await store.count_unread(SHELF) == 0
        assert await store.has_unread(SHELF) is False
        assert await store.put(SHELF, {passages[0]: [name("Ada")]}) == 0
        assert await store.of(passages) == []
        with pytest.raises(NotFound):
            await store.enable(CollectionId("nothing"), True)

    async def test_everything_is_looked_through_once_from_the_first_on(
        self, store: MentionStore, records: Records, passages: list[ChunkId]
    ) -> None:
        """Passages without names too, those that came later, and of other collections none."""
        await store.enable(SHELF, True)
        waiting = await everything(store)
        assert [(passage.chunk, passage.title, passage.text) for passage in waiting] == [
            (passages[0], "About a", "Ada wrote. "),
            (passages[1], "", "Bob read."),
            (passages[2], "About b", "Ada!"),
        ]
        assert [passage.chunk for passage in await store.unread(SHELF, limit=1)] == passages[:1]
        await store.put(SHELF, {passages[0]: [], passages[1]: []})
        assert [passage.chunk for passage in await everything(store)] == [passages[2]]
        await records.write([prepared("d", "new")])
        assert [passage.text for passage in await everything(store)] == ["Ada!", "new"]
        assert await store.count_unread(SHELF) == 2
        assert await store.has_unread(SHELF) is True
        await store.enable(SHELF, True)
        assert await store.count_unread(SHELF) == 2
        assert await store.has_unread(SHELF) is True

    async def test_a_memory_comes_with_the_ends_of_its_fact_and_the_names_it_was_told(
        self, store: MentionStore, records: Records, passages: list[ChunkId]
    ) -> None:
        """Only with its first passage; what is no memory may have such metadata for its own purposes."""
        fact = {"subject": "Ada", "predicate": "lives in", "object": "Bonn", "single": True}
        properties = {"fact": fact, "entities": ["Carl"]}
        await store.enable(SHELF, True)
        await store.put(SHELF, {passage: [] for passage in passages})
        await records.write([prepared("m", "I moved. ", "Yes.", kind="memory", metadata=properties)])
        await records.write([prepared("p", "I moved.", metadata=properties)])
        assert [(passage.about, passage.entities) for passage in await everything(store)] == [
            (("Ada", "Bonn"), ("Carl",)),
            ((), ()),
            ((), ()),
        ]

    async def test_a_passage_tells_its_names_and_what_it_is_about(
        self, store: MentionStore, read: list[ChunkId]
    ) -> None:
        """Each name once, as it is spelt there."""
        first, second, letter, _ = read
        mentioned = await store.of([letter, second, first, letter, ChunkId(999)])
        assert [(passage.chunk, dict(passage.names), passage.about) for passage in mentioned] == [
            (letter, {"ada": "ADA"}, frozenset()),
            (second, {"bob": "Bob"}, frozenset()),
            (first, {"ada": "Ada"}, frozenset({"ada"})),
        ]
        assert await store.of([]) == []

    async def test_a_name_tells_the_passages_of_the_sources_that_are_asked(
        self, store: MentionStore, read: list[ChunkId]
    ) -> None:
        """And of one collection only; of no source there is none."""
        first, second, letter, far = read
        limits = {"bob": 9, "ada": 9, "eve": 9}
        assert await store.passages(None, SHELF, limits, maximum=9) == {
            "bob": Mentioned((second,)),
            "ada": Mentioned((first, letter), frozenset({first})),
        }
        assert await store.passages([LETTERS], SHELF, limits, maximum=9) == {"ada": Mentioned((letter,))}
        assert await store.passages(None, ELSEWHERE, limits, maximum=9) == {"ada": Mentioned((far,))}
        assert await store.passages([], SHELF, limits, maximum=9) == {}
        assert await store.passages(None, SHELF, {}, maximum=9) == {}

    async def test_of_very_many_sources_the_same_is_told(
        self, store: MentionStore, records: Records, read: list[ChunkId]
    ) -> None:
        """Of names that are rarer than the sources are many, and of those that are not."""
        first, second, letter, _ = read
        sources = [LETTERS, *(SourceId(f"none {number}") for number in range(60))]
        expected = {"ada": Mentioned((letter,))}
        assert await store.passages(sources, SHELF, {"ada": 9, "bob": 9}, maximum=9) == expected
        assert await store.passages([*sources, NOTES], SHELF, {"ada": 9}, maximum=1) == {}
        await records.write([prepared(f"n{number}", "Ada") for number in range(70)])
        for passage in await everything(store):
            await store.put(SHELF, {passage.chunk: [name("Ada")]})
        assert await store.passages(sources, SHELF, {"ada": 9, "bob": 9}, maximum=9) == expected
        several = await store.passages([*sources, NOTES], SHELF, {"ada": 9, "bob": 9}, maximum=99)
        assert several == {"ada": Mentioned((first,), frozenset({first})), "bob": Mentioned((second,))}

    async def test_names_of_too_many_passages_are_left_out(
        self, store: MentionStore, read: list[ChunkId]
    ) -> None:
        """Counted in the sources that are asked: what others write changes nothing."""
        assert set(await store.passages(None, SHELF, {"ada": 9, "bob": 9}, maximum=1)) == {"bob"}
        assert set(await store.passages([NOTES], SHELF, {"ada": 9, "bob": 9}, maximum=1)) == {"ada", "bob"}
        assert set(await store.passages(None, SHELF, {"ada": 9, "bob": 9}, maximum=2)) == {"ada", "bob"}

    async def test_of_names_of_many_passages_only_those_about_them_are_told(
        self, store: MentionStore, read: list[ChunkId]
    ) -> None:
        """Again counted in the sources that are asked."""
        first, second, letter, _ = read
        about = Mentioned((first,), frozenset({first}))
        assert await store.passages(None, SHELF, {"ada": 1, "bob": 1}, maximum=2) == {
            "ada": about,
            "bob": Mentioned((second,)),
        }
        assert await store.passages([LETTERS], SHELF, {"ada": 1}, maximum=2) == {"ada": Mentioned((letter,))}
        assert await store.passages(None, SHELF, {"ada": 0, "bob": 0}, maximum=2) == {"ada": about}
        assert await store.passages(None, SHELF, {"ada": 2, "bob": 0}, maximum=2) == {
            "ada": Mentioned((first, letter), frozenset({first}))
        }

    async def test_names_are_counted(self, store: MentionStore, read: list[ChunkId]) -> None:
        """With how they are mostly spelt; a title has the last word on that."""
        counted = await store.counts(None, SHELF, begins="", limit=MANY)
        assert counted == [EntityCount("ada", "ADA", "person", 2), EntityCount("bob", "Bob", "person", 1)]
        assert await store.counts([NOTES], SHELF, begins="a", limit=MANY) == [
            EntityCount("ada", "Ada", SUBJECT, 1)
        ]
        assert [count.key for count in await store.counts(None, SHELF, begins="", limit=1)] == ["ada"]
        for begins in ("adam", "%", "_"):
            assert await store.counts(None, SHELF, begins=begins, limit=MANY) == []
        assert await store.counts([], SHELF, begins="", limit=MANY) == []

    async def test_names_go_with_their_passages(
        self, store: MentionStore, records: Records, read: list[ChunkId]
    ) -> None:
        """Deleted ones, replaced ones, and those that went while they were looked through."""
        await records.delete([DocumentId("b")])
        await records.write([prepared("a", "nobody")])
        assert await store.of(read[:3]) == []
        assert await store.counts(None, SHELF, begins="", limit=MANY) == []
        assert await store.put(SHELF, {read[0]: [name("Ada")]}) == 0
        assert [passage.text for passage in await everything(store)] == ["nobody"]

    async def test_switched_off_it_forgets_and_on_again_begins_anew(
        self, store: MentionStore, read: list[ChunkId]
    ) -> None:
        """Other collections keep theirs."""
        await store.enable(SHELF, False)
        assert await store.of(read[:3]) == []
        assert len(await store.of(read[3:])) == 1
        assert await everything(store) == []
        await store.enable(SHELF, True)
        assert [passage.chunk for passage in await everything(store)] == read[:3]

    async def test_what_is_looked_through_again_is_replaced(
        self, store: MentionStore, read: list[ChunkId]
    ) -> None:
        """Nothing of before is left."""
        await store.put(SHELF, {read[0]: [name("Eve")]})
        assert [dict(passage.names) for passage in await store.of(read[:1])] == [{"eve": "Eve"}]

    @pytest.mark.parametrize("text", ["\U0010ffff", "a'b\"%_\\", "Ko\u0308ln", "x" * 5_000, "\u2028"])
    async def test_any_text_can_be_a_name(self, store: MentionStore, read: list[ChunkId], text: str) -> None:
        """And is found under its key."""
        await store.put(SHELF, {read[1]: [name(text, key=text)]})
        assert await store.passages(None, SHELF, {text: 9}, maximum=1) == {text: Mentioned((read[1],))}
        assert [count.name for count in await store.counts(None, SHELF, begins=text, limit=9)] == [text]

    async def test_very_many_names_are_kept_and_asked_at_once(
        self, store: MentionStore, read: list[ChunkId]
    ) -> None:
        """More than a statement may name."""
        many: Sequence[str] = [f"name {number}" for number in range(40_000)]
        assert await store.put(SHELF, {read[1]: [name(key) for key in many]}) == len(many)
        assert len(await store.passages(None, SHELF, dict.fromkeys(many, 9), maximum=1)) == len(many)
        assert len((await store.of(read[1:2]))[0].names) == len(many)
