"""What every connector must list and fetch, whatever its server: tests that need no engine."""

from pathlib import PurePosixPath
from typing import ClassVar

import pytest

from conspectus.errors import NotFound
from conspectus.testing.connectors.copies import Copy, entries, open_connector
from conspectus.testing.connectors.servers import PageStore

STRANGE = ("Größe", "東京 ガイド", "naïve — “quotes” & more", "🎉 party", "a'b;c $(d)")


class ListingProperties:
    """What listings and pages of every connector hold to.

    Args:
        server: name of the fixture that has the server, without pages.
        follows_moves: a page that is renamed or moved keeps its key. Otherwise its key is its path: it is
            gone, and another page is there.
    """

    server: ClassVar[str]
    follows_moves: ClassVar[bool] = True

    @pytest.fixture
    def store(self, request: pytest.FixtureRequest) -> PageStore:
        """The server, without pages."""
        remote: PageStore = request.getfixturevalue(self.server)
        return remote

    @pytest.fixture
    async def copy(self, store: PageStore) -> Copy:
        """A copy of a store with three pages in two spaces."""
        await store.put("One", "first", "alpha words")
        await store.put("One", "second", "beta words")
        await store.put("Two", "third", "gamma words")
        copy = Copy(store)
        await copy.follow()
        return copy

    async def test_a_store_without_pages(self, store: PageStore) -> None:
        """Nothing, and nothing more: that is a complete listing."""
        copy = Copy(store)
        listings = await copy.follow()
        assert (copy.pages, listings[-1].complete) == ({}, True)

    async def test_everything_from_the_start(self, copy: Copy) -> None:
        """Every page in its space, under a key of its own."""
        assert copy.texts() == {"One": ["alpha words", "beta words"], "Two": ["gamma words"]}

    async def test_the_last_batch_of_everything_is_complete(self, copy: Copy) -> None:
        """And only that."""
        listings = await Copy(copy.store).follow()
        assert [listing.complete for listing in listings] == [False] * (len(listings) - 1) + [True]
        assert {entry.key for entry in entries(listings)} == copy.pages.keys()

    async def test_nothing_changed(self, copy: Copy) -> None:
        """No entry, nothing gone, time after time."""
        for _ in range(3):
            listings = await copy.follow()
            assert entries(listings) == []
            assert [
                (listing.gone, listing.spaces_gone, listing.complete) for listing in listings if listing.gone
            ] == []

    async def test_a_page_is_made(self, copy: Copy) -> None:
        """Only that is listed."""
        await copy.store.put("One", "fourth", "delta words")
        assert len(entries(await copy.follow())) == 1
        assert copy.texts()["One"] == ["alpha words", "beta words", "delta words"]

    async def test_a_page_is_changed(self, copy: Copy) -> None:
        """The same key, another revision."""
        key = copy.key("alpha words")
        before = copy.pages[key][0]
        await copy.store.put("One", "first", "other words")
        (entry,) = entries(await copy.follow())
        assert (entry.key, entry.revision == before.revision) == (key, False)
        assert copy.texts()["One"] == ["beta words", "other words"]

    async def test_a_page_is_emptied(self, copy: Copy) -> None:
        """It is still there, without text."""
        key = copy.key("alpha words")
        await copy.store.put("One", "first", "")
        await copy.follow()
        assert copy.pages[key][1] == ""

    async def test_a_page_is_deleted(self, copy: Copy) -> None:
        """Its key is gone, and nothing else."""
        key = copy.key("alpha words")
        await copy.store.delete("One", "first")
        listings = await copy.follow()
        assert (entries(listings), [key_gone for one in listings for key_gone in one.gone]) == ([], [key])

    async def test_a_page_is_deleted_and_made_again(self, copy: Copy) -> None:
        """What counts is what there is at the end."""
        await copy.store.delete("One", "first")
        await copy.store.put("One", "first", "again")
        await copy.follow()
        assert copy.texts()["One"] == ["again", "beta words"]

    async def test_a_page_is_renamed(self, copy: Copy) -> None:
        """It keeps its key, its revision changes, and its path is the new one."""
        key = copy.key("alpha words")
        before = copy.pages[key][0]
        await copy.store.move("One", "first", to_space="One", to_name="renamed")
        (entry,) = entries(await copy.follow())
        assert (entry.key == key, entry.space) == (self.follows_moves, "One")
        assert not self.follows_moves or entry.revision != before.revision
        path = str(copy.paths[entry.key])
        assert PurePosixPath(path).stem.rpartition(":")[2].lower() == "renamed"
        assert copy.texts()["One"] == ["alpha words", "beta words"]

    async def test_a_page_moves_to_another_space(self, copy: Copy) -> None:
        """It keeps its key there, if moves are followed."""
        key = copy.key("alpha words")
        await copy.store.move("One", "first", to_space="Two", to_name="first")
        await copy.follow()
        assert copy.texts() == {"One": ["beta words"], "Two": ["alpha words", "gamma words"]}
        moved = copy.key("alpha words")
        assert (moved == key, copy.pages[moved][0].space) == (self.follows_moves, "Two")

    async def test_a_page_is_renamed_and_another_takes_its_name(self, copy: Copy) -> None:
        """The name does not make the page, and no key is given twice."""
        await copy.store.move("One", "first", to_space="One", to_name="renamed")
        await copy.follow()
        await copy.store.put("One", "first", "another page")
        await copy.follow()
        assert copy.texts()["One"] == ["alpha words", "another page", "beta words"]

    async def test_a_new_space(self, copy: Copy) -> None:
        """Its pages are listed in it."""
        await copy.store.put("Three", "page", "new words")
        await copy.follow()
        assert copy.texts()["Three"] == ["new words"]

    async def test_a_space_is_removed(self, copy: Copy) -> None:
        """It is named, and none of its pages is left."""
        await copy.store.remove_space("One")
        listings = await copy.follow()
        assert [space for listing in listings for space in listing.spaces_gone] == ["One"]
        assert copy.texts() == {"Two": ["gamma words"]}

    async def test_names_of_all_kinds(self, copy: Copy) -> None:
        """In pages and in spaces."""
        for name in STRANGE:
            await copy.store.put(name, name, f"text of {name}")
        await copy.follow()
        assert {name: copy.texts()[name] for name in STRANGE} == {
            name: [f"text of {name}"] for name in STRANGE
        }
        await copy.store.delete(STRANGE[0], STRANGE[0])
        await copy.follow()
        assert f"text of {STRANGE[0]}" not in [text for _, text in copy.pages.values()]

    @pytest.mark.parametrize("batches", [1, 2, 3])
    async def test_killed_while_everything_is_listed(self, copy: Copy, batches: int) -> None:
        """Going on from the last cursor gives the rest."""
        for number in range(4):
            await copy.store.put("One", f"more {number}", f"more {number}")
        other = Copy(copy.store)
        await other.follow(batches=batches)
        await copy.store.delete("One", "first")
        await copy.store.put("Two", "third", "changed meanwhile")
        await other.follow()
        await copy.follow()
        assert other.texts() == copy.texts()

    @pytest.mark.parametrize("batches", [1, 2])
    async def test_killed_while_changes_are_listed(self, copy: Copy, batches: int) -> None:
        """Going on from the last cursor gives the rest, deletions and moves included."""
        await copy.store.move("One", "first", to_space="One", to_name="renamed")
        await copy.store.delete("One", "second")
        for number in range(5):
            await copy.store.put("Three", f"more {number}", f"more {number}")
        key = copy.key("alpha words")
        await copy.follow(batches=batches)
        await copy.follow()
        assert copy.texts() == {
            "One": ["alpha words"],
            "Two": ["gamma words"],
            "Three": [f"more {number}" for number in range(5)],
        }
        assert (copy.key("alpha words") == key) == self.follows_moves

    async def test_a_page_that_is_gone_cannot_be_fetched(self, copy: Copy) -> None:
        """It is not an empty page."""
        entry = copy.pages[copy.key("alpha words")][0]
        await copy.store.delete("One", "first")
        async with open_connector(copy.store) as connector:
            _ = [listing async for listing in connector.changes(copy.cursor)]
            with pytest.raises(NotFound):
                await connector.fetch(entry)

    async def test_a_cursor_of_something_else(self, copy: Copy) -> None:
        """Is as none: a complete listing, so that nothing is missed."""
        for cursor in ("", "{", "[]", "nonsense", '{"version": 99}'):
            other = Copy(copy.store, cursor=cursor)
            listings = await other.follow()
            assert (other.texts(), listings[-1].complete) == (copy.texts(), True)
