"""Random histories of a wiki that changes while it is read, by runs that are killed and pages that fail."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries
from tests.support.in_memory_wiki import MemoryConnector, MemoryWiki

from conspectus.errors import FetchFailed
from conspectus.ingest.connection_sync import synchronise
from conspectus.model.connections import Connection, ConnectorEntry, Listing
from conspectus.model.ids import LOCAL, CollectionId, DocumentId, SourceId
from conspectus.model.records import Document, NewDocument, Source, Written

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
HOME = CollectionId("home")
SPACES, NAMES = st.sampled_from(["One", "Two"]), st.sampled_from(["a", "b", "c"])
CHANGES = st.one_of(
    st.tuples(
        st.just("put"),
        SPACES,
        NAMES,
        st.sampled_from(["", "alpha", "beta"]),
        st.sampled_from([None, "0", "1"]),
    ),
    st.tuples(st.just("delete"), SPACES, NAMES),
    st.tuples(st.just("move"), SPACES, NAMES, SPACES, NAMES),
    st.tuples(st.just("remove_space"), SPACES),
)
MEANWHILE = st.lists(st.none() | CHANGES, max_size=4)
RUNS = st.tuples(st.just("run"), MEANWHILE, st.integers(0, 12), st.booleans(), st.sets(NAMES, max_size=1))
STEPS = st.lists(CHANGES | RUNS, max_size=20)


@dataclass
class PlainShelf:
    """A `ConnectionStore` of plain dictionaries; the process is killed at one of its changes."""

    sources: dict[str, Source] = field(default_factory=dict)
    pages: dict[DocumentId, tuple[Document, str]] = field(default_factory=dict)
    cursor: str | None = None
    left: int = 0

    async def spaces(self) -> Sequence[str]:
        return list(self.sources)

    async def source(self, space: str, viewers: frozenset[str] | None) -> Source:
        assert viewers is None
        self.change()
        return self.sources.setdefault(space, Source(SourceId(space), HOME, space))

    async def delete_source(self, space: str) -> int:
        self.change()
        gone = [id for id, (page, _) in self.pages.items() if page.source == space]
        for document_id in gone:
            del self.pages[document_id]
        self.sources.pop(space, None)
        return len(gone)

    async def find(self, keys: Sequence[str]) -> Sequence[Document]:
        return [page for page, _ in self.pages.values() if page.key in keys]

    async def iterate_stored_pages(self) -> AsyncIterator[Document]:
        for page, _ in list(self.pages.values()):
            yield page

    async def write(self, source: Source, documents: Sequence[NewDocument]) -> Sequence[Written]:
        self.change()
        return [self.put(source, document) for document in documents]

    async def delete(self, documents: Sequence[DocumentId]) -> None:
        self.change()
        for document_id in documents:
            self.pages.pop(document_id, None)

    async def show_again(self) -> None:
        self.change()

    async def save_cursor(self, cursor: str) -> None:
        self.change()
        self.cursor = cursor

    def change(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise SystemExit

    def put(self, source: Source, new: NewDocument) -> Written:
        id = DocumentId(f"{source.id}/{new.key}")
        assert source.name in self.sources
        assert new.parent is None or self.pages[DocumentId(new.parent)][0].source == source.id
        page = Document(
            id, HOME, source.id, "page", new.key or "", new.title, "", "", NOON, NOON, new.metadata
        )
        outcome = "replaced" if id in self.pages else "added"
        self.pages[id] = (page, new.text)
        return Written(id, outcome, 1)

    def texts(self) -> list[tuple[str, str, str]]:
        return sorted((page.source, page.title, text) for page, text in self.pages.values())


@dataclass
class Restless(MemoryConnector):
    """The wiki changes before each batch; pages of some titles fail."""

    meanwhile: Sequence[tuple | None] = ()
    failing: frozenset[str] = frozenset()

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        left = list(self.meanwhile)
        async for listing in MemoryConnector.changes(self, cursor):
            if left and (change := left.pop()):
                await apply_change(change, self.wiki)
            yield listing

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        page = await MemoryConnector.fetch(self, entry)
        if page.title in self.failing:
            raise FetchFailed("memory", "fails")
        return page


async def apply_change(change: tuple, wiki: MemoryWiki) -> None:
    """A change of the wiki, if it can be made."""
    kind, *where = change
    titles = {(entry.space, entry.title) for entry, _ in wiki.pages.values()}
    if kind == "put":
        await wiki.put(*where[:3], parent=where[3])
    elif kind == "remove_space":
        await wiki.remove_space(where[0])
    elif tuple(where[:2]) in titles and kind == "delete":
        await wiki.delete(*where)
    elif tuple(where[:2]) in titles and tuple(where[2:]) not in titles:
        await wiki.move(where[0], where[1], to_space=where[2], to_name=where[3])


async def run_connection(shelf: PlainShelf, connector: MemoryConnector) -> None:
    connection = Connection("w", HOME, LOCAL, "w", "memory", cursor=shelf.cursor)
    try:
        await synchronise(connection, connector, shelf)
    except SystemExit:
        return


async def follow_history(steps: Sequence[tuple]) -> None:
    wiki, shelf = MemoryWiki(), PlainShelf()
    for step in steps:
        if step[0] != "run":
            await apply_change(step, wiki)
            continue
        _, meanwhile, shelf.left, forget, failing = step
        shelf.cursor = None if forget else shelf.cursor
        await run_connection(shelf, Restless(wiki, meanwhile=meanwhile, failing=frozenset(failing)))
    shelf.left = 0
    await run_connection(shelf, MemoryConnector(wiki))
    expected = sorted((entry.space, entry.title, text) for entry, text in wiki.pages.values())
    assert shelf.texts() == expected
    assert set(shelf.sources) >= {space for space, *_ in expected}


@settings(max_examples=tries(400))
@given(STEPS)
def test_a_store_is_in_step_after_any_history(steps: list[tuple]) -> None:
    asyncio.run(follow_history(steps))
