"""One sync of a wiki with a store."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.connection_sources import Shelf
from tests.support.in_memory_wiki import MemoryConnector, MemoryWiki

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import FetchFailed, NotFound, TooLarge
from conspectus.ingest.connection_sync import MAX_FAULTS_IN_A_ROW, synchronise
from conspectus.model.connections import Connection, ConnectorEntry, Listing, SyncReport
from conspectus.model.ids import LOCAL
from conspectus.model.records import Document, NewDocument, Source, Written
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), chunk_size=400, chunk_overlap=40, max_document_characters=5_000)


@dataclass
class Faulty(MemoryConnector):
    """Fails for pages of these titles, and notes which pages it was asked for."""

    faults: dict[str, Exception] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        self.fetched.append(entry.title)
        if entry.title in self.faults:
            raise self.faults[entry.title]
        return await MemoryConnector.fetch(self, entry)


class Dying(Shelf):
    """A shelf whose process is killed at the n-th change, before or after it is made."""

    def __init__(self, engine: Engine, connection: Connection, *, changes: int, before: bool = True) -> None:
        super().__init__(engine, connection)
        self.changes_left, self.before = changes, before

    async def source(self, space: str, viewers: frozenset[str] | None) -> Source:
        return await self._unless_killed(super().source(space, viewers))

    async def delete_source(self, space: str) -> int:
        return await self._unless_killed(super().delete_source(space))

    async def write(self, source: Source, documents: Sequence[NewDocument]) -> Sequence[Written]:
        return await self._unless_killed(super().write(source, documents))

    async def delete(self, documents):
        return await self._unless_killed(super().delete(documents))

    async def save_cursor(self, cursor: str) -> None:
        return await self._unless_killed(super().save_cursor(cursor))

    async def _unless_killed(self, change):
        self.changes_left -= 1
        if self.changes_left == 0 and self.before:
            change.close()
            raise SystemExit
        result = await change
        if self.changes_left == 0:
            raise SystemExit
        return result


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as opened:
        yield opened


@pytest.fixture
def wiki() -> MemoryWiki:
    return MemoryWiki()


@pytest.fixture
async def shelf(engine: Engine) -> Shelf:
    home = await engine.collections.get_or_create()
    return Shelf(engine, Connection("w1", home.id, LOCAL, "handbook", "memory"))


async def synchronize_wiki(shelf: Shelf, wiki: MemoryWiki) -> SyncReport:
    return await synchronise(shelf.connection, MemoryConnector(wiki), shelf)


async def stored_by_title(shelf: Shelf) -> dict[tuple[str, str], Document]:
    return {
        (str(document.metadata["space"]), document.title): document
        async for document in shelf.iterate_stored_pages()
    }


async def texts_by_title(shelf: Shelf) -> dict[tuple[str, str], str]:
    return {
        title: await shelf.engine.documents.get_text(document.id)
        for title, document in (await stored_by_title(shelf)).items()
    }


async def search_titles(engine: Engine, words: str) -> list[str]:
    return [hit.document.title for hit in (await engine.retrieve(words, retrievers=("keyword",))).hits]


async def test_a_new_page_is_a_document_with_chunks(shelf: Shelf, wiki: MemoryWiki) -> None:
    await wiki.put("Team", "Holidays", "Tell the office two weeks before. " * 40)
    report = await synchronize_wiki(shelf, wiki)
    (page,) = (await stored_by_title(shelf)).values()
    assert (report.added, page.kind, page.key, page.chunks > 1) == (1, "page", "0", True)
    assert page.metadata == {"wiki": "w1", "space": "Team", "path": "Team/Holidays", "revision": "1"}
    (source,) = await shelf.engine.collections.list_sources()
    assert (source.name, source.kind) == ("handbook/Team", "wiki")


async def test_a_changed_page_is_found_by_its_new_words_only(shelf: Shelf, wiki: MemoryWiki) -> None:
    await wiki.put("Team", "Holidays", "The heron stood in the reeds.")
    await synchronize_wiki(shelf, wiki)
    await wiki.put("Team", "Holidays", "The otter slept on the bank.")
    report = await synchronize_wiki(shelf, wiki)
    assert (report.replaced, await shelf.engine.documents.count()) == (1, 1)
    assert await search_titles(shelf.engine, "heron") == []
    assert await search_titles(shelf.engine, "otter") == ["Holidays"]


async def test_a_deleted_page_is_gone(shelf: Shelf, wiki: MemoryWiki) -> None:
    await wiki.put("Team", "Holidays", "heron")
    await wiki.put("Team", "Never seen", "stork")
    await wiki.delete("Team", "Never seen")
    await synchronize_wiki(shelf, wiki)
    await wiki.delete("Team", "Holidays")
    assert (await synchronize_wiki(shelf, wiki)).deleted == 1
    assert (await shelf.engine.documents.count(), await search_titles(shelf.engine, "heron")) == (0, [])
    assert await synchronize_wiki(shelf, wiki) == SyncReport()


async def test_an_emptied_page_loses_its_chunks(shelf: Shelf, wiki: MemoryWiki) -> None:
    await wiki.put("Team", "Holidays", "heron")
    await synchronize_wiki(shelf, wiki)
    await wiki.put("Team", "Holidays", "")
    await synchronize_wiki(shelf, wiki)
    assert [document.chunks async for document in shelf.iterate_stored_pages()] == [0]
    assert await search_titles(shelf.engine, "heron") == []


async def test_a_removed_space_loses_all_descendants(shelf: Shelf, wiki: MemoryWiki) -> None:
    for name, parent in (("root", None), ("child", "0"), ("leaf", "1")):
        await wiki.put("Old", name, f"heron {name}", parent=parent)
    await wiki.put("New", "stays", "otter")
    await synchronize_wiki(shelf, wiki)
    await wiki.remove_space("Old")
    report = await synchronize_wiki(shelf, wiki)
    assert (report.deleted, list(await texts_by_title(shelf))) == (3, [("New", "stays")])
    assert ([source.name for source in await shelf.engine.collections.list_sources()]) == ["handbook/New"]
    assert await search_titles(shelf.engine, "heron") == []


async def test_a_page_that_moves_in_its_space_keeps_its_id(shelf: Shelf, wiki: MemoryWiki) -> None:
    await wiki.put("Team", "Holidays", "heron")
    await synchronize_wiki(shelf, wiki)
    before = (await stored_by_title(shelf))["Team", "Holidays"].id
    await wiki.move("Team", "Holidays", to_space="Team", to_name="Time off")
    assert (await synchronize_wiki(shelf, wiki)).replaced == 1
    assert {title: document.id for title, document in (await stored_by_title(shelf)).items()} == {
        ("Team", "Time off"): before
    }


async def test_a_page_that_changes_its_space_is_there_once(shelf: Shelf, wiki: MemoryWiki) -> None:
    await wiki.put("Team", "Holidays", "heron")
    await wiki.put("Team", "Other", "otter")
    await synchronize_wiki(shelf, wiki)
    await wiki.move("Team", "Holidays", to_space="Office", to_name="Holidays")
    report = await synchronize_wiki(shelf, wiki)
    assert (report.added, report.deleted) == (1, 1)
    assert list(await texts_by_title(shelf)) == [("Team", "Other"), ("Office", "Holidays")]


async def test_what_is_stored_as_listed_is_not_fetched(shelf: Shelf, wiki: MemoryWiki) -> None:
    for number in range(5):
        await wiki.put("Team", f"page {number}", f"text {number}")
    await synchronize_wiki(shelf, wiki)
    connector = Faulty(wiki)
    report = await synchronise(replace(shelf.connection, cursor=None), connector, shelf)
    assert (report, connector.fetched) == (SyncReport(unchanged=5), [])


async def test_the_pages_below_a_deleted_one_stay(shelf: Shelf, wiki: MemoryWiki) -> None:
    await wiki.put("Team", "above", "heron")
    await wiki.put("Team", "below", "otter", parent="0")
    await synchronize_wiki(shelf, wiki)
    assert (await stored_by_title(shelf))["Team", "below"].parent == (await stored_by_title(shelf))[
        "Team", "above"
    ].id
    await wiki.delete("Team", "above")
    await synchronize_wiki(shelf, wiki)
    assert {title: document.parent for (_, title), document in (await stored_by_title(shelf)).items()} == {
        "below": None
    }
    assert await search_titles(shelf.engine, "otter") == ["below"]


async def test_parents_listed_after_their_children_are_found(shelf: Shelf, wiki: MemoryWiki) -> None:
    for number in range(4):
        await wiki.put("Team", str(number), "text", parent=str(number + 1) if number < 3 else None)
    await synchronise(shelf.connection, MemoryConnector(wiki, batch=100), shelf)
    pages = await stored_by_title(shelf)
    assert [pages["Team", str(n)].parent for n in range(3)] == [
        pages["Team", str(n + 1)].id for n in range(3)
    ]


@pytest.mark.parametrize("circle", [("0",), ("1", "0"), ("1", "2", "0")], ids=len)
async def test_parents_in_a_circle_are_no_parents(
    shelf: Shelf, wiki: MemoryWiki, circle: tuple[str, ...]
) -> None:
    for number, parent in enumerate(circle):
        await wiki.put("Team", str(number), "text", parent=parent)
    report = await synchronise(shelf.connection, MemoryConnector(wiki, batch=100), shelf)
    assert (report.added, report.failures) == (len(circle), ())
    assert [document.parent async for document in shelf.iterate_stored_pages()] == [None] * len(circle)


async def test_a_page_that_fails_is_named_and_tried_again(shelf: Shelf, wiki: MemoryWiki) -> None:
    for name in ("good", "bad", "other"):
        await wiki.put("Team", name, f"text of {name}")
    connector = Faulty(wiki, faults={"bad": FetchFailed("https://wiki", "x" * 2_000)})
    report = await synchronise(shelf.connection, connector, shelf)
    ((name, message),) = report.failures
    assert (report.added, name, len(message), message[:16]) == (2, "bad (1)", 500, "https://wiki: xx")
    again = await synchronise(shelf.connection, connector, shelf)
    assert (again.added, [name for name, _ in again.failures]) == (0, ["bad (1)"])
    assert (await synchronize_wiki(shelf, wiki)).added == 1
    assert await synchronize_wiki(shelf, wiki) == SyncReport()


async def test_a_failed_page_that_is_deleted_is_not_tried_again(shelf: Shelf, wiki: MemoryWiki) -> None:
    await wiki.put("Team", "bad", "text")
    await wiki.put("Gone", "worse", "text")
    fault = FetchFailed("https://wiki", "broken")
    await synchronise(shelf.connection, Faulty(wiki, faults={"bad": fault, "worse": fault}), shelf)
    await wiki.delete("Team", "bad")
    await wiki.remove_space("Gone")
    connector = Faulty(wiki)
    assert await synchronise(shelf.connection, connector, shelf) == SyncReport()
    assert (connector.fetched, json.loads(shelf.connection.cursor or "")["retry"]) == ([], [])


async def test_a_page_that_cannot_be_stored_leaves_its_old_text(shelf: Shelf, wiki: MemoryWiki) -> None:
    await wiki.put("Team", "grows", "small")
    await synchronize_wiki(shelf, wiki)
    await wiki.put("Team", "grows", "x" * 6_000)
    await wiki.put("Team", "beside", "text")
    report = await synchronise(shelf.connection, MemoryConnector(wiki, batch=100), shelf)
    assert [name for name, _ in report.failures] == ["grows (0)"]
    assert await texts_by_title(shelf) == {("Team", "grows"): "small", ("Team", "beside"): "text"}


async def test_a_page_gone_before_it_is_fetched_is_no_failure(shelf: Shelf, wiki: MemoryWiki) -> None:
    await wiki.put("Team", "page", "text")
    await synchronize_wiki(shelf, wiki)
    await wiki.put("Team", "page", "changed")
    connector = Faulty(wiki, faults={"page": NotFound("page", "0")})
    assert await synchronise(shelf.connection, connector, shelf) == SyncReport(deleted=1)
    assert await shelf.engine.documents.count() == 0


async def test_a_store_out_of_reach_ends_the_run(shelf: Shelf, wiki: MemoryWiki) -> None:
    names = [f"page {number}" for number in range(MAX_FAULTS_IN_A_ROW + 5)]
    for name in names:
        await wiki.put("Team", name, "text")
    unreachable = FetchFailed("https://wiki", "no connection", passing=True)
    connector = Faulty(wiki, batch=100, faults=dict.fromkeys(names, unreachable))
    with pytest.raises(FetchFailed):
        await synchronise(shelf.connection, connector, shelf)
    assert (len(connector.fetched), shelf.connection.cursor) == (MAX_FAULTS_IN_A_ROW, None)
    connector = Faulty(wiki, batch=100, faults=dict.fromkeys(names, TooLarge("file", size=2, limit=1)))
    assert len((await synchronise(shelf.connection, connector, shelf)).failures) == len(names)


@pytest.mark.parametrize("cursor", [None, "", "nonsense", "[]", '{"cursor": "x", "retry": [{}]}'])
async def test_without_a_cursor_what_is_not_listed_goes(
    shelf: Shelf, wiki: MemoryWiki, cursor: str | None
) -> None:
    for space, name in (("Team", "stays"), ("Team", "goes"), ("Old", "goes too")):
        await wiki.put(space, name, name)
    await synchronize_wiki(shelf, wiki)
    lost = MemoryWiki()
    await lost.put("Team", "stays", "stays")
    shelf.connection = replace(shelf.connection, cursor=cursor)
    assert (await synchronize_wiki(shelf, lost)).deleted == 2
    assert await texts_by_title(shelf) == {("Team", "stays"): "stays"}
    assert [source.name for source in await shelf.engine.collections.list_sources()] == ["handbook/Team"]


async def test_another_connection_of_the_collection_is_left_alone(shelf: Shelf, wiki: MemoryWiki) -> None:
    other = Shelf(shelf.engine, replace(shelf.connection, id="w2", name="handbook/Team"))
    await wiki.put("Team", "page", "text")
    await synchronize_wiki(other, wiki)
    await synchronize_wiki(shelf, wiki)
    shelf.connection = replace(shelf.connection, cursor=None)
    assert await synchronize_wiki(shelf, MemoryWiki()) == SyncReport(deleted=1)
    assert list(await texts_by_title(other)) == [("Team", "page")]


async def test_progress_counts_pages(shelf: Shelf, wiki: MemoryWiki) -> None:
    steps = []
    for number in range(3):
        await wiki.put("Team", str(number), "text")
    await synchronise(
        shelf.connection, MemoryConnector(wiki), shelf, progress=lambda *step: steps.append(step)
    )
    assert steps == [("syncing", number, 0) for number in (1, 2, 3)]


async def changed_in_every_way(wiki: MemoryWiki) -> None:
    for number in range(4):
        await wiki.put("Team", f"page {number}", f"text {number}")
    await wiki.put("Team", "page 0", "changed")
    await wiki.move("Team", "moves", to_space="Office", to_name="moved")
    await wiki.delete("Team", "goes")
    await wiki.remove_space("Old")


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("cursor_lost", [False, True], ids=["with a cursor", "without"])
async def test_killed_at_every_change_and_run_again(
    shelf: Shelf, wiki: MemoryWiki, before: bool, cursor_lost: bool
) -> None:
    for space, name in (("Team", "moves"), ("Team", "goes"), ("Old", "one"), ("Old", "two")):
        await wiki.put(space, name, name)
    await synchronize_wiki(shelf, wiki)
    await changed_in_every_way(wiki)
    connection = replace(shelf.connection, cursor=None) if cursor_lost else shelf.connection
    kills = 0
    for step in range(1, 100):
        dying = Dying(shelf.engine, connection, changes=step, before=before)
        try:
            await synchronize_wiki(dying, wiki)
            break
        except SystemExit:
            kills += 1
            connection = dying.connection
    expected = {("Team", f"page {n}"): f"text {n}" for n in range(1, 4)}
    expected |= {("Team", "page 0"): "changed", ("Office", "moved"): "moves"}
    assert (await texts_by_title(shelf), sorted(await shelf.spaces())) == (expected, ["Office", "Team"])
    assert kills >= 4
    assert await synchronize_wiki(Shelf(shelf.engine, dying.connection), wiki) == SyncReport()


async def test_killed_while_listing_fetches_nothing_twice(shelf: Shelf, wiki: MemoryWiki) -> None:
    for number in range(6):
        await wiki.put("Team", f"page {number}", f"text {number}")
    dying = Dying(shelf.engine, shelf.connection, changes=5, before=True)
    first, second = Faulty(wiki), Faulty(wiki)
    with pytest.raises(SystemExit):
        await synchronise(dying.connection, first, dying)
    await synchronise(dying.connection, second, dying)
    assert sorted(first.fetched[:2] + second.fetched) == [f"page {n}" for n in range(6)]
    assert await shelf.engine.documents.count() == 6


@dataclass
class Told:
    """A connector that lists exactly these batches; every page has the same text."""

    listings: Sequence[Listing]

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        for listing in self.listings:
            yield listing

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        return NewDocument("text", title=entry.title, metadata={"revision": "mine", "wiki": "mine"})

    async def close(self) -> None:
        return


async def test_a_page_listed_and_gone_in_one_batch_stays(shelf: Shelf) -> None:
    page = ConnectorEntry("a", "Team", "1", "page")
    listing = Listing((page, page), "c", gone=("a", "unknown"), spaces_gone=("Team", "Unknown"))
    assert await synchronise(shelf.connection, Told([listing]), shelf) == SyncReport(added=1)
    assert (await stored_by_title(shelf))["Team", "page"].metadata["revision"] == "1"


async def test_files_that_are_no_pages_are_counted_and_the_first_ones_named(shelf: Shelf) -> None:
    files = tuple(f"{number}.mp3" for number in range(150))
    listings = [Listing((), "1", not_pages=files[:100]), Listing((), "2", not_pages=files[100:])]
    report = await synchronise(shelf.connection, Told(listings), shelf)
    assert (report.skipped, len(report.skipped_files)) == (150, 100)
    assert report.skipped_files["0.mp3"] == "a connection reads Markdown only; add the file itself"


async def test_a_page_that_goes_while_everything_is_listed_is_gone(shelf: Shelf) -> None:
    pages = (
        ConnectorEntry("a", "Team", "1", "stays"),
        ConnectorEntry("b", "Team", "1", "goes"),
        ConnectorEntry("c", "Old", "1", "goes"),
    )
    listings = [Listing(pages, "1"), Listing((), "2", gone=("b",), spaces_gone=("Old",), complete=True)]
    assert await synchronise(shelf.connection, Told(listings), shelf) == SyncReport(added=3, deleted=2)
    assert (list(await stored_by_title(shelf)), await shelf.spaces()) == ([("Team", "stays")], ["Team"])
