"""What every engine must do for people, and with long work."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.access import SCOPES, Principal, RoleOrigin
from conspectus.model.jobs import Upload
from conspectus.model.query import Budget
from conspectus.model.records import NewDocument
from conspectus.model.results import MissingGrant
from tests.support.engine_samples import AnyEngine, untimed


class PeopleContract:
    """Accounts, groups, keys and roles."""

    async def test_accounts_come_and_go(self, engine: AnyEngine, local: AnyEngine) -> None:
        """By name or by id, with a clear word where it cannot be."""
        ann = await engine.people.create_user("ann b?#%")
        assert await engine.people.get_user("ann b?#%") == await local.people.get_user(ann.id) == ann
        assert ann in await engine.people.list_users()
        assert (await engine.people.set_user_disabled(ann.id)).disabled
        assert not (await engine.people.set_user_disabled("ann b?#%", disabled=False)).disabled
        with pytest.raises(Conflict):
            await engine.people.create_user("ann b?#%")
        with pytest.raises(InvalidInput):
            await engine.people.create_user("a/b")
        await engine.people.delete_user(ann.id)
        for call in (
            engine.people.get_user("ann b?#%"),
            engine.people.delete_user("ann"),
            engine.people.get_user("a/b"),
        ):
            with pytest.raises(NotFound) as caught:
                await call
            assert caught.value.kind == "user"

    async def test_groups_have_members(self, engine: AnyEngine) -> None:
        """Who join and leave."""
        ann, group = await engine.people.create_user("ann"), await engine.people.create_group("editors")
        await engine.people.add_member("editors", "ann")
        assert await engine.people.list_members(group.id) == [ann]
        assert await engine.people.list_groups() == [group]
        await engine.people.remove_member(group.id, ann.id)
        assert await engine.people.list_members("editors") == []
        await engine.people.delete_group("editors")
        with pytest.raises(NotFound):
            await engine.people.list_members("editors")

    async def test_keys_are_made_renewed_and_revoked(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Their secrets are shown once; they open what they are for."""
        ann = await engine.people.create_user("ann")
        expires = datetime.now(UTC) + timedelta(days=1)
        created = await engine.keys.create("ann", label="laptop", scopes=["read"], expires=expires)
        assert (created.key.user, created.key.scopes, created.key.expires) == (ann.id, ("read",), expires)
        renewed = await engine.keys.rotate(created.key.id)
        assert renewed.secret != created.secret
        assert [key.revoked is None for key in await engine.keys.list("ann")] == [False, True]
        ended = await engine.keys.revoke(renewed.key.id)
        assert ended.revoked is not None
        assert ended in await local.keys.list("ann")
        with pytest.raises(Conflict):
            await engine.keys.rotate(renewed.key.id)
        with pytest.raises(InvalidInput):
            await engine.keys.create(expires=expires - timedelta(days=9))
        person = await engine.people.whoami()
        assert (person.owner, person.scopes) == (True, SCOPES)

    async def test_roles_are_given_and_taken(self, engine: AnyEngine, local: AnyEngine) -> None:
        """On a collection and on a source of it."""
        ann = await engine.people.create_user("ann")
        source = await engine.collections.get_or_create_source("s", collection="wiki")
        for_collection = await engine.access.grant("wiki", Principal("user", "ann"), "viewer")
        part = await engine.access.grant("wiki", Principal("user", ann.id), "editor", source="s")
        assert (for_collection.source, part.source, part.grantee.id) == (None, source.id, ann.id)
        assert await engine.access.list_grants("wiki") == await local.access.list_grants("wiki")
        assert await engine.access.list_grants("wiki", source="s") == [part]
        assert await engine.access.revoke("wiki", Principal("user", "ann"), source="s") is True
        assert await engine.access.revoke("wiki", Principal("user", "ann"), source="s") is False
        with pytest.raises(NotFound):
            await engine.access.grant("wiki", Principal("group", "none"), "viewer")


