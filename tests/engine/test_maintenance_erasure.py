"""A purge also erases copies of texts in rows that stay: in the audit log, in jobs and merges."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.engine.test_documents_sensitive import no_file_has

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import Conflict
from conspectus.model.access import Principal
from conspectus.model.graph import Fact, NewNode
from conspectus.model.jobs import Upload
from conspectus.model.memory import MemorySelection, NewMemory, Scope

NAME = "zanzibarina"
ANN = Scope(NAME)


@asynccontextmanager
async def open_engine(path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(path, settings=Settings(embedder="none", log_level="critical")) as engine:
        yield engine


async def test_a_purge_erases_queries_asked_as_another(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        (document,) = await engine.add(f"{NAME} is ill")
        (other,) = await engine.add("the tide is high", collection="other")
        await engine.keys.create_first()
        user = await engine.people.create_user("bob")
        for collection in ("default", "other"):
            await engine.search.explain_as(f"is {NAME} ill", 100, user="bob", collection=collection)
        await engine.documents.delete(document.id, purge=True)
        log = (await engine.access.list_audit()).entries
        entries = [entry for entry in log if entry.action == "explain_as"]
        assert [entry.query for entry in entries] == [f"is {NAME} ill", ""]
        assert {entry.viewed_as for entry in entries} == {user.id}
        await engine.documents.delete(other.id, purge=True)
    assert no_file_has(tmp_path, NAME)


async def test_a_purge_erases_names_of_files_and_keeps_counts(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        upload = Upload(f"{NAME}.md", b"# a text")
        job = await engine.jobs.wait((await engine.jobs.ingest_files([upload])).id)
        failed = await engine.jobs.wait(
            (await engine.jobs.ingest_files([Upload(f"{NAME}.docx", b"PK\x03\x04 no archive")])).id
        )
        assert (job.state, failed.state) == ("succeeded", "failed")
        (document,) = (await engine.documents.list()).documents
        await engine.documents.delete(document.id, purge=True)
        job, failed = await engine.jobs.get(job.id), await engine.jobs.get(failed.id)
        assert (job.title, failed.title, failed.error) == ("ingest_files", "ingest_files", None)
        assert job.result is not None and job.result["added"] == 1
        with pytest.raises(Conflict):
            await engine.jobs.retry(failed.id)
    assert no_file_has(tmp_path, NAME)


async def test_the_user_of_forgotten_memories_is_no_name_of_a_source(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        fact = Fact(NAME, "lives in", f"{NAME} City")
        await engine.memory.add([NewMemory("a", fact=fact), NewMemory("b", key="b")], scope=ANN)
        await engine.memory.add("c", scope=Scope(NAME, "agent", "conversation"))
        others = await engine.memory.add("d", scope=Scope("bob"))
        await engine.memory.forget(MemorySelection(everything=True), scope=Scope(NAME, "agent"), purge=True)
        names = [source.name for source in await engine.collections.list_sources(collection="memory")]
        assert [name for name in names if "agent" in name] == []
        assert len([name for name in names if NAME in name]) == 2
        await engine.memory.forget(MemorySelection(everything=True, pinned=True), scope=ANN, purge=True)
        (source,) = await engine.collections.list_sources(collection="memory")
        assert source.name.startswith("memory/bob/") and len(others) == 1
    assert no_file_has(tmp_path, NAME)


async def test_a_granted_source_stays(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.memory.add("a", scope=ANN)
        await engine.keys.create_first()
        bob = await engine.people.create_user("bob")
        (source,) = await engine.collections.list_sources(collection="memory")
        await engine.access.grant("memory", Principal("user", bob.id), "editor", source=source.id)
        await engine.memory.forget(MemorySelection(everything=True), scope=ANN, purge=True)
        assert await engine.collections.list_sources(collection="memory") == [source]


async def test_forgetting_without_a_purge_keeps_the_source(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.memory.add("a", scope=ANN)
        await engine.memory.forget(MemorySelection(everything=True), scope=ANN)
        assert len(await engine.collections.list_sources(collection="memory")) == 1


async def test_a_purge_erases_merges_of_deleted_nodes(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        (document,) = await engine.add("a text")
        await engine.graph.add_nodes([NewNode(NAME), NewNode(f"{NAME} B"), NewNode("c"), NewNode("d")])
        await engine.graph.merge_nodes(NAME, [f"{NAME} B"], reason=f"both are {NAME}")
        await engine.graph.merge_nodes("c", ["d"], reason="the same letter")
        await engine.graph.delete_nodes([NAME])
        await engine.documents.delete(document.id, purge=True)
        assert [event.reason for event in await engine.graph.list_merges()] == ["the same letter"]
    assert no_file_has(tmp_path, NAME)


async def test_a_deleted_account_leaves_no_name(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.keys.create_first()
        user = await engine.people.create_user(NAME)
        await engine.keys.create(NAME, label=f"of {NAME}")
        await engine.people.delete_user(user.id, purge=True)
    assert no_file_has(tmp_path, NAME)


async def test_a_document_that_was_deleted_before_is_purged_by_its_id(tmp_path: Path) -> None:
    """In whichever collection it was; only in those that the person may edit."""
    async with open_engine(tmp_path) as engine:
        (document,) = await engine.add(f"{NAME} is ill", collection="other")
        await engine.add("the tide is high", collection="other", wait=True)
        await engine.maintenance.reindex(collection="other")
        await engine.documents.delete(document.id)
        reader = await engine.people.create_user("bob")
        await engine.access.grant("other", Principal("user", reader.id), "viewer")
        person = await engine.keys.authenticate((await engine.keys.create("bob")).secret)
        receipt = await engine.as_person(person).documents.delete(document.id, purge=True)
        assert (receipt.documents, receipt.purged) == (0, False)
        assert not no_file_has(tmp_path, NAME)
        receipt = await engine.documents.delete(document.id, purge=True)
        assert (receipt.documents, receipt.purged) == (0, True)
    assert no_file_has(tmp_path, NAME)
