"""Ways someone might try to learn of, or reach, what was not granted; each was open once or looks as if."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import (
    ConspectusError,
    InvalidInput,
    NotFound,
    PermissionDenied,
    ProviderUnavailable,
)
from conspectus.model.access import Person, Principal
from conspectus.model.filter import EVERYTHING, Eq, In
from conspectus.model.jobs import Upload
from conspectus.model.records import Chunk, NewDocument
from conspectus.ports import Vectors
from conspectus.settings import Settings
from conspectus.testing.embedders import HashedEmbedder

MINE, THEIRS = "shared plums", "hidden quinces"


@dataclass
class Scene:
    """Alice's wiki with a source that Bob may see and one that he may not."""

    owner: Engine
    alice: Engine
    bob: Engine
    wiki: str
    shared: str
    hidden: str
    hidden_document: str

    async def bob_is(self, role: Any, *, of: str | None = "shared") -> None:
        """Alice, who shares nothing with Bob yet, names him by his id."""
        bob = Principal("user", (await self.bob.people.whoami()).id)
        await self.alice.access.grant("wiki", bob, role, source=of)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    settings = Settings(embedder="none", lock_timeout_seconds=5)
    async with conspectus.open(tmp_path, settings=settings, embedder=HashedEmbedder()) as owner:
        people = [await owner.people.create_user(name) for name in ("alice", "bob")]
        alice, bob = [owner.as_person(Person(user.name, False, user.id)) for user in people]
        await alice.add(NewDocument(MINE, key="a"), source="shared", collection="wiki", wait=True)
        [hidden] = await alice.add(
            NewDocument(THEIRS, key="a"), source="hidden", collection="wiki", wait=True
        )
        ids = {
            source.name: str(source.id) for source in await alice.collections.list_sources(collection="wiki")
        }
        wiki = (await alice.collections.get("wiki")).id
        yield Scene(owner, alice, bob, wiki, ids["shared"], ids["hidden"], hidden.id)


async def expect_refusal(work: Awaitable[Any]) -> str:
    with pytest.raises(ConspectusError) as refused:
        await work
    return f"{type(refused.value).__name__}: {refused.value}"


async def test_a_collection_named_like_anothers_id_opens_nothing(scene: Scene) -> None:
    """Nobody can give a collection such a name, so an id always means the collection that has it."""
    await scene.bob_is("viewer", of=None)
    for engine in (scene.bob, scene.owner):
        with pytest.raises(InvalidInput, match="form of an id"):
            await engine.collections.create(scene.wiki)
    with pytest.raises(PermissionDenied):
        await scene.bob.add("spoilt", source=scene.shared, collection="alice/wiki")
    with pytest.raises(PermissionDenied):
        await scene.bob.documents.delete_by_filter(EVERYTHING, collection=scene.wiki)
    assert (await scene.bob.collections.get(scene.wiki)).name == "alice/wiki"
    with pytest.raises(NotFound):
        await scene.bob.collections.get(f"bob/{scene.wiki}")


async def test_a_source_named_like_anothers_id_does_not_stand_in_for_it(scene: Scene) -> None:
    await scene.alice.collections.get_or_create_source(scene.shared, collection="wiki")
    assert (await scene.alice.collections.get_source(scene.shared, collection="wiki")).name == "shared"


async def test_hidden_and_missing_collections_are_made_anew_alike(scene: Scene) -> None:
    await scene.bob.add("pears", collection="alice/wiki", wait=True)
    await scene.bob.add("pears", collection="alice/nothing", wait=True)
    names = [collection.name for collection in await scene.bob.collections.list()]
    assert names == ["bob/alice/nothing", "bob/alice/wiki"]
    retrieval = await scene.bob.retrieve("quinces plums", collection="*")
    assert {hit.chunk.text for hit in retrieval.hits} == {"pears"}


async def test_renaming_does_not_tell_which_names_are_taken(scene: Scene) -> None:
    await scene.alice.collections.create("diary")
    await scene.bob_is("manager")
    assert await expect_refusal(
        scene.bob.collections.update_source(scene.shared, name="hidden")
    ) == await expect_refusal(scene.bob.collections.update_source(scene.shared, name="nothing"))
    await scene.bob_is("owner", of=None)
    assert await expect_refusal(
        scene.bob.collections.update("alice/wiki", name="diary")
    ) == await expect_refusal(scene.bob.collections.update("alice/wiki", name="nothing"))
    for attempt in (
        scene.alice.collections.update("wiki", name="diary"),
        scene.alice.collections.update_source(scene.shared, name="hidden"),
    ):
        assert "exists already" in await expect_refusal(attempt)


