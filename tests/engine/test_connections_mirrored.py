"""Connections that mirror permissions: failures, lost connections, see-as, and a connector that begins to."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from tests.contract.test_hot_plans import recorded_statements
from tests.support.note_server import NoteServer, install_note_connector

import conspectus
from conspectus import Engine, Settings
from conspectus.connectors import EVERYONE
from conspectus.engine.connection_sources import MAX_SOURCES_BY_ID
from conspectus.errors import NotFound, PermissionDenied
from conspectus.model.access import LOCAL_OWNER, Person, Principal
from conspectus.model.chat import ChatRequest, Failure
from conspectus.model.records import NewDocument
from conspectus.testing.chat_models import ScriptedChatModel

PASSWORD = "hunter2"
SETTINGS = Settings(
    embedder="none", job_max_attempts=1, secret_key=Fernet.generate_key().decode(), user_directory="open"
)


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NoteServer]:
    install_note_connector(tmp_path / "packages", monkeypatch)
    with NoteServer("office", PASSWORD, people={"ann", "ben"}).run() as running:
        running.put("plan", "Main", "The lantern plan of ann.", {"ann"})
        running.put("menu", "Main", "The lantern menu.", {EVERYONE})
        yield running


@dataclass
class Scene:
    """A mirrored server, read by ann and ben as they may read it there."""

    owner: Engine
    ann: Engine
    ben: Engine

    async def sync(self) -> str:
        job = await self.owner.connections.sync("office", collection="team")
        return (await self.owner.jobs.wait(job.id)).state


async def add_person(owner: Engine, name: str) -> Engine:
    user = await owner.people.create_user(name)
    await owner.access.grant("team", Principal("user", user.id), "manager")
    await owner.connections.map_person("office", name, name, collection="team")
    return owner.as_person(Person(name, id=user.id))


async def connect(engine: Engine, connector: str) -> None:
    await engine.connections.create(
        "office", connector, {"server": "office"}, credentials={"password": PASSWORD}, collection="team"
    )


@pytest.fixture
async def scene(tmp_path: Path, notes: NoteServer) -> AsyncIterator[Scene]:
    async with conspectus.open(tmp_path / "store", settings=SETTINGS) as owner:
        await connect(owner, "guarded")
        scene = Scene(
            owner.as_person(LOCAL_OWNER), *[await add_person(owner, name) for name in ("ann", "ben")]
        )
        assert await scene.sync() == "succeeded"
        yield scene


async def keys_for(engine: Engine) -> set[str]:
    documents = (await engine.documents.list(collection="team", limit=100)).documents
    hits = (await engine.search.retrieve("lantern", collection="team", limit=100)).hits
    assert {hit.document.key for hit in hits} == {document.key for document in documents}
    return {document.key for document in documents}


async def test_the_owner_account_reads_nothing_without_a_person_at_the_remote(scene: Scene) -> None:
    assert await keys_for(scene.owner) == set()
    assert (await keys_for(scene.ann), await keys_for(scene.ben)) == ({"plan", "menu"}, {"menu"})
    await scene.owner.connections.map_person("office", "ann", "local", collection="team")
    assert await keys_for(scene.owner) == {"plan", "menu"}
    assert await keys_for(scene.ann) == set()
    await scene.owner.connections.map_person("office", "ann", collection="team")
    assert await keys_for(scene.owner) == set()


async def test_people_are_listed_and_mapped_by_the_owner_account_alone(scene: Scene) -> None:
    people = await scene.owner.connections.list_people("office", collection="team")
    assert [person.name for person in people] == ["ann", "ben"]
    await scene.owner.connections.map_person("office", "ann", collection="team")
    await scene.sync()
    [job] = (await scene.owner.jobs.list(collection="team", limit=1)).jobs
    assert job.result is not None and job.result["unmapped_people"] == 1
    with pytest.raises(PermissionDenied):
        await scene.ann.connections.map_person("office", "ben", "ann", collection="team")
    with pytest.raises(PermissionDenied):
        await scene.ann.connections.list_people("office", collection="team")
    with pytest.raises(NotFound):
        await scene.owner.connections.map_person("office", "ben", "nobody", collection="team")


async def test_pages_are_found_by_key_where_there_are_many_sources(scene: Scene, notes: NoteServer) -> None:
    for number in range(MAX_SOURCES_BY_ID):
        notes.put(f"guest{number}", "Main", "A lantern of a guest.", {f"guest{number}"})
    assert await scene.sync() == "succeeded"
    notes.share("plan", {"ben"})
    notes.delete("menu")
    notes.put("list", "Other", "A lantern list.", {"ann"})
    assert await scene.sync() == "succeeded"
    assert (await keys_for(scene.ann), await keys_for(scene.ben)) == ({"list"}, {"plan"})


async def test_chats_about_mirrored_documents_are_not_stored(tmp_path: Path, notes: NoteServer) -> None:
    model = ScriptedChatModel(["The plan of ann [1]."])
    async with conspectus.open(tmp_path / "store", settings=SETTINGS, chat_model=model) as owner:
        await connect(owner, "guarded")
        ann = await add_person(owner, "ann")
        await owner.jobs.wait((await owner.connections.sync("office", collection="team")).id)
        await owner.add("A harbor of its own.", collection="team", source="own", wait=True)
        outcomes = []
        for question in ("lantern plan", "harbor"):
            request = ChatRequest(question, collection="team", store_in="desk")
            events = [event async for event in ann.chat.stream(request)]
            outcomes.append([event.code for event in events if isinstance(event, Failure)])
        stored = await owner.channels.list_messages(channel="desk", collection="team")
    assert outcomes == [["permission_denied"], []]
    assert [message.text for message in stored] == ["harbor", "The plan of ann [1]."]


async def test_managers_get_counts_of_what_they_may_not_read(scene: Scene) -> None:
    assert await keys_for(scene.ben) == {"menu"}
    for engine in (scene.owner, scene.ben):
        [status] = (await engine.maintenance.status(collection="team")).collections
        assert status.documents == 2
        assert "lantern" not in repr(status)


async def test_a_collection_without_mirrored_sources_asks_for_no_viewers(scene: Scene) -> None:
    await scene.owner.documents.add([NewDocument("A lantern of its own.", key="own")], collection="team")
    await scene.owner.connections.delete("office", collection="team", delete=True)
    [collection] = await scene.owner.collections.list()
    assert not collection.mirrors
    assert await keys_for(scene.owner) == await keys_for(scene.ben) == {"own"}


async def test_local_roles_are_needed_too(scene: Scene) -> None:
    users = {user.name: user.id for user in await scene.owner.people.list_users()}
    await scene.owner.access.revoke("team", Principal("user", users["ann"]))
    with pytest.raises(NotFound):
        await keys_for(scene.ann)


async def test_a_revocation_holds_although_the_page_cannot_be_fetched(
    scene: Scene, notes: NoteServer
) -> None:
    notes.put("plan", "Main", "The lantern plan has changed.", {"ben"})
    notes.broken.add("plan")
    await scene.sync()
    [connection] = await scene.ann.connections.list(collection="team")
    assert connection.cursor is None
    jobs = (await scene.owner.jobs.list(collection="team")).jobs
    assert "plan" not in repr([job.result for job in jobs])
    assert await keys_for(scene.ann) == {"menu"}
    notes.share("plan", set())
    await scene.sync()
    assert (await keys_for(scene.ann), await keys_for(scene.ben)) == ({"menu"}, {"menu"})
    notes.broken.clear()
    await scene.sync()
    assert (await keys_for(scene.ann), await keys_for(scene.ben)) == ({"menu"}, {"menu"})
    notes.share("plan", {"ben"})
    await scene.sync()
    assert (await keys_for(scene.ann), await keys_for(scene.ben)) == ({"menu"}, {"plan", "menu"})


async def test_a_page_that_fails_does_not_bring_its_former_viewers_back(
    scene: Scene, notes: NoteServer
) -> None:
    notes.put("plan", "Main", "The lantern plan, second edition.", {"ann", "ben"})
    notes.broken.add("plan")
    await scene.sync()
    notes.share("plan", {"ben"})
    await scene.sync()
    assert await keys_for(scene.ann) == {"menu"}
    notes.broken.clear()
    await scene.sync()
    assert (await keys_for(scene.ann), await keys_for(scene.ben)) == ({"menu"}, {"plan", "menu"})
    (plan,) = [
        document
        for document in (await scene.ben.documents.list(collection="team")).documents
        if document.key == "plan"
    ]
    assert "second edition" in await scene.ben.documents.get_text(plan.id)


async def test_a_change_of_viewers_fetches_nothing(scene: Scene, notes: NoteServer) -> None:
    notes.broken |= {"plan", "menu"}
    notes.share("plan", {"ben"})
    assert await scene.sync() == "succeeded"
    assert (await keys_for(scene.ann), await keys_for(scene.ben)) == ({"menu"}, {"plan", "menu"})


@pytest.mark.parametrize("unanswered", [1, 2, 3, 4])
async def test_a_sync_that_fails_at_a_request_shows_nothing_more(
    scene: Scene, notes: NoteServer, unanswered: int
) -> None:
    notes.put("plan", "Other", "The lantern plan has moved.", {"ben"})
    notes.put("list", "Main", "The lantern list.", {"ann"})
    notes.answers_before_failure = unanswered
    await scene.sync()
    assert await keys_for(scene.ann) <= {"plan", "menu", "list"}
    assert await keys_for(scene.ben) <= {"plan", "menu"}
    notes.answers_before_failure = None
    assert await scene.sync() == "succeeded"
    assert (await keys_for(scene.ann), await keys_for(scene.ben)) == ({"list", "menu"}, {"plan", "menu"})


async def test_what_was_not_synced_for_hours_is_hidden(scene: Scene, notes: NoteServer) -> None:
    [connection] = await scene.owner.connections.list(collection="team")
    accounts = scene.owner._context.parts.accounts
    hidden = await accounts.list_hidden_sources(connection.collection)
    mirrored = await accounts.list_mirrored_sources(connection.id)
    assert hidden.keys() == mirrored.keys()
    assert connection.last_run is not None
    assert all(
        abs(since - connection.last_run - timedelta(hours=24)) < timedelta(minutes=5)
        for since in hidden.values()
    )
    notes.answers_before_failure = 0
    await scene.sync()
    assert await accounts.list_hidden_sources(connection.collection) == hidden
    notes.answers_before_failure, notes.password = None, "another"
    await scene.sync()
    lost = await accounts.list_hidden_sources(connection.collection)
    assert all(lost[source] < hidden[source] for source in hidden)


async def test_a_deleted_connection_leaves_what_nobody_reads(scene: Scene) -> None:
    await scene.owner.connections.delete("office", collection="team")
    assert (await keys_for(scene.ann), await keys_for(scene.owner)) == (set(), set())
    await connect(scene.owner, "guarded")
    assert (await keys_for(scene.ann), await keys_for(scene.owner)) == (set(), set())


async def test_a_connection_is_deleted_with_documents_that_the_deleter_may_not_read(scene: Scene) -> None:
    receipt = await scene.owner.connections.delete("office", collection="team", delete=True)
    assert receipt.documents == 2


async def test_see_as_shows_an_administrator_nothing_that_they_may_not_read(scene: Scene) -> None:
    explanation = await scene.ben.search.explain_as("lantern", 500, user="ann", collection="team")
    assert "menu" in explanation.window.text
    assert "plan of ann" not in repr(explanation)
    explanation = await scene.ann.search.explain_as("lantern", 500, user="ben", collection="team")
    assert [grant.viewers for grant in explanation.missing_grants] == [("ann",)]


async def test_readers_of_a_document_are_its_viewers(scene: Scene) -> None:
    documents = {
        document.key: document.id
        for document in (await scene.ann.documents.list(collection="team")).documents
    }
    readers = await scene.ann.access.list_readers(documents["plan"])
    assert [reader.name for reader in readers] == ["ann"]
    readers = await scene.ann.access.list_readers(documents["menu"])
    assert [reader.name for reader in readers] == ["ann", "ben"]
    roles = await scene.ann.access.effective_roles("ben", collection="team")
    assert {role.source_name is None: role.role for role in roles if role.role} == {
        True: "manager",
        False: "manager",
    }
    assert [role.role for role in roles].count(None) == 1


async def test_a_connector_that_begins_to_mirror_hides_what_it_brought(
    tmp_path: Path, notes: NoteServer
) -> None:
    async with conspectus.open(tmp_path / "store", settings=SETTINGS) as engine:
        await connect(engine, "notes")
        scene = Scene(
            engine.as_person(LOCAL_OWNER), *[await add_person(engine, name) for name in ("ann", "ben")]
        )
        await scene.sync()
        assert await keys_for(scene.ben) == {"plan", "menu"}
        notes.mirrors = True
        notes.answers_before_failure = 0
        await scene.sync()
        assert await keys_for(scene.ben) == set()
        notes.answers_before_failure = None
        assert await scene.sync() == "succeeded"
        assert (await keys_for(scene.ann), await keys_for(scene.ben)) == ({"plan", "menu"}, {"menu"})


async def search_after_a_write(scene: Scene, collection: str) -> list[str]:
    """The statements of a search by each person, whose earlier reads are cached no longer."""
    await scene.owner.documents.add([NewDocument("A lantern.")], collection="other", wait=True)
    with recorded_statements() as statements:
        for engine in (scene.owner, scene.ann):
            await engine.search.retrieve("lantern", collection=collection)
    return [sql for sql in statements if "source_viewers" in sql]


async def test_a_search_asks_for_viewers_only_where_a_connection_mirrors(scene: Scene) -> None:
    ann = (await scene.owner.people.get_user("ann")).id
    await scene.owner.documents.add([NewDocument("A plain lantern.")], collection="plain", wait=True)
    await scene.owner.access.grant("plain", Principal("user", ann), "viewer")
    assert await search_after_a_write(scene, "plain") == []
    assert await search_after_a_write(scene, "team") != []
