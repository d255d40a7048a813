"""Syncs of connections whose remote withdraws access, does not answer, and comes back."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.mediawiki_server import WikiSite
from tests.support.web_server import Answer, ScriptedServer

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import NotFound
from conspectus.model.access import Person, Principal, Role
from conspectus.model.connections import Connection
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), fetch_allowed_networks="127.0.0.1", job_max_attempts=1)
DENIED = b'{"error": {"code": "readapidenied", "info": "You need read permission to use this module."}}'
REFUSALS = [
    Answer(body=DENIED, headers={"content-type": "application/json"}),
    *(Answer(status=status) for status in (401, 403, 404)),
]
OUTAGES = [Answer(status=410), Answer(status=400), Answer(body=b"<html>Sign in</html>")]


@dataclass
class WikiScene:
    """A collection with a synced wiki and a note of its own, read by a viewer and an editor."""

    owner: Engine
    viewer: Engine
    editor: Engine
    server: ScriptedServer
    site: WikiSite

    async def sync(self, engine: Engine | None = None) -> Connection:
        """Sync the wiki, and return its connection."""
        engine = engine or self.owner
        job = await engine.connections.sync("team", collection="shared")
        await engine.jobs.wait(job.id)
        (connection,) = await self.owner.connections.list(collection="shared")
        return connection

    async def close_wiki(self, answer: Answer) -> Connection:
        self.server.answers["/api.php"] = answer
        return await self.sync()

    async def open_wiki(self, engine: Engine | None = None) -> Connection:
        self.server.answers["/api.php"] = self.site.answer
        return await self.sync(engine)


async def add_person(owner: Engine, name: str, role: Role) -> Engine:
    user = await owner.people.create_user(name)
    await owner.access.grant("shared", Principal("user", user.id), role)
    return owner.as_person(Person(name, id=user.id))


@pytest.fixture(params=[Settings().unreachable_hide_hours])
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[WikiScene]:
    site = WikiSite()
    await site.put("Main", "Safe", "The combination of the safe is on the lighthouse door.")
    settings = replace(SETTINGS, unreachable_hide_hours=request.param)
    async with (
        ScriptedServer({"/api.php": site.answer}) as server,
        conspectus.open(tmp_path, settings=settings, embedder=HashedEmbedder()) as owner,
    ):
        address = f"http://127.0.0.1:{server.port}/api.php"
        await owner.connections.create("team", "mediawiki", {"address": address}, collection="shared")
        await owner.add("The lighthouse door is green.", collection="shared", source="own", wait=True)
        viewer, editor = [await add_person(owner, role, role) for role in ("viewer", "editor")]
        scene = WikiScene(owner, viewer, editor, server, site)
        await scene.sync()
        yield scene


async def texts_for(engine: Engine) -> dict[str, bool]:
    """Whether each way to read shows the page of the wiki."""
    hits = (await engine.search.retrieve("combination safe lighthouse door", collection="shared")).hits
    window = await engine.window("combination safe lighthouse door", 500, collection="shared")
    listed = (await engine.documents.list(collection="shared")).documents
    lines = await engine.files.grep("combination", path="/shared")
    return {
        "search": any("combination" in hit.chunk.text for hit in hits),
        "window": "combination" in window.text,
        "documents": any("Safe" in document.title for document in listed),
        "files": bool(lines.matches),
    }


async def sees(engine: Engine) -> bool:
    visible = set((await texts_for(engine)).values())
    assert len(visible) == 1, "the ways to read differ"
    return visible.pop()


async def test_only_managers_get_the_cursor_of_a_connection(scene: WikiScene) -> None:
    lists = [await engine.connections.list(collection="shared") for engine in (scene.owner, scene.viewer)]
    assert [connection.cursor is None for [connection] in lists] == [False, True]
    editor_job = await scene.editor.connections.sync("team", collection="shared")
    assert (await scene.editor.jobs.wait(editor_job.id)).state == "succeeded"
    [connection] = await scene.owner.connections.list(collection="shared")
    assert connection.cursor is not None


@pytest.mark.parametrize("answer", REFUSALS)
async def test_a_remote_that_refuses_hides_its_pages_until_it_answers(
    scene: WikiScene, answer: Answer
) -> None:
    engines = (scene.owner, scene.viewer, scene.editor)
    assert [await sees(engine) for engine in engines] == [True, True, True]
    connection = await scene.close_wiki(answer)
    assert (connection.state, connection.access) == ("error", "lost")
    [job] = (await scene.owner.jobs.list(collection="shared", limit=1)).jobs
    assert (job.state, job.code, job.error) == ("failed", "access_lost", connection.error)
    assert [await sees(engine) for engine in engines] == [True, False, False]
    again = await scene.sync()
    assert again.access_since == connection.access_since
    assert (await scene.open_wiki()).access == "granted"
    assert [await sees(engine) for engine in engines] == [True, True, True]


async def test_what_is_hidden_is_as_what_does_not_exist(scene: WikiScene) -> None:
    listed = (await scene.owner.documents.list(collection="shared")).documents
    page = next(document for document in listed if "Safe" in document.title)
    await scene.close_wiki(REFUSALS[0])
    with pytest.raises(NotFound) as hidden:
        await scene.viewer.documents.get(page.id)
    with pytest.raises(NotFound) as missing:
        await scene.viewer.documents.get("nothing")
    assert str(hidden.value).replace(page.id, "nothing") == str(missing.value)
    assert [source.name for source in await scene.viewer.collections.list_sources(collection="shared")] == [
        "own"
    ]
    window = await scene.viewer.window("lighthouse door", 200, collection="shared")
    assert "green" in window.text


async def test_administrators_are_told_who_reads_what_is_hidden(scene: WikiScene) -> None:
    listed = (await scene.owner.documents.list(collection="shared")).documents
    page = next(document for document in listed if "Safe" in document.title)
    names = {reader.name for reader in await scene.owner.access.list_readers(page.id)}
    assert names == {"owner", "viewer", "editor"}
    await scene.close_wiki(REFUSALS[0])
    assert [reader.name for reader in await scene.owner.access.list_readers(page.id)] == ["owner"]
    explained = await scene.owner.search.explain_as("safe", 200, user="viewer", collection="shared")
    assert [grant.role for grant in explained.missing_grants] == ["manager"]


async def test_a_page_that_went_meanwhile_does_not_come_back(scene: WikiScene) -> None:
    await scene.close_wiki(REFUSALS[0])
    await scene.site.delete("Main", "Safe")
    connection = await scene.open_wiki(scene.editor)
    assert (connection.state, connection.access) == ("complete", "granted")
    assert not await sees(scene.viewer)


async def test_an_editor_who_cannot_see_the_pages_brings_them_back(scene: WikiScene) -> None:
    await scene.close_wiki(REFUSALS[0])
    await scene.site.put("Main", "Safe", "The combination is new.")
    connection = await scene.open_wiki(scene.editor)
    assert (connection.state, connection.access, connection.access_since) == ("complete", "granted", None)
    assert await sees(scene.editor)
    sources = await scene.owner.collections.list_sources(collection="shared")
    assert len(sources) == 2


@pytest.mark.parametrize("answer", OUTAGES)
async def test_a_remote_without_a_usable_answer_hides_nothing(scene: WikiScene, answer: Answer) -> None:
    connection = await scene.close_wiki(answer)
    assert (connection.state, connection.access) == ("error", "unreachable")
    assert await sees(scene.viewer)


async def test_silence_after_a_refusal_gives_nothing_back(scene: WikiScene) -> None:
    refused = await scene.close_wiki(REFUSALS[0])
    for outage in OUTAGES:
        silent = await scene.close_wiki(outage)
        assert (silent.access, silent.access_since) == ("lost", refused.access_since)
        assert not await sees(scene.viewer)
    assert (await scene.open_wiki()).access == "granted"
    assert await sees(scene.viewer)


@pytest.mark.parametrize("scene", [1], indirect=True)
async def test_an_unreachable_remote_hides_its_pages_after_the_hours_of_the_setting(scene: WikiScene) -> None:
    connection = await scene.close_wiki(OUTAGES[0])
    assert await sees(scene.viewer)
    assert connection.access_since is not None
    sources = await scene.owner.collections.list_sources(collection="shared")
    (page_source,) = [source.id for source in sources if source.kind == "wiki"]
    accounts = scene.owner._context.parts.accounts
    hidden = await accounts.list_hidden_sources(connection.collection)
    assert hidden == {page_source: connection.access_since + timedelta(hours=1)}
    await accounts.hide_sources([page_source], since=connection.access_since)
    assert not await sees(scene.viewer)


async def test_a_page_that_is_refused_is_deleted_and_tried_again(scene: WikiScene) -> None:
    await scene.site.put("Main", "Cellar", "The cellar holds the combination of the door.")
    pages = scene.site.answer
    scene.server.answers["/api.php"] = lambda request: (
        REFUSALS[0] if "revisions" in request.query.get("prop", "") else pages(request)
    )
    await scene.site.put("Main", "Safe", "The combination is secret now.")
    connection = await scene.sync()
    assert connection.access == "granted"
    assert not await sees(scene.viewer)
    await scene.open_wiki()
    assert await sees(scene.viewer)