async def test_a_name_that_became_free_can_be_used_again(scene: Scene) -> None:
    await scene.alice.collections.update_source("shared", collection="wiki", name="old")
    await scene.alice.collections.update("wiki", name="past")
    await scene.alice.add("anew", source="shared", collection="wiki")
    assert [collection.name for collection in await scene.alice.collections.list()] == [
        "alice/past",
        "alice/wiki",
    ]
    assert {source.name for source in await scene.alice.collections.list_sources(collection="past")} == {
        "hidden",
        "old",
    }


async def test_an_index_is_built_from_its_own_collection_whatever_it_is_called(tmp_path: Path) -> None:
    """It was built from whichever collection had taken the name that its own had before."""
    async with conspectus.open(tmp_path, settings=Settings(embedder="none", tail_chunks=1)) as owner:
        people = [await owner.people.create_user(name) for name in ("alice", "bob")]
        alice, bob = [owner.as_person(Person(user.name, False, user.id)) for user in people]
        await alice.add(["old plums", "old pears"], collection="wiki")
        await owner.people.delete_user("alice", transfer_to="bob")
        another = await owner.people.create_user("alice")
        anew = owner.as_person(Person("alice", False, another.id))
        await anew.add(["hidden plums", "hidden quinces"], collection="wiki")
        await bob.maintenance.reindex(collection="wiki")
        retrieval = await bob.retrieve("plums pears quinces", collection="*")
        assert {hit.chunk.text for hit in retrieval.hits} == {"old plums", "old pears"}
        assert (await owner.maintenance.check()).clean


async def test_an_index_that_names_rows_of_others_gives_none_of_them_away(scene: Scene) -> None:
    await scene.bob_is("viewer")
    access = await scene.bob._context.authorized.collection(scene.wiki)
    chunks = [chunk.id for name in ("shared", "hidden") for chunk in await list_chunks(scene.alice, name)]
    [row] = await scene.bob._context.authorized.rows(access)(chunks)
    assert row.chunk.text == MINE


async def list_chunks(alice: Engine, source: str) -> Sequence[Chunk]:
    owner_source = await alice.collections.get_source(source, collection="wiki")
    [document] = (
        await alice.documents.list(collection="wiki", filter=Eq("source", owner_source.id))
    ).documents
    return await alice.documents.list_chunks(document.id)


async def test_a_renamed_collection_stays_its_accounts(scene: Scene) -> None:
    collection = await scene.alice.collections.create("a/b/c")
    for name in ("x", "bob/x", "alice/x"):
        await scene.alice.collections.update(collection.id, name=name)
        assert (await scene.alice.collections.get(collection.id)).name.startswith("alice/")
    await scene.owner.collections.create("left/right")
    assert (await scene.owner.collections.update("left/right", name="right")).name == "right"


async def test_nothing_is_told_of_how_much_is_hidden(scene: Scene) -> None:
    steps: list[tuple[str, int, int]] = []
    await scene.bob_is("editor")
    [seen] = await scene.bob.collections.list()
    assert seen.sequence == (await scene.bob.collections.get("alice/wiki")).sequence == 0
    assert (await scene.bob.collections.get_or_create("alice/wiki")).sequence == 0
    with pytest.raises(PermissionDenied):
        await scene.bob.maintenance.status(collection="alice/wiki")
    new = [NewDocument(f"{THEIRS} {number}") for number in range(99)]
    await scene.alice.add(new, source="hidden", collection="wiki")
    assert (
        await scene.bob.documents.wait_until_embedded(
            collection="alice/wiki", progress=lambda *step: steps.append(step)
        )
        == 0
    )
    assert (await scene.bob.maintenance.status()).collections == ()
    await scene.bob.add(
        "pears",
        source="shared",
        collection="alice/wiki",
        wait=True,
        progress=lambda *step: steps.append(step),
    )
    assert {what for what, _, _ in steps} == {"writing"}