class SeeAsContract:
    """Questions as another user, and who may see what."""

    async def test_a_question_is_answered_as_another_user(self, engine: AnyEngine, local: AnyEngine) -> None:
        """With the grants that the user lacks, and an entry in the log."""
        ann = await engine.people.create_user("ann")
        for name in ("open", "closed"):
            pages = [NewDocument(f"The {name} backup runs at {hour}.", key=str(hour)) for hour in range(3)]
            await engine.add(pages, collection="wiki", source=name, wait=True)
        await engine.access.grant("wiki", Principal("user", "ann"), "viewer", source="open")
        closed = await engine.collections.get_source("closed", collection="wiki")
        explanation = await engine.search.explain_as("backup", Budget(200), user="ann", collection="wiki")
        assert (explanation.user, {candidate.source for candidate in explanation.window.trace}) == (
            ann.id,
            {explanation.window.trace[0].source},
        )
        assert untimed(explanation.own) == untimed(await local.explain("backup", 200, collection="wiki"))
        assert explanation.missing_grants == (MissingGrant(closed.id, "closed", "viewer", 3, 3),)
        assert [sum(part.tokens for part in one.parts) for one in (explanation.window, explanation.own)] == [
            200,
            200,
        ]
        again = await local.search.explain_as("backup", 200, user=ann.id, collection="wiki")
        assert untimed(again.window) == untimed(explanation.window)
        log = await engine.access.list_audit()
        looks = [entry for entry in log.entries if entry.action == "explain_as"]
        assert [(entry.viewed_as, entry.query) for entry in looks] == [(ann.id, "backup")] * 2
        assert log == await local.access.list_audit()
        await engine.access.grant("wiki", Principal("user", "ann"), "viewer")
        plain = await engine.search.explain_as("backup", 200, user="ann", collection="wiki")
        assert (untimed(plain.window), plain.missing_grants) == (untimed(plain.own), ())

    async def test_what_cannot_be_asked_as_another_user(self, engine: AnyEngine) -> None:
        """Nobody, somebody disabled, and everywhere at once; nothing of it is noted."""
        await engine.people.create_user("ann")
        await engine.add("x", collection="wiki")
        for user, collection, error in (
            ("nobody", "wiki", NotFound),
            ("ann", "*", NotFound),
            ("ann", "no", NotFound),
        ):
            with pytest.raises(error):
                await engine.search.explain_as("x", 50, user=user, collection=collection)
        await engine.people.set_user_disabled("ann")
        with pytest.raises(Conflict):
            await engine.search.explain_as("x", 50, user="ann", collection="wiki")
        actions = [entry.action for entry in (await engine.access.list_audit()).entries]
        assert "create_user" in actions and "explain_as" not in actions

    async def test_roles_are_shown_with_where_they_come_from(
        self, engine: AnyEngine, local: AnyEngine
    ) -> None:
        """Own grants, those of groups, and owning."""
        await engine.people.create_user("ann")
        await engine.people.create_group("team")
        await engine.people.add_member("team", "ann")
        document = (await engine.add("x", collection="wiki", source="s"))[0].id
        source = (await engine.collections.get_source("s", collection="wiki")).id
        await engine.access.grant("wiki", Principal("group", "team"), "viewer")
        await engine.access.grant("wiki", Principal("user", "ann"), "editor", source="s")
        by_group, by_user = RoleOrigin("group", "viewer", None, "team"), RoleOrigin("user", "editor", source)
        roles = await engine.access.effective_roles("ann", collection="wiki")
        assert [(role.source_name, role.role, role.origins) for role in roles] == [
            (None, "viewer", (by_group,)),
            ("s", "editor", (by_group, by_user)),
        ]
        assert roles == await local.access.effective_roles("ann")
        readers = await engine.access.list_readers(document)
        owner = (RoleOrigin("store_owner", "owner"), RoleOrigin("collection_owner", "owner"))
        assert [(reader.name, reader.role, reader.origins) for reader in readers] == [
            ("ann", "editor", (by_group, by_user)),
            ("owner", "owner", owner),
        ]
        assert readers == await local.access.list_readers(document)


