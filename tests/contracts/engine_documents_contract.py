"""What every engine must do with collections, sources and documents."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conspectus.errors import Changed, Conflict, InvalidInput, NotFound, TooLarge, UnreadableFile
from conspectus.model.filter import Eq
from conspectus.model.records import NewDocument, Receipt
from tests.support.engine_samples import FILTERS, HOSTILE, NOTES, AnyEngine, filled


class CatalogContract:
    """Collections and sources."""

    async def test_a_collection_is_made_once(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Getting makes it where it is new; making what exists is a conflict."""
        made = await engine.collection("wiki", words_only=True, language="german")
        assert (made.space, made.language) == (None, "german")
        assert await engine.collection("wiki") == await local.find_collection("wiki") == made
        with pytest.raises(Conflict) as caught:
            await engine.create_collection("wiki")
        assert (caught.value.kind, caught.value.name) == ("collection", "wiki")
        described = await engine.create_collection("team/a b?#%", description="of a team")
        assert (await engine.find_collection("team/a b?#%")).description == "of a team"
        assert [each.name for each in await engine.collections()] == ["team/a b?#%", "wiki"]
        assert await engine.find_collection(described.id) == described

    @pytest.mark.parametrize("name", ["a/documents", "a/b/status", "a/connections/c", "a/../b", "a/"])
    async def test_a_name_may_look_like_a_path(self, engine: AnyEngine, name: str) -> None:
        """It is still that of a collection of its own."""
        made = await engine.create_collection(name)
        other = await engine.create_collection("a")
        await engine.add("in it", collection=name)
        assert (await engine.find_collection(name)).id == made.id
        changed = await engine.update_collection(name, description="found")
        assert (changed.id, changed.description) == (made.id, "found")
        assert await engine.count(collection=name) == 1
        assert (await engine.delete_collection(name)).documents == 1
        assert [each.id for each in await engine.collections()] == [other.id]
        with pytest.raises(NotFound):
            await engine.find_collection(name)

    async def test_many_at_once_make_one(self, engine: AnyEngine) -> None:
        """A collection and its source, whoever comes first."""
        writing = [engine.add(f"note {number}", source="s", collection="new") for number in range(12)]
        written = await asyncio.gather(*writing)
        assert await engine.count(collection="new") == len(written)
        assert [each.name for each in await engine.collections()] == ["new"]
        assert [each.name for each in await engine.sources(collection="new")] == ["s"]

    async def test_collections_change_and_go(self, engine: AnyEngine) -> None:
        """A new name, a new description, and a receipt for all that was in it."""
        await engine.add(["one", "two"], collection="old", wait=True)
        changed = await engine.update_collection("old", rename="new", description="now")
        assert (changed.name, changed.description) == ("new", "now")
        with pytest.raises(NotFound):
            await engine.find_collection("old")
        assert await engine.delete_collection("new") == Receipt(documents=2, chunks=2, vectors=2)
        with pytest.raises(NotFound) as caught:
            await engine.delete_collection("new")
        assert (caught.value.kind, caught.value.name) == ("collection", "new")

    @pytest.mark.parametrize("name", ["", " ", "*", "x" * 2_000])
    async def test_not_everything_is_a_name(self, engine: AnyEngine, name: str) -> None:
        """What cannot be a name is refused."""
        with pytest.raises(InvalidInput):
            await engine.create_collection(name)

    async def test_sources_are_made_changed_and_deleted(self, engine: AnyEngine, local: AnyEngine) -> None:
        """In a collection that is made with the first of them."""
        made = await engine.source("/home/ann", collection="new", metadata={"a": [1, None]}, kind="upload")
        assert (made.metadata, made.kind) == ({"a": [1, None]}, "upload")
        assert await engine.source("/home/ann", collection="new") == made
        assert (await engine.source("/home/ann", collection="new", metadata={})).metadata == {}
        found = await engine.find_source("/home/ann", collection="new")
        assert found == await engine.find_source(made.id) == await local.find_source(made.id)
        renamed = await engine.update_source(made.id, rename="b", metadata={"c": 1})
        assert await engine.sources(collection="new") == [renamed]
        assert await engine.delete_source("b", collection="new") == Receipt()
        for call in (engine.find_source(made.id), engine.find_source("b", collection="new")):
            with pytest.raises(NotFound) as caught:
                await call
            assert caught.value.kind == "source"


