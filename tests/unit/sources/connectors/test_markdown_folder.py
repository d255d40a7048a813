"""The connector for a folder of Markdown, beyond the contract of connectors."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import FetchFailed, NotFound, TooLarge, UnreadableFile
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.model.records import NewDocument
from conspectus.settings import Settings
from conspectus.sources.connectors.markdown_folder import MarkdownFolder
from conspectus.sources.connectors.markdown_pages import page_id, read_page
from conspectus.sources.files.local_files import LocalFiles


def write_files(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


async def list_changes(connector: MarkdownFolder, cursor: str | None = None) -> list[Listing]:
    return [listing async for listing in connector.changes(cursor)]


async def pages_by_title(connector: MarkdownFolder, cursor: str | None = None) -> dict[str, ConnectorEntry]:
    """Entries by their title."""
    return {page.title: page for listing in await list_changes(connector, cursor) for page in listing.entries}


async def documents_by_path(connector: MarkdownFolder) -> dict[str, NewDocument]:
    """Documents by their path."""
    documents = [await connector.fetch(page) for page in (await pages_by_title(connector)).values()]
    return {str(document.metadata["path"]): document for document in documents}


async def test_spaces_titles_and_parents(tmp_path: Path) -> None:
    write_files(tmp_path, {
        "index.md": "# Start", "top.md": "text", "guide/index.md": "---\ntitle: The guide\n---\n",
        "guide/setup.md": "# Set up\n", "guide/deep/down/leaf.md": "# Leaf\n", "notes/a.md": "# Note\n",
    })  # fmt: skip
    pages = await pages_by_title(MarkdownFolder(tmp_path))
    assert {title: page.space for title, page in pages.items()} == {
        "Start": ".", "top": ".", "The guide": "guide", "Set up": "guide", "Leaf": "guide", "Note": "notes",
    }  # fmt: skip
    guide, start = pages["The guide"].key, pages["Start"].key
    parents = {title: page.parent for title, page in pages.items()}
    assert parents == {
        "Start": None, "top": start, "The guide": None, "Set up": guide, "Leaf": guide, "Note": None,
    }  # fmt: skip


async def test_parents_are_listed_before_their_children(tmp_path: Path) -> None:
    write_files(
        tmp_path, {f"s/{'d/' * depth}{name}.md": "x" for depth in range(4) for name in ("a", "index", "z")}
    )
    seen: set[str] = set()
    for listing in await list_changes(MarkdownFolder(tmp_path, batch=1)):
        for page in listing.entries:
            assert page.parent is None or page.parent in seen
            seen.add(page.key)
    assert len(seen) == 12


async def test_a_page_gets_or_loses_its_parent(tmp_path: Path) -> None:
    write_files(tmp_path, {"s/page.md": "# Page"})
    connector = MarkdownFolder(tmp_path)
    cursor = (await list_changes(connector))[-1].cursor
    write_files(tmp_path, {"s/index.md": "# Index"})
    last = (await list_changes(connector, cursor))[-1]
    assert sorted(listed_page.title for listed_page in last.entries) == ["Index", "page"]
    (tmp_path / "s/index.md").unlink()
    (page,) = (await list_changes(connector, last.cursor))[-1].entries
    assert page.parent is None


async def test_front_matter_is_title_tags_and_metadata(tmp_path: Path) -> None:
    text = "---\ntitle: 'On: herons'\nid: 007\ntags: [birds, 'grey, big']\nstatus: draft\n"
    text += "author: Ann Keeper\ndate: 2024-05-01\n...\n# Heading\nBody.\n"
    write_files(tmp_path, {"s/a.md": text, "s/b.md": "---\ntags: one, two\n---\n# Named so\n"})
    documents = await documents_by_path(MarkdownFolder(tmp_path))
    page = documents["s/a.md"]
    assert (page.title, page.text, page.syntax) == ("On: herons", "# Heading\nBody.\n", "markdown")
    assert page.author == "Ann Keeper"
    assert page.metadata == {
        "tags": ["birds", "grey, big"],
        "status": "draft",
        "author": "Ann Keeper",
        "date": "2024-05-01",
        "path": "s/a.md",
    }
    assert (documents["s/b.md"].title, documents["s/b.md"].metadata["tags"]) == ("Named so", ["one", "two"])


async def test_an_id_outlives_moves_with_changes(tmp_path: Path) -> None:
    write_files(tmp_path, {"one/a.md": "---\nid: heron\n---\nold"})
    connector = MarkdownFolder(tmp_path)
    last = (await list_changes(connector))[-1]
    (tmp_path / "one/a.md").unlink()
    write_files(tmp_path, {"two/b.md": "---\nid: heron\n---\nnew and different"})
    after = (await list_changes(connector, last.cursor))[-1]
    assert [(page.key, page.space) for page in after.entries] == [(last.entries[0].key, "two")]
    assert (after.gone, after.spaces_gone) == ((), ("one",))


async def test_a_copy_does_not_take_the_id_away(tmp_path: Path) -> None:
    write_files(tmp_path, {"s/original.md": "---\nid: heron\n---\ntext"})
    connector = MarkdownFolder(tmp_path)
    last = (await list_changes(connector))[-1]
    write_files(tmp_path, {"s/a copy.md": "---\nid: heron\n---\ntext"})
    after = (await list_changes(connector, last.cursor))[-1]
    assert [page.title for page in after.entries] == ["a copy"]
    assert after.entries[0].key != last.entries[0].key


async def test_a_renamed_folder_keeps_every_page(tmp_path: Path) -> None:
    write_files(tmp_path, {f"s/old/{name}.md": "the same text" for name in ("a", "b", "c")})
    connector = MarkdownFolder(tmp_path, batch=1)
    before = await list_changes(connector)
    keys = {page.title: page.key for listing in before for page in listing.entries}
    (tmp_path / "s/old").rename(tmp_path / "s/new")
    after = await list_changes(connector, before[-1].cursor)
    assert {page.title: page.key for listing in after for page in listing.entries} == keys
    assert after[-1].gone == ()


async def test_a_renamed_space_is_named_even_after_a_kill(tmp_path: Path) -> None:
    write_files(tmp_path, {"old/a.md": "a", "old/b.md": "b", "zzz/c.md": "c"})
    connector = MarkdownFolder(tmp_path, batch=2)
    before = await list_changes(connector)
    (tmp_path / "old").rename(tmp_path / "new")
    write_files(tmp_path, {"zzz/c.md": "changed"})
    async with aclosing(connector.changes(before[-1].cursor)) as changes:
        first = await anext(changes)
    assert {page.space for page in first.entries} == {"new"}
    assert (await list_changes(connector, first.cursor))[-1].spaces_gone == ("old",)


async def test_a_name_taken_anew_after_a_kill_is_another_page(tmp_path: Path) -> None:
    write_files(tmp_path, {"s/a.md": "heron", "s/c.md": "c"})
    connector = MarkdownFolder(tmp_path, batch=1)
    before = await list_changes(connector)
    keys = {page.title: page.key for listing in before for page in listing.entries}
    (tmp_path / "s/a.md").rename(tmp_path / "s/b.md")
    write_files(tmp_path, {"s/c.md": "changed"})
    async with aclosing(connector.changes(before[-1].cursor)) as changes:
        first = await anext(changes)
    assert [(page.title, page.key) for page in first.entries] == [("b", keys["a"])]
    write_files(tmp_path, {"s/a.md": "another"})
    after = await pages_by_title(connector, first.cursor)
    assert (after["a"].key == keys["a"], after["c"].key) == (False, keys["c"])
    assert "b" not in after


async def test_what_is_no_page_is_left_out(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write_files(
        root, {"s/page.MD": "page", "s/.hidden.md": "x", ".git/x.md": "x", "s/image.png": "x", "s/x.txt": "x"}
    )
    write_files(outside, {"secret.md": "secret"})
    (root / "s/link.md").symlink_to(outside / "secret.md")
    (root / "linked").symlink_to(outside)
    (root / "s/again").symlink_to(root / "s")
    assert list(await documents_by_path(MarkdownFolder(root))) == ["s/page.MD"]


async def test_a_file_that_became_a_link_out_cannot_be_fetched(tmp_path: Path) -> None:
    write_files(tmp_path, {"root/s/page.md": "page", "secret.md": "secret"})
    connector = MarkdownFolder(tmp_path / "root")
    page = (await pages_by_title(connector))["page"]
    (tmp_path / "root/s/page.md").unlink()
    (tmp_path / "root/s/page.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(NotFound):
        await connector.fetch(page)


async def test_a_page_deleted_after_the_listing_is_not_found(tmp_path: Path) -> None:
    write_files(tmp_path, {"s/page.md": "page"})
    connector = MarkdownFolder(tmp_path)
    page = (await pages_by_title(connector))["page"]
    (tmp_path / "s/page.md").unlink()
    with pytest.raises(NotFound):
        await connector.fetch(page)


async def test_pages_that_cannot_be_read_are_listed_and_fail(tmp_path: Path) -> None:
    write_files(tmp_path, {"s/large.md": "x" * 2_000, "s/good.md": "good"})
    (tmp_path / "s/binary.md").write_bytes(b"%PDF-1.7 binary")
    os.mkfifo(tmp_path / "s/pipe.md")
    connector = MarkdownFolder(tmp_path, files=LocalFiles(Settings(max_file_bytes=1_000)))
    (listing,) = await list_changes(connector)
    failed = set()
    for page in listing.entries:
        try:
            await connector.fetch(page)
        except (TooLarge, UnreadableFile):
            failed.add(page.key)
    assert failed == {"path:s/large.md", "path:s/binary.md"}
    assert (await list_changes(connector, listing.cursor))[-1].entries == ()
    write_files(tmp_path, {"s/large.md": "small now"})
    assert [page.key for page in (await list_changes(connector, listing.cursor))[-1].entries] == [
        "path:s/large.md"
    ]


async def test_a_missing_folder_deletes_nothing(tmp_path: Path) -> None:
    for root in (tmp_path / "missing", tmp_path / "file"):
        (tmp_path / "file").touch()
        with pytest.raises(FetchFailed):
            await list_changes(MarkdownFolder(root))


async def test_many_pages_in_the_root(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{number}.md": f"text {number}" for number in range(700)})
    connector = MarkdownFolder(tmp_path)
    listings = await list_changes(connector)
    assert [len(listing.entries) for listing in listings] == [500, 200]
    assert len({page.key for listing in listings for page in listing.entries}) == 700


async def test_names_that_are_not_unicode(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    for name in (b"\xff.md", b"\xfe.md"):
        (tmp_path / "s" / os.fsdecode(name)).write_text("text")
    connector = MarkdownFolder(tmp_path)
    (listing,) = await list_changes(connector)
    assert len({page.key for page in listing.entries}) == 2
    assert (await list_changes(connector, listing.cursor))[-1].entries == ()
    assert [(await connector.fetch(page)).text for page in listing.entries] == ["text", "text"]


async def test_watching_says_that_something_changed(tmp_path: Path) -> None:
    write_files(tmp_path, {"s/page.md": "page"})
    stop = asyncio.Event()
    connector = MarkdownFolder(tmp_path)

    async def count() -> int:
        changes = 0
        async with aclosing(connector.watch(debounce=50, stop=stop)) as watched:
            async for _ in watched:
                changes += 1
                stop.set()
        return changes

    async def keep_changing() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            write_files(tmp_path, {"s/page.md": f"changed {number}"})
            await asyncio.sleep(0.02)

    async with asyncio.timeout(60):
        changes, _ = await asyncio.gather(count(), keep_changing())
    assert changes >= 1


async def test_watching_a_missing_folder_fails(tmp_path: Path) -> None:
    with pytest.raises(FetchFailed):
        await anext(MarkdownFolder(tmp_path / "missing").watch())


@pytest.mark.parametrize("value", ["[a]", "{a: b}", "''", "' '", "x" * 201, "~x: y"])
def test_an_id_is_a_short_string(value: str) -> None:
    assert page_id(f"---\nid: {value}\n---\n") in {None, "~x: y"}


@given(st.text(st.sampled_from("-:[]{}&*!|>'\"%@`#,? \n\tabid~=0")), st.text(max_size=20))
def test_any_front_matter_can_be_read(block: str, body: str) -> None:
    page = read_page(f"---\n{block}\n---\n{body}", "s/page.md")
    assert body.strip() == "" or body in page.text or page.text.endswith(body)


async def test_files_that_are_no_pages_are_named_in_the_last_batch(tmp_path: Path) -> None:
    write_files(
        tmp_path, {"a.md": "A", "b.md": "B", "talk.mp3": "ID3", "plans/plan.pdf": "%PDF", ".env": "x"}
    )
    connector = MarkdownFolder(tmp_path, batch=1)
    first, last = await list_changes(connector)
    assert (first.not_pages, last.not_pages) == ((), ("plans/plan.pdf", "talk.mp3"))
    [unchanged] = await list_changes(connector, last.cursor)
    assert unchanged.not_pages == ("plans/plan.pdf", "talk.mp3")