class WorkContract:
    """Long work."""

    async def test_files_are_taken_in_by_a_job(
        self, engine: AnyEngine, local: AnyEngine, tmp_path: Path
    ) -> None:
        """From disk and from memory, with a report of what became of them."""
        (tmp_path / "boats.md").write_text("# Boats\n\nThe ferry leaves at noon.", encoding="utf-8")
        uploads = [Upload("boats.md", tmp_path / "boats.md"), Upload("Ä.txt", b"about cakes")]
        job = await engine.jobs.ingest_files(uploads, collection="new", source="mine")
        done = await engine.jobs.wait(job.id)
        assert (done.state, done.code) == ("succeeded", None)
        assert done == await engine.jobs.get(job.id) == await local.jobs.get(job.id)
        retrieval = await engine.retrieve("ferry", collection="new", limit=1)
        assert untimed(retrieval) == untimed(await local.retrieve("ferry", collection="new", limit=1))
        assert retrieval.hits[0].document.title == "Boats"
        assert (await engine.jobs.list(collection="new", state="succeeded")).jobs == (done,)
        assert (await engine.jobs.list(state="failed")).jobs == ()
        assert (await engine.jobs.report()).states["succeeded"] == 1
        assert (await engine.jobs.cancel(job.id)).state == "succeeded"
        with pytest.raises(Conflict):
            await engine.jobs.retry(job.id)

    async def test_files_are_previewed_and_not_stored(
        self, engine: AnyEngine, local: AnyEngine, tmp_path: Path
    ) -> None:
        """With their chunks, up to a number of them, and what cannot be read."""
        (tmp_path / "boats.md").write_text("# Boats\n\n" + "The ferry leaves at noon. " * 200)
        await engine.collections.create("new")
        uploads = [
            Upload("boats.md", tmp_path / "boats.md"),
            Upload("Ä.txt", b"about cakes"),
            Upload("a.gif", b"GIF89a"),
        ]
        preview = await engine.jobs.preview_files(uploads, collection="new", source="mine", limit=2)
        assert preview == await local.jobs.preview_files(uploads, collection="new", source="mine", limit=2)
        boats, cakes = preview.documents
        assert (boats.title, boats.key, boats.read_by, len(boats.chunks)) == ("Boats", "boats.md", "text", 2)
        assert boats.chunk_count > 2 and boats.tokens > 1_000
        assert boats.chunks[0].text.startswith("# Boats")
        assert (cakes.chunks, cakes.chunk_count) == ((), 1)
        assert [failure.name for failure in preview.failures] == ["a.gif"]
        assert (await engine.documents.list(collection="new")).documents == ()
        with pytest.raises(InvalidInput):
            await engine.jobs.preview_files([], collection="new")
        with pytest.raises(NotFound):
            await engine.jobs.preview_files(uploads, collection="none")

    async def test_a_page_that_must_not_be_fetched_fails_its_job(self, engine: AnyEngine) -> None:
        """With the code of the reason; what is no address is refused at once."""
        job = await engine.jobs.ingest_url(
            "http://127.0.0.1:9/", headers={"X": "y"}, chunk_size=500, overlap=50
        )
        done = await engine.jobs.wait(job.id, timeout=60)
        assert (done.state, done.code) == ("failed", "forbidden_address")
        for wrong in (
            engine.jobs.ingest_url("nonsense"),
            engine.jobs.ingest_url("http://a.example/", method="PROPFIND"),
        ):
            with pytest.raises(InvalidInput):
                await wrong
        with pytest.raises(InvalidInput):
            await engine.jobs.ingest_url("http://a.example/", colour=1)  # type: ignore[call-arg]
        with pytest.raises(InvalidInput):
            await engine.jobs.ingest_files([])
        with pytest.raises(NotFound) as caught:
            await engine.jobs.wait("none")
        assert (caught.value.kind, caught.value.name) == ("job", "none")

    async def test_a_folder_is_followed(self, engine: AnyEngine, tmp_path: Path) -> None:
        """Connected, brought in step, and let go with what it brought."""
        files = tmp_path / "files"
        files.mkdir()
        (files / "a.md").write_text("# A\n\nabout ferries", encoding="utf-8")
        wiki_folder = await engine.connections.create(
            "wiki", "markdown", {"path": str(files)}, collection="new"
        )
        assert [connection.id for connection in await engine.connections.list(collection="new")] == [
            wiki_folder.id
        ]
        job = await engine.jobs.wait((await engine.connections.sync("wiki", collection="new")).id)
        assert (job.state, await engine.documents.count(collection="new")) == ("succeeded", 1)
        assert (await engine.connections.delete("wiki", collection="new", delete=True)).documents == 1
        with pytest.raises(NotFound) as caught:
            await engine.connections.sync("wiki", collection="new")
        assert caught.value.kind == "connection"
        with pytest.raises(InvalidInput):
            await engine.connections.create("a/b", "markdown", {"path": str(files)})

    async def test_calls_to_providers_are_listed(self, engine: AnyEngine, local: AnyEngine) -> None:
        """As far as there were any."""
        assert await engine.jobs.list_requests() == await local.jobs.list_requests()
        assert await engine.jobs.request_totals(hours=1) == await local.jobs.request_totals(hours=1)
        for wrong in (engine.jobs.list_requests(limit=0), engine.jobs.request_totals(hours=0)):
            with pytest.raises(InvalidInput):
                await wrong