class Indiscreet(HashedEmbedder):
    """A vendor that repeats in its errors what it was given."""

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if any("quinces" in text for text in texts):
            raise ProviderUnavailable("vendor", f"no time for {texts!r}", retry_after=0.001)
        return await super().embed_documents(texts)


async def test_an_error_is_not_told_to_whom_its_text_is_not(scene: Scene) -> None:
    await scene.bob_is("editor")
    home = await scene.alice.collections.get("wiki")
    work = scene.owner._context.core.backfill.wake(home, HashedEmbedder())
    assert work.task is not None
    await work.task
    work.error = ProviderUnavailable("vendor", f"will not take {THEIRS!r}")
    [notice] = (await scene.bob.retrieve("plums", collection="alice/wiki")).notices
    assert "quinces" not in notice
    assert "quinces" in (await scene.alice.retrieve("plums", collection="wiki")).notices[0]


async def test_a_vendor_that_repeats_a_text_tells_it_to_nobody_else(tmp_path: Path) -> None:
    settings = Settings(embedder="none")
    async with conspectus.open(tmp_path, settings=settings, embedder=Indiscreet()) as owner:
        people = [await owner.people.create_user(name) for name in ("alice", "bob")]
        alice, bob = [owner.as_person(Person(user.name, False, user.id)) for user in people]
        await alice.add("plums", source="shared", collection="wiki", wait=True)
        await alice.access.grant("wiki", Principal("user", people[1].id), "editor", source="shared")
        for person, may_read in ((alice, True), (bob, False)):
            source, home = ("hidden", "wiki") if may_read else ("shared", "alice/wiki")
            text = THEIRS if may_read else "pears"
            error = await expect_refusal(person.add(text, source=source, collection=home, wait=True))
            assert ("quinces" in error) is may_read
        assert "quinces" not in await expect_refusal(
            bob.documents.wait_until_embedded(collection="alice/wiki")
        )


async def test_parents_threads_and_keys_of_other_sources_lead_nowhere(scene: Scene) -> None:
    await scene.bob_is("editor")
    ghost = "00000000-0000-5000-8000-000000000000"
    errors = [
        await expect_refusal(
            scene.bob.add(NewDocument("x", parent=parent), source="shared", collection=scene.wiki)
        )
        for parent in (scene.hidden_document, ghost)
    ]
    assert errors[0].replace(scene.hidden_document, ghost) == errors[1]
    for source in ("shared", "hidden"):
        await scene.alice.add(
            [NewDocument(f"{source} {word}", thread="t", kind="message") for word in ("one", "two")],
            source=source,
            collection="wiki",
        )
    [written] = await scene.bob.add(NewDocument("mine", key="a"), source="shared", collection=scene.wiki)
    assert (written.outcome, written.id == scene.hidden_document) == ("replaced", False)
    assert await scene.alice.documents.get_text(scene.hidden_document) == THEIRS
    window = await scene.bob.window("one two quinces", 500, collection="*")
    assert "hidden" not in repr(window)


async def test_a_read_only_key_writes_nothing_at_all(scene: Scene) -> None:
    reader = scene.alice.as_person(Person("alice", False, scene.alice._context.person.id, ("read",)))
    for work in (
        reader.documents.delete([], purge=True),
        reader.documents.delete("nothing", purge=True),
        reader.documents.delete_by_filter(EVERYTHING, collection="wiki"),
        reader.add("x", collection="wiki"),
        reader.documents.update(scene.hidden_document, title="x"),
        reader.documents.delete_chunks(scene.hidden_document),
        reader.collections.create("new"),
        reader.collections.get_or_create("new"),
        reader.collections.delete("wiki"),
        reader.maintenance.reindex(collection="wiki"),
        reader.jobs.ingest_files([Upload("a.txt", b"x")], collection="wiki"),
        reader.connections.create("w", "mediawiki", {}, collection="wiki"),
    ):
        with pytest.raises(PermissionDenied):
            await work
    assert await scene.alice.documents.count(collection="wiki") == 2