class DocumentsContract:
    """Writing, reading and deleting documents."""

    async def test_texts_of_many_documents_come_in_one_answer(self, engine: AnyEngine) -> None:
        """Also empty ones; what does not exist is left out."""
        ids = [each.id for each in await engine.add([*NOTES, *HOSTILE])]
        texts = await engine.texts([*ids, "unknown"])
        assert texts == {each: await engine.text(each) for each in ids}
        with pytest.raises(InvalidInput):
            await engine.texts(["unknown"] * 1_001)

    async def test_what_was_written_comes_back(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Every field of it, as the store has it."""
        for written in await engine.add([*NOTES, *HOSTILE], source="s", wait=True):
            assert await engine.get(written.id) == await local.get(written.id)
            assert await engine.text(written.id) == await local.text(written.id)
            assert await engine.chunks(written.id) == await local.chunks(written.id)

    async def test_the_same_again_changes_nothing(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Neither from here nor from there; another text replaces it."""
        first = await engine.add([*NOTES, *HOSTILE])
        assert {each.outcome for each in first} == {"added"}
        for other in (engine, local):
            again = await other.add([*NOTES, *HOSTILE])
            assert [each.id for each in again] == [each.id for each in first]
            assert {each.outcome for each in again} == {"unchanged"}
        [changed] = await engine.add(replace(NOTES[0], text="At three."))
        assert (changed.id, changed.outcome) == (first[0].id, "replaced")
        assert await engine.text(changed.id) == "At three."

    async def test_many_are_written_in_batches(self, engine: AnyEngine) -> None:
        """In order, telling how far it is."""
        told: list[tuple[str, int, int]] = []
        texts = (f"note {number}" for number in range(1_100))
        written = await engine.add(texts, progress=lambda *step: told.append(step))
        assert told == [("writing", 500, 0), ("writing", 1_000, 0), ("writing", 1_100, 0)]
        assert await engine.text(written[-1].id) == "note 1099"
        assert await engine.count() == len({each.id for each in written}) == 1_100

    async def test_nothing_is_written_of_a_batch_at_fault(self, engine: AnyEngine) -> None:
        """The reason names the field."""
        for fields in (
            {"metadata": {"a": float("nan")}},
            {"occurred": "soon"},
            {"metadata": {"x" * 70_000: 1}},
        ):
            with pytest.raises(InvalidInput):
                await engine.add(["fine", NewDocument("not", **fields)])
        with pytest.raises(TooLarge) as caught:
            await engine.add(NewDocument("a", metadata={"long": "x" * 70_000}))
        assert (caught.value.field, caught.value.limit) == ("metadata", 65_536)
        with pytest.raises(NotFound):
            await engine.add(NewDocument("a child", parent="nobody"))
        assert await engine.add([]) == []
        assert await engine.count() == 0

    async def test_pages_and_filters(self, engine: AnyEngine, local: AnyEngine) -> None:
        """The same documents in the same order, whole or in pages."""
        await filled(engine)
        for where in FILTERS:
            page = await engine.list(where=where)
            assert page == await local.list(where=where)
            assert await engine.count(where=where) == len(page.documents) > 0
        first = await engine.list(limit=5)
        rest = await engine.list(limit=5, after=first.next)
        assert (*first.documents, *rest.documents) == (await engine.list()).documents
        assert (len(first.documents), rest.next) == (5, None)

    @pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1_001}, {"after": "rubbish"}])
    async def test_a_page_that_is_none(self, engine: AnyEngine, wrong: dict[str, Any]) -> None:
        """A limit or a cursor that cannot be one is refused."""
        await filled(engine)
        with pytest.raises(InvalidInput):
            await engine.list(**wrong)
        with pytest.raises(NotFound):
            await engine.list(collection="nowhere")

    async def test_a_change_is_made_only_to_what_was_read(self, engine: AnyEngine, local: AnyEngine) -> None:
        """With the fingerprint; without, to whatever is there."""
        [written] = await engine.add(NOTES[0])
        read = await engine.get(written.id)
        await local.update(written.id, title="Changed by another")
        with pytest.raises(Changed) as caught:
            await engine.update(written.id, expected=read.fingerprint, title="Mine")
        assert (caught.value.kind, caught.value.name) == ("document", written.id)
        read = await engine.get(written.id)
        done = await engine.update(written.id, expected=read.fingerprint, title="Mine", metadata={"n": 2})
        assert done.outcome == "replaced"
        await engine.update(written.id, author="ann", occurred="2024-05-01")
        changed = await local.get(written.id)
        assert (changed.title, changed.metadata, changed.author) == ("Mine", {"n": 2}, "ann")
        assert await engine.text(written.id) == NOTES[0].text
        with pytest.raises(Changed):
            await engine.update(written.id, expected='"ä*', title="Nobody's")

    async def test_a_change_that_cannot_be_made(self, engine: AnyEngine) -> None:
        """An unknown field, a value that cannot be stored, a document that is not there."""
        [written] = await engine.add("a")
        with pytest.raises(InvalidInput) as caught:
            await engine.update(written.id, colour="red")
        assert caught.value.field == "colour"
        for changes in ({"metadata": {"a": object()}}, {"occurred": "soon"}, {"sequence": 2**70}):
            with pytest.raises(InvalidInput):
                await engine.update(written.id, **changes)
        with pytest.raises(NotFound) as missing:
            await engine.update("nobody", title="a")
        assert (missing.value.kind, missing.value.name) == ("document", "nobody")

    async def test_deleting_leaves_a_receipt(self, engine: AnyEngine) -> None:
        """By id, with children; by filter; and nothing for what is not there."""
        ids = await filled(engine)
        await engine.add(NewDocument("a child", parent=ids[0]), wait=True)
        assert await engine.delete(ids[0]) == Receipt(documents=2, chunks=2, vectors=2)
        assert await engine.delete([*ids[:1], "nobody"]) == Receipt()
        assert await engine.delete([]) == Receipt()
        gone = await engine.delete_where(Eq("kind", "message"), purge=True)
        assert (gone.documents, gone.purged) == (2, True)
        assert await engine.count() == len(NOTES) - 3
        assert await engine.delete_chunks(ids[1]) == 1
        assert (await engine.text(ids[1]), (await engine.get(ids[1])).chunks) == ("", 0)
        for call in (engine.get(ids[0]), engine.text(ids[0]), engine.chunks(ids[0])):
            with pytest.raises(NotFound):
                await call

    async def test_files_are_followed(self, engine: AnyEngine, tmp_path: Path) -> None:
        """New, unchanged, changed, vanished and unsupported ones; a failure stops no other file."""
        files = tmp_path / "files"
        files.mkdir()
        (files / "a.md").write_text("# A\n\nabout ferries", encoding="utf-8")
        (files / "b.txt").write_text("about cakes", encoding="utf-8")
        (files / "c.pdf").write_bytes(b"%PDF-1.7 damaged")
        (files / "d.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        told: list[tuple[str, int, int]] = []
        report = await engine.add_files([files], progress=lambda *step: told.append(step))
        assert (report.added, report.skipped) == (2, 1)
        assert [Path(each.name).name for each in report.failures] == ["c.pdf"]
        assert ("reading", 4, 4) in told
        assert (await engine.add_files([files])).unchanged == 2
        (files / "a.md").write_text("# A\n\nabout boats", encoding="utf-8")
        (files / "b.txt").unlink()
        report = await engine.add_files([files], prune=True)
        assert (report.replaced, report.pruned, await engine.count()) == (1, 1, 1)
        assert (await engine.sources())[0].name == files.as_posix()
        with pytest.raises(UnreadableFile):
            await engine.add_files([tmp_path / "nowhere"])