async def test_a_key_that_does_not_read_sees_nothing(scene: Scene) -> None:
    writer = scene.alice.as_person(Person("alice", False, scene.alice._context.person.id, ("write", "admin")))
    for work in (
        writer.collections.list(),
        writer.documents.get(scene.hidden_document),
        writer.retrieve("x"),
        writer.maintenance.status(),
    ):
        with pytest.raises(PermissionDenied):
            await work


async def test_only_the_owner_lets_the_machine_read_its_own_files(scene: Scene, tmp_path: Path) -> None:
    for work in (
        scene.alice.documents.add_files([tmp_path]),
        scene.alice.collections.create("x", embedder=f"static:{tmp_path}"),
        scene.alice.collections.create("x", embedder="openai:text-embedding-3-large@3072"),
        scene.alice.maintenance.reembed(f"static:{tmp_path}", collection="wiki"),
    ):
        with pytest.raises(PermissionDenied):
            await work
    assert (await scene.alice.collections.create("x", embedder="none")).space is None


async def test_a_connection_writes_only_where_its_managers_say(scene: Scene) -> None:
    """A manager of one source could have had another space's pages written into it."""
    await scene.bob_is("manager")
    with pytest.raises(PermissionDenied):
        await scene.bob.collections.update_source(scene.shared, metadata={"wiki": "w", "space": "Board"})
    with pytest.raises(PermissionDenied):
        await scene.bob.collections.get_or_create_source(
            "shared", collection="alice/wiki", metadata={"space": "Board"}
        )
    await scene.alice.collections.update_source(scene.shared, metadata={"wiki": "w", "space": "Open"})
    metadata = {"wiki": "w", "space": "Open", "colour": "red"}
    assert (await scene.bob.collections.update_source(scene.shared, metadata=metadata)).metadata == metadata


async def test_jobs_and_connections_are_seen_as_their_sources_are(scene: Scene) -> None:
    job = await scene.alice.jobs.ingest_files(
        [Upload("quinces.txt", b"q")], collection="wiki", source="hidden"
    )
    await scene.alice.jobs.wait(job.id)
    await scene.bob_is("owner")
    ghost = "00000000-0000-4000-8000-000000000000"
    for method in (scene.bob.jobs.get, scene.bob.jobs.cancel, scene.bob.jobs.retry, scene.bob.jobs.wait):
        errors = [await expect_refusal(method(job_id)) for job_id in (job.id, ghost)]
        assert errors[0].replace(job.id, ghost) == errors[1]
    assert (await scene.bob.jobs.list()).jobs == (await scene.bob.jobs.list(collection=scene.wiki)).jobs == ()
    assert "1" not in repr((await scene.bob.jobs.report(collection=scene.wiki)).states)
    options = {"address": "https://wiki.example/api.php"}
    await scene.alice.connections.create("pages", "mediawiki", options, collection="wiki")
    assert await scene.bob.connections.list(collection=scene.wiki) == []
    with pytest.raises(NotFound):
        await scene.bob.connections.sync("pages", collection=scene.wiki)
    await scene.bob_is("viewer", of="hidden")
    assert [visible.id for visible in (await scene.bob.jobs.list()).jobs] == [job.id]


async def test_a_filter_cannot_widen_what_is_seen(scene: Scene) -> None:
    await scene.bob_is("viewer")
    for where in (Eq("source", scene.hidden), Eq("document", scene.hidden_document)):
        assert await scene.bob.documents.count(collection=scene.wiki, filter=where) == 0
        assert (await scene.bob.documents.list(collection=scene.wiki, filter=where)).documents == ()
        assert (await scene.bob.retrieve("quinces", collection=scene.wiki, filter=where)).hits == ()
    page = await scene.alice.documents.list(collection="wiki", limit=1)
    follow = await scene.bob.documents.list(collection=scene.wiki, after=page.next)
    assert all(document.source == scene.shared for document in follow.documents)


async def test_term_frequencies_of_a_hidden_source_count_only_for_who_sees_it(scene: Scene) -> None:
    await scene.bob_is("viewer")
    filters = (Eq("source", scene.shared), In("source", (scene.shared, scene.hidden)))
    alone, both = [
        [
            (await engine.retrieve("plums", collection=scene.wiki, filter=where)).hits[0].bm25
            for where in filters
        ]
        for engine in (scene.bob, scene.alice)
    ]
    assert alone[0] == alone[1] == both[0]
    assert both[0] != both[1]
